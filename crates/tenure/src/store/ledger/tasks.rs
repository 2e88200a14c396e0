//! Tasks and sections, indexed for claiming.

use super::Record;
use crate::store::{SurplusTasks, Tally, TaskFilter};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tenure_core::{
    EndedTask, Pick, Section, SectionSnapshot, Snapshot, Status, Task, TaskId, TaskScope, WallTime,
};

/// How many tasks whose time has come are looked at beside those that had none.
const DUE_SHOWN: usize = 64;

/// In the order of claims.
type Order = (u8, i64, u64, TaskId);

/// The tasks, with all that a claim needs to find the next without looking at the rest.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    tasks: HashMap<TaskId, Task>,
    by_age: BTreeMap<u64, BTreeSet<TaskId>>,
    /// What could be taken now, of each section.
    ready: BTreeMap<Option<String>, BTreeSet<Order>>,
    /// What could be taken from a time of day on.
    due: BTreeSet<(WallTime, TaskId)>,
    in_progress: BTreeSet<TaskId>,
    /// What came to its end, by status, in the order in which it did.
    ended: BTreeMap<&'static str, BTreeSet<EndedTask>>,
    keys: HashMap<String, TaskId>,
    dependents: HashMap<TaskId, BTreeSet<TaskId>>,
    tallies: BTreeMap<(Option<String>, &'static str), (Status, u64)>,
    sections: BTreeMap<String, Section>,
    /// How many completed ones of each section are kept elsewhere.
    archived: BTreeMap<Option<String>, i64>,
}

impl Tasks {
    pub(crate) fn get(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.get(id)
    }

    pub(crate) fn with_key(&self, key: &str) -> Option<&Task> {
        self.tasks.get(self.keys.get(key)?)
    }

