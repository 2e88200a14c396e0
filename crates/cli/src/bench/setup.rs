//! The folder of a measurement: a new one, never a store in use.

use super::BenchError;
use crate::failure::Failure;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use tenure::place::{self, FileSystem};

/// A folder that is removed on drop, and the settings of a run.
pub(crate) struct BenchSetup {
    folder: PathBuf,
    file_system: String,
    quick: bool,
    /// The named store for measuring tasks.
    given_store: Option<String>,
    /// The `claimd` program, if one was named.
    peer: Option<PathBuf>,
    files: bool,
}

impl BenchSetup {
    /// Creates a folder in this one. With `files`, stores are file stores.
    pub(crate) fn new(parent: &Path, quick: bool, files: bool) -> Result<BenchSetup, Failure> {
        let file_system = match place::check_file_system(parent)? {
            FileSystem::Local(name) => name.to_owned(),
            FileSystem::Unrecognised(magic) => format!("0x{magic:x}"),
            FileSystem::Unchecked => "unknown".to_owned(),
        };
        let make = || {
            // Absolute, because the path is passed to other processes.
            let parent = std::fs::canonicalize(parent)?;
            let name = format!(".tenure-bench-{}", std::process::id());
            let folder = parent.join(name);
            std::fs::create_dir(&folder)?;
            Ok(folder)
        };
        let folder =
            make().map_err(|source| BenchError::Folder { folder: parent.to_owned(), source })?;
        Ok(BenchSetup { folder, file_system, quick, files, given_store: None, peer: None })
    }

    /// Sets the store for tasks and the program to compare with.
    pub(crate) fn with(self, given_store: Option<String>, peer: Option<PathBuf>) -> BenchSetup {
        // The fields cannot be moved out, because drop removes the folder.
        let mut setup = self;
        setup.given_store = given_store;
        setup.peer = peer;
        setup
    }

    /// The named store for measuring tasks.
    pub(super) fn given_store(&self) -> Option<&str> {
        self.given_store.as_deref()
    }

    /// The `claimd` program: the named one, or the one on the PATH.
    pub(super) fn peer(&self) -> &Path {
        self.peer.as_deref().unwrap_or(Path::new("claimd"))
    }

    /// The folder itself.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of a file that no other measurement uses.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The URL of a store that no other measurement uses. Each is in a folder of its own: commands
    /// refuse to create a store beside another one.
    pub(super) fn store(&self, name: &str) -> String {
        if self.files {
            return format!("file:{}", self.file(name).display());
        }
        let folder = self.file(name);
        // If it cannot be created, opening the store says so.
        let _ = std::fs::create_dir_all(&folder);
        format!("sqlite:{}", folder.join("tenure.db").display())
    }

    /// Whether stores are file stores.
    pub(super) fn has_files(&self) -> bool {
        self.files
    }

    fn engine(&self) -> String {
        match self.files {
            true => "files".to_owned(),
            false => format!("SQLite {}", rusqlite::version()),
        }
    }

    /// The first value with `--quick`, else the second.
    pub(super) fn scale<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }

    /// The environment of the measurement, as JSON.
    pub(crate) fn json(&self) -> Value {
        json!({
            "file_system": self.file_system,
            "cores": cores(),
            "engine": self.engine(),
            "quick": self.quick,
        })
    }

    /// The environment of the measurement, as text.
    pub(crate) fn words(&self) -> String {
        format!("On {}, {} cores, {}", self.file_system, cores(), self.engine())
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Drop for BenchSetup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A command for this program, without the settings of the user.
pub(super) fn this_program() -> Result<Command, BenchError> {
    let failed = |source| BenchError::Process { program: "tenure".to_owned(), source };
    own_program().map_err(failed)
}

/// As [`this_program`], for other modules.
pub(crate) fn own_program() -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TENURE_") {
            command.env_remove(name);
        }
    }
    Ok(command)
}
