//! What there is to see: one look at everything, gathered from a client. Only reads.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tenure::core::{
    Event, Kind, Liveness, Revision, Seen, SeenHold, SeenSection, SeenWaiter, Status, Task,
    WallTime,
};
use tenure::store::{Tally, TaskFilter};
use tenure::view::{self, process_of};
use tenure::{Client, Error};

/// So many of the newest events are kept: as many as one scrolls through, and enough for a timeline.
const EVENTS_MAX: usize = 500;

/// So many tasks in progress are shown: more do not fit on any screen.
const TASKS_MAX: u32 = 200;

/// Everything at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board {
    pub(crate) store: String,
    pub(crate) engine: String,
    pub(crate) local: bool,
    pub(crate) revision: Revision,
    pub(crate) now: WallTime,
    pub(crate) locks: Vec<Held>,
    pub(crate) waiting: usize,
    pub(crate) tallies: Vec<Tally>,
    pub(crate) sections: Vec<SeenSection>,
    /// Those in progress.
    pub(crate) tasks: Vec<Task>,
    pub(crate) workers: Vec<Worker>,
    /// The newest last.
    pub(crate) events: Vec<Event>,
}

/// Something that is held.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) seen: SeenHold,
    /// Why it no longer counts.
    pub(crate) stale: Option<String>,
    /// Who waits for it, in order.
    pub(crate) waiters: Vec<SeenWaiter>,
}

/// Somebody who holds, with all that it holds.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) label: String,
    pub(crate) host: Option<String>,
    pub(crate) pid: Option<u32>,
    pub(crate) liveness: Liveness,
    pub(crate) since: WallTime,
    pub(crate) held_for: Duration,
    /// The time left of what lapses first, and when that is.
    pub(crate) left: Duration,
    pub(crate) expires_at: WallTime,
    pub(crate) locks: Vec<String>,
    /// Ids and titles.
    pub(crate) tasks: Vec<(String, String)>,
}

impl Board {
    /// Looks at everything; what happened before `known` is taken from there.
    pub(crate) async fn look(client: &Client, known: &Board) -> Result<Board, Error> {
        let seen = client.look_everywhere().await?;
        let tasks = client.tasks();
        let in_progress = TaskFilter {
            status: Some(Status::InProgress),
            limit: TASKS_MAX,
            ..TaskFilter::default()
        };
        let in_progress = tasks.list(&in_progress).await?;
        let info = client.info();
        Ok(Board {
            store: info.url,
            engine: info.engine,
            local: info.local,
            revision: seen.revision,
            now: seen.wall,
            waiting: seen.waiters.len(),
            tallies: tasks.tallies().await?,
            sections: tasks.sections().await?,
            workers: workers(&seen, &in_progress, client),
            locks: locks(seen, client),
            tasks: in_progress,
            events: events(client, known).await?,
        })
    }

    /// How many tasks have this status, in a section or in all.
    pub(crate) fn count(&self, status: Status, section: Option<&str>) -> u64 {
        let fits = |tally: &&Tally| {
            tally.status == status && (section.is_none() || tally.section.as_deref() == section)
        };
        self.tallies.iter().filter(fits).map(|tally| tally.count).sum()
    }

    /// The same as JSON, named as the server names it.
    pub(crate) fn to_json(&self, client: &Client) -> Value {
        let holds: Vec<SeenHold> = self.locks.iter().map(|held| held.seen.clone()).collect();
        let locks: Vec<Value> = self
            .locks
            .iter()
            .map(|held| {
                let mut lock = view::hold_json(&held.seen, client.witness(), held.waiters.len());
                let places = held.waiters.iter().zip(1..);
                let waiters: Vec<Value> =
                    places.map(|(seen, place)| view::waiter_json(seen, place)).collect();
                lock["waiters"] = json!(waiters);
                lock
            })
            .collect();
        let tasks =
            self.tasks.iter().map(|task| view::task_json(task, view::hold_of(task, &holds)));
        json!({
            "revision": self.revision,
            "now": view::time(self.now),
            "store": { "url": self.store, "engine": self.engine, "local": self.local },
            "locks": locks,
            "waiting": self.waiting,
            "tallies": self.tallies.iter().map(tally_json).collect::<Vec<_>>(),
            "sections": self.sections.iter().map(view::open_section_json).collect::<Vec<_>>(),
            "tasks": tasks.collect::<Vec<_>>(),
            "workers": self.workers.iter().map(Worker::to_json).collect::<Vec<_>>(),
            "events": self.events.iter().map(view::event_json).collect::<Vec<_>>(),
        })
    }
}

