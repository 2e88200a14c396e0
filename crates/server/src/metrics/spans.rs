//! Measures how long holds, waits and the time of tasks in the queue took, from events.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tenure::core::{Event, EventKind, Kind, Resource, Snapshot, Task, TaskId, Token, WallTime};

/// How a hold ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its worker completed the task.
    Completed,
    /// Its worker could not do the task.
    Failed,
    /// Its holder ended it in another way.
    Released,
    Lapsed,
    Died,
    Broken,
}

impl End {
    fn of(kind: &EventKind) -> End {
        match kind {
            EventKind::Completed => End::Completed,
            EventKind::Failed { .. } => End::Failed,
            EventKind::Lapsed { .. } => End::Lapsed,
            EventKind::Died { .. } => End::Died,
            EventKind::Broken { .. } => End::Broken,
            _ => End::Released,
        }
    }

    /// The word for it; finishing a task releases it.
    pub(super) fn word(self) -> &'static str {
        match self {
            End::Completed | End::Failed | End::Released => "released",
            End::Lapsed => "lapsed",
            End::Died => "died",
            End::Broken => "broken",
        }
    }
}

/// What took time. A task is in progress while it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measured {
    /// A resource of this kind was held.
    Held(Kind, End),
    /// A request waited for a resource, and got it or not.
    Waited { acquired: bool },
    /// A task waited for a worker.
    Queued,
}

/// A duration that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) measured: Measured,
    /// The section: that of the task, or the section that was held or waited for.
    pub(super) section: Option<Arc<str>>,
    pub(super) time: Duration,
}

/// Started holds and waits, with their start times.
#[derive(Default)]
pub(super) struct OpenSpans {
    holds: HashMap<(Resource, Token), OpenHold>,
    /// Of several waits under one label, the first one is taken to end first.
    waits: HashMap<(Resource, String), VecDeque<WallTime>>,
    waiting: usize,
}

struct OpenHold {
    at: WallTime,
    section: Option<Arc<str>>,
}

/// Beyond this number, holds and waits are counted but not measured.
const SPANS_MAX: usize = 100_000;

/// Records of tasks, by id.
pub(super) type Tasks = HashMap<TaskId, Task>;

impl OpenSpans {
    /// Records what had started before events were followed.
    pub(super) fn begin(&mut self, seen: &Snapshot, tasks: &Tasks) {
        for seen in &seen.holds {
            let resource = &seen.hold.want.resource;
            self.hold(resource, seen.hold.token, seen.acquired_at, section(resource, tasks));
        }
        for seen in &seen.waiters {
            for want in &seen.waiter.wants {
                self.wait(&want.resource, &seen.waiter.holder.label, seen.waiting_since);
            }
        }
    }

    /// Records what this event starts, and returns what it ends. `tasks` has the records of the
    /// tasks that were claimed.
    pub(super) fn observe(&mut self, event: &Event, tasks: &Tasks) -> Vec<Span> {
        let Some(resource) = &event.event.resource else { return vec![] };
        let label = &event.event.label;
        match (&event.event.kind, event.event.token) {
            (EventKind::Waiting, _) => {
                self.wait(resource, label, event.at);
                vec![]
            }
            (EventKind::Left { .. }, _) => {
                self.waited(resource, label, event.at, false).into_iter().collect()
            }
            (EventKind::Acquired { .. }, Some(token)) => {
                let waited = self.waited(resource, label, event.at, true);
                let section = section(resource, tasks);
                let queued = queued(resource, token, event.at, tasks);
                let queued = queued.map(|time| Span {
                    measured: Measured::Queued,
                    section: section.clone(),
                    time,
                });
                self.hold(resource, token, event.at, section);
                waited.into_iter().chain(queued).collect()
            }
            // Any other event with the token of a hold ends it, if it has not ended before.
            (kind, Some(token)) => {
                let ended_at = match kind {
                    EventKind::Lapsed { ended_at: Some(ended_at), .. } => *ended_at,
                    _ => event.at,
                };
                let end = End::of(kind);
                self.held(resource, token, ended_at, end).into_iter().collect()
            }
            _ => vec![],
        }
    }

    fn hold(&mut self, resource: &Resource, token: Token, at: WallTime, section: Option<Arc<str>>) {
        if self.holds.len() < SPANS_MAX {
            self.holds.insert((resource.clone(), token), OpenHold { at, section });
        }
    }

    fn held(&mut self, resource: &Resource, token: Token, at: WallTime, end: End) -> Option<Span> {
        let begun = self.holds.remove(&(resource.clone(), token))?;
        let measured = Measured::Held(resource.kind(), end);
        Some(Span { measured, section: begun.section, time: between(begun.at, at) })
    }

    fn wait(&mut self, resource: &Resource, label: &str, at: WallTime) {
        if self.waiting < SPANS_MAX {
            self.waiting += 1;
            self.waits.entry((resource.clone(), label.to_owned())).or_default().push_back(at);
        }
    }

    fn waited(
        &mut self,
        resource: &Resource,
        label: &str,
        at: WallTime,
        acquired: bool,
    ) -> Option<Span> {
        let key = (resource.clone(), label.to_owned());
        let queue = self.waits.get_mut(&key)?;
        let begun = queue.pop_front();
        if queue.is_empty() {
            self.waits.remove(&key);
        }
        self.waiting -= 1;
        let section = match resource.kind() {
            Kind::Section => Some(resource.name().into()),
            _ => None,
        };
        Some(Span { measured: Measured::Waited { acquired }, section, time: between(begun?, at) })
    }
}

/// The tasks that these events claim: their records tell section and time in the queue.
pub(super) fn claimed(events: &[Event]) -> Vec<TaskId> {
    let claims =
        events.iter().filter(|event| matches!(event.event.kind, EventKind::Acquired { .. }));
    let mut ids: Vec<TaskId> =
        claims.filter_map(|event| task_id(event.event.resource.as_ref()?)).collect();
    ids.sort();
    ids.dedup();
    ids
}

/// The id of the task that a resource is.
pub(super) fn task_id(resource: &Resource) -> Option<TaskId> {
    (resource.kind() == Kind::Task).then(|| resource.name().parse().ok()).flatten()
}

/// The section that the time of this resource belongs to.
fn section(resource: &Resource, tasks: &Tasks) -> Option<Arc<str>> {
    match resource.kind() {
        Kind::Section => Some(resource.name().into()),
        Kind::Task => tasks.get(&task_id(resource)?)?.section.as_deref().map(Arc::from),
        Kind::Lock | Kind::Path => None,
    }
}

/// How long a task was in the queue before this claim: since it was added, its last claim ended, or
/// the time came before which it must not be claimed.
fn queued(resource: &Resource, token: Token, at: WallTime, tasks: &Tasks) -> Option<Duration> {
    let task = tasks.get(&task_id(resource)?)?;
    let before = task.tries.iter().take_while(|one| one.token < token);
    let came_back = before.filter_map(|one| one.ended_at).max_by_key(|at| at.0);
    let due = task.not_before.filter(|due| due.0 <= at.0);
    let since = [Some(task.created_at), came_back, due].into_iter().flatten();
    since.map(|since| between(since, at)).min()
}

/// The time between two readings of a clock that may have been set back.
fn between(begun: WallTime, at: WallTime) -> Duration {
    Duration::from_millis(at.0.saturating_sub(begun.0).max(0) as u64)
}
