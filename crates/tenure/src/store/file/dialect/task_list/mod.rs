//! Task lists of other programs, worked on in place.
//!
//! Their files decide where a task stands; what they have no field for (attempts, labels, sections)
//! the ledger keeps. Before a rule sees tasks, the other programs' changes are taken into the ledger
//! (`reconcile`). A change that a rule decides is written to their files first and remembered after;
//! if the writer dies in between, it is taken in like any other program's change.
//!
//! A task that another program has is shown as held by it. The ledger has it as pending.
//!
//! - `queue_json` — the list of the dialect `worker`. `tasks_json` — that of `coordination`.
//! - `cycles` — tasks that wait for themselves.

mod cycles;
mod queue_json;
mod reconcile;
mod tasks_json;

pub(super) use queue_json::QueueJson;
pub(super) use tasks_json::TasksJson;

use super::{SharedFolder, TakeoverRules};
use crate::store::file::error::FileStoreError;
use crate::store::file::failpoint::failpoint;
use crate::store::file::journal::{draft, sync_folder};
use crate::store::ledger::{Ledger, Record};
use crate::store::store_time::StoreTime;
use reconcile::{Entry, Reconciled};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};
use tenure_core::{
    Claim, GrantId, Hold, HoldSnapshot, Holder, Mode, NO_LIMIT, Resource, Scope, Snapshot, Status,
    Task, TaskId, Token, WallTime, Want, format_duration,
};

/// The files of a task list, in the format of one dialect.
pub(super) trait TaskList: Send {
    /// Keeps other programs from changing the list while the answer lives; `None` if their protocol
    /// has no lock for that.
    fn lock(&self) -> Result<Option<File>, FileStoreError>;

    /// Reads the list; `None` if it did not change since it was last read or written.
    fn read(&mut self) -> Result<Option<Vec<Entry>>, FileStoreError>;

    /// What is invalid in the list that was read last, one sentence each.
    fn problems(&self) -> &[String];

    /// Writes a change. It is on disk when this returns.
    fn write(&mut self, change: &ListChange<'_>) -> Result<(), FileStoreError>;

    /// Makes the next [`read`](Self::read) return everything.
    fn forget(&mut self);

    /// Whether other programs changed the list since it was read. Under their lock they cannot.
    fn has_changed(&self) -> Result<bool, FileStoreError>;
}

/// A change of tasks, for the files of a list.
pub(super) struct ListChange<'a> {
    pub(super) records: &'a [Record],
    /// Tasks whose claim by another program ends, and of which nothing else changes.
    pub(super) freed: &'a [TaskId],
    /// The claims of other programs that go on.
    pub(super) claims: &'a BTreeMap<TaskId, ForeignClaim>,
    /// What was remembered before the change.
    pub(super) ledger: &'a Ledger,
    pub(super) at: StoreTime,
}

/// Another program's task list, and who has which task of it.
pub(crate) struct ForeignTasks {
    list: Box<dyn TaskList>,
    takeover: TakeoverRules,
    /// The claims of other programs.
    claims: BTreeMap<TaskId, ForeignClaim>,
    /// What is invalid in the list, one sentence each.
    problems: Vec<String>,
}

/// Another program's claim.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ForeignClaim {
    pub(super) by: String,
    pub(super) since: Option<WallTime>,
}

/// What changes whenever a file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileVersion {
    inode: u64,
    modified: Option<SystemTime>,
    bytes: u64,
}