fn tally_json(tally: &Tally) -> Value {
    json!({ "section": tally.section, "status": tally.status.word(), "count": tally.count })
}

fn locks(seen: Seen, client: &Client) -> Vec<Held> {
    let waiters = seen.waiters;
    let held = |seen: SeenHold| {
        let resource = &seen.hold.want.resource;
        let waits = |waiter: &&SeenWaiter| {
            waiter.waiter.wants.iter().any(|want| want.resource.overlaps(resource))
        };
        let waiters = waiters.iter().filter(waits).cloned().collect();
        Held { stale: view::stale_reason(&seen, client.witness()), waiters, seen }
    };
    seen.holds.into_iter().map(held).collect()
}

/// Those who hold, by label and process; one label may be several.
fn workers(seen: &Seen, tasks: &[Task], client: &Client) -> Vec<Worker> {
    let mut workers: BTreeMap<(String, Option<u32>), Worker> = BTreeMap::new();
    for seen in &seen.holds {
        let holder = &seen.hold.holder;
        let pid = process_of(holder).map(|(_, pid)| pid);
        let worker = workers.entry((holder.label.clone(), pid)).or_insert_with(|| Worker {
            label: holder.label.clone(),
            host: holder.evidence.as_ref().map(|evidence| evidence.host.clone()),
            pid,
            liveness: holder.liveness(client.witness()),
            since: seen.acquired_at,
            held_for: seen.held_for,
            left: seen.left,
            expires_at: seen.expires_at,
            locks: vec![],
            tasks: vec![],
        });
        if seen.held_for > worker.held_for {
            (worker.held_for, worker.since) = (seen.held_for, seen.acquired_at);
        }
        if seen.left < worker.left {
            (worker.left, worker.expires_at) = (seen.left, seen.expires_at);
        }
        let resource = &seen.hold.want.resource;
        let task = tasks
            .iter()
            .find(|task| resource.kind() == Kind::Task && task.id.as_str() == resource.name());
        match task {
            Some(task) => worker.tasks.push((task.id.to_string(), task.title.clone())),
            None => worker.locks.push(resource.to_string()),
        }
    }
    workers.into_values().collect()
}

impl Worker {
    fn to_json(&self) -> Value {
        let tasks: Vec<Value> =
            self.tasks.iter().map(|(id, title)| json!({ "id": id, "title": title })).collect();
        json!({
            "holder": self.label,
            "hostname": self.host,
            "pid": self.pid,
            "alive": alive_word(self.liveness),
            "since": view::time(self.since),
            "locks": self.locks,
            "tasks": tasks,
            "expires_at": view::time(self.expires_at),
            "seconds_left": view::seconds(self.left),
        })
    }
}

/// What is known of somebody's life, in a word.
pub(crate) fn alive_word(liveness: Liveness) -> &'static str {
    match liveness {
        Liveness::Alive => "alive",
        Liveness::Dead => "dead",
        Liveness::Unknown => "unknown",
    }
}

/// The newest events, those that are known already and those that came since.
async fn events(client: &Client, known: &Board) -> Result<Vec<Event>, Error> {
    let newest = client.changed(Revision(0), Duration::ZERO).await?;
    let mut events = known.events.clone();
    if events.last().is_some_and(|event| event.revision > newest) {
        // Another store lies in its place.
        events.clear();
    }
    let oldest = newest.0.saturating_sub(EVENTS_MAX as u64);
    let after = events.last().map_or(oldest, |event| event.revision.0.max(oldest));
    events.extend(client.events(Revision(after), EVENTS_MAX as u32).await?);
    events.drain(..events.len().saturating_sub(EVENTS_MAX));
    Ok(events)
}
