//! The data of the view: one snapshot of everything, read from a client.

use serde_json::{Value, json};
use std::time::Duration;
use tenure::core::{
    Counts, Event, HoldSnapshot, HoldState, JudgedHold, Kind, Liveness, Overview, Revision,
    SectionSnapshot, Snapshot, Status, Task, WaiterSnapshot, WallTime,
};
use tenure::store::{Tally, TaskFilter};
use tenure::{Client, Error};
use tenure_frontend::view;

/// How many of the newest events are kept: enough for scrolling and for the timeline.
const EVENTS_MAX: usize = 500;

/// How many tasks in progress are shown.
const TASKS_MAX: usize = 200;

/// A snapshot of everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct ViewData {
    pub(crate) store: String,
    pub(crate) engine: String,
    pub(crate) local: bool,
    pub(crate) revision: Revision,
    pub(crate) now: WallTime,
    pub(crate) locks: Vec<Held>,
    /// The numbers of holds, lapsed holds, waiters and workers.
    pub(crate) counts: Counts,
    /// Sentences about free resources that have waiters.
    pub(crate) free_queues: Vec<String>,
    pub(crate) tallies: Vec<Tally>,
    pub(crate) sections: Vec<SectionSnapshot>,
    /// The tasks in progress.
    pub(crate) tasks: Vec<ClaimedTask>,
    /// Tasks that failed or are blocked: a person has to look at them.
    pub(crate) stuck: Vec<Task>,
    /// How many of the tasks in progress have a claim that no longer counts.
    pub(crate) lost_claims: usize,
    pub(crate) workers: Vec<Worker>,
    /// Events, newest last.
    pub(crate) events: Vec<Event>,
}

/// A hold.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) seen: HoldSnapshot,
    pub(crate) state: HoldState,
    /// Why it is no longer valid.
    pub(crate) stale: Option<String>,
    /// Its waiters, in order.
    pub(crate) waiters: Vec<WaiterSnapshot>,
}

/// A task in progress.
#[derive(Clone, Debug)]
pub(crate) struct ClaimedTask {
    pub(crate) task: Task,
    /// Why its claim no longer counts.
    pub(crate) stale: Option<String>,
    /// The task as JSON.
    pub(crate) json: Value,
}

/// Everything that is held under one label.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) label: String,
    pub(crate) host: Option<String>,
    pub(crate) pid: Option<u32>,
    pub(crate) liveness: Liveness,
    /// Whether none of its holds is valid any more.
    pub(crate) is_gone: bool,
    /// Whether it is registered and has no task.
    pub(crate) is_idle: bool,
    pub(crate) held_for: Duration,
    /// The time left of the hold that lapses first.
    pub(crate) left: Option<Duration>,
    pub(crate) locks: Vec<String>,
    /// Ids and titles.
    pub(crate) tasks: Vec<(String, String)>,
    /// The worker as JSON.
    pub(crate) json: Value,
}

impl ViewData {
    /// Reads everything; events before `known` are taken from there.
    pub(crate) async fn look(client: &Client, known: &ViewData) -> Result<ViewData, Error> {
        let seen = client.look_at_workers().await?;
        let tasks = client.tasks();
        let in_progress = tasks.in_progress().await?;
        let claims = view::Claims::of(&in_progress, client.witness());
        let info = client.info();
        let overview = Overview::of(&seen, client.witness());
        Ok(ViewData {
            store: info.url,
            engine: info.engine,
            local: info.local,
            revision: seen.revision,
            now: seen.wall,
            counts: overview.counts(),
            free_queues: free_queues(&overview),
            tallies: tasks.tallies().await?,
            sections: tasks.sections().await?,
            workers: workers(&overview),
            locks: locks(&overview, client),
            tasks: claimed_tasks(&in_progress, &claims),
            stuck: stuck_tasks(client).await?,
            lost_claims: claims.lost().len(),
            events: events(client, known).await?,
        })
    }

    /// The number of tasks with this status, in a section or in all.
    pub(crate) fn count(&self, status: Status, section: Option<&str>) -> u64 {
        let fits = |tally: &&Tally| {
            tally.status == status && (section.is_none() || tally.section.as_deref() == section)
        };
        self.tallies.iter().filter(fits).map(|tally| tally.count).sum()
    }

