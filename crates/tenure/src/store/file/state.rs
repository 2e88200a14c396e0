//! What a handle knows, and how it changes: read on, show, let the rule choose, append, publish.

mod check;
mod foreign_locks;
mod foreign_tasks;
mod history;
mod retention;
mod rotate;

use foreign_tasks::hide_claims;
pub(super) use foreign_tasks::is_about_tasks;

use super::FileOptions;
use super::archive::Archive;
use super::dialect::{FileChange, ForeignLocks, ForeignTasks, SharedFolder};
use super::error::FileStoreError;
use super::failpoint::failpoint;
use super::held::Held;
use super::journal::{Header, Journal, Line, Tail, open_regular};
use super::line;
use super::published_offset;
use super::small_records::SmallRecords;
use crate::store::boot::{Reboot, reboot};
use crate::store::ipc::Notifier;
use crate::store::ledger::{Ledger, Record};
use crate::store::store_time::StoreTime;
use crate::store::{Renewal, Renewed, TaskFilter, Transaction};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_core::{
    Event, EventKind, GrantId, NewEvent, Resource, Revision, Scope, Snapshot, Status, Task, TaskId,
    TaskScope, Token, WallTime, Write,
};

/// How far tokens jump when the machine was rebooted: further than changes could have been lost that
/// were reported but not yet on disk.
const JUMP: u64 = 1 << 20;

/// How often to look again when other programs are faster.
const TRIES: u32 = 100;

/// How many of the newest events a handle keeps in memory, for followers.
const RECENT_MAX: usize = 4096;

/// What a handle knows.
pub(super) struct State {
    folder: PathBuf,
    journal: Journal,
    ledger: Ledger,
    archive: Archive,
    records: SmallRecords,
    held: Held,
    /// Up to where `held/` follows the journal.
    mark: Option<File>,
    marked: (u64, u64),
    /// Whether `held/` could not be brought up to date: then nothing is marked.
    behind: bool,
    /// Whether what is known may be wrong, because the next generation could not be begun whole.
    stale: bool,
    /// At what length of the journal the next generation is tried again, after it failed.
    rotate_from: u64,
    /// Changes to tasks that are not in the ledger yet, because its tasks were not needed so far.
    unread: Option<Vec<Record>>,
    /// Whether the answers in the generation's state are not in the ledger yet.
    unread_answers: bool,
    /// Completed tasks that were deleted since the generation began.
    deleted: BTreeSet<TaskId>,
    recent: VecDeque<Event>,
    /// How many events the generation has so far.
    events_here: u64,
    /// The lock files of other programs, in a folder that has such.
    foreign_locks: Option<ForeignLocks>,
    /// The task list of other programs, in a folder that has one.
    foreign_tasks: Option<ForeignTasks>,
}

/// What came of a transaction.
pub(super) struct Written {
    pub(super) revision: Option<Revision>,
    /// Whether watchers have something to see.
    pub(super) has_news: bool,
    pub(super) durable: bool,
    pub(super) position: (u64, u64),
    pub(super) wake: Vec<(GrantId, String)>,
    pub(super) forget: Vec<GrantId>,
}

impl State {
    pub(super) fn open(
        folder: &Path,
        shared: &Path,
        boot: &str,
        options: &FileOptions,
    ) -> Result<State, FileStoreError> {
        let mark = published_offset::open(&folder.join("side").join("mark"), options.look_only)?;
        let journal = Journal::open(&folder.join("journal"), boot)?;
        let shared = SharedFolder {
            dialect: options.dialect,
            takeover: options.takeover,
            path: shared,
            own: folder,
            store: &journal.header.store,
        };
        Ok(State {
            foreign_locks: ForeignLocks::new(&shared),
            foreign_tasks: ForeignTasks::new(&shared),
            archive: Archive::new(folder.join("done")),
            records: SmallRecords::new(folder.join("records")),
            held: Held::new(folder.join("held")),
            ledger: begin_ledger(&journal.header),
            folder: folder.to_owned(),
            journal,
            mark,
            marked: (0, 0),
            behind: false,
            stale: false,
            rotate_from: 0,
            unread: Some(vec![]),
            unread_answers: true,
            deleted: BTreeSet::new(),
            recent: VecDeque::new(),
            events_here: 0,
        })
    }

