//! How other programs' lock files join what the ledger knows.
//!
//! Among tenure's own processes the ledger decides. Towards other programs a hold counts only while
//! its lock file is there: the file is made before the hold is remembered, and removed after the
//! hold is forgotten. A hold whose file is gone or another's cannot be renewed, but no other process
//! of tenure takes its place before its time: its holder does not know yet. A file that is not
//! tenure's is shown as a hold of its owner, with the time that the dialect leaves it.

use super::lock_content::{self, LockContent};
use super::lock_file::{self, LockFile};
use super::lock_folder::{LockFolder, is_pattern, paths_in};
use super::{SharedFolder, StaleRule, Subject, TakeoverRules};
use crate::platform;
use crate::store::file::error::FileStoreError;
use crate::store::ledger::{Ledger, Record, StoredHold};
use crate::store::store_time::{StoreTime, from_ms};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tenure_core::{
    Claim, Evidence, GrantId, Hold, HoldSnapshot, Holder, Kind, Mode, Process, Resource, Scope,
    Snapshot, Status, Task, TaskId, Token, WallTime, Want,
};

/// For so long a file that cannot be read must stay as it is before it counts as left behind: its
/// writer may not be done.
const UNREADABLE_GRACE_MS: i64 = 5_000;

/// The lock files of other programs, as holds.
pub(crate) struct ForeignLocks {
    folder: LockFolder,
    dialect_name: &'static str,
    takeover: TakeoverRules,
    store: String,
    /// The files on which the last snapshot is based, by the resource's key.
    judged: HashMap<String, LockFile>,
}

/// What came of changing lock files.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileChange {
    Done,
    /// Another program was faster. All files are as before: look again.
    LostRace,
}

impl ForeignLocks {
    /// The lock files of a shared folder; none if its dialect has no lock files.
    pub(crate) fn new(shared: &SharedFolder<'_>) -> Option<ForeignLocks> {
        let format = shared.dialect.0.lock_files()?;
        Some(ForeignLocks {
            folder: LockFolder::new(format, shared),
            dialect_name: shared.dialect.name(),
            takeover: shared.takeover,
            store: shared.store.to_owned(),
            judged: HashMap::new(),
        })
    }

    /// Adds other programs' locks to a snapshot, and marks holds that lost their file. `asked` is what the
    /// transaction asked for at first: a wider scope does not name its resources, and a file that cannot
    /// be read is known by its name only.
    pub(crate) fn add_to(
        &mut self,
        snapshot: &mut Snapshot,
        scope: &Scope,
        asked: &Scope,
        at: StoreTime,
    ) -> Result<(), FileStoreError> {
        self.judged.clear();
        for (resource, file) in self.folder.in_scope(scope, asked, snapshot)? {
            self.add_file(snapshot, resource, file, at);
        }
        let paths = paths_in(scope, asked, snapshot);
        self.add_unreadable(snapshot, paths, at)?;
        for shown in &mut snapshot.holds {
            let resource = &shown.hold.want.resource;
            if self.folder.path_of(resource).is_some()
                && !self.is_backed(resource, shown.hold.token)
                && !self.is_foreign(resource, shown.hold.grant)
            {
                shown.stale = Some("its lock file was taken away by another program".to_owned());
            }
        }
        snapshot.sort_holds();
        Ok(())
    }

    fn add_file(&mut self, seen: &mut Snapshot, resource: Resource, file: LockFile, at: StoreTime) {
        let key = resource.key();
        // A file of this store backs a hold, or stands for nothing and blocks no request.
        if !self.is_of_this_store(&file) {
            let shown = self.as_hold(resource, &file, at);
            if !seen.holds.iter().any(|known| known.hold.grant == shown.hold.grant) {
                seen.holds.push(shown);
            }
        }
        self.judged.insert(key, file);
    }