    /// All of them, oldest first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Task> {
        self.by_age.values().flatten().filter_map(|id| self.tasks.get(id))
    }

    /// Those that a filter admits, oldest first, up to its limit.
    pub(crate) fn list(&self, filter: &TaskFilter) -> Vec<Task> {
        let later = self.by_age.range(filter.after_age.saturating_add(1)..);
        let tasks = later.flat_map(|(_, ids)| ids).filter_map(|id| self.tasks.get(id));
        let admitted = tasks.filter(|task| filter.admits(task)).take(filter.limit as usize);
        admitted.map(|task| filter.listed(task.clone())).collect()
    }

    pub(crate) fn tallies(&self) -> Vec<Tally> {
        let counted = self.tallies.iter().filter(|(_, (_, count))| *count > 0);
        counted
            .map(|((section, _), (status, count))| Tally {
                section: section.clone(),
                status: *status,
                count: *count,
            })
            .collect()
    }

    /// How many of these there are, kept elsewhere or not.
    pub(crate) fn count(&self, status: Status) -> u64 {
        let counted = self.tallies.iter().filter(|((_, word), _)| *word == status.word());
        counted.map(|(_, (_, count))| *count).sum()
    }

    /// How many completed ones are kept elsewhere.
    pub(crate) fn archived_count(&self) -> u64 {
        self.archived.values().sum::<i64>().unsigned_abs()
    }

    /// What has this status at its end, in the order in which it ended.
    pub(crate) fn ended(&self, status: Status) -> impl Iterator<Item = &EndedTask> {
        self.ended.get(status.word()).into_iter().flatten()
    }

    /// What is beyond what is kept, of those that are here.
    pub(crate) fn surplus(&self, asked: &SurplusTasks, now: WallTime) -> Vec<EndedTask> {
        surplus_of(self.ended(asked.status).cloned(), self.count(asked.status), asked, now)
    }

    pub(crate) fn put(&mut self, task: Task) {
        if let Some(before) = self.tasks.remove(&task.id) {
            self.unindex(&before);
        }
        self.index(&task);
        self.tasks.insert(task.id.clone(), task);
    }

    pub(crate) fn remove(&mut self, id: &TaskId) {
        if let Some(task) = self.tasks.remove(id) {
            self.unindex(&task);
        }
    }

    /// Forgets the completed ones, which are kept elsewhere from now on; they still count.
    pub(crate) fn archive_completed(&mut self) {
        let completed = self.tasks.values().filter(|task| task.status == Status::Completed);
        let ids: Vec<TaskId> = completed.map(|task| task.id.clone()).collect();
        for id in ids {
            if let Some(task) = self.tasks.remove(&id) {
                self.unindex(&task);
                self.archived(task.section, 1);
            }
        }
    }

    /// Counts tasks that are kept elsewhere.
    pub(crate) fn archived(&mut self, section: Option<String>, count: i64) {
        self.tally(&section, Status::Completed, count);
        *self.archived.entry(section).or_default() += count;
    }

    /// How many are kept elsewhere, as records.
    pub(crate) fn archived_records(&self) -> impl Iterator<Item = Record> {
        let counted = self.archived.iter().filter(|(_, count)| **count != 0);
        counted.map(|(section, count)| Record::Archived { section: section.clone(), count: *count })
    }

    pub(crate) fn put_section(&mut self, section: Section) {
        self.sections.insert(section.name.clone(), section);
    }

    pub(crate) fn remove_section(&mut self, name: &str) {
        self.sections.remove(name);
    }

    pub(crate) fn section_records(&self) -> impl Iterator<Item = Record> {
        self.sections.values().cloned().map(Record::Section)
    }

    fn tally(&mut self, section: &Option<String>, status: Status, by: i64) {
        let entry = self.tallies.entry((section.clone(), status.word())).or_insert((status, 0));
        entry.1 = entry.1.saturating_add_signed(by);
    }

    fn index(&mut self, task: &Task) {
        let id = &task.id;
        self.by_age.entry(task.age).or_default().insert(id.clone());
        self.tally(&task.section, task.status, 1);
        if let Some(key) = &task.key {
            self.keys.insert(key.clone(), id.clone());
        }
        for before in &task.depends_on {
            self.dependents.entry(before.clone()).or_default().insert(id.clone());
        }
        if let Some(ended) = task.ended() {
            self.ended.entry(task.status.word()).or_default().insert(ended);
        }
        match task.status {
            Status::InProgress => {
                self.in_progress.insert(id.clone());
            }
            Status::Pending if task.unmet == 0 => match task.not_before {
                Some(time) => {
                    self.due.insert((time, id.clone()));
                }
                None => {
                    self.ready.entry(task.section.clone()).or_default().insert(order(task));
                }
            },
            _ => {}
        }
    }

    fn unindex(&mut self, task: &Task) {
        let id = &task.id;
        remove_from(&mut self.by_age, &task.age, id);
        self.tally(&task.section, task.status, -1);
        if let Some(key) = &task.key {
            self.keys.remove(key);
        }
        for before in &task.depends_on {
            if let Some(dependents) = self.dependents.get_mut(before) {
                dependents.remove(id);
                if dependents.is_empty() {
                    self.dependents.remove(before);
                }
            }
        }
        if let Some(ended) = task.ended() {
            remove_from(&mut self.ended, &task.status.word(), &ended);
        }
        self.in_progress.remove(id);
        if let Some(time) = task.not_before {
            self.due.remove(&(time, id.clone()));
        }
        remove_from(&mut self.ready, &task.section, &order(task));
    }

    /// Shows the tasks that a rule looks at, and all sections.
    pub(crate) fn show(&self, scope: &TaskScope, wall_ms: i64, seen: &mut Snapshot) {
        let mut ids: BTreeSet<&TaskId> = scope.ids.iter().collect();
        if scope.dependents {
            ids.extend(scope.ids.iter().filter_map(|id| self.dependents.get(id)).flatten());
        }
        if scope.dependencies {
            ids.extend(self.dependencies(scope));
        }
        ids.extend(scope.keys.iter().filter_map(|key| self.keys.get(key)));
        if scope.in_progress {
            ids.extend(&self.in_progress);
        }
        if !scope.grants.is_empty() {
            ids.extend(self.working().filter(|task| is_claimed(task, scope)).map(|task| &task.id));
        }
        if scope.beside {
            self.beside(scope, WallTime(wall_ms), &mut ids);
        }
        if let Some(pick) = &scope.pick {
            seen.more_to_pick = self.pick(pick, WallTime(wall_ms), &mut ids);
        }
        seen.tasks = ids.into_iter().filter_map(|id| self.tasks.get(id)).cloned().collect();
        seen.tasks.sort_by_key(|task| task.age);
        seen.sections = self.show_sections();
    }

    fn working(&self) -> impl Iterator<Item = &Task> {
        self.in_progress.iter().filter_map(|id| self.tasks.get(id))
    }

    /// What else the sections of the named tasks have.
    fn beside<'a>(&'a self, scope: &TaskScope, now: WallTime, ids: &mut BTreeSet<&'a TaskId>) {
        let named = scope.ids.iter().filter_map(|id| self.tasks.get(id));
        let sections: BTreeSet<&String> = named.filter_map(|task| task.section.as_ref()).collect();
        let in_them = |task: &&Task| task.section.as_ref().is_some_and(|s| sections.contains(s));
        ids.extend(self.working().filter(in_them).map(|task| &task.id));
        for section in &sections {
            let pick = Pick { section: Some((*section).clone()), depth: 1, ..Pick::default() };
            self.pick(&pick, now, ids);
        }
    }

    /// What the tasks with these ids wait for, as their records name it.
    pub(crate) fn dependencies(&self, scope: &TaskScope) -> impl Iterator<Item = &TaskId> {
        let named = scope.ids.iter().filter(|_| scope.dependencies);
        named.filter_map(|id| self.tasks.get(id)).flat_map(|task| &task.depends_on)
    }

    /// The first ready tasks of each section, and postponed tasks that are due; returns whether there
    /// are more.
    fn pick<'a>(&'a self, pick: &Pick, now: WallTime, ids: &mut BTreeSet<&'a TaskId>) -> bool {
        let mut more = false;
        let wanted = |section: &Option<String>| pick.section.is_none() || pick.section == *section;
        let labelled = |id: &TaskId| {
            let task = self.tasks.get(id);
            task.is_some_and(|task| pick.labels.iter().all(|label| task.labels.contains(label)))
        };
        for (_, ready) in self.ready.iter().filter(|(section, _)| wanted(section)) {
            let mut fitting = ready.iter().map(|(_, _, _, id)| id).filter(|id| labelled(id));
            ids.extend(fitting.by_ref().take(pick.depth));
            more |= fitting.next().is_some();
        }
        let due = self.due.iter().take_while(|(time, _)| *time <= now).map(|(_, id)| id);
        let fitting = due.filter(|id| {
            self.tasks.get(*id).is_some_and(|task| wanted(&task.section)) && labelled(id)
        });
        ids.extend(fitting.take(DUE_SHOWN));
        more
    }

    fn show_sections(&self) -> Vec<SectionSnapshot> {
        let mut open: BTreeMap<&str, u64> =
            self.sections.keys().map(|name| (name.as_str(), 0)).collect();
        for ((section, _), (status, count)) in &self.tallies {
            if let Some(name) = section.as_ref().filter(|_| *count > 0) {
                let entry = open.entry(name).or_default();
                *entry += if status.is_final() { 0 } else { *count };
            }
        }
        let one = |(name, open): (&str, u64)| {
            let section = self.sections.get(name).cloned().unwrap_or_else(|| Section::named(name));
            SectionSnapshot { section, open }
        };
        open.into_iter().map(one).collect()
    }
}

/// Whether the task is claimed under one of the grants of the scope.
fn is_claimed(task: &Task, scope: &TaskScope) -> bool {
    task.claim.as_ref().is_some_and(|claim| scope.grants.contains(&claim.grant))
}

fn order(task: &Task) -> Order {
    (task.priority, task.position, task.age, task.id.clone())
}

fn remove_from<K: Ord, V: Ord>(index: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(values) = index.get_mut(key) {
        values.remove(value);
        if values.is_empty() {
            index.remove(key);
        }
    }
}

/// Those of the tasks that are beyond what is kept, of so many in all.
pub(crate) fn surplus_of(
    oldest: impl Iterator<Item = EndedTask>,
    total: u64,
    asked: &SurplusTasks,
    now: WallTime,
) -> Vec<EndedTask> {
    let mut listed: Vec<EndedTask> =
        oldest.skip(asked.skip as usize).take(asked.limit as usize).collect();
    let times: Vec<WallTime> = listed.iter().map(|ended| ended.at).collect();
    listed.truncate(asked.keep.surplus(&times, asked.skip.into(), total, now));
    listed
}