    /// Where the journal ends, and its file.
    pub(super) fn journal(&self) -> ((u64, u64), Arc<File>) {
        (self.journal.position(), self.journal.file())
    }

    /// Reads on, and returns everything but tasks. Needs no lock.
    pub(super) fn scope(&mut self) -> Result<&Ledger, FileStoreError> {
        self.read_good()?;
        Ok(&self.ledger)
    }

    /// Whether the machine was rebooted since the last use, as far as can be known.
    pub(super) fn judge_reboot(
        &mut self,
        boot: &str,
        at: StoreTime,
    ) -> Result<Reboot, FileStoreError> {
        self.read_on()?;
        let newest_time = || Ok(self.ledger.newest_time_ms());
        reboot(&self.ledger.boot, boot, newest_time, at)
    }

    /// The boot of the machine in which the store was last used.
    pub(super) fn boot(&self) -> &str {
        &self.ledger.boot
    }

    /// Earlier boots of this machine, as far as was read.
    pub(super) fn ended_boots(&self) -> Vec<String> {
        self.ledger.ended_boots.clone()
    }

    /// Reads on, and returns everything. Needs no lock.
    pub(super) fn with_tasks(&mut self) -> Result<&Ledger, FileStoreError> {
        self.read_good()?;
        self.load_tasks()?;
        Ok(&self.ledger)
    }

    pub(super) fn read(
        &mut self,
        scope: &Scope,
        at: StoreTime,
    ) -> Result<Snapshot, FileStoreError> {
        self.read_good()?;
        let mut seen = self.show(scope, scope, at)?.0;
        for task in &mut seen.tasks {
            self.show_claim(task, at)?;
        }
        Ok(seen)
    }

    /// Reads what others added; what cannot be read is never taken for the end.
    fn read_good(&mut self) -> Result<(), FileStoreError> {
        match self.read_on()? {
            Tail::Clean | Tail::Torn => Ok(()),
            Tail::Wrong => Err(self.wrong_line()),
        }
    }

    /// Reads what others added.
    fn read_on(&mut self) -> Result<Tail, FileStoreError> {
        if self.stale {
            self.read_anew()?;
            self.stale = false;
        }
        if self.journal.is_as_read()? {
            return Ok(Tail::Clean);
        }
        let mut removed = false;
        loop {
            let fresh = self.journal.read_on()?;
            let mut sealed = None;
            for line in fresh.lines {
                sealed = line.sealed.or(sealed);
                self.take_in(line);
            }
            match sealed {
                Some(generation) => self.follow(generation)?,
                None if !self.journal.is_removed()? => return Ok(fresh.tail),
                // One that is of no use any more has been sealed before it was removed.
                None if removed => return Err(FileStoreError::Gone),
                None => removed = true,
            }
        }
    }

    /// Goes on in the next generation, as all do: completed tasks are in the archive by now.
    fn follow(&mut self, generation: u64) -> Result<(), FileStoreError> {
        if self.journal.follow(generation)?.is_none() {
            // It has been followed by others and trimmed.
            self.read_anew()?;
        } else if self.unread.is_none() {
            if self.foreign_tasks.is_none() {
                self.ledger.tasks.archive_completed();
            }
        } else {
            // What was not read is in the new generation's state and its file of tasks.
            let state = self.journal.state()?.into_iter();
            self.unread = Some(state.filter(Record::is_task).collect());
        }
        self.ledger.answers.begin_generation();
        self.deleted.clear();
        self.events_here = 0;
        self.rotate_from = 0;
        Ok(())
    }

