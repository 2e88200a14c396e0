//! How another program's lock files join what the ledger knows.
//!
//! Among tenure's own, the ledger decides. Towards the others a hold counts only while its lock
//! file is there: it is made before the hold is remembered, and removed after it is forgotten. A
//! hold whose file is gone or another's cannot be renewed, but no other of tenure's takes its place
//! before its time: its holder does not know yet. A file that is not tenure's is shown as a hold of
//! its owner, with the time that the dialect leaves it.

use super::foreign::{self, Foreign};
use super::lock_file::{self, LockFile};
use super::{Dialect, ForeignRules};
use crate::platform;
use crate::store::file::error::FileStoreError;
use crate::store::ledger::{Ledger, Record, StoredHold};
use crate::store::store_time::{StoreTime, from_ms};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tenure_core::format_duration;
use tenure_core::{
    Claim, Evidence, GrantId, Hold, HoldSnapshot, Holder, Mode, Process, Resource, Scope, Snapshot,
    Status, Task, TaskId, Token, WallTime, Want,
};

/// So long must a file that cannot be read have been as it is before it counts as left behind: its
/// writer may not be done.
const UNREADABLE_GRACE_MS: i64 = 5_000;

/// Where lock files are made before they get their name: on the same file system, and out of the
/// other programs' sight. Only whoever has the seat makes any, so what is there otherwise was left
/// behind.
const DRAFTS: &str = "drafts";

/// A folder of another program's lock files.
pub(crate) struct ForeignLocks {
    pub(crate) dialect: Dialect,
    rules: ForeignRules,
    folder: PathBuf,
    /// Where files are made before they get their name.
    drafts: PathBuf,
    /// Where what cannot be read is kept.
    aside: PathBuf,
    store: String,
    /// What was there when the rule looked, by the resource's key.
    judged: HashMap<String, LockFile>,
}

/// Somebody else was faster: look again.
pub(crate) struct Beaten;

/// Makes the folder for files that have no name yet; whoever may only look makes none.
pub(crate) fn make_drafts(own: &Path, look_only: bool) -> std::io::Result<()> {
    match std::fs::create_dir_all(own.join(DRAFTS)) {
        Err(_) if look_only => Ok(()),
        made => made,
    }
}

impl ForeignLocks {
    pub(crate) fn new(
        (dialect, rules): (Dialect, ForeignRules),
        folder: &Path,
        own: &Path,
        store: &str,
    ) -> ForeignLocks {
        ForeignLocks {
            dialect,
            rules,
            folder: folder.to_owned(),
            drafts: own.join(DRAFTS),
            aside: own.join("aside"),
            store: store.to_owned(),
            judged: HashMap::new(),
        }
    }

    /// Adds the others' locks to what a rule sees, and marks what lost its file.
    pub(crate) fn overlay(
        &mut self,
        seen: &mut Snapshot,
        scope: &Scope,
        at: StoreTime,
    ) -> Result<(), FileStoreError> {
        self.judged.clear();
        for (resource, file) in self.files(scope, seen)? {
            self.join(seen, resource, file, at);
        }
        self.join_unreadable(seen, scope, at)?;
        for shown in &mut seen.holds {
            let resource = &shown.hold.want.resource;
            if self.dialect.file_of(&self.folder, resource).is_some()
                && !self.is_backed(resource, shown.hold.token)
                && !self.is_foreign(resource, shown.hold.grant)
            {
                shown.stale = Some("its lock file was taken away by another program".to_owned());
            }
        }
        seen.holds.sort_by_key(|seen| seen.hold.token);
        Ok(())
    }

    /// The lock files that a look is about.
    fn files(
        &self,
        scope: &Scope,
        seen: &Snapshot,
    ) -> Result<Vec<(Resource, LockFile)>, FileStoreError> {
        let resources: Vec<Resource> = match scope {
            Scope::Everything => return self.all(),
            Scope::At { resources, .. } | Scope::Queues(resources) => resources.clone(),
            Scope::Tasks(_) if self.dialect == Dialect::Swarm => paths_of(scope, seen),
            Scope::Tasks(_) => seen.tasks.iter().map(|task| task.id.resource()).collect(),
        };
        match self.dialect {
            Dialect::Swarm => self.overlapping(resources),
            _ => self.named(resources),
        }
    }