    /// The snapshot as JSON, with the field names of the server.
    pub(crate) fn to_json(&self, client: &Client) -> Value {
        let lock = |held: &Held| view::Lock {
            hold: view::Hold::new(&held.seen, client.witness(), held.waiters.len()),
            waiters: view::Waiter::all(&held.waiters),
        };
        json!({
            "revision": self.revision,
            "now": view::time(self.now),
            "store": { "url": self.store, "engine": self.engine, "local": self.local },
            "locks": self.locks.iter().map(lock).collect::<Vec<_>>(),
            "counts": view::Counts::from(self.counts),
            "waiting": self.counts.waiting,
            "free_queues": self.free_queues,
            "tallies": self.tallies.iter().map(view::Tally::from).collect::<Vec<_>>(),
            "sections": self.sections.iter().map(view::CountedSection::from).collect::<Vec<_>>(),
            "tasks": self.tasks.iter().map(|task| &task.json).collect::<Vec<_>>(),
            "lost_claims": self.lost_claims,
            "workers": self.workers.iter().map(|worker| &worker.json).collect::<Vec<_>>(),
            "events": self.events.iter().map(view::Event::from).collect::<Vec<_>>(),
        })
    }
}

/// The tasks in progress, oldest first.
fn claimed_tasks(seen: &Snapshot, claims: &view::Claims<'_>) -> Vec<ClaimedTask> {
    let in_progress = seen.tasks.iter().filter(|task| task.status == Status::InProgress);
    let mut tasks: Vec<&Task> = in_progress.collect();
    tasks.sort_by_key(|task| task.age);
    let claimed = tasks.into_iter().take(TASKS_MAX).map(|task| ClaimedTask {
        task: task.clone(),
        stale: claims.stale_reason(task),
        json: view::json(&claims.task(task)),
    });
    claimed.collect()
}

/// The tasks that failed or are blocked, oldest first.
async fn stuck_tasks(client: &Client) -> Result<Vec<Task>, Error> {
    let mut stuck = Vec::new();
    for status in [Status::Failed, Status::Blocked] {
        let filter = TaskFilter {
            status: Some(status),
            limit: TASKS_MAX as u32,
            without_history: true,
            ..TaskFilter::default()
        };
        stuck.extend(client.tasks().list(&filter).await?);
    }
    stuck.sort_by_key(|task| task.age);
    Ok(stuck)
}

fn locks(overview: &Overview<'_>, client: &Client) -> Vec<Held> {
    let held = |hold: &JudgedHold<'_>| {
        let waiters = overview.waiting_for(&hold.seen.hold.want.resource);
        Held {
            seen: hold.seen.clone(),
            state: hold.state,
            stale: view::stale_reason(hold.seen, client.witness()),
            waiters: waiters.into_iter().cloned().collect(),
        }
    };
    overview.holds.iter().map(held).collect()
}

fn free_queues(overview: &Overview<'_>) -> Vec<String> {
    let next = overview.next_in_line().into_iter().filter_map(|seen| {
        let resource = &seen.waiter.wants.first()?.resource;
        let words = view::next_in_line_words(overview, resource)?;
        Some(format!("{}: {words}", view::spelling::name(resource)))
    });
    next.collect()
}

fn workers(overview: &Overview<'_>) -> Vec<Worker> {
    overview.workers().iter().map(worker).collect()
}

fn worker(worker: &tenure::core::Worker<'_>) -> Worker {
    let seen = || worker.holds.iter().map(|hold| hold.seen);
    let next = worker.next_to_lapse();
    let is_task = |seen: &&HoldSnapshot| seen.hold.want.resource.kind() == Kind::Task;
    // The operation of a claim has the title of its task.
    let task = |seen: &HoldSnapshot| {
        let id = seen.hold.want.resource.name();
        (id.to_owned(), seen.hold.operation.as_deref().unwrap_or(id).to_owned())
    };
    let shown = view::Worker::new(worker);
    Worker {
        label: worker.label.to_owned(),
        host: shown.hostname.clone(),
        pid: shown.pid,
        is_idle: shown.state == "idle",
        liveness: worker.liveness,
        is_gone: !worker.counts(),
        held_for: seen().map(|seen| seen.held_for).max().unwrap_or_default(),
        left: match next {
            Some(seen) => (!seen.has_no_limit()).then_some(seen.left),
            None => Some(Duration::ZERO),
        },
        locks: seen()
            .filter(|seen| !is_task(seen))
            .map(|seen| view::spelling::name(&seen.hold.want.resource))
            .collect(),
        tasks: seen().filter(is_task).map(task).collect(),
        json: view::json(&shown),
    }
}

/// The newest events: the known ones and those since.
async fn events(client: &Client, known: &ViewData) -> Result<Vec<Event>, Error> {
    let newest = client.changed(Revision(0), Duration::ZERO).await?;
    let mut events = known.events.clone();
    if events.last().is_some_and(|event| event.revision > newest) {
        // The store was replaced by another one.
        events.clear();
    }
    let since = match events.last() {
        Some(last) => client.events(last.revision, EVENTS_MAX as u32).await?,
        None => vec![],
    };
    if events.is_empty() || since.len() == EVENTS_MAX {
        return client.newest_events(EVENTS_MAX as u32).await;
    }
    events.extend(since);
    events.drain(..events.len().saturating_sub(EVENTS_MAX));
    Ok(events)
}
