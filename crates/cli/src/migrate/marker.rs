//! The marker of an unfinished migration, and the pause of both stores while it lasts.
//!
//! The marker is a task in the target that is never handed out. Its age is 0: it takes no number, and no
//! list of tasks shows it.

use super::LABEL;
use super::side::{Side, failed};
use crate::exit::Exit;
use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use tenure::core::rules::tasks::EVERYTHING;
use tenure::core::{
    Change, Decision, EventKind, Kind, NewEvent, Resource, Revision, Scope, Section, Snapshot,
    Status, Task, TaskId, TaskScope, WallTime, Write,
};
use tenure::store::{Store, StoreExt, Transaction, transact_with};

/// The id of the marker.
const ID: &str = "tenure-migration";

/// What is known of a migration that has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    /// The URL of the source.
    from: String,
    /// The record of the source that pauses all of it, as it was before.
    everything: Option<Section>,
    /// The target's revision before it began: later events came from the source.
    pub(super) base: Revision,
    /// Up to which revision of the source the history was copied.
    pub(super) copied: Revision,
}

fn id() -> TaskId {
    ID.parse().expect("the marker's id can name a task")
}

/// Whether this task is the marker.
pub(super) fn is_marker(task: &Task) -> bool {
    task.id.as_str() == ID
}

/// What a change to the marker looks at.
fn scope() -> Scope {
    Scope::Tasks(TaskScope {
        ids: vec![id()],
        all_sections: true,
        adds: true,
        ..TaskScope::default()
    })
}

fn shown(seen: &Snapshot) -> Option<Marker> {
    let task = seen.tasks.iter().find(|task| is_marker(task))?;
    task.payload_as().ok().flatten()
}

/// The marker of this store, if a migration into it is unfinished.
pub(super) async fn find(store: &dyn Store) -> Result<Option<Marker>, Failure> {
    let scope = Scope::Tasks(TaskScope { ids: vec![id()], ..TaskScope::default() });
    let seen = store.read(&scope).await.map_err(failed)?;
    let marker = shown(&seen);
    if marker.is_none() && !seen.tasks.is_empty() {
        let message = format!("the marker task:{ID} in {} cannot be read", store.info().url);
        return Err(Failure::new(Exit::Error, "MARKER", message)
            .hint("Use the version of tenure that began the migration, or an empty target."));
    }
    Ok(marker)
}

fn other_run() -> Failure {
    let message = "another migration into the same target is running";
    Failure::new(Exit::Locked, "MIGRATION_RUNNING", message).hint("Wait until it is done.")
}

/// The record that pauses a store.
fn pausing(everything: Option<Section>) -> Section {
    Section { paused: true, ..everything.unwrap_or_else(|| Section::named(EVERYTHING)) }
}

fn everything_of(seen: &Snapshot) -> Option<Section> {
    let found = seen.sections.iter().find(|seen| seen.section.name == EVERYTHING);
    found.map(|seen| seen.section.clone())
}

fn note(kind: EventKind) -> NewEvent {
    let resource = Resource::new(Kind::Section, EVERYTHING).ok();
    NewEvent::new(resource, LABEL, None, kind)
}

/// Pauses the source, so that no worker takes a task of it.
pub(super) async fn pause(source: &dyn Store) -> Result<(), Failure> {
    let rule = |seen: &Snapshot| {
        let before = everything_of(seen);
        if before.as_ref().is_some_and(|section| section.paused) {
            return Decision::Nothing;
        }
        let writes = vec![Write::Section(pausing(before))];
        let events = vec![note(EventKind::Paused)];
        Change { writes, events, durable: true, ..Change::default() }.decide()
    };
    source.transact(Transaction::new(sections_scope(), rule)).await.map_err(failed)?;
    Ok(())
}

fn sections_scope() -> Scope {
    Scope::Tasks(TaskScope { all_sections: true, ..TaskScope::default() })
}

