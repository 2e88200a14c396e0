//! Everything that a page shows about one moment, and what touched tasks since another.

use crate::api::workers;
use crate::app::App;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;
use tenure::Error;
use tenure::core::rules::tasks::EVERYTHING;
use tenure::core::{
    Event, EventKind, HoldSnapshot, JudgedHold, Kind, Overview, Resource, Revision, Snapshot,
    TaskId, WaiterSnapshot, Witness,
};
use tenure_frontend::view;

/// How many places of a queue are sent: a page shows few, and `waiting` has the number of all.
const WAITERS_SENT: usize = 20;

/// How many holds and workers are sent: a page shows few, and `counts` has the number of all. What needs
/// attention comes first.
const HOLDS_SENT: usize = 1000;
const WORKERS_SENT: usize = 1000;

/// What the page shows at one moment, as JSON, without the role of its user.
pub(super) struct PageState {
    /// The newest change that it shows.
    pub revision: Revision,
    /// As an object in JSON.
    pub body: Value,
    /// When something in it will look different although nothing changed.
    pub fresh_for: Duration,
}

/// The longest that a page goes without news, so that its countdowns follow renewals.
const FRESH_MAX: Duration = Duration::from_secs(5);

/// The shortest between two looks at leases.
const FRESH_MIN: Duration = Duration::from_millis(500);

/// Looks at everything but the tasks themselves.
pub(super) async fn take(app: &App) -> Result<PageState, Error> {
    let client = &app.client;
    let seen = client.look_at_workers().await?;
    let tallies = client.tasks().tallies().await?;
    let mut sections = client.tasks().sections().await?;
    let paused = sections.iter().any(|seen| seen.section.name == EVERYTHING && seen.section.paused);
    sections.retain(|seen| seen.section.name != EVERYTHING);
    let in_progress = client.tasks().in_progress().await?;
    let claims = view::Claims::of(&in_progress, client.witness());
    let info = client.info();
    let overview = Overview::of(&seen, client.witness());
    let tallies = tallies.iter().map(view::Tally::from);
    let body = json!({
        "revision": seen.revision,
        "now": view::time(seen.wall),
        "store": { "engine": info.engine, "local": info.local },
        "counts": view::Counts::from(overview.counts()),
        "locks": locks(&overview, &seen.holds, client.witness()),
        "free_queues": free_queues(&overview),
        "tallies": tallies.collect::<Vec<_>>(),
        "lost_claims": lost_claims(&claims),
        "sections": sections.iter().map(view::CountedSection::from).collect::<Vec<_>>(),
        "paused": paused,
        "workers": sent_workers(&overview),
        "health": {
            "ok": true,
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_seconds": app.started.elapsed().as_secs(),
        },
    });
    Ok(PageState { revision: seen.revision, body, fresh_for: fresh_for(&seen) })
}

/// The tasks in progress whose claim no longer counts. The token tells a claim from a later one.
fn lost_claims(claims: &view::Claims<'_>) -> Vec<Value> {
    let lost = claims.lost().into_iter().map(|(task, reason)| {
        let token = task.claim.as_ref().map(|claim| claim.token);
        json!({ "task": task.id, "token": token, "reason": reason })
    });
    lost.collect()
}

/// Leases are renewed from a third of their length, and lapse when their time is up.
fn fresh_for(seen: &Snapshot) -> Duration {
    let next = seen.holds.iter().map(|seen| match seen.left {
        Duration::ZERO => FRESH_MAX,
        left => left.min(seen.hold.ttl / 3),
    });
    next.min().unwrap_or(FRESH_MAX).clamp(FRESH_MIN, FRESH_MAX)
}

/// A hold as the page shows it.
#[derive(Serialize)]
struct PageLock {
    #[serde(flatten)]
    hold: view::HoldAmong,
    ttl_ms: u64,
    held_seconds: f64,
    waiters: Vec<view::Waiter>,
}