    /// Lets a lock that cannot be read block every glob of the scope, since it may be about any path.
    /// That ends with its grace period.
    fn add_unreadable(
        &self,
        snapshot: &mut Snapshot,
        mut globs: Vec<Resource>,
        at: StoreTime,
    ) -> Result<(), FileStoreError> {
        globs.retain(is_pattern);
        for (_, file) in self.folder.unreadable_within(&globs)? {
            for glob in &globs {
                let shown = self.as_hold(glob.clone(), &file, at);
                let known = snapshot.holds.iter().any(|known| {
                    known.hold.grant == shown.hold.grant && known.hold.want.resource.overlaps(glob)
                });
                if !known && !shown.lapsed() {
                    snapshot.holds.push(shown);
                }
            }
        }
        Ok(())
    }

    /// Whether a lock file cannot be read, is in its grace period, and may be about a path of this glob.
    fn has_unreadable_within(
        &self,
        glob: &Resource,
        at: StoreTime,
    ) -> Result<bool, FileStoreError> {
        if !is_pattern(glob) {
            return Ok(false);
        }
        let mut unreadable = self.folder.unreadable_within(std::slice::from_ref(glob))?.into_iter();
        Ok(unreadable.any(|(resource, file)| !self.as_hold(resource, &file, at).lapsed()))
    }

    /// What an operator should know of, one sentence each.
    pub(crate) fn problems(&self, now: WallTime) -> Result<Vec<String>, FileStoreError> {
        self.folder.problems(now)
    }

    /// Temporary files of other programs' locks that were left behind.
    pub(crate) fn abandoned(&self, now: WallTime) -> Vec<PathBuf> {
        self.folder.abandoned(now)
    }

    /// Moves a temporary file that was left behind to where such files are kept.
    pub(crate) fn set_aside(&self, path: &Path) -> Result<(), FileStoreError> {
        self.folder.set_aside(path)
    }

    /// Lock files that processes died over before they got their name.
    pub(crate) fn leftover_drafts(&self) -> Vec<PathBuf> {
        self.folder.leftover_drafts()
    }

    /// Whether a lock file stands for the hold with this token.
    fn is_ours(&self, content: &LockContent, token: Token) -> bool {
        content.own_token(&self.store) == Some(token)
    }

    fn is_of_this_store(&self, file: &LockFile) -> bool {
        self.own_token(file).is_some()
    }

    /// Which hold of this store a lock file stands for.
    fn own_token(&self, file: &LockFile) -> Option<Token> {
        file.content.as_ref().and_then(|content| content.own_token(&self.store))
    }

    fn is_backed(&self, resource: &Resource, token: Token) -> bool {
        let judged = self.judged.get(&resource.key());
        judged.is_some_and(|file| self.own_token(file) == Some(token))
    }

    fn is_foreign(&self, resource: &Resource, grant: GrantId) -> bool {
        let judged = self.judged.get(&resource.key());
        judged.is_some_and(|file| GrantId::from_bits(file.fingerprint) == grant)
    }

    /// Another program's lock file as a hold.
    fn as_hold(&self, resource: Resource, file: &LockFile, at: StoreTime) -> HoldSnapshot {
        let now = WallTime(at.wall_ms);
        let format = self.folder.format;
        let (label, operation, since, left_ms, evidence) = match &file.content {
            Some(lock) => {
                let left_ms = lock.left_ms(format, now);
                let operation = lock.operation.clone();
                let evidence = self.evidence(lock);
                (lock.label.clone(), operation, lock.since, left_ms, evidence)
            }
            None => {
                let age_ms = now.0.saturating_sub(file.modified.0).max(0);
                let name = file.path.file_name().unwrap_or_default().to_string_lossy();
                let label = format!("unreadable lock file {name}");
                let left_ms = UNREADABLE_GRACE_MS.saturating_sub(age_ms).max(0);
                (label, None, file.modified, left_ms, None)
            }
        };
        let stale = match &file.content {
            Some(lock) => lock.stale_reason(format, now),
            None => (left_ms == 0).then(|| "lock file cannot be read".to_owned()),
        };
        let is_kept = !self.takeover.break_stale && file.content.is_some() && left_ms == 0;
        let (stale, left_ms) = match (is_kept, stale) {
            (true, Some(reason)) => {
                let left_ms = format.stale_after().as_millis() as i64;
                (Some(format!("{reason}; not taken over (break_stale=no)")), left_ms)
            }
            (_, stale) => (stale, left_ms),
        };
        HoldSnapshot {
            hold: Hold {
                want: Want { resource, mode: Mode::Exclusive },
                grant: GrantId::from_bits(file.fingerprint),
                // It has none. This one only names it, so that an operator can.
                token: Token((file.fingerprint as u64) >> 24),
                holder: Holder { label, chosen: false, agent: false, evidence },
                operation,
                ttl: format.stale_after(),
                slot: None,
            },
            left: from_ms(left_ms),
            held_for: from_ms(now.0.saturating_sub(since.0)),
            acquired_at: since,
            renewed_at: since,
            expires_at: WallTime(now.0.saturating_add(left_ms)),
            stale,
        }
    }

