//! A look at tasks, their sections, and what is held around them.
//!
//! It takes several reads, because one finds what the next reads. All of them are at the revision of the
//! first, so that together they are one look.

use super::around::Around;
use super::base::{decode, text};
use super::compares::{About, Compares};
use super::connection::{Ask, Page, Pages};
use super::error::Failure;
use super::handle::Handle;
use super::keys::{Family, last_part, task_at_end};
use super::look::{Look, Start, Started};
use super::ready::{Picked, ReadySection};
use super::records::{StoredHold, StoredTask};
use crate::store::format::Form;
use crate::store::format::etcd::WorkingRecord;
use crate::store::format::parts::SectionRecord;
use crate::store::path_prefixes;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tenure_core::rules::tasks::EVERYTHING;
use tenure_core::{
    GrantId, Kind, Pick, Resource, Section, SectionSnapshot, Status, Task, TaskId, TaskScope,
    WallTime,
};

/// How many tasks whose time has come are looked at beside those that had none.
const DUE_SHOWN: usize = 64;

/// A look that is being made.
struct TaskLook<'a> {
    handle: &'a Handle,
    scope: &'a TaskScope,
    tries: u32,
    now: WallTime,
    /// The tasks with the ids of the scope.
    named: BTreeSet<TaskId>,
    /// All that was read; nothing for a task that does not exist.
    tasks: HashMap<TaskId, Option<StoredTask>>,
    shown: BTreeSet<TaskId>,
    /// The tasks that a change must find unchanged, whatever it writes.
    compared: BTreeSet<TaskId>,
    described: BTreeMap<String, Section>,
    /// The sections that have or had tasks.
    used: BTreeSet<String>,
    /// The sections of which the scope asks what else they have.
    beside: BTreeSet<String>,
    /// Tasks whose time has come.
    due: BTreeSet<TaskId>,
    /// The keys of what is held under the grants of the scope.
    under: Vec<String>,
    more_to_pick: bool,
    skipped: bool,
}

impl Handle {
    pub(super) async fn look_at_tasks(
        &self,
        scope: &TaskScope,
        slot: Option<&str>,
        tries: u32,
    ) -> Result<Look, Failure> {
        let mut look = TaskLook {
            handle: self,
            scope,
            tries,
            now: self.now(),
            named: scope.ids.iter().cloned().collect(),
            tasks: HashMap::new(),
            shown: BTreeSet::new(),
            compared: BTreeSet::new(),
            described: BTreeMap::new(),
            used: BTreeSet::new(),
            beside: BTreeSet::new(),
            due: BTreeSet::new(),
            under: vec![],
            more_to_pick: false,
            skipped: false,
        };
        let (started, unread, revision) = look.find(slot).await?;
        let held = look.read_tasks(unread, revision).await?;
        look.leave_out_unfitting();
        look.finish(started, held, revision).await
    }
}

