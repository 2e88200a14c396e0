//! Errors of starting a command.

use std::io;
use std::path::PathBuf;

use super::ChildSpec;
use super::guardian::TOO_LATE;
use crate::exit::Exit;

/// ENOEXEC, on every unix; the standard library has no kind for it.
const EXEC_FORMAT_ERROR: i32 = 8;

/// A command that never ran. Exit codes are those of `timeout(1)` and `env(1)`.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program does not exist.
    #[error("cannot run {program:?}: no such program")]
    NotFound {
        /// The program as it was typed.
        program: String,
        /// Whether a file of that name exists; then something that it needs is missing.
        file_exists: bool,
    },
    /// The file exists but cannot be executed.
    #[error("cannot run {program:?}: {source}")]
    NotExecutable {
        /// The program as it was typed.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// The directory to run it in does not exist or is not accessible.
    #[error("cannot run {program:?} in {directory:?}: {source}")]
    Directory {
        /// The program as it was typed.
        program: String,
        /// The directory as it was given.
        directory: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The lease under which it was to run was over by then.
    #[error("the lease was lost before {program:?} could start; it was not started")]
    TooLate {
        /// The program as it was typed.
        program: String,
    },
    /// Anything else: too many processes, too long an argument list, a NUL byte in an argument.
    #[error("cannot run {program:?}: {source}")]
    Other {
        /// The program as it was typed.
        program: String,
        /// The cause.
        source: io::Error,
    },
}

impl SpawnError {
    /// The code to exit with: 127 not found, 126 not executable, 8 a lost lease, 125 otherwise.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } => 126,
            Self::TooLate { .. } => Exit::Lost.code(),
            Self::Directory { .. } | Self::Other { .. } => 125,
        }
    }

    /// The next step for the user, as one sentence.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotFound { program, .. } if program.contains(char::is_whitespace) => {
                "The command is not run by a shell: write program and arguments as separate words, or use: sh -c '…'"
            }
            Self::NotFound { file_exists: true, .. } => {
                "The file exists, but the interpreter in its first line does not."
            }
            Self::NotFound { .. } => {
                "Check the spelling and PATH. Shell aliases and built-ins need: sh -c '…'"
            }
            Self::NotExecutable { .. } => {
                "It must be an executable program or a script with a #! line: chmod +x FILE"
            }
            Self::TooLate { .. } => "Run it again.",
            Self::Directory { .. } => "Create the directory, or choose another.",
            Self::Other { .. } => "Nothing was started.",
        }
    }

    /// Classifies the error of an attempt to start `spec`.
    pub(super) fn from_attempt(spec: &ChildSpec, source: io::Error) -> Self {
        let program = spec.program();
        if source.raw_os_error() == Some(TOO_LATE) {
            return Self::TooLate { program };
        }
        // Reading "." in it needs the same permission as entering it.
        if let Some(directory) = &spec.directory
            && let Err(source) = std::fs::metadata(directory.join("."))
        {
            let directory = directory.clone();
            return Self::Directory { program, directory, source };
        }
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound {
                file_exists: program.contains(std::path::MAIN_SEPARATOR)
                    && std::path::Path::new(&program).exists(),
                program,
            },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ExecutableFileBusy => {
                Self::NotExecutable { program, source }
            }
            _ if source.raw_os_error() == Some(EXEC_FORMAT_ERROR) => {
                Self::NotExecutable { program, source }
            }
            _ => Self::Other { program, source },
        }
    }
}
