//! The lock files of other programs: what they say, when they are stale, where they lie.
//!
//! - `foreign` — reading and writing each format. `lock_file` — one file, and changing exactly it.
//! - `tasks` — their lists of tasks.
//! - `face` — how such files join what the ledger knows. `watch` — noticing when one goes away.

mod foreign;
mod foreign_locks;
mod lock_file;
mod tasks;
mod watch;

pub(super) use foreign_locks::{Beaten, ForeignLocks, make_drafts};
pub(super) use tasks::ForeignTasks;
pub(super) use watch::{LOOK_AT_LEAST, Watch};

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use tenure_core::{Kind, Resource};

/// Whose lock files a folder has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// One `TASK.lock` for each task that a worker has.
    Worker,
    /// A list of tasks, changed under a kernel lock beside it.
    Coordination,
    /// One lock file for each path that an agent edits, named by a hash.
    Swarm,
    /// One `.lock` for a whole folder.
    Memory,
}

/// When locks and claims of other programs may be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignRules {
    /// Whether a lock that is stale by its dialect's rule is taken over. If not, it counts as held
    /// until its owner or an operator removes it.
    pub break_stale: bool,
    /// How old another program's claim in a task list may become before it counts as lapsed. Their
    /// own protocol has no limit.
    pub claim_limit: Option<Duration>,
}

impl Default for ForeignRules {
    fn default() -> ForeignRules {
        ForeignRules { break_stale: true, claim_limit: None }
    }
}

/// The name of the one lock of a folder in the dialect [`Dialect::Memory`].
pub const MEMORY_LOCK: &str = "memory";

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 4] =
        [Dialect::Worker, Dialect::Coordination, Dialect::Swarm, Dialect::Memory];

    /// The word in a URL.
    pub fn word(self) -> &'static str {
        match self {
            Dialect::Worker => "worker",
            Dialect::Coordination => "coordination",
            Dialect::Swarm => "swarm",
            Dialect::Memory => "memory",
        }
    }

    /// What a plain name means, where only the other programs' locks can be meant: a worker's task,
    /// an agent's path. `None` where it means what it always does.
    pub fn kind_of_names(self) -> Option<Kind> {
        match self {
            Dialect::Worker => Some(Kind::Task),
            Dialect::Swarm => Some(Kind::Path),
            Dialect::Coordination | Dialect::Memory => None,
        }
    }

    /// The resource that is meant where none is named.
    pub fn only_resource(self) -> Option<Resource> {
        let memory = || Resource::new(Kind::Lock, MEMORY_LOCK).expect("a plain name");
        (self == Dialect::Memory).then(memory)
    }

    /// The lease of a hold that no process is tied to, unless told otherwise; none where it is the
    /// usual one. Programs of [`Dialect::Memory`] hold for seconds, and take over what is older.
    pub fn detached_lease(self) -> Option<Duration> {
        (self == Dialect::Memory).then(|| self.stale_after())
    }

    /// The files of the other programs' task list, beside the lock files.
    pub(crate) fn task_files(self, folder: &Path) -> Vec<PathBuf> {
        tasks::files(self, folder)
    }

    /// How old a lock may become before the other programs take it away.
    fn stale_after(self) -> Duration {
        match self {
            Dialect::Worker | Dialect::Coordination | Dialect::Swarm => Duration::from_secs(300),
            Dialect::Memory => Duration::from_secs(30),
        }
    }

    /// The lock file that stands for a resource.
    fn file_of(self, folder: &Path, resource: &Resource) -> Option<PathBuf> {
        let name = match (self, resource.kind()) {
            (Dialect::Worker, Kind::Task) if is_file_name(resource.name()) => {
                format!("{}.lock", resource.name())
            }
            (Dialect::Swarm, Kind::Path) if is_lock_name(resource.name()) => {
                resource.name().to_owned()
            }
            (Dialect::Swarm, Kind::Path) if resource.worktree().is_none() => {
                format!("{:x}.lock", Sha256::digest(resource.name()))
            }
            (Dialect::Memory, Kind::Lock) if resource.name() == MEMORY_LOCK => ".lock".to_owned(),
            _ => return None,
        };
        Some(folder.join(name))
    }

    /// The files of the folder that only exist while programs run, as git patterns.
    pub(super) fn lock_file_patterns(self) -> &'static [&'static str] {
        match self {
            Dialect::Worker => &["*.lock"],
            Dialect::Coordination => &["tasks.json.lock"],
            Dialect::Swarm => &["*.lock", "*.lock.tmp"],
            Dialect::Memory => &[".lock", ".lock.tmp"],
        }
    }

    /// Whether a resource of this kind may be another program's.
    fn shares(self, kind: Kind) -> bool {
        match self {
            Dialect::Worker => kind == Kind::Task,
            Dialect::Swarm => kind == Kind::Path,
            // Its one lock is about all of the folder, whatever a request calls it.
            Dialect::Memory => true,
            Dialect::Coordination => false,
        }
    }
}

/// Whether a task's id can be the name of a file beside others.
fn is_file_name(name: &str) -> bool {
    !name.starts_with('.') && !name.contains(['/', '\\']) && name.len() <= 200
}

/// Whether a path is the name of a lock file itself, by which one that cannot be read is known.
fn is_lock_name(name: &str) -> bool {
    let hash = name.strip_suffix(".lock");
    hash.is_some_and(|hash| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The word is no dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a dialect")]
pub struct DialectError {
    /// What was given.
    pub word: String,
}

impl FromStr for Dialect {
    type Err = DialectError;

    fn from_str(word: &str) -> Result<Dialect, DialectError> {
        let found = Dialect::ALL.into_iter().find(|dialect| dialect.word() == word);
        found.ok_or_else(|| DialectError { word: word.to_owned() })
    }
}