impl TaskLook<'_> {
    fn task(&self, id: &TaskId) -> Option<&Task> {
        Some(&self.tasks.get(id)?.as_ref()?.task)
    }

    fn take(&mut self, id: TaskId, page: &Page) -> Result<(), Failure> {
        let task = page.first().map(|entry| StoredTask::of(entry, self.handle.url()));
        self.tasks.insert(id, task.transpose()?);
        Ok(())
    }

    /// Whether tasks in progress matter.
    fn looks_at_working(&self) -> bool {
        self.scope.in_progress || self.scope.beside || !self.scope.grants.is_empty()
    }

    /// Whether tasks matter whose time has come.
    fn looks_at_due(&self) -> bool {
        self.scope.pick.is_some() || self.scope.beside
    }

    /// The first read: the tasks that are named, and the indexes that name others. Also returns the
    /// sections that a pick did not know of.
    async fn find(
        &mut self,
        slot: Option<&str>,
    ) -> Result<(Started, Vec<Option<String>>, i64), Failure> {
        let (handle, keys) = (self.handle, &self.handle.keys);
        let mut asks = Vec::new();
        let start = Start::ask(keys, slot, &mut asks);
        asks.push(Ask::all(keys.sections()));
        asks.push(Ask::all(keys.used_sections()).keys_only());
        asks.extend(self.named.iter().map(|id| Ask::one(keys.task(id))));
        if self.scope.dependents {
            asks.extend(self.named.iter().map(|id| Ask::all(keys.dependents(id)).keys_only()));
        }
        asks.extend(self.scope.keys.iter().map(|key| Ask::one(keys.key(key))));
        if self.looks_at_working() {
            asks.push(Ask::all(keys.working()));
        }
        if !self.scope.grants.is_empty() {
            asks.push(Ask::all(keys.family(Family::Holds)).keys_only());
        }
        if self.looks_at_due() {
            asks.push(self.ask_due());
        }
        let guessed = self.guessed_sections();
        let mut ready = self.ready_sections(&guessed);
        asks.extend(ready.iter_mut().map(|section| section.ask(handle)));

        let mut pages = handle.connection.read(&asks, None).await?;
        let revision = pages.revision;
        let started = start.take(handle, &mut pages)?;
        self.take_sections(&pages.next(), &pages.next())?;
        self.take_named(&mut pages)?;
        if self.looks_at_working() {
            self.take_working(&pages.next())?;
        }
        if !self.scope.grants.is_empty() {
            self.take_held(&pages.next());
        }
        if self.looks_at_due() {
            let page = pages.next();
            self.due = page.entries.iter().filter_map(|entry| task_at_end(entry.key())).collect();
            self.shown.extend(self.due.iter().cloned());
        }
        for section in &ready {
            let picked = section.finish(handle, &mut pages, revision).await?;
            self.show_picked(picked);
        }
        let all = std::iter::once(None).chain(self.used.iter().cloned().map(Some));
        let unread = match &self.scope.pick {
            Some(pick) if pick.section.is_none() => {
                all.filter(|section| !guessed.contains(section)).collect()
            }
            _ => vec![],
        };
        Ok((started, unread, revision))
    }

    fn ask_due(&self) -> Ask {
        let due = Ask::all(self.handle.keys.due_until(self.now)).keys_only();
        let is_any = |pick: &Pick| pick.section.is_none() && pick.labels.is_empty();
        match self.scope.pick.as_ref().is_some_and(is_any) {
            true => due.first(DUE_SHOWN),
            // Which of them fit is known only when they are read.
            false => due,
        }
    }

    /// The sections to pick from, as far as they are known beforehand.
    fn guessed_sections(&self) -> Vec<Option<String>> {
        match &self.scope.pick {
            Some(Pick { section: Some(section), .. }) => vec![Some(section.clone())],
            Some(_) => self.handle.sections_seen(),
            None => vec![],
        }
    }

    fn ready_sections(&self, sections: &[Option<String>]) -> Vec<ReadySection> {
        let picks = self.scope.pick.iter();
        let ready = |pick| sections.iter().map(move |one| (pick, one.clone()));
        picks.flat_map(ready).map(|(pick, one)| ReadySection::new(pick, one, self.tries)).collect()
    }

    fn show_picked(&mut self, picked: Picked) {
        self.more_to_pick |= picked.more;
        self.skipped |= picked.skipped;
        self.shown.extend(picked.ids);
    }

    fn take_sections(&mut self, described: &Page, used: &Page) -> Result<(), Failure> {
        for entry in &described.entries {
            let record: SectionRecord = decode(entry, self.handle.url())?;
            let section = record.into_core();
            self.described.insert(section.name.clone(), section);
        }
        let names = used.entries.iter();
        let names = names.filter_map(|entry| self.handle.keys.rest("u", entry.key()));
        self.used = names.map(str::to_owned).collect();
        self.handle.saw_sections(&self.used);
        Ok(())
    }

    /// The tasks with the ids and keys of the scope, and what is before and behind them.
    fn take_named(&mut self, pages: &mut Pages) -> Result<(), Failure> {
        let named = self.named.clone();
        for id in &named {
            self.take(id.clone(), &pages.next())?;
        }
        self.compared = named.clone();
        if self.scope.dependents {
            for _ in &named {
                let page = pages.next();
                let dependents = page.entries.iter().filter_map(|entry| task_at_end(entry.key()));
                self.compared.extend(dependents);
            }
        }
        for _ in &self.scope.keys {
            let page = pages.next();
            let id = page.first().and_then(text).and_then(|id| id.parse::<TaskId>().ok());
            self.compared.extend(id);
        }
        if self.scope.dependencies {
            let found = named.iter().filter_map(|id| self.task(id));
            let before: Vec<TaskId> = found.flat_map(|task| task.depends_on.clone()).collect();
            self.compared.extend(before);
        }
        if self.scope.beside {
            let sections = named.iter().filter_map(|id| self.task(id)?.section.clone());
            self.beside = sections.collect();
        }
        self.shown.extend(self.compared.iter().cloned());
        Ok(())
    }

    fn take_working(&mut self, page: &Page) -> Result<(), Failure> {
        for entry in &page.entries {
            let Some(id) = task_at_end(entry.key()) else { continue };
            let rest = self.handle.keys.rest("i", entry.key()).unwrap_or_default();
            let section = rest.strip_prefix('+').and_then(|rest| rest.split('\0').next());
            let working: WorkingRecord = decode(entry, self.handle.url())?;
            let is_beside = section.is_some_and(|section| self.beside.contains(section));
            let is_claimed = working.grant.is_some_and(|one| self.scope.grants.contains(&one));
            if is_beside {
                self.compared.insert(id.clone());
            }
            if self.scope.in_progress || is_beside || is_claimed {
                self.shown.insert(id);
            }
        }
        Ok(())
    }

    fn take_held(&mut self, page: &Page) {
        for entry in &page.entries {
            let grant = last_part(entry.key()).and_then(|text| text.parse::<GrantId>().ok());
            if grant.is_some_and(|grant| self.scope.grants.contains(&grant)) {
                self.under.push(String::from_utf8_lossy(entry.key()).into_owned());
            }
        }
    }

    /// The next reads: the tasks themselves, and the first ready ones of further sections. Returns the
    /// resources that are held under the grants of the scope.
    async fn read_tasks(
        &mut self,
        unread: Vec<Option<String>>,
        revision: i64,
    ) -> Result<Vec<Resource>, Failure> {
        let handle = self.handle;
        let mut ready = self.ready_sections(&unread);
        let one = Pick { depth: 1, ..Pick::default() };
        let beside = self.beside.iter().cloned();
        let mut first: Vec<ReadySection> =
            beside.map(|section| ReadySection::new(&one, Some(section), 0)).collect();
        let under = self.under.iter().map(|key| Ask::one(key.clone()));
        let sections = ready.iter_mut().chain(&mut first).map(|section| section.ask(handle));
        let asks: Vec<Ask> = under.chain(sections).collect();
        let mut pages = self.load(asks, revision).await?;
        let mut held = Vec::new();
        for _ in &self.under {
            if let Some(entry) = pages.next().first() {
                held.push(StoredHold::of(entry, handle.url())?.hold.want.resource);
            }
        }
        for section in &ready {
            let picked = section.finish(handle, &mut pages, revision).await?;
            self.show_picked(picked);
        }
        for section in &first {
            let picked = section.finish(handle, &mut pages, revision).await?;
            self.shown.extend(picked.ids);
        }
        self.load(vec![], revision).await?;
        Ok(held)
    }

    /// Reads the tasks that are shown and were not read yet, and more; returns the answers to the rest.
    async fn load(&mut self, more: Vec<Ask>, revision: i64) -> Result<Pages, Failure> {
        let missing = self.shown.iter().filter(|id| !self.tasks.contains_key(*id));
        let missing: Vec<TaskId> = missing.cloned().collect();
        let tasks = missing.iter().map(|id| Ask::one(self.handle.keys.task(id)));
        let asks: Vec<Ask> = tasks.chain(more).collect();
        if asks.is_empty() {
            return Ok(Pages::none(revision));
        }
        let mut pages = self.handle.connection.read(&asks, Some(revision)).await?;
        for id in missing {
            self.take(id, &pages.next())?;
        }
        Ok(pages)
    }

    /// Of the tasks whose time has come, only those are shown that fit.
    fn leave_out_unfitting(&mut self) {
        let mut left = DUE_SHOWN;
        let fits = |task: &Task| {
            let is_picked = self.scope.pick.as_ref().is_some_and(|pick| {
                (pick.section.is_none() || pick.section == task.section)
                    && pick.labels.iter().all(|label| task.labels.contains(label))
            });
            is_picked || task.section.as_ref().is_some_and(|one| self.beside.contains(one))
        };
        let mut unfitting = Vec::new();
        for id in self.due.iter().filter(|id| !self.compared.contains(*id)) {
            let Some(task) = self.task(id) else { continue };
            let is_working = task.status == Status::InProgress;
            if !is_working && (left == 0 || !task.is_ready(self.now) || !fits(task)) {
                unfitting.push(id.clone());
            } else {
                left = left.saturating_sub(1);
            }
        }
        for id in unfitting {
            self.shown.remove(&id);
        }
    }

    /// The last read: what is held and waited for around the tasks, and how much is open in their sections.
    async fn finish(
        mut self,
        started: Started,
        held: Vec<Resource>,
        revision: i64,
    ) -> Result<Look, Failure> {
        let (handle, keys) = (self.handle, &self.handle.keys);
        let shown = self.shown.iter().filter_map(|id| self.task(id));
        let mut tasks: Vec<Task> = shown.cloned().collect();
        tasks.sort_by_key(|task| task.age);
        let mut resources = resources_of(&tasks);
        resources.extend(held);
        let mut around = Around::default();
        around.ask_all(keys, resources.iter());
        let mut asks = std::mem::take(&mut around.asks);
        let names = self.section_names(&tasks);
        let open = open_sections(&tasks);
        // A section with a task that is shown to be open need not be counted.
        let all_sections = self.scope.all_sections;
        let is_known = |name: &String| !all_sections && open.contains(name);
        for name in names.iter().filter(|name| !is_known(name)) {
            asks.push(Ask::all(keys.open(Some(name))).count());
            asks.push(Ask::all(keys.of_section(Some(name))).count());
        }
        let mut pages = handle.connection.read(&asks, Some(revision)).await?;
        around.take(&mut pages, handle.url())?;
        let mut sections = Vec::new();
        for name in names {
            let (open, all) = match is_known(&name) {
                true => (1, 1),
                false => (pages.next().count, pages.next().count),
            };
            let section = match self.described.remove(&name) {
                Some(section) => section,
                None if all > 0 => Section::named(&name),
                None => continue,
            };
            sections.push(SectionSnapshot { section, open: open.unsigned_abs() });
        }
        let mut snapshot = around.snapshot_of_all(keys, self.now);
        snapshot.sections = sections;
        (snapshot.more_to_pick, snapshot.skipped) = (self.more_to_pick, self.skipped);
        if self.scope.adds {
            snapshot.next = started.base.age + 1;
        }
        snapshot.tasks = tasks;
        let compares = self.compares(&started, revision);
        let mut look = around.into_look(started, snapshot, revision, self.now, compares);
        look.tasks = self.tasks;
        look.used_sections = self.used;
        Ok(look)
    }

    /// The sections that the look shows.
    fn section_names(&self, tasks: &[Task]) -> BTreeSet<String> {
        let known = || self.described.keys().chain(&self.used).cloned();
        if self.scope.all_sections {
            return known().collect();
        }
        let of_tasks: BTreeSet<&String> =
            tasks.iter().filter_map(|task| task.section.as_ref()).collect();
        let described = of_tasks.iter().filter_map(|name| self.described.get(*name));
        let before: BTreeSet<&String> = described.flat_map(|section| &section.depends_on).collect();
        known()
            .filter(|name| of_tasks.contains(name) || before.contains(name) || name == EVERYTHING)
            .collect()
    }

    /// What every change that is based on this look compares.
    fn compares(&self, started: &Started, revision: i64) -> Compares {
        let keys = &self.handle.keys;
        let mut compares = Compares::default();
        compares.push(started.base.unchanged(keys, "sections"));
        if self.scope.adds {
            compares.push(started.base.unchanged(keys, "adds"));
        }
        if self.scope.dependents {
            // A task that is added meanwhile may wait for one of these.
            for id in &self.named {
                compares.unput(About::Dependents, keys.dependents(id), revision);
            }
        }
        // Whether a section is given up depends on what else its runner works on.
        for section in &self.beside {
            compares.unput(About::Working, keys.working_in(Some(section)), revision);
        }
        if !self.scope.grants.is_empty() {
            compares.unput(About::Working, keys.working(), revision);
        }
        for id in &self.compared {
            if let Some(Some(stored)) = self.tasks.get(id) {
                compares.same(About::Tasks, keys.task(id), stored.revision);
            }
        }
        compares
    }
}

/// The sections in which one of these tasks has not come to its end.
fn open_sections(tasks: &[Task]) -> BTreeSet<String> {
    let open = tasks.iter().filter(|task| !task.status.is_final());
    open.filter_map(|task| task.section.clone()).collect()
}

/// All resources that a claim of these tasks needs or has.
pub(super) fn resources_of(tasks: &[Task]) -> Vec<Resource> {
    let own = tasks.iter().map(|task| task.id.resource());
    let sections: BTreeSet<&String> =
        tasks.iter().filter_map(|task| task.section.as_ref()).collect();
    let sections = sections.into_iter().filter_map(|name| Resource::new(Kind::Section, name).ok());
    own.chain(sections).chain(path_prefixes::files(tasks)).collect()
}