fn locks(overview: &Overview<'_>, holds: &[HoldSnapshot], witness: &dyn Witness) -> Vec<PageLock> {
    let mut sent: Vec<&JudgedHold<'_>> = overview.holds.iter().collect();
    if sent.len() > HOLDS_SENT {
        let is_urgent = |hold: &JudgedHold<'_>| {
            !hold.state.counts() || !overview.waiting_for(&hold.seen.hold.want.resource).is_empty()
        };
        sent.sort_by_cached_key(|hold| !is_urgent(hold));
        sent.truncate(HOLDS_SENT);
    }
    let lock = |hold: &JudgedHold<'_>| {
        let seen = hold.seen;
        let queue = overview.waiting_for(&seen.hold.want.resource);
        PageLock {
            hold: view::HoldAmong::new(seen, holds, witness, queue.len()),
            ttl_ms: seen.hold.ttl.as_millis() as u64,
            held_seconds: view::seconds(seen.held_for),
            waiters: first_places(&queue),
        }
    };
    sent.into_iter().map(lock).collect()
}

/// Workers that lost what they held come first, where not all are sent.
fn sent_workers(overview: &Overview<'_>) -> Vec<view::Worker> {
    let mut workers = workers::workers_in(overview);
    if workers.len() > WORKERS_SENT {
        workers.sort_by_key(|worker| !worker.is_stale);
        workers.truncate(WORKERS_SENT);
    }
    workers
}

fn first_places(queue: &[&WaiterSnapshot]) -> Vec<view::Waiter> {
    view::Waiter::all(queue.iter().copied().take(WAITERS_SENT))
}

/// What is waited for although nothing that counts holds it: the next in line was woken and has not
/// asked yet. Resources that a lapsed or dead hold names are shown with that hold.
fn free_queues(overview: &Overview<'_>) -> Vec<Value> {
    let mut queues: Vec<(&Resource, &WaiterSnapshot)> = Vec::new();
    for seen in overview.next_in_line() {
        for want in &seen.waiter.wants {
            let held = |hold: &JudgedHold<'_>| hold.seen.hold.want.resource == want.resource;
            let is_known = queues.iter().any(|(resource, _)| **resource == want.resource);
            if !is_known && !overview.holds.iter().any(held) {
                queues.push((&want.resource, seen));
            }
        }
    }
    let queue = |(resource, next): (&Resource, &WaiterSnapshot)| {
        let queue = overview.waiting_for(resource);
        json!({
            "resource": resource.to_string(),
            "kind": resource.kind().word(),
            "name": resource.name(),
            "next": next.waiter.holder.label,
            "waiting": queue.len(),
            "waiters": first_places(&queue),
        })
    };
    queues.into_iter().map(queue).collect()
}

/// The tasks that these events touched, as they are now, and which of them are gone.
pub(super) async fn touched(app: &App, events: &[Event]) -> Result<Option<Value>, Error> {
    let mut ids: Vec<TaskId> = Vec::new();
    let mut known = HashSet::new();
    for event in events.iter().filter(|event| !matches!(event.event.kind, EventKind::Waiting)) {
        let Some(resource) = &event.event.resource else { continue };
        if resource.kind() == Kind::Task && known.insert(resource.name()) {
            ids.extend(resource.name().parse::<TaskId>());
        }
    }
    if ids.is_empty() {
        return Ok(None);
    }
    let tasks = app.client.tasks().get_all(ids.clone()).await?;
    let there: HashSet<&TaskId> = tasks.iter().map(|task| &task.id).collect();
    let deleted: Vec<&TaskId> = ids.iter().filter(|id| !there.contains(id)).collect();
    let seen = app.client.tasks().claims_of(&tasks).await?;
    let claims = view::Claims::of(&seen, app.client.witness());
    let shown = tasks.iter().map(|task| claims.task(task).without_history());
    Ok(Some(json!({ "tasks": shown.collect::<Vec<_>>(), "deleted": deleted })))
}
