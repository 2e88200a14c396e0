//! How another program's lock files join what the ledger knows.
//!
//! Among tenure's own, the ledger decides. Towards the others a hold counts only while its lock
//! file is there: it is made before the hold is remembered, and removed after it is forgotten. A
//! hold whose file is gone or another's cannot be renewed, but no other of tenure's takes its place
//! before its time: its holder does not know yet. A file that is not tenure's is shown as a hold of
//! its owner, with the time that the dialect leaves it.

use super::Dialect;
use super::foreign::{self, Foreign};
use super::lock_file::{self, LockFile};
use crate::platform;
use crate::store::file::fault::Trouble;
use crate::store::ledger::{Ledger, Record, StoredHold};
use crate::store::moment::{Moment, span};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tenure_core::{
    Claim, Evidence, GrantId, Hold, Holder, Look, Mode, Process, Resource, Seen, SeenHold, Status,
    Task, Token, WallTime, Want,
};

/// So long must a file that cannot be read have been as it is before it counts as left behind: its
/// writer may not be done.
const UNREADABLE_GRACE_MS: i64 = 5_000;

/// Where lock files are made before they get their name: on the same file system, and out of the
/// other programs' sight. Only whoever has the seat makes any, so what is there otherwise was left
/// behind.
const DRAFTS: &str = "drafts";

