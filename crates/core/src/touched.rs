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
            // No rule decides by what a small record says: the last one written counts.
            Write::PutRecord(_) | Write::DropRecords(_) => vec![],
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
            Write::Answer(_) | Write::PutRecord(_) | Write::DropRecords(_) => true,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{RecordKind, RecordRange};
    use crate::{
        Hold, HoldSnapshot, Holder, Section, StoredReply, Task, Token, WaiterSnapshot, WallTime,
        Want,
    };
    use std::time::Duration;

    fn resource(text: &str) -> Resource {
        text.parse().unwrap()
    }

    fn grant(number: u128) -> GrantId {
        GrantId::from_bits(number)
    }

    fn hold(text: &str, number: u128) -> Hold {
        Hold {
            want: Want::exclusive(resource(text)),
            grant: grant(number),
            token: Token(1),
            holder: Holder::chosen("alice").unwrap(),
            operation: None,
            ttl: Duration::from_secs(1),
            slot: None,
        }
    }

    fn waiter(wants: &[&str], number: u128) -> Waiter {
        Waiter {
            grant: grant(number),
            ticket: 1,
            wants: wants.iter().map(|text| Want::exclusive(resource(text))).collect(),
            holder: Holder::chosen("bob").unwrap(),
            operation: None,
            keeps: vec![],
            ttl: Duration::from_secs(1),
        }
    }

    fn task(id: &str) -> Task {
        Task::new(id.parse().unwrap(), "title", WallTime(0))
    }

    fn extend(text: &str, number: u128) -> Write {
        let (resource, grant) = (resource(text), grant(number));
        Write::Extend { resource, grant, ttl: Duration::from_secs(1), operation: None }
    }

    fn drop_hold(text: &str, number: u128) -> Write {
        Write::DropHold { resource: resource(text), grant: grant(number) }
    }

    fn reply() -> Write {
        Write::Answer(StoredReply { slot: "s".to_owned(), number: 1, text: "x".to_owned() })
    }

    /// Grant 1 holds `a`, grant 2 waits for `a`, and the task `t` of the section `S` has files.
    fn shown() -> Snapshot {
        let held = HoldSnapshot {
            hold: hold("a", 1),
            left: Duration::from_secs(1),
            held_for: Duration::ZERO,
            acquired_at: WallTime(0),
            renewed_at: WallTime(0),
            expires_at: WallTime(0),
            stale: None,
        };
        let place = WaiterSnapshot {
            waiter: waiter(&["a"], 2),
            left: Duration::from_secs(1),
            waited_for: Duration::ZERO,
            waiting_since: WallTime(0),
            woken_for: None,
        };
        let (section, files) = (Some("S".to_owned()), vec!["src/**".to_owned()]);
        Snapshot {
            holds: vec![held],
            waiters: vec![place],
            tasks: vec![Task { section, files, ..task("t") }],
            ..Snapshot::empty()
        }
    }

    #[test]
    fn a_write_touches_the_records_that_it_changes() {
        let (a, b) = (resource("a"), resource("b"));
        let (one, both) = (vec![Touched::Resource(&a)], [&a, &b].map(Touched::Resource).to_vec());
        let id: TaskId = "t".parse().unwrap();
        let places = |write: fn(Waiter) -> Write| write(waiter(&["a", "b"], 1));
        let range = RecordRange::all(RecordKind::Worker);
        for (write, touched) in [
            (Write::Hold(hold("a", 1)), one.clone()),
            (extend("a", 1), one.clone()),
            (drop_hold("a", 1), one),
            (places(Write::Wait), both.clone()),
            (places(Write::KeepPlace), both.clone()),
            (places(Write::Woken), both.clone()),
            (places(Write::DropWait), both),
            (Write::Task(Box::new(task("t"))), vec![Touched::Task(&id)]),
            (Write::DropTask(id.clone()), vec![Touched::Task(&id)]),
            (Write::Section(Section::named("S")), vec![Touched::Section("S")]),
            (Write::DropSection("S".to_owned()), vec![Touched::Section("S")]),
            (reply(), vec![Touched::Slot("s")]),
            (Write::DropRecords(range), vec![]),
        ] {
            assert_eq!(write.touches(), touched, "{write:?}");
        }
    }

    #[test]
    fn a_rule_may_write_to_the_resources_of_its_scope_and_to_records_that_it_was_shown() {
        let at = Scope::At { resources: vec![resource("b"), resource("path:x/**")], ticket: None };
        for (write, is_admitted) in [
            (Write::Hold(hold("b", 9)), true),
            (Write::Hold(hold("path:x/y", 9)), true),
            (Write::Hold(hold("path:**", 9)), false),
            (Write::Hold(hold("a", 1)), false),
            (extend("b", 9), true),
            (extend("a", 1), true),
            (extend("a", 9), false),
            (drop_hold("a", 1), true),
            (drop_hold("c", 1), false),
            (Write::Wait(waiter(&["b"], 9)), true),
            (Write::Wait(waiter(&["b", "c"], 9)), false),
            (Write::Wait(waiter(&["a"], 2)), false),
            (Write::Woken(waiter(&["a"], 2)), true),
            (Write::KeepPlace(waiter(&["b"], 9)), true),
            (Write::DropWait(waiter(&["a"], 9)), false),
            (Write::Task(Box::new(task("u"))), false),
            (Write::DropTask("u".parse().unwrap()), false),
            (Write::Section(Section::named("S")), false),
            (reply(), true),
        ] {
            assert_eq!(at.admits(&write, &shown()), is_admitted, "{write:?}");
        }
        assert!(Scope::Everything.admits(&Write::Hold(hold("c", 9)), &shown()));
        assert!(!Scope::Everything.admits(&Write::DropSection("S".to_owned()), &shown()));
    }

    #[test]
    fn a_rule_of_tasks_may_write_to_them_and_to_what_belongs_to_them() {
        let ids = vec!["u".parse().unwrap()];
        let named = TaskScope { ids, ..TaskScope::default() };
        let adds = TaskScope { adds: true, ..TaskScope::default() };
        let sections = TaskScope { all_sections: true, ..TaskScope::default() };
        let put = |id: &str| Write::Task(Box::new(task(id)));
        let drop_task = |id: &str| Write::DropTask(id.parse().unwrap());
        let take = |text: &str| Write::Hold(hold(text, 9));
        // Whether it is admitted with named tasks, with new ones, with all sections.
        for (write, expected) in [
            (put("t"), [true, true, true]),
            (put("u"), [true, true, false]),
            (put("v"), [false, true, false]),
            (drop_task("t"), [true, true, true]),
            (drop_task("u"), [true, false, false]),
            (drop_task("v"), [false, false, false]),
            (Write::Section(Section::named("S")), [false, false, true]),
            (take("task:t"), [true, true, true]),
            (take("task:u"), [false, false, false]),
            (take("section:S"), [true, true, true]),
            (take("section:T"), [false, false, false]),
            (take("path:src/main.rs"), [true, true, true]),
            (take("path:docs/x"), [false, false, false]),
            (take("t"), [false, false, false]),
        ] {
            let scopes = [&named, &adds, &sections].map(|scope| Scope::Tasks(scope.clone()));
            let found = scopes.map(|scope| scope.admits(&write, &shown()));
            assert_eq!(found, expected, "{write:?}");
        }
    }
}