    /// Forgets everything and begins with the newest generation.
    fn read_anew(&mut self) -> Result<(), FileStoreError> {
        self.journal = Journal::reopen(self.journal.folder())?;
        self.ledger = begin_ledger(&self.journal.header);
        self.recent.clear();
        self.events_here = 0;
        self.unread = Some(vec![]);
        self.unread_answers = true;
        self.deleted.clear();
        Ok(())
    }

    fn take_in(&mut self, line: Line) {
        self.events_here += line.events.len() as u64;
        if !line.events.is_empty() {
            let first = line.next;
            self.ledger.revision = first + line.events.len() as u64 - 1;
            for (number, event) in (first..).zip(line.events) {
                self.recent.push_back(Event::new(Revision(number), line.at, event));
            }
            while self.recent.len() > RECENT_MAX {
                self.recent.pop_front();
            }
        }
        for record in line.records {
            self.remember(record);
        }
    }

    fn remember(&mut self, record: Record) {
        if let Record::DropTask(id) = &record {
            self.deleted.insert(id.clone());
        }
        match &mut self.unread {
            Some(unread) if record.is_task() => unread.push(record),
            _ => self.ledger.apply(record),
        }
    }

    /// Reads the tasks, if that was not needed so far.
    fn load_tasks(&mut self) -> Result<(), FileStoreError> {
        if self.unread.is_none() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        if self.journal.header.tasks_bytes > 0 {
            let path = self.journal.tasks_path();
            match open_regular(&path) {
                Ok(mut file) => file.read_to_end(&mut bytes).map(|_| ())?,
                // Another process began the next generation just now, or this one is damaged.
                Err(trouble) if trouble.is_absent() => {
                    let before = self.journal.position();
                    self.read_good()?;
                    return match self.journal.position().0 == before.0 {
                        true => Err(FileStoreError::corrupt_file(&path, "it is missing")),
                        false => self.load_tasks(),
                    };
                }
                Err(trouble) => return Err(trouble),
            }
            if bytes.len() as u64 != self.journal.header.tasks_bytes {
                return Err(FileStoreError::corrupt_file(&path, "its length has changed"));
            }
        }
        for text in line::whole_lines(&bytes) {
            let line: Line = line::decode(text).ok_or_else(|| {
                FileStoreError::corrupt_file(&self.journal.tasks_path(), "a line is damaged")
            })?;
            line.records.into_iter().for_each(|record| self.ledger.apply(record));
        }
        for record in self.unread.take().unwrap_or_default() {
            self.ledger.apply(record);
        }
        Ok(())
    }

    /// Reads the answers to requests, if that was not needed so far.
    fn load_answers(&mut self) -> Result<(), FileStoreError> {
        if self.unread_answers {
            self.ledger.answers.add_older(self.journal.answers()?.into_iter());
            self.unread_answers = false;
        }
        Ok(())
    }

    /// What a rule gets to see of a scope, given the scope that was asked for at first; and which of the
    /// tasks shown came from the archive.
    fn show(
        &mut self,
        scope: &Scope,
        asked: &Scope,
        at: StoreTime,
    ) -> Result<(Snapshot, Vec<Task>), FileStoreError> {
        let mut archived = Vec::new();
        if let Scope::Tasks(tasks) = scope {
            self.load_tasks()?;
            archived = self.archived(tasks)?;
        }
        let mut seen = self.ledger.show(scope, at);
        if !archived.is_empty() {
            seen.tasks.extend(archived.iter().cloned());
            seen.tasks.sort_by(|one, other| (one.age, &one.id).cmp(&(other.age, &other.id)));
            seen.tasks.dedup_by(|one, other| one.id == other.id);
        }
        if let Some(locks) = &mut self.foreign_locks {
            locks.add_to(&mut seen, scope, asked, at)?;
        }
        if let Some(tasks) = &self.foreign_tasks {
            tasks.add_to(&mut seen, scope, at);
        }
        Ok((seen, archived))
    }

