//! Errors of finding or using the location of a store.

use std::io;
use std::path::{Path, PathBuf};
use tenure_core::ResourceError;
use tenure_core::glob::GlobError;

/// The location of a store cannot be found or used. Each error names the path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// A folder or file on the way could not be read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// What could not be read.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// There is a git repository, but its git directory cannot be found.
    #[error("the git repository at {} is broken: {problem}", .path.display())]
    BrokenRepository {
        /// The file that points nowhere.
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
    /// A link is in the place of the store's folder, and points to no folder.
    #[error("{} is a link to {}, which does not exist", .path.display(), .target.display())]
    DanglingLink {
        /// The link.
        path: PathBuf,
        /// Its target.
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
        /// The cause.
        source: io::Error,
    },
    /// The folder is on a network file system, where locks may not exclude.
    #[error("{} is on a network file system ({name}), where locks cannot be trusted", .path.display())]
    Network {
        /// The folder.
        path: PathBuf,
        /// The kind of file system.
        name: &'static str,
    },
    /// The folder is on a FUSE file system, which may be local or not.
    #[error("{} is on a FUSE file system, where locks may not work", .path.display())]
    UserSpace {
        /// The folder.
        path: PathBuf,
    },
    /// The user claims that exclusion was tested on such a file system, but no record says so.
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

    /// The kind of file system, if that is the reason.
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

/// A path that is not a valid resource.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// A path that is not below the root.
    #[error("{} is {}", .path.display(), outside(.root.as_deref()))]
    Outside {
        /// The path as it was given.
        path: PathBuf,
        /// The root, if there is one.
        root: Option<PathBuf>,
    },
    /// A link in the path points out of the root, or nowhere.
    #[error("path {path:?} is outside the repository: {} is a link to {}", .link.display(), .target.display())]
    LeadsOut {
        /// The path, relative to the root.
        path: String,
        /// The link.
        link: PathBuf,
        /// The target of the link.
        target: PathBuf,
    },
    /// The path begins with `~`, which only shells expand, and not after a colon.
    #[error("path {path:?} begins with `~`, which is not expanded here")]
    Home {
        /// The path as it was given.
        path: String,
    },
    /// The path is not UTF-8.
    #[error("the path {path:?} is not UTF-8")]
    NotText {
        /// The path.
        path: PathBuf,
    },
    /// A single worktree was requested outside a repository.
    #[error("no worktrees here: this is not a git repository")]
    NoWorktree,
    /// The text is not a resource.
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