    /// The process that a lock file names. If it has ended, that proves its death; if there is such a
    /// process, that proves nothing, because the file does not say when its own began.
    fn evidence(&self, lock: &LockContent) -> Option<Evidence> {
        let process = Some(Process { pid: lock.pid?, start: 0 });
        let is_dead = matches!(self.folder.format.stale_rule(lock), StaleRule::DeadProcess { .. });
        if self.takeover.break_stale && is_dead {
            return Some(Evidence { process, ..platform::this_boot() });
        }
        Some(Evidence {
            host: lock.host.clone().unwrap_or_else(|| platform::this_boot().host),
            machine: String::new(),
            boot: String::new(),
            pid_namespace: 0,
            process,
            group: None,
        })
    }

    /// Refuses what this dialect has no lock for, before anything is changed.
    fn admit(&self, record: &Record) -> Result<(), FileStoreError> {
        let Subject::Folder(only) = self.folder.format.subject() else { return Ok(()) };
        let wanted: Vec<&Want> = match record {
            Record::Hold(stored) => vec![&stored.hold.want],
            Record::Wait(stored) => stored.waiter.wants.iter().collect(),
            Record::Task(_) | Record::Section(_) => {
                return Err(FileStoreError::NoTaskList { dialect: self.dialect_name });
            }
            _ => return Ok(()),
        };
        match wanted.into_iter().find(|want| want.resource != only) {
            Some(other) => Err(FileStoreError::OnlyLock {
                resource: other.resource.to_string(),
                only: only.to_string(),
            }),
            None => Ok(()),
        }
    }

    /// Shows a task that another program has as in progress, unless its lock no longer counts.
    pub(crate) fn show_claim(&self, task: &mut Task, at: StoreTime) -> Result<(), FileStoreError> {
        let resource = task.id.resource();
        let file = match self.folder.read(&resource) {
            // It blocks only requests that name the task.
            Err(FileStoreError::Obstacle { .. }) => return Ok(()),
            file => file?,
        };
        let Some(file) = file.filter(|file| !self.is_of_this_store(file)) else { return Ok(()) };
        let shown = self.as_hold(resource, &file, at);
        if shown.lapsed() {
            return Ok(());
        }
        task.status = Status::InProgress;
        task.claimed_at = Some(shown.acquired_at);
        let Hold { holder, grant, token, .. } = shown.hold;
        task.claim = Some(Claim::new(holder.label, grant, token));
        Ok(())
    }

    /// The tasks that have a lock file.
    pub(crate) fn locked_tasks(&self) -> Result<Vec<TaskId>, FileStoreError> {
        if self.folder.format.subject() != Subject::Each(Kind::Task) {
            return Ok(vec![]);
        }
        let found = self.folder.all()?.into_iter();
        Ok(found.filter_map(|(resource, _)| resource.name().parse().ok()).collect())
    }

