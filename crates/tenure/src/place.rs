//! Finds the location of the default store.
//!
//! All users of a project must find the same store without configuration:
//!
//! 1. In a git repository: `.tenure/` at the root of the *main* worktree, so that all linked
//!    worktrees share one store ([`PlaceKind::Repository`]).
//! 2. Elsewhere: the nearest `.tenure/` upward ([`PlaceKind::Folder`]).
//! 3. Otherwise: a per-user folder ([`PlaceKind::User`]).
//!
//! [`find`] only reads. [`StoreLocation::prepare`] creates the folder. [`check_file_system`] and
//! [`check_exclusion`] check that locks can be trusted there. [`StoreLocation::resource_of`] and
//! [`StoreLocation::resource`] map files and typed paths to resources.

mod error;
mod exclusion;
mod file_system;
mod git;
mod machine;
mod paths;
mod real_path;
#[cfg(test)]
mod tests;

use crate::platform::access;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use error::{PathError, PlaceError};
pub use exclusion::{EXCLUSION_FILE, ExclusionRecord, ExclusionResult, check_exclusion};
pub use file_system::{FileSystem, check_file_system};
pub use machine::{MACHINE_FOLDER_VARIABLE, group_id, machine_folder, prepare_machine_folder};
pub use paths::Reach;
pub use real_path::real_path;

/// The name of a store's folder, in a repository or elsewhere.
const FOLDER_NAME: &str = ".tenure";

/// What [`find`] uses besides the file system.
///
/// `GIT_DIR` and related variables are deliberately not used: git sets them for hooks and aliases,
/// and then the same folder would have different stores depending on how the command was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// Where the search starts, usually the working directory. It must exist.
    pub directory: PathBuf,
    /// The user's home, if there is one.
    pub home: Option<PathBuf>,
    /// The folder for the state of programs: `XDG_STATE_HOME`.
    pub state_home: Option<PathBuf>,
}

impl Surroundings {
    /// The surroundings of this process, with the search starting at `directory`.
    ///
    /// Reads the environment. Relative and empty paths in it are ignored, as the XDG base directory
    /// specification requires.
    pub fn of_process(directory: PathBuf) -> Self {
        Self {
            directory,
            home: std::env::home_dir().filter(|path| path.is_absolute()),
            state_home: absolute(std::env::var_os("XDG_STATE_HOME")),
        }
    }

    /// The per-user folder for stores and for tenure's own records, which need not exist.
    pub fn user_folder(&self) -> Option<PathBuf> {
        let default =
            if cfg!(target_os = "macos") { "Library/Application Support" } else { ".local/state" };
        let state_home = match (&self.state_home, &self.home) {
            (Some(state_home), _) => state_home.clone(),
            (None, Some(home)) => home.join(default),
            (None, None) => return None,
        };
        Some(state_home.join("tenure"))
    }
}

/// The folder of a store, existing or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreLocation {
    /// The folder itself: `.tenure`, or the per-user folder.
    pub folder: PathBuf,
    /// The rule by which it was found.
    pub kind: PlaceKind,
    /// Whether the folder existed when [`find`] looked.
    pub exists: bool,
}

/// The rule by which a [`StoreLocation`] was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceKind {
    /// In a git repository.
    Repository {
        /// The root of the main worktree. If git cannot name one (a bare repository, or one with a
        /// separate git directory): the common git directory.
        root: PathBuf,
        /// The root of the worktree in which the search started, main or linked. Inside a bare
        /// repository: the same as `root`.
        worktree_root: PathBuf,
    },
    /// Outside a repository, in a folder that has a `.tenure`.
    Folder,
    /// Outside a repository, in the per-user folder.
    User,
}

impl StoreLocation {
    /// The database of the embedded store.
    pub fn database(&self) -> PathBuf {
        self.folder.join("tenure.db")
    }

    /// The settings that all users of this location share.
    pub fn config_file(&self) -> PathBuf {
        self.folder.join("config.yaml")
    }

    /// Creates the folder, and a `.gitignore` that ignores everything in `.tenure` except its
    /// settings, which a team may want to commit.
    ///
    /// It can be called any number of times and by many processes at once. An existing `.gitignore`
    /// is kept, so that a team can choose what to commit, unless it is exactly the one of earlier
    /// versions.
    pub fn prepare(&self) -> Result<(), PlaceError> {
        create_folder(&self.folder)
            .map_err(|source| PlaceError::from_writing(&self.folder, source))?;
        if self.folder.file_name().is_some_and(|name| name == FOLDER_NAME) {
            let file = self.folder.join(".gitignore");
            create_if_absent(&file, IGNORED)
                .and_then(|()| replace_if(&file, IGNORED_BEFORE, IGNORED))
                .map_err(|source| PlaceError::from_writing(&file, source))?;
        }
        Ok(())
    }

