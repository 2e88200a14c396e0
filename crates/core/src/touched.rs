//! What a write touches, for stores that lock or compare records one by one, and whether a rule was
//! shown what it writes.

use crate::decision::Write;
use crate::hold::Waiter;
use crate::snapshot::{Scope, Snapshot, TaskScope};
use crate::task::TaskId;
use crate::{GrantId, Kind, Resource};

/// Something that a write changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Touched<'a> {
    /// The holders or the queue of a resource.
    Resource(&'a Resource),
    /// The record of a task.
    Task(&'a TaskId),
    /// The record of a section.
    Section(&'a str),
    /// The stored reply of a slot.
    Slot(&'a str),
}

impl Write {
    /// All that this write changes. A place in several queues touches each of their resources.
    pub fn touches(&self) -> Vec<Touched<'_>> {
        match self {
            Write::Hold(hold) => vec![Touched::Resource(&hold.want.resource)],
            Write::Extend { resource, .. } | Write::DropHold { resource, .. } => {
                vec![Touched::Resource(resource)]
            }
            Write::Wait(waiter)
            | Write::KeepPlace(waiter)
            | Write::Woken(waiter)
            | Write::DropWait(waiter) => {
                waiter.wants.iter().map(|want| Touched::Resource(&want.resource)).collect()
            }
            Write::Task(task) => vec![Touched::Task(&task.id)],
            Write::DropTask(id) => vec![Touched::Task(id)],
            Write::Section(section) => vec![Touched::Section(&section.name)],
            Write::DropSection(name) => vec![Touched::Section(name)],
            Write::Answer(reply) => vec![Touched::Slot(&reply.slot)],
        }
    }
}

impl Scope {
    /// Whether a rule that was shown this scope may write this: the record was shown, or it is a new
    /// one where all that it can collide with was shown. Stored replies are not part of a scope.
    pub fn admits(&self, write: &Write, shown: &Snapshot) -> bool {
        match write {
            Write::Hold(hold) => self.shows(&hold.want.resource, shown),
            Write::Extend { resource, grant, .. } | Write::DropHold { resource, grant } => {
                is_held(shown, resource, *grant) || self.shows(resource, shown)
            }
            Write::Wait(waiter) => self.shows_queues(waiter, shown),
            Write::KeepPlace(waiter) | Write::Woken(waiter) | Write::DropWait(waiter) => {
                let is_shown = |place: &crate::WaiterSnapshot| place.waiter.grant == waiter.grant;
                shown.waiters.iter().any(is_shown) || self.shows_queues(waiter, shown)
            }
            // The cheap question first: an import writes many tasks.
            Write::Task(task) => self.is(|scope| scope.adds) || self.shows_task(&task.id, shown),
            Write::DropTask(id) => self.shows_task(id, shown),
            Write::Section(_) | Write::DropSection(_) => self.is(|scope| scope.all_sections),
            Write::Answer(_) => true,
        }
    }

    fn is(&self, asked: impl Fn(&TaskScope) -> bool) -> bool {
        matches!(self, Scope::Tasks(scope) if asked(scope))
    }

    fn shows_queues(&self, waiter: &Waiter, shown: &Snapshot) -> bool {
        waiter.wants.iter().all(|want| self.shows(&want.resource, shown))
    }

    fn shows_task(&self, id: &TaskId, shown: &Snapshot) -> bool {
        shown.task(id).is_some() || self.is(|scope| scope.ids.contains(id))
    }

    /// Whether all holders of this resource, and those before a new place in its queue, were shown
    /// as far as the scope promises.
    fn shows(&self, resource: &Resource, shown: &Snapshot) -> bool {
        match self {
            Scope::Everything => true,
            Scope::At { resources, .. }
            | Scope::Queues(resources)
            | Scope::Waits { resources, .. } => resources.iter().any(|one| one.includes(resource)),
            Scope::Tasks(_) => match resource.kind() {
                Kind::Lock => false,
                Kind::Task => shown.tasks.iter().any(|task| task.id.resource() == *resource),
                Kind::Section => {
                    shown.tasks.iter().any(|task| task.section.as_deref() == Some(resource.name()))
                }
                Kind::Path => shown.tasks.iter().flat_map(|task| &task.files).any(|glob| {
                    Resource::new(Kind::Path, glob).is_ok_and(|file| file.includes(resource))
                }),
            },
        }
    }
}

fn is_held(shown: &Snapshot, resource: &Resource, grant: GrantId) -> bool {
    shown.holds_of(grant).any(|held| held.hold.want.resource == *resource)
}