    /// Makes the lock files of what is about to be remembered, and removes those of other programs
    /// that the rule decided to end.
    pub(crate) fn take(
        &self,
        records: &[Record],
        ledger: &Ledger,
        at: StoreTime,
    ) -> Result<FileChange, FileStoreError> {
        records.iter().try_for_each(|record| self.admit(record))?;
        self.refuse_second_holders(records, ledger)?;
        let mut made: Vec<&StoredHold> = Vec::new();
        for record in records {
            let won = match record {
                Record::Hold(stored) => {
                    let won = self.take_one(stored, at)?;
                    if won {
                        made.push(stored);
                    }
                    won
                }
                Record::DropHold { resource, grant } => {
                    self.end_foreign(resource, *grant, records)?
                }
                Record::Renew(renewed) => {
                    let mut won = true;
                    for resource in &renewed.resources {
                        let holders = ledger.holders(resource).iter();
                        for stored in holders.filter(|stored| stored.hold.grant == renewed.grant) {
                            won &= self.refresh(&renewed.apply_to(stored), at)?;
                        }
                    }
                    won
                }
                _ => true,
            };
            if !won {
                self.remove_made(&made);
                return Ok(FileChange::LostRace);
            }
        }
        Ok(FileChange::Done)
    }

    /// A lock file names one holder: that of a subagent, below what its parent holds, would take the place of
    /// its parent's, and nothing would be left of it when the subagent ends.
    fn refuse_second_holders(
        &self,
        records: &[Record],
        ledger: &Ledger,
    ) -> Result<(), FileStoreError> {
        let ends = |other: &Hold| {
            records.iter().any(|record| {
                matches!(record, Record::DropHold { resource, grant }
                    if *resource == other.want.resource && *grant == other.grant)
            })
        };
        for record in records {
            let Record::Hold(StoredHold { hold, .. }) = record else { continue };
            let resource = &hold.want.resource;
            let mut others = ledger.holders(resource).iter().map(|stored| &stored.hold);
            if self.folder.path_of(resource).is_some()
                && others.any(|other| other.grant != hold.grant && !ends(other))
            {
                return Err(FileStoreError::OnlyExclusive { resource: resource.to_string() });
            }
        }
        Ok(())
    }

    /// Removes the lock files that [`take`](Self::take) made, because the change is not remembered
    /// after all.
    pub(crate) fn undo(&self, records: &[Record]) {
        let made: Vec<&StoredHold> = records
            .iter()
            .filter_map(|record| match record {
                Record::Hold(stored) => Some(stored),
                _ => None,
            })
            .collect();
        self.remove_made(&made);
    }

    fn remove_made(&self, made: &[&StoredHold]) {
        for stored in made {
            let _ = self.remove_own(&stored.hold.want.resource, stored.hold.token);
        }
    }

    /// Makes the lock file of one hold. Returns `false` if another program was faster.
    fn take_one(&self, stored: &StoredHold, at: StoreTime) -> Result<bool, FileStoreError> {
        let resource = &stored.hold.want.resource;
        let Some(path) = self.folder.path_of(resource) else {
            // Held without a lock file, it would only seem to exclude the other programs.
            return match self.folder.format.subject().includes(resource.kind()) {
                true => Err(FileStoreError::NoLockFile { resource: resource.to_string() }),
                false => Ok(true),
            };
        };
        if stored.hold.want.mode != Mode::Exclusive {
            return Err(FileStoreError::OnlyExclusive { resource: resource.to_string() });
        }
        if self.has_unreadable_within(resource, at)? {
            // It was not in the snapshot, so it is new: the next one shows it.
            return Ok(false);
        }
        let judged = self.judged.get(&resource.key());
        let before = judged.and_then(|file| file.content.as_ref());
        let before = before.filter(|before| self.is_ours(before, stored.hold.token));
        let content = self.print(stored, before, at);
        Ok(match judged {
            None => lock_file::create(&path, &content, &self.folder.drafts)?,
            Some(file) => file.replace(&content, &self.folder.drafts, self.aside(file))?,
        })
    }

