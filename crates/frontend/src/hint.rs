//! Hints: the next step after an error, in one sentence, in the words of the command line.
//!
//! The library's errors say what happened; this file knows which command or option helps.

use tenure::Error;
use tenure::core::ResourceError;
use tenure::core::rules::tasks::EditError;
use tenure::file::FileError;
use tenure::locate::LocateError;
use tenure::locate::{TRUST_VARIABLE, TrustError};
use tenure::place::{PathError, PlaceError};
use tenure::server_support::local_server::ServerFolderError;
use tenure::store::StoreError;

/// An error for which there may be a next step.
pub trait Hint {
    /// The next step, in one sentence; `None` if there is none.
    fn hint(&self) -> Option<String>;
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

impl Hint for Error {
    fn hint(&self) -> Option<String> {
        match self {
            Error::Store(error) => Hint::hint(error),
            Error::Url(error) => Some(error.hint()),
            Error::Resource(ResourceError::Path(error)) => error.hint().map(str::to_owned),
            Error::Deadlock(cycle) if cycle.own_lease => some(
                "A detached lease does not cover a command of the same label: pass its grant with \
                 --grant, or release it first.",
            ),
            Error::Deadlock(_) => {
                some("Release what you hold first, or ask for all resources in one request.")
            }
            Error::NoSuchTask { .. } | Error::Edit(EditError::NotFound { .. }) => {
                some("List all tasks with `tenure tasks list`.")
            }
            Error::Ambiguous { .. } => some("Give the full id."),
            _ => None,
        }
    }
}

impl Hint for StoreError {
    fn hint(&self) -> Option<String> {
        match self {
            StoreError::Unknown { .. } => some("Check with `tenure status` before you retry."),
            // A server that refuses for another reason sends its own hint.
            StoreError::Refused { hint: None, .. } => some(
                "Set TENURE_SERVER_TOKEN to a token. On the server's machine, print its own with \
                 `tenure token show`, or create one with `tenure token create`.",
            ),
            other => other.hint(),
        }
    }
}

impl Hint for PlaceError {
    fn hint(&self) -> Option<String> {
        some(match self {
            PlaceError::Unreadable { .. } => {
                "check that it exists and is readable, or name a store with TENURE_STORE"
            }
            PlaceError::BrokenRepository { .. } => {
                "run `git worktree repair` in the main worktree, or remove the file if the \
                 repository is gone"
            }
            PlaceError::NoHome { .. } => {
                "set HOME, create a .tenure folder here, or name a store with TENURE_STORE"
            }
            PlaceError::DanglingLink { .. } => {
                "create that folder (for example by mounting its disk), or remove the link"
            }
            PlaceError::ReadOnly { .. } => {
                "make it writable, or set TENURE_STORE to a store on another disk, such as \
                 sqlite:PATH; the store here can be read but not changed"
            }
            PlaceError::NotWritable { .. } => {
                "check the owner and permissions of the folder, or set TENURE_STORE to another store, \
                 such as sqlite:PATH"
            }
            PlaceError::Network { .. } => {
                "use a store on a local disk: set TENURE_STORE to sqlite:PATH; for several machines, \
                 use a server (`tenure serve`)"
            }
            PlaceError::UserSpace { .. } => {
                "use a store on a local disk: set TENURE_STORE to sqlite:PATH"
            }
            PlaceError::NotShown { path, .. } => {
                return Some(format!(
                    "run `tenure selftest --store file:{}` first, or use a store on a local disk",
                    path.display()
                ));
            }
            _ => return None,
        })
    }
}

impl Hint for PathError {
    fn hint(&self) -> Option<String> {
        match self {
            PathError::Outside { .. } => {
                some("name a path in the repository, or a lock for files outside it")
            }
            PathError::Home { .. } => some("write the path itself, or \"path:$HOME/…\""),
            PathError::LeadsOut { .. } => some("use a named lock for files outside the repository"),
            PathError::NotText { .. } => some("rename it, or hold its folder"),
            PathError::NoWorktree => some("omit --per-worktree"),
            PathError::Resource(ResourceError::Path(error)) => error.hint().map(str::to_owned),
            PathError::StoreLocation(error) => error.hint(),
            _ => None,
        }
    }
}

impl Hint for LocateError {
    fn hint(&self) -> Option<String> {
        match self {
            LocateError::Url(error) => Some(error.hint()),
            LocateError::Untrusted(_) => some(
                "A person who has read the file can accept it with `tenure trust`; or name a \
                 store with --store.",
            ),
            LocateError::Foreign(_) => some(
                "A person who knows that user can accept it with `tenure trust`; or name a \
                 store with --store.",
            ),
            LocateError::Trust(error) => error.hint(),
            _ => None,
        }
    }
}

impl Hint for TrustError {
    fn hint(&self) -> Option<String> {
        match self {
            TrustError::Variable => {
                Some(format!("Get the hash with `tenure trust --show`, or unset {TRUST_VARIABLE}."))
            }
            TrustError::NoHome => Some(format!("Set HOME, or use {TRUST_VARIABLE}.")),
            TrustError::Unsafe { .. } => some("Make it yours alone: chown, and chmod go-w."),
            TrustError::Io { .. } => some("Check its owner, and whether the disk is full."),
            TrustError::NotText { .. } => some("Rename the folder."),
            _ => None,
        }
    }
}

impl Hint for ServerFolderError {
    fn hint(&self) -> Option<String> {
        match self {
            ServerFolderError::Exposed { path } if path.is_dir() => {
                Some(format!("Run `chmod 700 {}`.", path.display()))
            }
            ServerFolderError::Exposed { path } => Some(format!(
                "Run `chmod 600 {}` if no other user has read it; else start the server with \
                 --new-token.",
                path.display()
            )),
            ServerFolderError::Foreign { .. } => some(
                "Set XDG_STATE_HOME to a folder of this user, or create tokens with `tenure \
                 token create`.",
            ),
            ServerFolderError::Empty { .. } => {
                some("Start the server with --new-token to create another.")
            }
            ServerFolderError::Io { .. } => some(
                "Set XDG_STATE_HOME to a folder that this user can write, or create tokens with \
                 `tenure token create`.",
            ),
            _ => None,
        }
    }
}

impl Hint for FileError {
    fn hint(&self) -> Option<String> {
        some(match self {
            FileError::NotAFile { .. } => "Name a plain file.",
            FileError::NoFolder { .. } => "Create the folder first.",
            FileError::ReadOnly { .. } => "Make it writable first: chmod u+w FILE",
            FileError::Changed { .. } => {
                "Try again: the new content was based on the old one and was not written."
            }
            FileError::Linked { .. } => "Replace this name alone with --overwrite.",
            FileError::Locked { .. } => "Retry when that program has released it.",
            FileError::Full { .. } => "Free disk space; the file is unchanged.",
            FileError::LongLine { .. } => "Check that the input has line breaks.",
            _ => return None,
        })
    }
}
