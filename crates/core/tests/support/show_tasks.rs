//! What a store shows of tasks: all of them, or exactly what was asked for.

use super::World;
use std::collections::{BTreeMap, BTreeSet};
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
        let is_shown = |task: &&Task| {
            let is_awaited = || named.iter().any(|other| other.depends_on.contains(&task.id));
            let waits = || task.depends_on.iter().any(|id| scope.ids.contains(id));
            scope.ids.contains(&task.id)
                || task.key.as_ref().is_some_and(|key| scope.keys.contains(key))
                || (scope.dependents && waits())
                || (scope.dependencies && is_awaited())
                || (scope.in_progress && task.status == Status::InProgress)
                || picked.contains(&task.id)
        };
        let tasks: Vec<Task> = self.tasks.iter().filter(is_shown).cloned().collect();
        let files: Vec<Resource> = tasks.iter().flat_map(files_of).collect();
        let seen = self.show_if(|want| match want.resource.kind() {
            Kind::Section => true,
            Kind::Task => tasks.iter().any(|task| task.id.resource() == want.resource),
            Kind::Path => files.iter().any(|file| file.overlaps(&want.resource)),
            Kind::Lock => false,
        });
        Snapshot { tasks, sections: self.show_sections(), more_to_pick, ..seen }
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
