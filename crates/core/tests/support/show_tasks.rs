//! What a store shows of tasks: all of them, or exactly what was asked for.

use super::World;
use std::collections::{BTreeMap, BTreeSet};
use tenure_core::rules::tasks::EVERYTHING;
use tenure_core::{
    Kind, Pick, Resource, Section, SectionSnapshot, Snapshot, Status, Task, TaskId, TaskScope,
};

impl World {
    /// Everything, tasks included.
    pub(super) fn show_all_tasks(&self) -> Snapshot {
        Snapshot {
            tasks: self.tasks.clone(),
            sections: self.show_sections(),
            ..self.show_if(|_| true)
        }
    }

    /// What the contract promises for this scope, and nothing more.
    pub(super) fn show_tasks(&self, scope: &TaskScope) -> Snapshot {
        let named: Vec<&Task> =
            self.tasks.iter().filter(|task| scope.ids.contains(&task.id)).collect();
        let (picked, more_to_pick) =
            scope.pick.as_ref().map(|pick| self.pick(pick)).unwrap_or_default();
        let sections: BTreeSet<&str> = named
            .iter()
            .filter(|_| scope.beside)
            .filter_map(|task| task.section.as_deref())
            .collect();
        let beside: BTreeSet<TaskId> = sections
            .iter()
            .flat_map(|section| {
                let pick =
                    Pick { section: Some((*section).to_owned()), depth: 1, ..Pick::default() };
                self.pick(&pick).0
            })
            .collect();
        let is_claimed = |task: &Task| {
            task.claim.as_ref().is_some_and(|claim| scope.grants.contains(&claim.grant))
        };
        let is_shown = |task: &&Task| {
            let is_working = task.status == Status::InProgress;
            let is_beside = task.section.as_deref().is_some_and(|one| sections.contains(one));
            let is_awaited = || named.iter().any(|other| other.depends_on.contains(&task.id));
            let waits = || task.depends_on.iter().any(|id| scope.ids.contains(id));
            scope.ids.contains(&task.id)
                || task.key.as_ref().is_some_and(|key| scope.keys.contains(key))
                || (scope.dependents && waits())
                || (scope.dependencies && is_awaited())
                || (scope.in_progress && is_working)
                || (is_beside && is_working)
                || beside.contains(&task.id)
                || is_claimed(task)
                || picked.contains(&task.id)
        };
        let tasks: Vec<Task> = self.tasks.iter().filter(is_shown).cloned().collect();
        let files: Vec<Resource> = tasks.iter().flat_map(files_of).collect();
        let names: BTreeSet<&str> =
            tasks.iter().filter_map(|task| task.section.as_deref()).collect();
        let held = self.holds.iter().map(|stored| &stored.hold);
        let held: Vec<&Resource> = held
            .filter(|hold| scope.grants.contains(&hold.grant))
            .map(|hold| &hold.want.resource)
            .collect();
        let is_around = |resource: &Resource| match resource.kind() {
            Kind::Section => names.contains(resource.name()),
            Kind::Task => tasks.iter().any(|task| task.id.resource() == *resource),
            Kind::Path => files.iter().any(|file| file.overlaps(resource)),
            Kind::Lock => false,
        };
        let seen = self.show_if(|want| is_around(&want.resource) || held.contains(&&want.resource));
        let sections = match scope.all_sections {
            true => self.show_sections(),
            false => self.show_sections_of(&names),
        };
        Snapshot { tasks, sections, more_to_pick, ..seen }
    }

    /// These sections, those that they depend on, and the one that stands for all.
    fn show_sections_of(&self, names: &BTreeSet<&str>) -> Vec<SectionSnapshot> {
        let all = self.show_sections();
        let of_them = all.iter().filter(|seen| names.contains(seen.section.name.as_str()));
        let before: BTreeSet<&String> = of_them.flat_map(|seen| &seen.section.depends_on).collect();
        let is_shown = |seen: &&SectionSnapshot| {
            let name = &seen.section.name;
            names.contains(name.as_str()) || before.contains(name) || name == EVERYTHING
        };
        // How many are open beyond one is not shown.
        let one =
            |seen: &SectionSnapshot| SectionSnapshot { open: seen.open.min(1), ..seen.clone() };
        all.iter().filter(is_shown).map(one).collect()
    }

    /// The first of each section that could be taken, and whether there are more.
    fn pick(&self, pick: &Pick) -> (BTreeSet<TaskId>, bool) {
        let mut sections: BTreeMap<Option<&str>, Vec<&Task>> = BTreeMap::new();
        for task in &self.tasks {
            let is_wanted = pick.section.is_none() || task.section == pick.section;
            let is_labelled = pick.labels.iter().all(|label| task.labels.contains(label));
            if is_wanted && is_labelled && self.is_ready(task) {
                sections.entry(task.section.as_deref()).or_default().push(task);
            }
        }
        let mut more = false;
        let mut picked = BTreeSet::new();
        for ready in sections.values_mut() {
            ready.sort_by_key(|task| (task.priority, task.position, task.age));
            more |= ready.len() > pick.depth;
            picked.extend(ready.iter().take(pick.depth).map(|task| task.id.clone()));
        }
        (picked, more)
    }

    /// Whether the task waits for nothing of its own.
    pub fn is_ready(&self, task: &Task) -> bool {
        let is_due = task.not_before.is_none_or(|time| time <= self.wall());
        task.status == Status::Pending && task.unmet == 0 && is_due
    }

    /// Those that were described and those that have tasks.
    fn show_sections(&self) -> Vec<SectionSnapshot> {
        let described = self.sections.iter().map(|section| section.name.as_str());
        let used = self.tasks.iter().filter_map(|task| task.section.as_deref());
        let names: BTreeSet<&str> = described.chain(used).collect();
        let show = |name: &str| {
            let described = self.sections.iter().find(|section| section.name == name);
            let section = described.cloned().unwrap_or_else(|| Section::named(name));
            let tasks = self.tasks.iter().filter(|task| task.section.as_deref() == Some(name));
            let open = tasks.filter(|task| !task.status.is_final()).count() as u64;
            SectionSnapshot { section, open }
        };
        names.into_iter().map(show).collect()
    }
}

/// The paths of a task's files.
pub fn files_of(task: &Task) -> Vec<Resource> {
    task.files.iter().map(|glob| Resource::new(Kind::Path, glob).unwrap()).collect()
}