    /// The content of the lock file of a hold, which keeps the unknown fields of the one before.
    fn print(&self, hold: &StoredHold, before: Option<&LockContent>, at: StoreTime) -> Vec<u8> {
        let fields = before.map(|before| &before.fields);
        lock_content::print(self.folder.format, hold, &self.store, fields, at)
    }

    /// Where to keep a file that is replaced or removed: only one that cannot be read is kept.
    fn aside(&self, file: &LockFile) -> Option<&Path> {
        file.content.is_none().then_some(self.folder.aside.as_path())
    }

    /// Removes another program's lock that an operator ended. One that is taken over stays until the
    /// new holder's file replaces it. Returns `false` if another program was faster.
    fn end_foreign(
        &self,
        resource: &Resource,
        grant: GrantId,
        records: &[Record],
    ) -> Result<bool, FileStoreError> {
        // The lock of a task that is cancelled stays too: its worker removes it when it is done.
        let taken = records.iter().any(|record| match record {
            Record::Hold(stored) => stored.hold.want.resource == *resource,
            Record::Task(task) => task.id.resource() == *resource,
            _ => false,
        });
        let Some(file) = self.judged.get(&resource.key()) else { return Ok(true) };
        if taken || !self.is_foreign(resource, grant) {
            return Ok(true);
        }
        Ok(file.remove(&self.folder.drafts, self.aside(file))?)
    }

    /// Rewrites the lock file of a hold in one step. Returns `false` if the file is another's by now.
    fn refresh(&self, stored: &StoredHold, at: StoreTime) -> Result<bool, FileStoreError> {
        let resource = &stored.hold.want.resource;
        if self.folder.path_of(resource).is_none() {
            return Ok(true);
        }
        let Some(file) = self.folder.read(resource)? else { return Ok(false) };
        let before = file.content.as_ref();
        let Some(before) = before.filter(|before| self.is_ours(before, stored.hold.token)) else {
            return Ok(false);
        };
        let content = self.print(stored, Some(before), at);
        Ok(file.replace(&content, &self.folder.drafts, None)?)
    }

    /// Whether all of these resources still have the lock files of the hold with this token.
    pub(crate) fn has_files(
        &self,
        resources: &[Resource],
        token: Token,
    ) -> Result<bool, FileStoreError> {
        for resource in resources {
            if self.folder.path_of(resource).is_none() {
                continue;
            }
            let file = self.folder.read(resource)?;
            if file.and_then(|file| self.own_token(&file)) != Some(token) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes the lock files of holds that were just forgotten.
    pub(crate) fn release(&self, dropped: &[(Resource, Token)]) -> Result<(), FileStoreError> {
        for (resource, token) in dropped {
            self.remove_own(resource, *token)?;
        }
        Ok(())
    }

    fn remove_own(&self, resource: &Resource, token: Token) -> Result<(), FileStoreError> {
        if let Some(file) = self.folder.read(resource)?
            && self.own_token(&file) == Some(token)
        {
            file.remove(&self.folder.drafts, None)?;
        }
        Ok(())
    }

    /// Tenure's own lock files that stand for no hold: their maker died before the hold was
    /// remembered, or after it was forgotten. Unless the caller is the writer whose turn it is, a file that is
    /// being made may be among them.
    pub(crate) fn orphans(&self, ledger: &Ledger) -> Result<Vec<Orphan>, FileStoreError> {
        let mut orphans = Vec::new();
        for (resource, file) in self.folder.all()? {
            let Some(token) = self.own_token(&file) else { continue };
            let holders = ledger.holders(&resource);
            if !holders.iter().any(|stored| stored.hold.token == token) {
                orphans.push(Orphan { file });
            }
        }
        Ok(orphans)
    }

    /// Removes a lock file that stands for nothing. Returns `false` if another file is there by now.
    pub(crate) fn remove_orphan(&self, orphan: &Orphan) -> Result<bool, FileStoreError> {
        Ok(orphan.file.remove(&self.folder.drafts, None)?)
    }
}

/// A lock file of tenure's that stands for no hold.
pub(crate) struct Orphan {
    file: LockFile,
}