    /// Lets a lock that cannot be read stand in the way of every glob that is looked at: its name
    /// is a hash, so it may be about any path. Only in its grace: then it no longer counts.
    fn join_unreadable(
        &self,
        seen: &mut Snapshot,
        scope: &Scope,
        at: StoreTime,
    ) -> Result<(), FileStoreError> {
        if self.dialect != Dialect::Swarm {
            return Ok(());
        }
        let globs: Vec<Resource> = paths_of(scope, seen).into_iter().filter(varies).collect();
        if globs.is_empty() {
            return Ok(());
        }
        for (_, file) in self.all()?.iter().filter(|(_, file)| file.foreign.is_none()) {
            for glob in &globs {
                let shown = self.show(glob.clone(), file, at);
                let known = seen.holds.iter().any(|seen| {
                    seen.hold.grant == shown.hold.grant && seen.hold.want.resource.overlaps(glob)
                });
                if !known && !shown.lapsed() {
                    seen.holds.push(shown);
                }
            }
        }
        Ok(())
    }

    /// The lock file that cannot be read, is in its grace, and may be about a path of this glob.
    fn unreadable_within(
        &self,
        glob: &Resource,
        at: StoreTime,
    ) -> Result<Option<PathBuf>, FileStoreError> {
        if self.dialect != Dialect::Swarm || !varies(glob) {
            return Ok(None);
        }
        let unreadable = self.all()?.into_iter().find(|(resource, file)| {
            file.foreign.is_none() && !self.show(resource.clone(), file, at).lapsed()
        });
        Ok(unreadable.map(|(_, file)| file.path))
    }

    /// The lock files of these very resources.
    fn named(&self, resources: Vec<Resource>) -> Result<Vec<(Resource, LockFile)>, FileStoreError> {
        let mut found = Vec::new();
        for resource in resources {
            let Some(path) = self.dialect.file_of(&self.folder, &resource) else { continue };
            let file = LockFile::scope(self.dialect, &path)?;
            found.extend(file.map(|file| (resource, file)));
        }
        Ok(found)
    }

    /// The lock files of these paths and of all that overlap with them: any two globs may, whatever
    /// their names.
    fn overlapping(
        &self,
        paths: Vec<Resource>,
    ) -> Result<Vec<(Resource, LockFile)>, FileStoreError> {
        if !paths.iter().any(|resource| self.dialect.shares(resource.kind())) {
            return Ok(vec![]);
        }
        let mut all = self.all()?;
        all.retain(|(resource, _)| paths.iter().any(|path| path.overlaps(resource)));
        // By its name a file is about a path, whatever it says and even if it cannot be read.
        let mut found = self.named(paths)?;
        all.retain(|(_, file)| !found.iter().any(|(_, named)| named.path == file.path));
        found.extend(all);
        Ok(found)
    }