    /// The completed tasks that a rule looks at by name.
    fn archived(&self, scope: &TaskScope) -> Result<Vec<Task>, FileStoreError> {
        let named = scope.ids.iter().chain(self.ledger.tasks.dependencies(scope));
        let named = named.filter(|id| self.ledger.tasks.get(id).is_none());
        let mut found = self.archive.get_all(named)?;
        for key in scope.keys.iter().filter(|key| self.ledger.tasks.with_key(key).is_none()) {
            found.extend(self.archive.with_key(key)?);
        }
        found.retain(|task| self.is_archived(task));
        Ok(found)
    }

    fn is_archived(&self, task: &Task) -> bool {
        !self.deleted.contains(&task.id) && self.ledger.tasks.get(&task.id).is_none()
    }

    /// Lets the rule choose, and writes what it chose. Only for the writer.
    pub(super) fn transact(
        &mut self,
        transaction: &mut Transaction,
        at: StoreTime,
        notifier: &Notifier,
    ) -> Result<Written, FileStoreError> {
        self.begin(at)?;
        let is_of_tasks = is_about_tasks(&transaction.scope);
        for _ in 0..TRIES {
            let _list = if is_of_tasks { self.sync_foreign_tasks(at)? } else { None };
            if let Some(written) = self.attempt(transaction, at, notifier)? {
                return Ok(written);
            }
        }
        Err(FileStoreError::Contended { tries: TRIES })
    }

    /// The same once; nothing where another program was faster.
    fn attempt(
        &mut self,
        transaction: &mut Transaction,
        at: StoreTime,
        notifier: &Notifier,
    ) -> Result<Option<Written>, FileStoreError> {
        let slot = transaction.slot().map(str::to_owned);
        if slot.is_some() {
            self.load_answers()?;
        }
        let asked = transaction.scope.clone();
        let chosen = transaction.choose(|scope| {
            let (mut snapshot, archived) = self.show(scope, &asked, at)?;
            let theirs = self.show_claims(scope, &mut snapshot, at)?;
            snapshot.answered = slot.as_deref().and_then(|slot| self.ledger.answers.get(slot));
            Ok::<_, FileStoreError>((snapshot, (archived, theirs)))
        })?;
        let (archived, theirs) = chosen.beside;
        let before = self.ledger.revision;
        let mut written = Written {
            revision: None,
            has_news: false,
            durable: false,
            position: self.journal.position(),
            wake: vec![],
            forget: vec![],
        };
        let Some(change) = chosen.change else { return Ok(Some(written)) };
        written.durable = change.durable;
        for grant in &change.wake {
            let mailbox = self.ledger.mailbox_of(*grant).map(str::to_owned);
            written.wake.extend(mailbox.map(|mailbox| (*grant, mailbox)));
        }
        for write in &change.writes {
            match write {
                Write::Wait(waiter) | Write::KeepPlace(waiter) => notifier.expect(waiter.grant),
                Write::DropWait(waiter) => written.forget.push(waiter.grant),
                _ => {}
            }
        }
        // They tell of work and decide nothing, so one that is there before its change does no harm.
        self.records.apply(&change.writes, &self.ledger.boot, at, change.durable)?;
        let next = change.first_revision(self.ledger.revision + 1);
        let mut records = to_records(change.writes, &archived, at, notifier.address());
        hide_claims(&mut records, &theirs);
        if records.is_empty() && change.events.is_empty() {
            return Ok(Some(written));
        }
        let appended = self.remembering(|state| state.append(records, next, change.events, at))?;
        if appended == FileChange::LostRace {
            return Ok(None);
        }
        let revision = Revision(self.ledger.revision);
        written.revision = (self.ledger.revision > before).then_some(revision);
        written.has_news = written.revision.is_some();
        written.position = self.journal.position();
        self.finish();
        Ok(Some(written))
    }

