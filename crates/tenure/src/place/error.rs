//! Why a place cannot be found or used.

use std::io;
use std::path::{Path, PathBuf};
use tenure_core::ResourceError;
use tenure_core::glob::GlobError;

/// A place for a store that cannot be found or used. Each names the path in question.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// A folder or file on the way could not be read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// What could not be read.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A git repository announces itself but cannot be followed to its git directory.
    #[error("the git repository at {} is broken: {problem}", .path.display())]
    BrokenRepository {
        /// The file that leads nowhere.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// There is no repository, no `.tenure` and no home directory.
    #[error("no location for a store: {} is not in a git repository, and there is no home directory", .path.display())]
    NoHome {
        /// Where the search started.
        path: PathBuf,
    },
    /// A link stands where the store's folder is expected, and leads to no folder.
    #[error("{} is a link to {}, which does not exist", .path.display(), .target.display())]
    DanglingLink {
        /// The link.
        path: PathBuf,
        /// What it says.
        target: PathBuf,
    },
    /// The folder is on a file system that is mounted read-only.
    #[error("{} is on a read-only file system", .path.display())]
    ReadOnly {
        /// The folder.
        path: PathBuf,
    },
    /// The folder or a file in it could not be created.
    #[error("cannot create {}: {source}", .path.display())]
    NotWritable {
        /// What could not be created.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder is on a network file system, where locks may not exclude anybody.
    #[error("{} is on a network file system ({name}), where locks cannot be trusted", .path.display())]
    Network {
        /// The folder.
        path: PathBuf,
        /// The kind of file system, as people call it.
        name: &'static str,
    },
    /// The folder is on a file system run by another program (FUSE), which may be local or not.
    #[error("{} is on a FUSE file system, where locks may not work", .path.display())]
    UserSpace {
        /// The folder.
        path: PathBuf,
    },
    /// The user says that exclusion was shown on such a file system, but no record says so.
    #[error("{} is on a file system that is refused ({name}), and {problem}", .path.display())]
    NotShown {
        /// The folder.
        path: PathBuf,
        /// The kind of file system.
        name: &'static str,
        /// What is wrong with the record.
        problem: String,
    },
}

impl PlaceError {
    /// The path in question.
    pub fn path(&self) -> &Path {
        match self {
            Self::Unreadable { path, .. }
            | Self::BrokenRepository { path, .. }
            | Self::NoHome { path }
            | Self::DanglingLink { path, .. }
            | Self::ReadOnly { path }
            | Self::NotWritable { path, .. }
            | Self::Network { path, .. }
            | Self::UserSpace { path }
            | Self::NotShown { path, .. } => path,
        }
    }

    /// The kind of file system, where that is the reason.
    pub fn file_system(&self) -> Option<&'static str> {
        match self {
            Self::Network { name, .. } | Self::NotShown { name, .. } => Some(name),
            Self::UserSpace { .. } => Some("FUSE"),
            _ => None,
        }
    }

    pub(super) fn from_reading(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::Unreadable { path, source }
    }

    pub(super) fn from_writing(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            _ => Self::NotWritable { path, source },
        }
    }
}

/// A path that is no resource here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// An absolute path that is not below the root.
    #[error("{} is {}", .path.display(), outside(.root.as_deref()))]
    Outside {
        /// As it was given.
        path: PathBuf,
        /// The root, if there is one.
        root: Option<PathBuf>,
    },
    /// A link on the way leads out of the root, or nowhere.
    #[error("path {path:?} leads out of the repository: {} is a link to {}", .link.display(), .target.display())]
    LeadsOut {
        /// The path, relative to the root.
        path: String,
        /// The link.
        link: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// A name that is not UTF-8 cannot be part of a path.
    #[error("the path {path:?} is not UTF-8")]
    NotText {
        /// The path.
        path: PathBuf,
    },
    /// A single worktree is meant where there is none.
    #[error("no worktrees here: this is not a git repository")]
    NoWorktree,
    /// What is written is no resource.
    #[error(transparent)]
    Resource(#[from] ResourceError),
    /// The repository cannot be read.
    #[error(transparent)]
    StoreLocation(#[from] PlaceError),
}

impl From<GlobError> for PathError {
    fn from(error: GlobError) -> PathError {
        PathError::Resource(error.into())
    }
}

fn outside(root: Option<&Path>) -> String {
    match root {
        Some(root) => format!("outside {}", root.display()),
        None => "absolute, and there is no repository here".to_owned(),
    }
}