    /// All lock files of the folder that are about something. What lies among them and is none is
    /// in the way only of who asks for it by name.
    fn all(&self) -> Result<Vec<(Resource, LockFile)>, FileStoreError> {
        if let Some(only) = self.dialect.only_resource() {
            return self.named(vec![only]);
        }
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let stem = name.strip_suffix(".lock").filter(|stem| !stem.is_empty());
            let Some(stem) = stem else { continue };
            let file = match LockFile::scope(self.dialect, &path) {
                Err(FileStoreError::Obstacle { .. }) => continue,
                file => file?,
            };
            let Some(file) = file else { continue };
            let resource = match &file.foreign {
                Some(foreign) => foreign::resource(self.dialect, foreign, stem),
                None => self.unreadable_resource(stem),
            };
            found.extend(resource.map(|resource| (resource, file)));
        }
        Ok(found)
    }

    /// What lies in the folder and is in order neither as a lock nor as anything else: what cannot be
    /// read, temporary files that their writers left, folders. For those who look after it.
    pub(crate) fn oddities(&self, now: WallTime) -> Result<Vec<String>, FileStoreError> {
        let mut odd = Vec::new();
        if self.dialect == Dialect::Coordination {
            // Its one lock is the kernel's; the file says nothing.
            return Ok(odd);
        }
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_lock = match self.dialect {
                Dialect::Memory => name == ".lock",
                _ => name.ends_with(".lock"),
            };
            if !is_lock {
                odd.extend(self.stray(&path, &name, now));
                continue;
            }
            match LockFile::scope(self.dialect, &path) {
                Err(FileStoreError::Obstacle { what }) => odd.push(what),
                Ok(Some(file)) if file.foreign.is_none() => {
                    odd.push(format!("{} cannot be read as a lock", path.display()));
                }
                _ => {}
            }
        }
        odd.sort();
        Ok(odd)
    }

    /// What is to be said of something that is no lock file.
    fn stray(&self, path: &Path, name: &str, now: WallTime) -> Option<String> {
        let meta = std::fs::symlink_metadata(path).ok()?;
        if is_temporary(name) && meta.is_file() {
            let age = self.is_abandoned(&meta, now).then(|| lock_file::age_of(&meta, now))?;
            return Some(format!(
                "{} is a temporary file of a lock, left for {}",
                path.display(),
                format_duration(age)
            ));
        }
        // A folder of memories has folders of its own; one of locks has not.
        let is_folder = meta.is_dir() && !name.starts_with('.');
        (is_folder && matches!(self.dialect, Dialect::Swarm)).then(|| {
            format!("{} is a folder among the locks; locks in it count for nobody", path.display())
        })
    }

    /// Whether a temporary file is older than its writer can be alive with it: such files live for
    /// milliseconds, and locks that stay for this long are stale.
    fn is_abandoned(&self, meta: &std::fs::Metadata, now: WallTime) -> bool {
        lock_file::age_of(meta, now) >= self.dialect.stale_after()
    }

    /// Temporary files of other programs' locks that were left behind.
    pub(crate) fn abandoned(&self, now: WallTime) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let abandoned = entries.filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let meta = std::fs::symlink_metadata(entry.path());
            let left = meta.is_ok_and(|meta| meta.is_file() && self.is_abandoned(&meta, now));
            is_temporary(&name) && left
        });
        match self.dialect {
            Dialect::Coordination => vec![],
            _ => abandoned.map(|entry| entry.path()).collect(),
        }
    }

    /// Moves a temporary file that was left behind to where such files are kept.
    pub(crate) fn set_aside(&self, path: &Path) -> Result<(), FileStoreError> {
        std::fs::create_dir_all(&self.aside)?;
        match lock_file::keep(path, Some(&self.aside)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            kept => Ok(kept?),
        }
    }

    /// What an unreadable lock file is about, where its name says it.
    fn unreadable_resource(&self, stem: &str) -> Option<Resource> {
        match self.dialect {
            Dialect::Worker => Resource::new(tenure_core::Kind::Task, stem).ok(),
            // Its name is a hash: the path is not known, so it goes by the name of the file.
            Dialect::Swarm => Resource::new(tenure_core::Kind::Path, &format!("{stem}.lock")).ok(),
            Dialect::Memory => self.dialect.only_resource(),
            Dialect::Coordination => None,
        }
    }

    fn join(&mut self, seen: &mut Snapshot, resource: Resource, file: LockFile, at: StoreTime) {
        let key = resource.key();
        match self.is_of_this_store(&file) {
            // Of tenure: it backs a hold, or nobody remembers it and it is in nobody's way.
            true => {}
            false => {
                let shown = self.show(resource, &file, at);
                let known = seen.holds.iter().any(|seen| seen.hold.grant == shown.hold.grant);
                if !known {
                    seen.holds.push(shown);
                }
            }
        }
        self.judged.insert(key, file);
    }

    /// Whether a lock file stands for the hold with this token.
    fn is_ours(&self, said: &Foreign, token: Token) -> bool {
        let own = said.own.as_ref();
        own.is_some_and(|own| own.store == self.store && own.token == token.0)
    }

    fn is_backed(&self, resource: &Resource, token: Token) -> bool {
        let judged = self.judged.get(&resource.key());
        let said = judged.and_then(|file| file.foreign.as_ref());
        said.is_some_and(|said| self.is_ours(said, token))
    }

    fn is_foreign(&self, resource: &Resource, grant: GrantId) -> bool {
        let judged = self.judged.get(&resource.key());
        judged.is_some_and(|file| GrantId::from_bits(file.fingerprint) == grant)
    }

    /// Another's lock file as a hold.
    fn show(&self, resource: Resource, file: &LockFile, at: StoreTime) -> HoldSnapshot {
        let now = WallTime(at.wall_ms);
        let (label, operation, since, left_ms, evidence) = match &file.foreign {
            Some(foreign) => {
                let left_ms = foreign.left_ms(self.dialect, now);
                let operation = foreign.operation.clone();
                let evidence = self.evidence(foreign);
                (foreign.label.clone(), operation, foreign.since, left_ms, evidence)
            }
            None => {
                let age_ms = now.0.saturating_sub(file.modified.0).max(0);
                let name = file.path.file_name().unwrap_or_default().to_string_lossy();
                let label = format!("unreadable lock file {name}");
                let left_ms = UNREADABLE_GRACE_MS.saturating_sub(age_ms).max(0);
                (label, None, file.modified, left_ms, None)
            }
        };
        let stale = match &file.foreign {
            Some(foreign) => foreign.stale_reason(self.dialect, now),
            None => (left_ms == 0).then(|| "lock file cannot be read".to_owned()),
        };
        let is_kept = !self.rules.break_stale && file.foreign.is_some() && left_ms == 0;
        let (stale, left_ms) = match (is_kept, stale) {
            (true, Some(reason)) => {
                let left_ms = self.dialect.stale_after().as_millis() as i64;
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
                holder: Holder { label, chosen: false, evidence },
                operation,
                ttl: self.dialect.stale_after(),
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

    /// The process that a lock file names. Of one that has ended it proves the death; of one that is
    /// there it proves nothing, because the file does not say when its process began.
    fn evidence(&self, foreign: &Foreign) -> Option<Evidence> {
        let process = Some(Process { pid: foreign.pid?, start: 0 });
        if self.rules.break_stale && foreign.dead_process(self.dialect).is_some() {
            return Some(Evidence { process, ..platform::this_boot() });
        }
        Some(Evidence {
            host: foreign.host.clone().unwrap_or_else(|| platform::this_boot().host),
            machine: String::new(),
            boot: String::new(),
            pid_namespace: 0,
            process,
            group: None,
        })
    }

    /// Refuses what this dialect has no place for, before anything is changed.
    fn admit(&self, record: &Record) -> Result<(), FileStoreError> {
        let Some(only) = self.dialect.only_resource() else { return Ok(()) };
        let wanted: Vec<&Want> = match record {
            Record::Hold(stored) => vec![&stored.hold.want],
            Record::Wait(stored) => stored.waiter.wants.iter().collect(),
            Record::Task(_) | Record::Section(_) => {
                return Err(FileStoreError::NoTaskList { dialect: self.dialect.word() });
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
        let Some(path) = self.dialect.file_of(&self.folder, &resource) else { return Ok(()) };
        let file = match LockFile::scope(self.dialect, &path) {
            // It is in the way of who asks for it by name.
            Err(FileStoreError::Obstacle { .. }) => return Ok(()),
            file => file?,
        };
        let Some(file) = file.filter(|file| !self.is_of_this_store(file)) else { return Ok(()) };
        let shown = self.show(resource, &file, at);
        if shown.lapsed() {
            return Ok(());
        }
        task.status = Status::InProgress;
        task.claimed_at = Some(shown.acquired_at);
        task.claim = Some(Claim {
            by: shown.hold.holder.label,
            grant: shown.hold.grant,
            token: shown.hold.token,
            parts: vec![],
        });
        Ok(())
    }

    /// The tasks that have a lock file.
    pub(crate) fn locked_tasks(&self) -> Result<Vec<TaskId>, FileStoreError> {
        if self.dialect != Dialect::Worker {
            return Ok(vec![]);
        }
        let found = self.all()?.into_iter();
        Ok(found.filter_map(|(resource, _)| resource.name().parse().ok()).collect())
    }

    fn is_of_this_store(&self, file: &LockFile) -> bool {
        let own = file.foreign.as_ref().and_then(|foreign| foreign.own.as_ref());
        own.is_some_and(|own| own.store == self.store)
    }

    /// Makes the lock files of what is about to be remembered, and removes those of others that the
    /// rule decided to end. If somebody was faster, all is as before.
    pub(crate) fn before(
        &self,
        records: &[Record],
        ledger: &Ledger,
        at: StoreTime,
    ) -> Result<Result<(), Beaten>, FileStoreError> {
        records.iter().try_for_each(|record| self.admit(record))?;
        let mut made: Vec<&StoredHold> = Vec::new();
        for record in records {
            let won = match record {
                Record::Hold(stored) => {
                    let won = self.take(stored, at)?;
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
                self.undo(&made);
                return Ok(Err(Beaten));
            }
        }
        Ok(Ok(()))
    }

    /// Removes the lock files of what was just made, because it is not remembered after all.
    pub(crate) fn undo_all(&self, records: &[Record]) {
        let made: Vec<&StoredHold> = records
            .iter()
            .filter_map(|record| match record {
                Record::Hold(stored) => Some(stored),
                _ => None,
            })
            .collect();
        self.undo(&made);
    }

    fn undo(&self, made: &[&StoredHold]) {
        for stored in made {
            let _ = self.remove_own(&stored.hold.want.resource, stored.hold.token);
        }
    }

    fn take(&self, stored: &StoredHold, at: StoreTime) -> Result<bool, FileStoreError> {
        let resource = &stored.hold.want.resource;
        let Some(path) = self.dialect.file_of(&self.folder, resource) else {
            // Held without a lock file, it would only seem to exclude the other programs.
            return match self.dialect.shares(resource.kind()) {
                true => Err(FileStoreError::NoLockFile { resource: resource.to_string() }),
                false => Ok(true),
            };
        };
        if stored.hold.want.mode != Mode::Exclusive {
            return Err(FileStoreError::OnlyExclusive { resource: resource.to_string() });
        }
        if let Some(path) = self.unreadable_within(resource, at)? {
            // Seen only now, or the rule looked at everything, which is about no glob in particular.
            return Err(FileStoreError::Busy(format!(
                "{} cannot be read yet, and may be about {resource}",
                path.display()
            )));
        }
        let judged = self.judged.get(&resource.key());
        let before = judged.and_then(|file| file.foreign.as_ref());
        let kept = before.filter(|before| self.is_ours(before, stored.hold.token));
        let fields = kept.map(|before| &before.fields);
        let content = foreign::write(self.dialect, stored, &self.store, fields, at);
        Ok(match judged {
            None => lock_file::create(&path, &content, &self.drafts)?,
            Some(file) => {
                let aside = file.foreign.is_none().then_some(self.aside.as_path());
                file.replace(&content, &self.drafts, aside)?
            }
        })
    }

    /// An operator ended another's lock, or it is taken over: then the taker's file replaces it.
    fn end_foreign(
        &self,
        resource: &Resource,
        grant: GrantId,
        records: &[Record],
    ) -> Result<bool, FileStoreError> {
        // Whoever takes it replaces the file. Of a task that is cancelled the lock stays: its worker
        // removes it when it is done.
        let taken = records.iter().any(|record| match record {
            Record::Hold(stored) => stored.hold.want.resource == *resource,
            Record::Task(task) => task.id.resource() == *resource,
            _ => false,
        });
        let Some(file) = self.judged.get(&resource.key()) else { return Ok(true) };
        if taken || !self.is_foreign(resource, grant) {
            return Ok(true);
        }
        let aside = file.foreign.is_none().then_some(self.aside.as_path());
        Ok(file.remove(&self.drafts, aside)?)
    }

    /// Writes a hold's file anew, in one step. Says no if the file is another's by now.
    fn refresh(&self, stored: &StoredHold, at: StoreTime) -> Result<bool, FileStoreError> {
        let resource = &stored.hold.want.resource;
        let Some(path) = self.dialect.file_of(&self.folder, resource) else { return Ok(true) };
        let Some(file) = LockFile::scope(self.dialect, &path)? else { return Ok(false) };
        let before = file.foreign.as_ref();
        let Some(before) = before.filter(|said| self.is_ours(said, stored.hold.token)) else {
            return Ok(false);
        };
        let fields = Some(&before.fields);
        let content = foreign::write(self.dialect, stored, &self.store, fields, at);
        Ok(file.replace(&content, &self.drafts, None)?)
    }

    /// Whether what this renewal is about still has its files.
    pub(crate) fn has_files(
        &self,
        resources: &[Resource],
        token: Token,
    ) -> Result<bool, FileStoreError> {
        for resource in resources {
            let Some(path) = self.dialect.file_of(&self.folder, resource) else { continue };
            let file = LockFile::scope(self.dialect, &path)?;
            let said = file.and_then(|file| file.foreign);
            if !said.is_some_and(|said| self.is_ours(&said, token)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes the lock files of what was just forgotten.
    pub(crate) fn after(&self, dropped: &[(Resource, Token)]) -> Result<(), FileStoreError> {
        for (resource, token) in dropped {
            self.remove_own(resource, *token)?;
        }
        Ok(())
    }

    fn remove_own(&self, resource: &Resource, token: Token) -> Result<(), FileStoreError> {
        let Some(path) = self.dialect.file_of(&self.folder, resource) else { return Ok(()) };
        let Some(file) = LockFile::scope(self.dialect, &path)? else { return Ok(()) };
        if file.foreign.as_ref().is_some_and(|said| self.is_ours(said, token)) {
            file.remove(&self.drafts, None)?;
        }
        Ok(())
    }

    /// Tenure's own lock files that stand for nothing: their maker died before the hold was
    /// remembered, or after it was forgotten. Only with the seat.
    pub(crate) fn orphans(&self, ledger: &Ledger) -> Result<Vec<Orphan>, FileStoreError> {
        let mut orphans = Vec::new();
        for (resource, file) in self.all()? {
            let own = file.foreign.as_ref().and_then(|foreign| foreign.own.as_ref());
            let Some(own) = own.filter(|own| own.store == self.store) else { continue };
            let holders = ledger.holders(&resource);
            if !holders.iter().any(|stored| stored.hold.token.0 == own.token) {
                orphans.push(Orphan { file });
            }
        }
        Ok(orphans)
    }

    /// What those who died while they made a lock file left.
    pub(crate) fn drafts(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.drafts).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }

    pub(crate) fn remove_orphan(&self, orphan: &Orphan) -> Result<bool, FileStoreError> {
        Ok(orphan.file.remove(&self.drafts, None)?)
    }
}

/// The paths that a look is about; none where it is about everything.
fn paths_of(scope: &Scope, seen: &Snapshot) -> Vec<Resource> {
    match scope {
        Scope::Everything => vec![],
        Scope::At { resources, .. } | Scope::Queues(resources) => resources.clone(),
        Scope::Tasks(_) => {
            let globs = seen.tasks.iter().flat_map(|task| &task.files);
            globs.filter_map(|glob| Resource::new(tenure_core::Kind::Path, glob).ok()).collect()
        }
    }
}

/// Whether this is a glob that can mean more than one path.
fn varies(resource: &Resource) -> bool {
    resource.glob().is_some_and(|glob| glob.literal_prefix() != glob.as_str())
}

/// Whether a file of this name is how a program writes a lock before it gets its name.
fn is_temporary(name: &str) -> bool {
    name.ends_with(".lock.tmp") || name.contains(".lock.") && name.ends_with(".tmp")
}

/// A lock file of tenure's that stands for nothing.
pub(crate) struct Orphan {
    file: LockFile,
}
