//! The lock files and task lists of other programs, which tenure reads and writes in place.
//!
//! A dialect is one family of such programs. [`DialectRules`] says what there is to know of one;
//! each has a file of its own:
//!
//! - `native` — no other programs. `worker`, `swarm`, `memory` — programs with lock files.
//!   `worker`, `coordination` — programs with a task list.
//! - `lock_content` — what a lock file says. `lock_file` — one file, and changing exactly it.
//!   `lock_folder` — all of them. `foreign_locks` — how they join what the ledger knows.
//! - `task_list` — the task lists. `folder_watch` — noticing that a lock file was removed.

mod coordination;
mod folder_watch;
mod foreign_locks;
mod lock_content;
mod lock_file;
mod lock_folder;
mod memory;
mod native;
mod swarm;
mod task_list;
mod worker;

pub(super) use folder_watch::{FolderWatch, RECHECK_INTERVAL};
pub(super) use foreign_locks::{FileChange, ForeignLocks};
pub(super) use lock_folder::make_drafts;
pub(super) use task_list::ForeignTasks;

use lock_content::LockContent;
use serde_json::{Map, Value};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use task_list::TaskList;
use tenure_core::{Hold, Kind, Resource, WallTime};

/// Whose lock files and task list a folder has. Two dialects are equal if their names are.
#[derive(Debug, Clone, Copy)]
pub struct Dialect(&'static dyn DialectRules);

/// When locks and claims of other programs may be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakeoverRules {
    /// Whether a lock that is stale by its dialect's rule is taken over. If not, it counts as held
    /// until its owner or an operator removes it.
    pub break_stale: bool,
    /// How old another program's claim in a task list may become before it counts as lapsed. Their
    /// own protocol has no limit.
    pub claim_limit: Option<Duration>,
}

impl Default for TakeoverRules {
    fn default() -> TakeoverRules {
        TakeoverRules { break_stale: true, claim_limit: None }
    }
}

/// What programs of a dialect do where they are not told otherwise; `None` where tenure's own
/// defaults apply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HoldDefaults {
    /// The lease of a hold that no process is tied to.
    pub detached_lease: Option<Duration>,
    /// How long to wait for a lock.
    pub wait: Option<Duration>,
    /// The environment variable that has the holder's label.
    pub label_variable: Option<&'static str>,
}

/// What a dialect is: its name, where its files lie, and what they mean. All other code asks this
/// trait and never which dialect it has before it.
trait DialectRules: fmt::Debug + Sync {
    /// The word in a URL.
    fn name(&self) -> &'static str;

    /// The files of the folder that only exist while programs run, as git patterns.
    fn temporary_files(&self) -> &'static [&'static str];

    /// The format of its lock files; none if its programs have no such files.
    fn lock_files(&self) -> Option<&'static dyn LockFiles>;

    /// The format of its task list; none if its programs have no such list.
    fn task_list(&self) -> Option<&'static dyn TaskListFormat>;

    fn defaults(&self) -> HoldDefaults;
}

/// The format of lock files: what they are called, what they say, and when they are stale.
trait LockFiles: fmt::Debug + Sync {
    /// What the lock files of a folder lock.
    fn subject(&self) -> Subject;

    /// How old a lock of a holder about which nothing else is known may become before the other
    /// programs take it away.
    fn stale_after(&self) -> Duration;

    /// By which of its rules a lock becomes stale.
    fn stale_rule(&self, lock: &LockContent) -> StaleRule;

    /// The name of the lock file that stands for a resource; none if the resource can have none.
    fn file_name(&self, resource: &Resource) -> Option<String>;

    /// The resource that a lock file stands for, by its name without `.lock` and by what it says.
    /// There is no content if the file cannot be read.
    fn resource(&self, stem: &str, content: Option<&LockContent>) -> Option<Resource>;

    /// Whether the name of a lock file does not show what it locks, so that one that cannot be read
    /// may lock anything.
    fn hides_resource(&self) -> bool;

    /// Whether nothing but locks belongs into the folder.
    fn owns_folder(&self) -> bool;

    /// The names of the fields that every lock has.
    fn field_names(&self) -> FieldNames;

    /// The fields of a lock that tenure holds, dated so that the other programs judge it rightly.
    fn fields(&self, hold: &Hold, date: WallTime) -> Map<String, Value>;
}

/// The format of a task list.
trait TaskListFormat: fmt::Debug + Sync {
    /// The files of the list of a folder, existing or not.
    fn files(&self, folder: &Path) -> Vec<PathBuf>;

    fn open(&self, shared: &SharedFolder<'_>) -> Box<dyn TaskList>;

    /// Whether a claim never ends by itself, so that the user may set a limit.
    fn has_endless_claims(&self) -> bool;
}

/// What the lock files of a folder lock.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    /// There is a file for each resource of this kind that is held.
    Each(Kind),
    /// There is one file, for the whole folder.
    Folder(Resource),
}