    /// Adds one change, then remembers it. Other programs' locks are taken before and given back
    /// after: what the journal says is never more than what they see.
    fn append(
        &mut self,
        records: Vec<Record>,
        next: u64,
        events: Vec<NewEvent>,
        at: StoreTime,
    ) -> Result<FileChange, FileStoreError> {
        if let Some(locks) = &self.foreign_locks
            && locks.take(&records, &self.ledger, at)? == FileChange::LostRace
        {
            return Ok(FileChange::LostRace);
        }
        failpoint("files-taken");
        if self.came_too_late(&records)? {
            return Ok(FileChange::LostRace);
        }
        if let Some(tasks) = &mut self.foreign_tasks
            && let Err(error) = tasks.write(&records, &self.ledger, at)
        {
            self.undo_locks(&records);
            return Err(error);
        }
        self.append_line(records, next, events, at)?;
        Ok(FileChange::Done)
    }

    fn append_line(
        &mut self,
        records: Vec<Record>,
        next: u64,
        events: Vec<NewEvent>,
        at: StoreTime,
    ) -> Result<(), FileStoreError> {
        let held: Vec<Resource> = records.iter().flat_map(Record::held).cloned().collect();
        let dropped = self.dropped(&records);
        let line = Line { next, at: WallTime(at.wall_ms), records, events, sealed: None };
        if let Err(error) = self.journal.append(&line) {
            self.undo_locks(&line.records);
            return Err(error.into());
        }
        self.take_in(line);
        if let Some(locks) = &self.foreign_locks {
            // A file that is left is recognised as tenure's own and as standing for nothing.
            let _ = locks.release(&dropped);
        }
        self.publish(&held, at);
        Ok(())
    }

    /// The holds that these records end.
    fn dropped(&self, records: &[Record]) -> Vec<(Resource, Token)> {
        let ended = records.iter().filter_map(|record| match record {
            Record::DropHold { resource, grant } => Some((resource, *grant)),
            _ => None,
        });
        let tokens = ended.flat_map(|(resource, grant)| {
            let holders = self.ledger.holders(resource).iter();
            holders
                .filter(move |stored| stored.hold.grant == grant)
                .map(|stored| (resource.clone(), stored.hold.token))
        });
        tokens.collect()
    }

    /// Starts leases anew; says whether one became longer, which must be on disk before it is
    /// reported: after a power loss leases begin anew, with the length that the disk has. Only with
    /// the writer.
    pub(super) fn renew(
        &mut self,
        renewals: &[Renewal],
        at: StoreTime,
    ) -> Result<(Vec<Renewed>, bool), FileStoreError> {
        self.begin(at)?;
        let lengthens = self.ledger.lengthens(renewals);
        let mut renewed = Vec::with_capacity(renewals.len());
        let mut records = Vec::new();
        for renewal in renewals {
            let held = self.ledger.may_renew(renewal, at) && self.has_files(renewal)?;
            if held {
                records.push(Record::of_renewal(renewal, at));
            }
            renewed.push(if held { Renewed::Renewed } else { Renewed::Lost });
        }
        if records.is_empty() {
            return Ok((renewed, false));
        }
        match self.append(records, self.ledger.revision + 1, vec![], at)? {
            FileChange::Done => self.finish(),
            // Another program took one in this very moment.
            FileChange::LostRace => return self.renew(renewals, at),
        }
        Ok((renewed, lengthens))
    }

    /// Reads on, and repairs what a crashed writer left incomplete.
    fn begin(&mut self, at: StoreTime) -> Result<(), FileStoreError> {
        match self.read_on()? {
            Tail::Clean => {}
            Tail::Torn => self.journal.cut()?,
            Tail::Wrong => return Err(self.wrong_line()),
        }
        self.journal.seal_before()?;
        if let Some(next) = self.journal.seal_for_next()? {
            // The writer that began it had read all that we have read.
            self.follow(next)?;
            return self.begin(at);
        }
        let position = self.journal.position();
        if self.marked != position || self.behind {
            let marked = self.mark.as_ref().and_then(published_offset::read);
            // The journal decides: who cannot make `held/` follow it may still change what is held.
            self.behind =
                marked != Some(position) && self.held.publish_all(&self.ledger, at).is_err();
            self.mark_published();
        }
        Ok(())
    }

