//! The folder of a measurement: a new one, never a store in use.

use crate::BenchError;
use crate::program::Program;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
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
    program: Program,
}

impl BenchSetup {
    /// Creates a folder in this one, which is also removed on Ctrl-C. With `files`, stores are file stores.
    pub(crate) fn new(
        parent: &Path,
        quick: bool,
        files: bool,
        program: Program,
    ) -> Result<BenchSetup, BenchError> {
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
        remove_when_interrupted(folder.clone());
        let (given_store, peer) = (None, None);
        Ok(BenchSetup { folder, file_system, quick, given_store, peer, files, program })
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
    pub(crate) fn given_store(&self) -> Option<&str> {
        self.given_store.as_deref()
    }

    /// The `claimd` program: the named one, or the one on the PATH.
    pub(crate) fn peer(&self) -> &Path {
        self.peer.as_deref().unwrap_or(Path::new("claimd"))
    }

    /// The `tenure` command that is measured.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// The folder itself.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of a file that no other measurement uses.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The URL of a store that no other measurement uses. Each is in a folder of its own: commands
    /// refuse to create a store beside another one.
    pub(crate) fn store(&self, name: &str) -> String {
        if self.files {
            return format!("file:{}", self.file(name).display());
        }
        let folder = self.file(name);
        // If it cannot be created, opening the store says so.
        let _ = std::fs::create_dir_all(&folder);
        format!("sqlite:{}", folder.join("tenure.db").display())
    }

    /// Whether stores are file stores.
    pub(crate) fn has_files(&self) -> bool {
        self.files
    }

    fn engine(&self) -> String {
        match self.files {
            true => "files".to_owned(),
            false => format!("SQLite {}", rusqlite::version()),
        }
    }

    /// The first value with `--quick`, else the second.
    pub(crate) fn scale<T>(&self, quick: T, full: T) -> T {
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

/// Removes the folder on Ctrl-C. The workers receive the signal too and end by themselves.
#[expect(
    clippy::disallowed_methods,
    clippy::exit,
    reason = "nothing else would end the measurement"
)]
fn remove_when_interrupted(folder: PathBuf) {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let interrupted = runtime.map(|runtime| runtime.block_on(tokio::signal::ctrl_c()));
        if let Ok(Ok(())) = interrupted {
            let _ = std::fs::remove_dir_all(folder);
            std::process::exit(130);
        }
    });
}