/// A folder of another program's lock files.
pub(crate) struct Face {
    pub(crate) dialect: Dialect,
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

impl Face {
    pub(crate) fn new(dialect: Dialect, folder: &Path, own: &Path, store: &str) -> Face {
        Face {
            dialect,
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
        seen: &mut Seen,
        look: &Look,
        at: Moment,
    ) -> Result<(), Trouble> {
        self.judged.clear();
        for (resource, file) in self.files(look, seen)? {
            self.join(seen, resource, file, at);
        }
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
    fn files(&self, look: &Look, seen: &Seen) -> Result<Vec<(Resource, LockFile)>, Trouble> {
        let resources: Vec<Resource> = match look {
            Look::Everything => return self.all(),
            Look::At { resources, .. } | Look::Queues(resources) => resources.clone(),
            Look::Tasks(_) => seen.tasks.iter().map(|task| task.id.resource()).collect(),
        };
        if self.dialect == Dialect::Swarm {
            let paths: Vec<Resource> = match look {
                Look::Tasks(_) => seen
                    .tasks
                    .iter()
                    .flat_map(|task| &task.files)
                    .filter_map(|glob| Resource::new(tenure_core::Kind::Path, glob).ok())
                    .collect(),
                _ => resources,
            };
            return self.overlapping(paths);
        }
        self.named(resources)
    }

    /// The lock files of these very resources.
    fn named(&self, resources: Vec<Resource>) -> Result<Vec<(Resource, LockFile)>, Trouble> {
        let mut found = Vec::new();
        for resource in resources {
            let Some(path) = self.dialect.file_of(&self.folder, &resource) else { continue };
            let file = LockFile::look(self.dialect, &path)?;
            found.extend(file.map(|file| (resource, file)));
        }
        Ok(found)
    }

    /// The lock files of these paths and of all that overlap with them: any two globs may, whatever
    /// their names.
    fn overlapping(&self, paths: Vec<Resource>) -> Result<Vec<(Resource, LockFile)>, Trouble> {
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
    fn all(&self) -> Result<Vec<(Resource, LockFile)>, Trouble> {
        if let Some(only) = self.dialect.only_resource() {
            return self.named(vec![only]);
        }
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let stem = name.strip_suffix(".lock").filter(|stem| !stem.is_empty());
            let Some(stem) = stem else { continue };
            let file = match LockFile::look(self.dialect, &path) {
                Err(Trouble::Obstacle { .. }) => continue,
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

    /// What lies where a lock file should be and is none, or cannot be read, or does not say what
    /// it is about: for those who look after the folder.
    pub(crate) fn oddities(&self) -> Result<Vec<String>, Trouble> {
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
            match LockFile::look(self.dialect, &path) {
                _ if !is_lock => {}
                Err(Trouble::Obstacle { what }) => odd.push(what),
                Ok(Some(file)) if file.foreign.is_none() => {
                    odd.push(format!("{} cannot be read as a lock", path.display()));
                }
                _ => {}
            }
        }
        odd.sort();
        Ok(odd)
    }

    /// What an unreadable lock file is about, where its name says it.
    fn unreadable_resource(&self, stem: &str) -> Option<Resource> {
        match self.dialect {
            Dialect::Worker => Resource::new(tenure_core::Kind::Task, stem).ok(),
            Dialect::Memory => self.dialect.only_resource(),
            Dialect::Swarm | Dialect::Coordination => None,
        }
    }

    fn join(&mut self, seen: &mut Seen, resource: Resource, file: LockFile, at: Moment) {
        let own = file.foreign.as_ref().and_then(|foreign| foreign.own.as_ref());
        let own = own.filter(|own| own.store == self.store);
        let key = resource.key();
        match own {
            // Of tenure: it backs a hold, or nobody remembers it and it is in nobody's way.
            Some(_) => {}
            None => {
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
    fn show(&self, resource: Resource, file: &LockFile, at: Moment) -> SeenHold {
        let now = WallTime(at.wall_ms);
        let (label, operation, since, left_ms, evidence) = match &file.foreign {
            Some(foreign) => {
                let left_ms = foreign.left_ms(self.dialect, now);
                let operation = foreign.operation.clone();
                (foreign.label.clone(), operation, foreign.since, left_ms, evidence(foreign))
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
        SeenHold {
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
            left: span(left_ms),
            held_for: span(now.0.saturating_sub(since.0)),
            acquired_at: since,
            renewed_at: since,
            expires_at: WallTime(now.0.saturating_add(left_ms)),
            stale,
        }
    }

    /// Shows a task that another program has as in progress.
    pub(crate) fn show_claim(&self, task: &mut Task) -> Result<(), Trouble> {
        let path = self.dialect.file_of(&self.folder, &task.id.resource());
        let file = path.map(|path| LockFile::look(self.dialect, &path)).transpose()?.flatten();
        let Some(file) = file else { return Ok(()) };
        let Some(foreign) = file.foreign.as_ref().filter(|foreign| foreign.own.is_none()) else {
            return Ok(());
        };
        task.status = Status::InProgress;
        task.claimed_at = Some(foreign.since);
        task.claim = Some(Claim {
            by: foreign.label.clone(),
            grant: GrantId::from_bits(file.fingerprint),
            token: Token((file.fingerprint as u64) >> 24),
            parts: vec![],
        });
        Ok(())
    }

    /// Makes the lock files of what is about to be remembered, and removes those of others that the
    /// rule decided to end. If somebody was faster, all is as before.
    pub(crate) fn before(
        &self,
        records: &[Record],
        ledger: &Ledger,
        at: Moment,
    ) -> Result<Result<(), Beaten>, Trouble> {
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

    fn take(&self, stored: &StoredHold, at: Moment) -> Result<bool, Trouble> {
        let resource = &stored.hold.want.resource;
        let Some(path) = self.dialect.file_of(&self.folder, resource) else {
            // Held without a lock file, it would only seem to exclude the other programs.
            return match self.dialect.shares(resource.kind()) {
                true => Err(Trouble::NoLockFile { resource: resource.to_string() }),
                false => Ok(true),
            };
        };
        if stored.hold.want.mode != Mode::Exclusive {
            return Err(Trouble::OnlyExclusive { resource: resource.to_string() });
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
    ) -> Result<bool, Trouble> {
        let taken = records.iter().any(|record| {
            matches!(record, Record::Hold(stored) if stored.hold.want.resource == *resource)
        });
        let Some(file) = self.judged.get(&resource.key()) else { return Ok(true) };
        if taken || !self.is_foreign(resource, grant) {
            return Ok(true);
        }
        let aside = file.foreign.is_none().then_some(self.aside.as_path());
        Ok(file.remove(&self.drafts, aside)?)
    }

    /// Writes a hold's file anew, in one step. Says no if the file is another's by now.
    fn refresh(&self, stored: &StoredHold, at: Moment) -> Result<bool, Trouble> {
        let resource = &stored.hold.want.resource;
        let Some(path) = self.dialect.file_of(&self.folder, resource) else { return Ok(true) };
        let Some(file) = LockFile::look(self.dialect, &path)? else { return Ok(false) };
        let before = file.foreign.as_ref();
        let Some(before) = before.filter(|said| self.is_ours(said, stored.hold.token)) else {
            return Ok(false);
        };
        let fields = Some(&before.fields);
        let content = foreign::write(self.dialect, stored, &self.store, fields, at);
        Ok(file.replace(&content, &self.drafts, None)?)
    }

    /// Whether what this renewal is about still has its files.
    pub(crate) fn has_files(&self, resources: &[Resource], token: Token) -> Result<bool, Trouble> {
        for resource in resources {
            let Some(path) = self.dialect.file_of(&self.folder, resource) else { continue };
            let file = LockFile::look(self.dialect, &path)?;
            let said = file.and_then(|file| file.foreign);
            if !said.is_some_and(|said| self.is_ours(&said, token)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes the lock files of what was just forgotten.
    pub(crate) fn after(&self, dropped: &[(Resource, Token)]) -> Result<(), Trouble> {
        for (resource, token) in dropped {
            self.remove_own(resource, *token)?;
        }
        Ok(())
    }

    fn remove_own(&self, resource: &Resource, token: Token) -> Result<(), Trouble> {
        let Some(path) = self.dialect.file_of(&self.folder, resource) else { return Ok(()) };
        let Some(file) = LockFile::look(self.dialect, &path)? else { return Ok(()) };
        if file.foreign.as_ref().is_some_and(|said| self.is_ours(said, token)) {
            file.remove(&self.drafts, None)?;
        }
        Ok(())
    }

    /// Tenure's own lock files that stand for nothing: their maker died before the hold was
    /// remembered, or after it was forgotten. Only with the seat.
    pub(crate) fn orphans(&self, ledger: &Ledger) -> Result<Vec<Orphan>, Trouble> {
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

    pub(crate) fn remove_orphan(&self, orphan: &Orphan) -> Result<bool, Trouble> {
        Ok(orphan.file.remove(&self.drafts, None)?)
    }
}

/// A lock file of tenure's that stands for nothing.
pub(crate) struct Orphan {
    file: LockFile,
}

/// Enough to show; never enough to prove a death: the file does not say when its process began.
fn evidence(foreign: &Foreign) -> Option<Evidence> {
    let pid = foreign.pid?;
    Some(Evidence {
        host: foreign.host.clone().unwrap_or_else(|| platform::this_boot().host),
        machine: String::new(),
        boot: String::new(),
        pid_namespace: 0,
        process: Some(Process { pid, start: 0 }),
        group: None,
    })
}