    fn wrong_line(&self) -> FileStoreError {
        FileStoreError::Corrupt(format!(
            "generation {} of its journal has a damaged line at byte {}",
            self.journal.header.generation, self.journal.end
        ))
    }

    /// Makes `held/` follow. If this fails, the next writer repairs it: the journal has the
    /// change.
    fn publish(&mut self, resources: &[Resource], at: StoreTime) {
        let different: HashSet<&Resource> = resources.iter().collect();
        let mut followed = true;
        for resource in different {
            followed &= self.held.publish(resource, &self.ledger, at).is_ok();
        }
        if followed {
            self.mark_published();
        }
    }

    fn mark_published(&mut self) {
        let position = self.journal.position();
        let Some(file) = self.mark.as_ref().filter(|_| !self.behind) else { return };
        if published_offset::write(file, position).is_ok() {
            self.marked = position;
        }
        failpoint("published");
    }

    /// Records a new boot. Only for the writer.
    pub(super) fn begin_boot(&mut self, boot: &str, at: StoreTime) -> Result<(), FileStoreError> {
        let tail = self.read_on()?;
        let judged = self.judge_reboot(boot, at)?;
        match tail {
            Tail::Clean => {}
            Tail::Torn => self.journal.cut()?,
            // What was not on disk when the power failed may have holes.
            Tail::Wrong if judged == Reboot::Happened => {
                self.journal.set_aside(&self.folder.join("aside"))?;
            }
            Tail::Wrong => return Err(self.wrong_line()),
        }
        self.journal.seal_before()?;
        let (id, begin_ms) = (boot.to_owned(), at.begin_ms);
        let revision = self.ledger.revision;
        let (record, next, events) = match judged {
            Reboot::None => return Ok(()),
            Reboot::Named => (Record::Boot { id, begin_ms, same: true }, revision + 1, vec![]),
            Reboot::Happened => {
                let event = NewEvent::new(None, "", None, EventKind::Rebooted);
                (Record::Boot { id, begin_ms, same: false }, revision + JUMP, vec![event])
            }
        };
        let appended = self.append(vec![record], next, events, at)?;
        debug_assert!(appended == FileChange::Done, "a new boot takes no lock");
        // On disk before any number after it is given out, or the next power loss repeats it.
        self.journal.file().sync_data()?;
        failpoint("boot-appended");
        Ok(())
    }

    pub(super) fn list(
        &mut self,
        filter: &TaskFilter,
        at: StoreTime,
    ) -> Result<Vec<Task>, FileStoreError> {
        self.read_good()?;
        self.load_tasks()?;
        if self.foreign_tasks.is_some() {
            return self.list_foreign(filter, at);
        }
        let mut tasks = self.ledger.tasks.list(filter);
        if filter.status.is_none_or(|status| status == Status::Completed) {
            let archived = self.archive.list(filter)?;
            tasks.extend(archived.into_iter().filter(|task| self.is_archived(task)));
            tasks.sort_by_key(|task| task.age);
            tasks.truncate(filter.limit as usize);
        }
        Ok(tasks)
    }
}

/// What a rule chose, as records. A completed task that is changed is in the ledger from now on, or
/// nowhere.
fn to_records(writes: Vec<Write>, archived: &[Task], at: StoreTime, mailbox: &str) -> Vec<Record> {
    let mut records = Vec::with_capacity(writes.len());
    for write in writes {
        let id = match &write {
            Write::Task(task) => Some(&task.id),
            Write::DropTask(id) => Some(id),
            _ => None,
        };
        if let Some(task) = archived.iter().find(|task| Some(&task.id) == id) {
            records.push(Record::Archived { section: task.section.clone(), count: -1 });
        }
        records.extend(Record::of(write, at, mailbox));
    }
    records
}

fn begin_ledger(header: &Header) -> Ledger {
    Ledger::at(header.revision, &header.boot, &header.ended_boots)
}
