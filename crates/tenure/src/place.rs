//! Where the default store lives.
//!
//! Everybody who works on the same thing must find the same store without being told:
//!
//! 1. In a git repository: `.tenure/` at the root of the *main* worktree, so that all linked
//!    worktrees share one store ([`PlaceKind::Repository`]).
//! 2. Elsewhere: the nearest `.tenure/` upward ([`PlaceKind::Folder`]).
//! 3. Failing that: a folder of the user's own ([`PlaceKind::User`]).
//!
//! [`find`] only looks. [`StoreLocation::prepare`] creates, and [`check_file_system`] tells whether locks
//! can be trusted there, [`check_exclusion`] the same where the user says that it was shown. [`StoreLocation::resource_of`] and [`StoreLocation::resource`] tell which resource a file
//! or a written path is.

mod error;
mod exclusion;
mod file_system;
mod git;
mod machine;
mod paths;
mod real_path;
#[cfg(test)]
mod tests;

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

/// The folder that holds a store, in a repository or in any other folder.
const FOLDER_NAME: &str = ".tenure";

/// What [`find`] looks at, besides the file system.
///
/// `GIT_DIR` and its relatives are not here on purpose: git sets them for hooks and aliases, and
/// the same folder would then lead to different stores depending on who started the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// Where the search starts: usually the working directory. It must exist.
    pub directory: PathBuf,
    /// The user's home, if there is one.
    pub home: Option<PathBuf>,
    /// Where the user keeps the state of programs: `XDG_STATE_HOME`.
    pub state_home: Option<PathBuf>,
}

impl Surroundings {
    /// The surroundings of this process, searching from `directory`.
    ///
    /// Reads the environment. Relative and empty paths in it are ignored, as the XDG base
    /// directory specification asks.
    pub fn of_process(directory: PathBuf) -> Self {
        Self {
            directory,
            home: std::env::home_dir().filter(|path| path.is_absolute()),
            state_home: absolute(std::env::var_os("XDG_STATE_HOME")),
        }
    }

    /// The user's own folder for stores and for what tenure remembers of the user, without looking
    /// whether it exists.
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

/// A folder for a store, existing or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreLocation {
    /// The folder that holds everything: `.tenure`, or the user's own folder.
    pub folder: PathBuf,
    /// By which rule it was found.
    pub kind: PlaceKind,
    /// Whether the folder was there when [`find`] looked.
    pub exists: bool,
}

/// The rule by which a [`StoreLocation`] was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceKind {
    /// In a git repository.
    Repository {
        /// The root of the main worktree. Where there is none that git could name (a bare
        /// repository, or one with a separate git directory): the common git directory.
        root: PathBuf,
        /// The root of the worktree in which the search started, main or linked. Inside a bare
        /// repository: the same as `root`.
        worktree_root: PathBuf,
    },
    /// Outside a repository, in a folder that has a `.tenure`.
    Folder,
    /// Outside a repository, in the user's own folder.
    User,
}

impl StoreLocation {
    /// The database of the embedded store.
    pub fn database(&self) -> PathBuf {
        self.folder.join("tenure.db")
    }

    /// The settings that everybody at this place shares.
    pub fn config_file(&self) -> PathBuf {
        self.folder.join("config.yaml")
    }

    /// Creates the folder, and the `.gitignore` by which `.tenure` ignores all in it but its
    /// settings, which a team may want to commit.
    ///
    /// Safe to call any number of times and from many processes at once. An existing `.gitignore`
    /// is left alone, so that a team can choose to commit what it likes, unless it is exactly what
    /// earlier versions of tenure made.
    pub fn prepare(&self) -> Result<(), PlaceError> {
        create_folder(&self.folder, matches!(self.kind, PlaceKind::User))
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

/// What a `.tenure` ignores: everything, this file included, but for the settings.
const IGNORED: &[u8] = b"*\n!config.yaml\n";

/// What earlier versions made, by which the settings could not be committed.
const IGNORED_BEFORE: &[u8] = b"*\n";

/// Lets a folder ignore itself, as far as that is possible.
pub(crate) fn ignore_in_git(folder: &Path) {
    let _ = create_if_absent(&folder.join(".gitignore"), IGNORED);
}

/// Lets the repository around a folder ignore these files in it, as far as that is possible.
pub(crate) fn exclude_in_git(folder: &Path, names: &[&str]) {
    let _ = git::exclude(folder, names);
}

/// Finds where the default store lives. Creates nothing.
///
/// Symbolic links in the starting directory are resolved first, so that every way into a folder
/// leads to the same place.
pub fn find(surroundings: &Surroundings) -> Result<StoreLocation, PlaceError> {
    let directory = canonical(&surroundings.directory)?;
    if let Some(repository) = git::find(&directory)? {
        let folder = match repository.main_worktree {
            Some(_) => FOLDER_NAME,
            // Inside the common git directory: it is the one folder that all linked worktrees
            // know, and the folder around it may hold many repositories. Git leaves names that it
            // does not know alone and never tracks them, so the leading dot is not needed.
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

/// Whether there is a folder. A link that leads to none is an error: passing over it would lead to
/// another store than everybody else's. A file of that name is something else, and passed over.
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

fn create_folder(folder: &Path, private: bool) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    if private {
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    }
    builder.create(folder)
}

/// Writes beside and links into place: whoever is killed in between leaves no half of a file, which
/// would pass for the user's own at the next call.
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

/// Replaces a plain file that has exactly this content. A file that may not be replaced stays: what
/// git ignores is no reason to stop.
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

/// A name of its own beside a file, for what is to take its place.
fn beside(file: &Path) -> PathBuf {
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!(".{}.new", uuid::Uuid::new_v4().simple()));
    beside.into()
}