impl Marker {
    /// The marker of a migration that begins now.
    pub(super) async fn new(source: &Side, target: &Side) -> Result<Marker, Failure> {
        let seen = source.store.read(&sections_scope()).await.map_err(failed)?;
        let there = target.store.read(&Scope::Everything).await.map_err(failed)?;
        Ok(Marker {
            from: source.url.to_string(),
            everything: everything_of(&seen),
            base: there.revision,
            copied: Revision(0),
        })
    }

    /// This marker, if it is of a migration from this source.
    pub(super) fn of_source(self, source: &Side, target: &Side) -> Result<Marker, Failure> {
        if self.from == source.url.to_string() {
            return Ok(self);
        }
        let message = format!("{} has an unfinished migration from {}", target.url, self.from);
        Err(Failure::new(Exit::Refused, "TARGET_UNFINISHED", message)
            .hint("Finish that one first: run it again, or name an empty target."))
    }

    fn task(&self, wall: WallTime) -> Task {
        let mut task = Task::new(id(), format!("Unfinished migration from {}", self.from), wall);
        task.status = Status::Blocked;
        task.payload = serde_json::to_string(self).ok();
        task
    }

    /// Writes the marker into the target, and pauses it.
    pub(super) async fn begin(self, target: &dyn Store) -> Result<Marker, Failure> {
        let marker = self.clone();
        let rule = move |seen: &Snapshot| match shown(seen) {
            Some(other) if other != marker => (Decision::Nothing, false),
            _ => {
                let task = Write::Task(Box::new(marker.task(seen.wall)));
                let writes = vec![task, Write::Section(pausing(None))];
                (Change { writes, durable: true, ..Change::default() }.decide(), true)
            }
        };
        let (_, is_ours) = transact_with(target, scope(), None, rule).await.map_err(failed)?;
        if is_ours { Ok(self) } else { Err(other_run()) }
    }

    /// Adds events to the target's history that were copied up to this revision of the source.
    pub(super) async fn advance(
        &mut self,
        target: &dyn Store,
        copied: Revision,
        events: Vec<NewEvent>,
    ) -> Result<(), Failure> {
        let before = self.clone();
        let after = Marker { copied, ..self.clone() };
        let next = after.clone();
        let rule = move |seen: &Snapshot| match shown(seen) {
            Some(there) if there == before => {
                let writes = vec![Write::Task(Box::new(next.task(seen.wall)))];
                let events = events.clone();
                (Change { writes, events, durable: true, ..Change::default() }.decide(), true)
            }
            // The answer to an earlier try was lost.
            Some(there) if there == next => (Decision::Nothing, true),
            _ => (Decision::Nothing, false),
        };
        let (_, is_ours) = transact_with(target, scope(), None, rule).await.map_err(failed)?;
        if !is_ours {
            return Err(other_run());
        }
        *self = after;
        Ok(())
    }

    /// Lets workers of the source go on, unless it was paused before.
    pub(super) async fn resume(&self, source: &dyn Store) -> Result<(), Failure> {
        if self.everything.as_ref().is_some_and(|section| section.paused) {
            return Ok(());
        }
        let before = self.everything.clone();
        let rule = move |seen: &Snapshot| {
            if everything_of(seen).is_none_or(|section| !section.paused) {
                return Decision::Nothing;
            }
            let writes = vec![restored(before.clone())];
            let events = vec![note(EventKind::Resumed)];
            Change { writes, events, durable: true, ..Change::default() }.decide()
        };
        source.transact(Transaction::new(sections_scope(), rule)).await.map_err(failed)?;
        Ok(())
    }

    /// Removes the marker and the pause of the target.
    pub(super) async fn finish(self, target: &dyn Store) -> Result<(), Failure> {
        let everything = self.everything;
        let rule = move |_: &Snapshot| {
            let writes = vec![Write::DropTask(id()), restored(everything.clone())];
            Change { writes, durable: true, ..Change::default() }.decide()
        };
        target.transact(Transaction::new(scope(), rule)).await.map_err(failed)?;
        Ok(())
    }
}

/// The record that pauses a store, as it was.
fn restored(everything: Option<Section>) -> Write {
    match everything {
        Some(section) => Write::Section(section),
        None => Write::DropSection(EVERYTHING.to_owned()),
    }
}
