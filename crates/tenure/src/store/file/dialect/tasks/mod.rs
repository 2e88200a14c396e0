//! Task lists of other programs, worked on in place.
//!
//! Their files decide where a task stands; what they have no word for (attempts, labels, sections)
//! the ledger keeps. Before a rule looks at tasks, what the others changed is taken into the ledger
//! (`merge`); what a rule changes is written to their files first and remembered after. What somebody
//! died in between left there is taken in like any other change.
//!
//! A task that another program has is shown as held by it. The ledger has it as pending.

mod coordination;
mod merge;
mod queue;

pub(crate) use merge::Merged;

use super::{Dialect, ForeignRules};
use crate::store::file::error::FileStoreError;
use crate::store::file::failpoint::failpoint;
use crate::store::file::journal::{draft, sync_folder};
use crate::store::ledger::{Ledger, Record};
use crate::store::store_time::StoreTime;
use coordination::Coordination;
use merge::Entry;
use queue::Queue;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure_core::format_duration;
use tenure_core::{
    Claim, GrantId, Hold, HoldSnapshot, Holder, Mode, Resource, Scope, Snapshot, Status, Task,
    TaskId, Token, WallTime, Want,
};

/// How long another program's claim lasts that its own protocol never ends.
const CLAIM_LASTS: Duration = Duration::from_secs(365 * 24 * 3600);

/// Another program's task list.
pub(crate) struct ForeignTasks {
    files: Files,
    rules: ForeignRules,
    /// What other programs have, and since when.
    claims: BTreeMap<TaskId, Foreign>,
    /// What makes no sense in the list, one sentence each.
    problems: Vec<String>,
}

enum Files {
    Coordination(Coordination),
    Queue(Queue),
}

/// Another program's claim.
#[derive(Clone, Debug)]
pub(super) struct Foreign {
    pub(super) by: String,
    pub(super) since: Option<WallTime>,
}

/// The files of the list that a folder of this dialect has.
pub(super) fn files(dialect: Dialect, folder: &Path) -> Vec<PathBuf> {
    match dialect {
        Dialect::Coordination => vec![folder.join("tasks.json")],
        Dialect::Worker => queue::files(folder),
        Dialect::Swarm | Dialect::Memory => vec![],
    }
}

impl ForeignTasks {
    /// The list that a folder of this dialect has.
    pub(crate) fn new(
        (dialect, rules): (Dialect, ForeignRules),
        folder: &Path,
        own: &Path,
        store: &str,
    ) -> Option<ForeignTasks> {
        let files = match dialect {
            Dialect::Coordination => Files::Coordination(Coordination::new(folder, own, store)),
            Dialect::Worker => Files::Queue(Queue::new(folder, own, store)),
            Dialect::Swarm | Dialect::Memory => return None,
        };
        Some(ForeignTasks { files, rules, claims: BTreeMap::new(), problems: Vec::new() })
    }

    /// Keeps the others from changing the list while the answer lives, as far as their protocol goes.
    pub(crate) fn lock(&self) -> Result<Option<File>, FileStoreError> {
        match &self.files {
            Files::Coordination(files) => files.lock().map(Some),
            Files::Queue(_) => Ok(None),
        }
    }

    /// What the others changed since the last time; nothing if they did not.
    pub(crate) fn take_in(
        &mut self,
        ledger: &Ledger,
        at: StoreTime,
    ) -> Result<Option<Merged>, FileStoreError> {
        let entries: Option<Vec<Entry>> = match &mut self.files {
            Files::Coordination(files) => files.read()?,
            Files::Queue(files) => files.read()?,
        };
        let Some(entries) = entries else { return Ok(None) };
        let mut merged = merge::merge(&entries, ledger, at);
        self.claims = std::mem::take(&mut merged.claims);
        self.problems = match &self.files {
            Files::Coordination(files) => files.problems().to_vec(),
            Files::Queue(files) => files.problems().to_vec(),
        };
        self.problems.append(&mut merged.cycles);
        Ok(Some(merged))
    }

