//! How a worker takes turns: with a lock of the store, a kernel lock, or a file that only one
//! process can create or rename.

use super::trial::Trial;
use super::worker::Work;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure::blocking::{Attempt, Client, Guard};
use tenure::{Error, Wait};

/// The name of the lock in the scratch store.
const LOCK: &str = "selftest";

/// A wait longer than this is a failure.
pub(super) const LIMIT: Duration = Duration::from_secs(20);

/// The pause between attempts where there is no notification.
const PAUSE: Duration = Duration::from_micros(200);

/// The content of a lock file, long enough that a partial write is noticed.
const CONTENT: &[u8] = &[b'x'; 200];

/// Why a process got no turn.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoTurn {
    /// The test is over.
    #[error("the test is over")]
    Over,
    /// The file system does not support it.
    #[error("{0}")]
    Missing(io::Error),
    /// It was not obtained although its holder must be dead.
    #[error("it was not obtained within {} seconds", LIMIT.as_secs())]
    Starved,
    /// A lock file was half written.
    #[error("a lock file was half written")]
    Torn,
    /// A file had content that no process had written.
    #[error("{0}")]
    Wrong(String),
    /// A file operation failed.
    #[error("{0}")]
    File(io::Error),
    /// The store failed.
    #[error("{0}")]
    Store(#[from] Error),
}

/// Converts an error of the file system; a missing feature is not a failure.
impl From<io::Error> for NoTurn {
    fn from(error: io::Error) -> NoTurn {
        match is_missing(&error) {
            true => NoTurn::Missing(error),
            false => NoTurn::File(error),
        }
    }
}

/// Whether the error says that the file system does not support the operation.
pub(super) fn is_missing(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    // Linux reports EPERM without hard links, and EINVAL where names cannot be swapped.
    matches!(error.kind(), Unsupported | InvalidInput | PermissionDenied)
}

/// A way of taking turns with the other processes.
pub(super) enum Contender {
    /// Takes a lock of the store.
    Store { client: Client, guard: Option<Guard> },
    /// Takes a kernel lock.
    KernelLock { file: File },
    /// Links its draft to the name of the lock file.
    HardLink { draft: PathBuf, lock: PathBuf },
    /// Renames a shared file to a name of its own.
    Rename { baton: PathBuf, own: PathBuf },
    /// Takes no lock; for tests of the selftest itself.
    Nobody,
}

impl Contender {
    /// The contender of this process; `None` if the trial has no turns.
    pub(super) fn new(work: &Work) -> Result<Option<Contender>, NoTurn> {
        let file = |name: &str| work.folder.join(name);
        let own = file(&format!("own-{}", std::process::id()));
        Ok(Some(match work.trial {
            Trial::Store if work.without_lock => Contender::Nobody,
            Trial::Store => {
                let builder = tenure::Client::builder().retention(work.retention);
                Contender::Store { client: Client::open_with(builder, &work.url)?, guard: None }
            }
            Trial::KernelLock => {
                let open = File::options().create(true).append(true).open(file("lock"));
                Contender::KernelLock { file: open.map_err(NoTurn::File)? }
            }
            Trial::HardLink => {
                fs::write(&own, CONTENT).map_err(NoTurn::File)?;
                Contender::HardLink { draft: own, lock: file("lock") }
            }
            Trial::Rename => Contender::Rename { baton: file("baton"), own },
            Trial::Replace | Trial::Exchange => return Ok(None),
        }))
    }

    /// Waits for a turn; returns its token if there is one.
    pub(super) fn enter(&mut self, is_over: impl Fn() -> bool) -> Result<Option<u64>, NoTurn> {
        match self {
            Contender::Store { client, guard } => {
                // A folder with a single lock has no other.
                let only = client.asynchronous().dialect().only_resource();
                let request = match &only {
                    Some(only) => client.request(only),
                    None => client.request(LOCK),
                };
                let request = request.wait(Wait::UpTo(LIMIT));
                let Attempt::Held(held) = client.hold(request)? else {
                    return Err(NoTurn::Starved);
                };
                let token = held.token().0;
                *guard = Some(held);
                Ok(Some(token))
            }
            Contender::KernelLock { file } => {
                lock(file)?;
                Ok(None)
            }
            Contender::HardLink { draft, lock } => again(is_over, || link(draft, lock)),
            Contender::Rename { baton, own } => again(is_over, || match fs::rename(&baton, &own) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                renamed => Ok(renamed.map(|()| true)?),
            }),
            Contender::Nobody => Ok(None),
        }
    }

    /// Whether the turn still lasts. A lease that this process was too slow to renew is rightly
    /// lost, and proves nothing.
    pub(super) fn is_held(&self) -> bool {
        match self {
            Contender::Store { guard, .. } => guard.as_ref().is_some_and(Guard::is_held),
            _ => true,
        }
    }

    /// Ends the turn.
    pub(super) fn leave(&mut self) -> Result<(), NoTurn> {
        match self {
            Contender::Store { guard, .. } => {
                if let Some(guard) = guard.take() {
                    guard.release()?;
                }
                Ok(())
            }
            Contender::KernelLock { file } => unlock(file),
            Contender::HardLink { lock, .. } => fs::remove_file(lock).map_err(NoTurn::File),
            Contender::Rename { baton, own } => fs::rename(own, baton).map_err(NoTurn::File),
            Contender::Nobody => Ok(()),
        }
    }
}

/// Retries until it is obtained or the test is over.
fn again(
    is_over: impl Fn() -> bool,
    mut attempt: impl FnMut() -> Result<bool, NoTurn>,
) -> Result<Option<u64>, NoTurn> {
    while !attempt()? {
        if is_over() {
            return Err(NoTurn::Over);
        }
        std::thread::sleep(PAUSE);
    }
    Ok(None)
}

/// Links the draft to the lock file. If another process was first, its lock file must be complete.
fn link(draft: &Path, lock: &Path) -> Result<bool, NoTurn> {
    match fs::hard_link(draft, lock) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match fs::read(lock) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(NoTurn::File(error)),
            Ok(content) if content == CONTENT => Ok(false),
            Ok(_) => Err(NoTurn::Torn),
        },
        linked => Ok(linked.map(|()| true)?),
    }
}

fn lock(file: &File) -> Result<(), NoTurn> {
    use rustix::fs::{FlockOperation, flock};
    loop {
        match flock(file, FlockOperation::LockExclusive) {
            Err(rustix::io::Errno::INTR) => {}
            locked => return Ok(locked.map_err(io::Error::from)?),
        }
    }
}

fn unlock(file: &File) -> Result<(), NoTurn> {
    use rustix::fs::{FlockOperation, flock};
    flock(file, FlockOperation::Unlock).map_err(|error| NoTurn::File(error.into()))
}