    fn new(folder: PathBuf, kind: PlaceKind) -> Self {
        let exists = folder.is_dir();
        Self { folder, kind, exists }
    }
}

/// The `.gitignore` of a `.tenure`: everything, including itself, except the settings.
const IGNORED: &[u8] = b"*\n!config.yaml\n";

/// The `.gitignore` of earlier versions, with which the settings could not be committed.
const IGNORED_BEFORE: &[u8] = b"*\n";

/// Creates a folder for a store, and those above it that are missing: its owner's alone, or for the group
/// that owns the folder around it.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    access::make_folders(folder)
}

/// Makes a folder ignore itself, if possible.
pub(crate) fn ignore_in_git(folder: &Path) {
    let _ = create_if_absent(&folder.join(".gitignore"), IGNORED);
}

/// Makes the repository around a folder ignore these files in it, if possible.
pub(crate) fn exclude_in_git(folder: &Path, names: &[&str]) {
    let _ = git::exclude(folder, names);
}

/// Finds the location of the default store. It creates nothing.
///
/// Symbolic links in the starting directory are resolved first, so that every path to a folder
/// gives the same location.
pub fn find(surroundings: &Surroundings) -> Result<StoreLocation, PlaceError> {
    let directory = canonical(&surroundings.directory)?;
    if let Some(repository) = git::find(&directory)? {
        let folder = match repository.main_worktree {
            Some(_) => FOLDER_NAME,
            // Inside the common git directory: all linked worktrees know it, and the folder around
            // it may hold many repositories. Git ignores unknown names there and never tracks them,
            // so the leading dot is not needed.
            None => "tenure",
        };
        let root = repository.main_worktree.unwrap_or(repository.common_directory);
        let kind = PlaceKind::Repository {
            worktree_root: repository.worktree.unwrap_or_else(|| root.clone()),
            root: root.clone(),
        };
        let folder = root.join(folder);
        is_folder(&folder)?;
        return Ok(StoreLocation::new(folder, kind));
    }
    for folder in directory.ancestors().map(|folder| folder.join(FOLDER_NAME)) {
        if is_folder(&folder)? {
            return Ok(StoreLocation::new(folder, PlaceKind::Folder));
        }
    }
    match surroundings.user_folder() {
        Some(folder) => Ok(StoreLocation::new(folder, PlaceKind::User)),
        None => Err(PlaceError::NoHome { path: directory }),
    }
}

/// Whether there is a folder. A broken link is an error: skipping it would select another store
/// than other processes use. A file of that name is something else, and skipped.
fn is_folder(folder: &Path) -> Result<bool, PlaceError> {
    match fs::metadata(folder) {
        Ok(meta) if meta.is_dir() => return Ok(true),
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(PlaceError::from_reading(folder, error));
        }
        _ => {}
    }
    match fs::read_link(folder) {
        Ok(target) => Err(PlaceError::DanglingLink { path: folder.to_owned(), target }),
        Err(_) => Ok(false),
    }
}

fn canonical(path: &Path) -> Result<PathBuf, PlaceError> {
    fs::canonicalize(path).map_err(|source| PlaceError::from_reading(path, source))
}

fn absolute(value: Option<OsString>) -> Option<PathBuf> {
    value.map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Writes a temporary file and links it into place: a killed process leaves no partial file, which
/// the next call would take for the user's own.
fn create_if_absent(file: &Path, content: &[u8]) -> io::Result<()> {
    if fs::symlink_metadata(file).is_ok() {
        return Ok(());
    }
    let beside = beside(file);
    let created = fs::write(&beside, content).and_then(|()| match fs::hard_link(&beside, file) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    });
    let _ = fs::remove_file(&beside);
    created
}

/// Replaces a plain file that has exactly this content. A file that cannot be replaced stays: git's
/// ignore rules are no reason to fail.
fn replace_if(file: &Path, before: &[u8], after: &[u8]) -> io::Result<()> {
    let meta = fs::symlink_metadata(file)?;
    if !meta.is_file() || meta.len() != before.len() as u64 || fs::read(file)? != before {
        return Ok(());
    }
    let beside = beside(file);
    let replaced = fs::write(&beside, after).and_then(|()| fs::rename(&beside, file));
    if replaced.is_err() {
        let _ = fs::remove_file(&beside);
    }
    Ok(())
}

/// A temporary name beside a file.
fn beside(file: &Path) -> PathBuf {
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!(".{}.new", uuid::Uuid::new_v4().simple()));
    beside.into()
}