    /// Writes what a change does to tasks, on disk when it returns. A claim of another program that
    /// the change ends is ended in its file.
    pub(crate) fn write(
        &mut self,
        records: &[Record],
        ledger: &Ledger,
        at: StoreTime,
    ) -> Result<(), FileStoreError> {
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
        match &mut self.files {
            Files::Coordination(files) => files.write(records, &freed, &claims, ledger, at)?,
            Files::Queue(files) => files.write(records, ledger, at)?,
        }
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
            let found = claims.find(|(id, foreign)| {
                id.resource() == *resource && name(id, &foreign.by).0 == grant
            });
            found.map(|(id, _)| id.clone())
        };
        dropped.filter_map(named).collect()
    }

    /// What makes no sense in the list, one sentence each.
    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Writes these tasks as the ledger has them: another program overwrote what it had not seen.
    pub(crate) fn rewrite(
        &mut self,
        ids: &[TaskId],
        ledger: &Ledger,
        at: StoreTime,
    ) -> Result<(), FileStoreError> {
        let tasks = ids.iter().filter_map(|id| ledger.tasks.get(id));
        let records: Vec<Record> = tasks.map(|task| Record::Task(Box::new(task.clone()))).collect();
        match &mut self.files {
            Files::Coordination(files) => files.write(&records, &[], &self.claims, ledger, at),
            // Nothing is ever overwritten there.
            Files::Queue(_) => Ok(()),
        }
    }

    /// Shows what other programs have as held by them.
    pub(crate) fn overlay(&self, seen: &mut Snapshot, scope: &Scope, at: StoreTime) {
        let shown: Vec<&TaskId> = match scope {
            Scope::Everything => self.claims.keys().collect(),
            Scope::At { resources, .. } | Scope::Queues(resources) => {
                let named = |id: &&TaskId| resources.contains(&id.resource());
                self.claims.keys().filter(named).collect()
            }
            Scope::Tasks(_) => {
                let named = |id: &&TaskId| seen.tasks.iter().any(|task| task.id == **id);
                self.claims.keys().filter(named).collect()
            }
        };
        for id in shown {
            let foreign = &self.claims[id];
            seen.holds.push(self.show(id, foreign, at));
        }
    }

    /// The tasks that other programs have.
    pub(crate) fn claimed(&self) -> impl Iterator<Item = &TaskId> {
        self.claims.keys()
    }

    /// Shows a task as in progress if another program has it, unless its claim is too old to count.
    pub(crate) fn show_claim(&self, task: &mut Task, at: StoreTime) {
        if let Some(foreign) = self.claims.get(&task.id)
            && !self.show(&task.id, foreign, at).lapsed()
        {
            let (grant, token) = name(&task.id, &foreign.by);
            task.status = Status::InProgress;
            task.claim = Some(Claim { by: foreign.by.clone(), grant, token, parts: vec![] });
            task.claimed_at = foreign.since;
        }
    }

    /// Another program's claim as a hold. Their protocol has no limit; the user may have set one.
    fn show(&self, id: &TaskId, foreign: &Foreign, at: StoreTime) -> HoldSnapshot {
        let (grant, token) = name(id, &foreign.by);
        let since = foreign.since.unwrap_or(WallTime(at.wall_ms));
        let age_ms = u64::try_from(at.wall_ms.saturating_sub(since.0)).unwrap_or(0);
        let age = Duration::from_millis(age_ms);
        let limit = self.rules.claim_limit.filter(|_| foreign.since.is_some());
        let stale = limit.filter(|limit| age >= *limit).map(|limit| {
            format!("claim is {} old (>{})", format_duration(age), format_duration(limit))
        });
        let (stale, left) = match (stale, limit) {
            (Some(reason), _) if !self.rules.break_stale => {
                (Some(format!("{reason}; not taken over (break_stale=no)")), CLAIM_LASTS)
            }
            (Some(reason), _) => (Some(reason), Duration::ZERO),
            (None, Some(limit)) => (None, limit.saturating_sub(age)),
            (None, None) => (None, CLAIM_LASTS),
        };
        HoldSnapshot {
            hold: Hold {
                want: Want { resource: id.resource(), mode: Mode::Exclusive },
                grant,
                token,
                holder: Holder { label: foreign.by.clone(), chosen: false, evidence: None },
                operation: None,
                ttl: limit.unwrap_or(CLAIM_LASTS),
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

    /// Reads all of it the next time: what was read or written last was not remembered.
    pub(crate) fn read_again(&mut self) {
        match &mut self.files {
            Files::Coordination(files) => files.read_again(),
            Files::Queue(files) => files.read_again(),
        }
    }

    /// Whether other programs did something since the list was read. Under their lock they cannot.
    pub(crate) fn has_news(&self) -> Result<bool, FileStoreError> {
        match &self.files {
            Files::Coordination(_) => Ok(false),
            Files::Queue(files) => files.has_news(),
        }
    }
}

/// A grant and a token that only name the claim: it has none.
fn name(id: &TaskId, by: &str) -> (GrantId, Token) {
    let hash: [u8; 32] = Sha256::digest(format!("{id}\n{by}")).into();
    let bits = u128::from_le_bytes(hash[..16].try_into().expect("16 of 32 bytes"));
    (GrantId::from_bits(bits), Token((bits as u64) >> 24))
}

/// Replaces a file of other programs in one step, with the permissions that it had; on disk when it
/// returns. Tells what the new file is, so that a later change by others can be told from it.
fn replace(
    path: &Path,
    document: &Value,
    drafts: &Path,
    steps: [&'static str; 2],
) -> io::Result<std::fs::Metadata> {
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
        let written = file.metadata()?;
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

    /// What could not be remembered, on a full disk for example, must not be passed over later.
    #[test]
    fn a_list_that_did_not_change_is_read_again_only_if_told_to() {
        let at = StoreTime { now_ms: 0, begin_ms: 0, wall_ms: 0 };
        for (dialect, file, list) in [
            (Dialect::Coordination, "tasks.json", r#"{"tasks":[{"id":"a","description":"d"}]}"#),
            (Dialect::Worker, "queue.json", r#"{"tasks":[{"id":"a","instruction":"d"}]}"#),
        ] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(file), list).unwrap();
            let log = "{\"task_id\":\"a\",\"status\":\"completed\"}\n";
            std::fs::write(folder.path().join("execution_log.jsonl"), log).unwrap();
            let mut board = ForeignTasks::new(
                (dialect, ForeignRules::default()),
                folder.path(),
                folder.path(),
                "s",
            )
            .unwrap();
            let mut news = || board.take_in(&Ledger::default(), at).unwrap();
            let first = news().expect("all is new");
            assert!(news().is_none(), "{file} did not change");
            board.read_again();
            let again = board.take_in(&Ledger::default(), at).unwrap().expect("told to");
            assert_eq!(first.records, again.records);
        }
    }
}