impl Subject {
    /// Whether a hold of this kind of resource needs a lock file, for the other programs to see it.
    fn includes(&self, kind: Kind) -> bool {
        match self {
            Subject::Each(each) => *each == kind,
            Subject::Folder(_) => true,
        }
    }
}

/// When a lock becomes stale.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StaleRule {
    /// At this age.
    Age(Duration),
    /// At this age, because its holder is on another machine and cannot be looked for.
    OtherHost { host: String, after: Duration },
    /// At once: the process that held it has ended.
    DeadProcess { pid: u32 },
}

/// The fields by which a lock file names its holder.
#[derive(Debug, Clone, Copy)]
struct FieldNames {
    holder: &'static str,
    since: &'static str,
    operation: Option<&'static str>,
}

/// A folder that tenure shares with other programs.
#[derive(Debug, Clone, Copy)]
pub(super) struct SharedFolder<'a> {
    pub(super) dialect: Dialect,
    pub(super) takeover: TakeoverRules,
    /// The folder of their lock files.
    pub(super) path: &'a Path,
    /// Where tenure keeps its own records.
    pub(super) own: &'a Path,
    /// The id of the store, by which tenure recognises its own files.
    pub(super) store: &'a str,
}

impl Dialect {
    /// Tenure's own files and no other program's.
    pub const NATIVE: Dialect = Dialect(&native::Native);
    /// One `TASK.lock` for each task that a worker has, a `queue.json` and a log.
    pub const WORKER: Dialect = Dialect(&worker::Worker);
    /// A list of tasks, `tasks.json`, changed under a kernel lock on a file beside it.
    pub const COORDINATION: Dialect = Dialect(&coordination::Coordination);
    /// One lock file for each path that an agent edits, named by a hash of the path.
    pub const SWARM: Dialect = Dialect(&swarm::Swarm);
    /// One `.lock` for a whole folder.
    pub const MEMORY: Dialect = Dialect(&memory::Memory);

    /// The dialects of other programs.
    pub const FOREIGN: [Dialect; 4] =
        [Dialect::WORKER, Dialect::COORDINATION, Dialect::SWARM, Dialect::MEMORY];

    /// The word in a URL.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Whether no other program has files in the folder.
    pub fn is_native(self) -> bool {
        self.0.lock_files().is_none() && self.0.task_list().is_none()
    }

    /// The kind of resource that a plain name means, where the other programs' locks are all of one
    /// kind: a worker's task, an agent's path. `None` where a name means what it always does.
    pub fn kind_of_names(self) -> Option<Kind> {
        match self.subject()? {
            Subject::Each(kind) => Some(kind),
            Subject::Folder(_) => None,
        }
    }

    /// The one resource of a folder that has one lock for everything.
    pub fn only_resource(self) -> Option<Resource> {
        match self.subject()? {
            Subject::Each(_) => None,
            Subject::Folder(resource) => Some(resource),
        }
    }

    /// What its programs do where they are not told otherwise.
    pub fn defaults(self) -> HoldDefaults {
        self.0.defaults()
    }

    /// Where tenure keeps its own records in a folder of this dialect.
    pub(crate) fn own_folder(self, folder: &Path) -> PathBuf {
        match self.is_native() {
            true => folder.to_owned(),
            false => folder.join(".tenure"),
        }
    }

    /// The files of its task list, existing or not.
    pub(crate) fn task_files(self, folder: &Path) -> Vec<PathBuf> {
        self.0.task_list().map_or_else(Vec::new, |list| list.files(folder))
    }

    /// Whether a claim in its task list never ends by itself.
    pub(crate) fn has_endless_claims(self) -> bool {
        self.0.task_list().is_some_and(|list| list.has_endless_claims())
    }

    pub(super) fn temporary_files(self) -> &'static [&'static str] {
        self.0.temporary_files()
    }

    fn subject(self) -> Option<Subject> {
        self.0.lock_files().map(LockFiles::subject)
    }
}

impl Default for Dialect {
    fn default() -> Dialect {
        Dialect::NATIVE
    }
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Dialect) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Dialect {}

/// The word is no dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{word:?} is not a dialect")]
pub struct DialectError {
    /// What was given.
    pub word: String,
}

impl FromStr for Dialect {
    type Err = DialectError;

    fn from_str(word: &str) -> Result<Dialect, DialectError> {
        let mut known = [Dialect::NATIVE].into_iter().chain(Dialect::FOREIGN);
        known
            .find(|dialect| dialect.name() == word)
            .ok_or_else(|| DialectError { word: word.to_owned() })
    }
}
