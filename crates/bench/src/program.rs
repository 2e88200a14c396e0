//! The programs that a measurement starts, without the settings of the user.

use crate::BenchError;
use std::path::PathBuf;
use std::process::Command;

/// The `tenure` command that is measured.
#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
}

impl Program {
    /// The named command, or the one beside this program. It need not exist: few measurements run it.
    pub(crate) fn find(named: Option<PathBuf>) -> Result<Program, BenchError> {
        let find = || match named {
            // Some commands are started in another folder.
            Some(path) => std::path::absolute(path),
            None => Ok(std::env::current_exe()?.with_file_name("tenure")),
        };
        let path = find();
        let failed = |source| BenchError::Process { program: "tenure".to_owned(), source };
        Ok(Program { path: path.map_err(failed)? })
    }

    /// Fails if there is no such command.
    pub(crate) fn check(&self) -> Result<(), BenchError> {
        match self.path.is_file() {
            true => Ok(()),
            false => Err(BenchError::NoProgram { path: self.path.clone() }),
        }
    }

    /// A command for it.
    pub(crate) fn command(&self) -> Command {
        without_settings(Command::new(&self.path))
    }
}

/// A command for this program.
pub(crate) fn this_program() -> std::io::Result<Command> {
    Ok(without_settings(Command::new(std::env::current_exe()?)))
}

fn without_settings(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TENURE_") {
            command.env_remove(name);
        }
    }
    command
}