impl FileVersion {
    /// The version of a file; `None` if there is no such file.
    fn of(path: &Path) -> io::Result<Option<FileVersion>> {
        match std::fs::metadata(path) {
            Ok(meta) => Ok(Some(FileVersion::from(&meta))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl From<&Metadata> for FileVersion {
    fn from(meta: &Metadata) -> FileVersion {
        let inode = std::os::unix::fs::MetadataExt::ino(meta);
        FileVersion { inode, modified: meta.modified().ok(), bytes: meta.len() }
    }
}

impl ForeignTasks {
    /// The task list of a shared folder; none if its dialect has no such list.
    pub(crate) fn new(shared: &SharedFolder<'_>) -> Option<ForeignTasks> {
        Some(ForeignTasks {
            list: shared.dialect.0.task_list()?.open(shared),
            takeover: shared.takeover,
            claims: BTreeMap::new(),
            problems: Vec::new(),
        })
    }

    /// Keeps other programs from changing the list while the answer lives, as far as their protocol
    /// allows it.
    pub(crate) fn lock(&self) -> Result<Option<File>, FileStoreError> {
        self.list.lock()
    }

    /// What to remember of other programs' changes since the last time; `None` if they made none.
    pub(crate) fn take_in(
        &mut self,
        ledger: &Ledger,
        at: StoreTime,
    ) -> Result<Option<Reconciled>, FileStoreError> {
        let Some(entries) = self.list.read()? else { return Ok(None) };
        let mut reconciled = reconcile::reconcile(&entries, ledger, at);
        self.claims = std::mem::take(&mut reconciled.claims);
        self.problems = self.list.problems().to_vec();
        self.problems.append(&mut reconciled.cycles);
        Ok(Some(reconciled))
    }

    /// Writes what a change does to tasks. It is on disk when this returns. A claim of another
    /// program that the change ends is ended in its file.
    pub(crate) fn write(
        &mut self,
        records: &[Record],
        ledger: &Ledger,
        at: StoreTime,
    ) -> Result<(), FileStoreError> {
        let listed: Vec<Record>;
        let records = match records.iter().any(|record| is_history(record, ledger)) {
            true => {
                let others = records.iter().filter(|record| !is_history(record, ledger));
                listed = others.cloned().collect();
                &listed
            }
            false => records,
        };
        let ended = self.ended_claims(records);
        let decided = |id: &TaskId| {
            records.iter().any(|record| matches!(record, Record::Task(task) if task.id == *id))
        };
        let freed: Vec<TaskId> = ended.iter().filter(|id| !decided(id)).cloned().collect();
        let is_about_tasks =
            records.iter().any(|record| matches!(record, Record::Task(_) | Record::DropTask(_)));
        if !is_about_tasks && freed.is_empty() {
            return Ok(());
        }
        let mut claims = self.claims.clone();
        claims.retain(|id, _| !ended.contains(id));
        let change = ListChange { records, freed: &freed, claims: &claims, ledger, at };
        self.list.write(&change)?;
        self.claims = claims;
        Ok(())
    }

    /// The claims of other programs that these records end.
    fn ended_claims(&self, records: &[Record]) -> Vec<TaskId> {
        let dropped = records.iter().filter_map(|record| match record {
            Record::DropHold { resource, grant } => Some((resource, *grant)),
            _ => None,
        });
        let named = |(resource, grant): (&Resource, GrantId)| {
            let mut claims = self.claims.iter();
            let found = claims.find(|(id, claim)| {
                id.resource() == *resource && claim_names(id, &claim.by).0 == grant
            });
            found.map(|(id, _)| id.clone())
        };
        dropped.filter_map(named).collect()
    }

    /// What is invalid in the list, one sentence each.
    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Writes these tasks as the ledger has them, because another program overwrote a change that it
    /// had not seen.
    pub(crate) fn rewrite(
        &mut self,
        ids: &[TaskId],
        ledger: &Ledger,
        at: StoreTime,
    ) -> Result<(), FileStoreError> {
        let tasks = ids.iter().filter_map(|id| ledger.tasks.get(id));
        let records: Vec<Record> = tasks.map(|task| Record::Task(Box::new(task.clone()))).collect();
        let change = ListChange { records: &records, freed: &[], claims: &self.claims, ledger, at };
        self.list.write(&change)
    }

    /// Adds other programs' claims to a snapshot, as holds.
    pub(crate) fn add_to(&self, snapshot: &mut Snapshot, scope: &Scope, at: StoreTime) {
        let shown: Vec<&TaskId> = match scope {
            Scope::Everything | Scope::Waits { .. } => self.claims.keys().collect(),
            Scope::At { resources, .. } | Scope::Queues(resources) => {
                let named = |id: &&TaskId| resources.contains(&id.resource());
                self.claims.keys().filter(named).collect()
            }
            Scope::Tasks(_) => {
                let named = |id: &&TaskId| snapshot.tasks.iter().any(|task| task.id == **id);
                self.claims.keys().filter(named).collect()
            }
        };
        for id in shown {
            snapshot.holds.push(self.as_hold(id, &self.claims[id], at));
        }
    }

    /// The tasks that other programs have.
    pub(crate) fn claimed(&self) -> impl Iterator<Item = &TaskId> {
        self.claims.keys()
    }

    /// Shows a task as in progress if another program has it, unless its claim is too old to count.
    pub(crate) fn show_claim(&self, task: &mut Task, at: StoreTime) {
        if let Some(claim) = self.claims.get(&task.id)
            && !self.as_hold(&task.id, claim, at).lapsed()
        {
            let (grant, token) = claim_names(&task.id, &claim.by);
            task.status = Status::InProgress;
            task.claim = Some(Claim::new(claim.by.clone(), grant, token));
            task.claimed_at = claim.since;
        }
    }

    /// Another program's claim as a hold. Their protocol has no limit; the user may have set one.
    fn as_hold(&self, id: &TaskId, claim: &ForeignClaim, at: StoreTime) -> HoldSnapshot {
        let (grant, token) = claim_names(id, &claim.by);
        let since = claim.since.unwrap_or(WallTime(at.wall_ms));
        let age_ms = u64::try_from(at.wall_ms.saturating_sub(since.0)).unwrap_or(0);
        let age = Duration::from_millis(age_ms);
        let limit = self.takeover.claim_limit.filter(|_| claim.since.is_some());
        let stale = limit.filter(|limit| age >= *limit).map(|limit| {
            format!("claim is {} old (>{})", format_duration(age), format_duration(limit))
        });
        let (stale, ttl, left) = match (stale, limit) {
            (Some(reason), _) if !self.takeover.break_stale => {
                (Some(format!("{reason}; not taken over (break_stale=no)")), NO_LIMIT, NO_LIMIT)
            }
            (stale, Some(limit)) => (stale, limit, limit.saturating_sub(age)),
            (stale, None) => (stale, NO_LIMIT, NO_LIMIT),
        };
        HoldSnapshot {
            hold: Hold {
                want: Want { resource: id.resource(), mode: Mode::Exclusive },
                grant,
                token,
                holder: Holder::anonymous(claim.by.clone()),
                operation: None,
                ttl,
                slot: None,
            },
            left,
            held_for: age,
            acquired_at: since,
            renewed_at: since,
            expires_at: WallTime(at.wall_ms.saturating_add(left.as_millis() as i64)),
            stale,
        }
    }

    /// Reads all of the list the next time, because what was read or written last was not remembered.
    pub(crate) fn forget(&mut self) {
        self.list.forget();
    }

    /// Whether other programs changed the list since it was read.
    pub(crate) fn has_changed(&self) -> Result<bool, FileStoreError> {
        self.list.has_changed()
    }
}

/// Whether a record changes nothing of a task but its notes and tries, which lists cannot express.
fn is_history(record: &Record, ledger: &Ledger) -> bool {
    let Record::Task(task) = record else { return false };
    ledger.tasks.get(&task.id).is_some_and(|known| {
        let mut task = (**task).clone();
        (task.notes, task.tries) = (known.notes.clone(), known.tries.clone());
        task == *known
    })
}

/// A grant and a token by which another program's claim is named. It has none of its own.
fn claim_names(id: &TaskId, by: &str) -> (GrantId, Token) {
    let hash: [u8; 32] = Sha256::digest(format!("{id}\n{by}")).into();
    let bits = u128::from_le_bytes(hash[..16].try_into().expect("16 of 32 bytes"));
    (GrantId::from_bits(bits), Token((bits as u64) >> 24))
}

/// Replaces a file of other programs in one step and keeps its permissions. It is on disk when this
/// returns. The answer is the version of the new file: any other is a later change by others.
fn replace(
    path: &Path,
    document: &Value,
    drafts: &Path,
    steps: [&'static str; 2],
) -> io::Result<FileVersion> {
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let draft = draft(drafts);
    let written = (|| {
        let mut file = File::create_new(&draft)?;
        let mut text = serde_json::to_vec_pretty(document)?;
        text.push(b'\n');
        file.write_all(&text)?;
        if let Ok(meta) = std::fs::metadata(&target) {
            file.set_permissions(meta.permissions())?;
        }
        file.sync_all()?;
        let written = FileVersion::from(&file.metadata()?);
        failpoint(steps[0]);
        std::fs::rename(&draft, &target)?;
        failpoint(steps[1]);
        sync_folder(target.parent().unwrap_or(Path::new(".")))?;
        Ok(written)
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::Dialect;

    /// What could not be remembered, on a full disk for example, must not be passed over later.
    #[test]
    fn a_list_that_did_not_change_is_read_again_only_if_told_to() {
        let at = StoreTime { now_ms: 0, begin_ms: 0, wall_ms: 0 };
        for (dialect, file, list) in [
            (Dialect::COORDINATION, "tasks.json", r#"{"tasks":[{"id":"a","description":"d"}]}"#),
            (Dialect::WORKER, "queue.json", r#"{"tasks":[{"id":"a","instruction":"d"}]}"#),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path();
            std::fs::write(path.join(file), list).unwrap();
            let log = "{\"task_id\":\"a\",\"status\":\"completed\"}\n";
            std::fs::write(path.join("execution_log.jsonl"), log).unwrap();
            let takeover = TakeoverRules::default();
            let shared = SharedFolder { dialect, takeover, path, own: path, store: "s" };
            let mut tasks = ForeignTasks::new(&shared).unwrap();
            let mut changes = || tasks.take_in(&Ledger::default(), at).unwrap();
            let first = changes().expect("all is new");
            assert!(changes().is_none(), "{file} did not change");
            tasks.forget();
            let again = tasks.take_in(&Ledger::default(), at).unwrap().expect("told to");
            assert_eq!(first.records, again.records);
        }
    }
}
