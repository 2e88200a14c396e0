//! Everything that a page shows about one moment, and what touched tasks since another.

use crate::api::workers;
use crate::app::App;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;
use tenure::core::rules::tasks::EVERYTHING;
use tenure::core::{Event, EventKind, Kind, Resource, Revision, Seen, SeenHold, TaskId, Witness};
use tenure::{Error, view};

/// How many places of a queue are sent: a page shows few, and `waiting` has the number of all.
const WAITERS_SENT: usize = 20;

/// A moment as JSON, without the role of whoever looks.
pub(super) struct Snapshot {
    /// The newest change that it shows.
    pub revision: Revision,
    /// As an object in JSON.
    pub body: Value,
    /// What was held then.
    pub holds: Vec<SeenHold>,
    /// When something in it will look different although nothing changed.
    pub fresh_for: Duration,
}

/// The longest that a page goes without news, so that its countdowns follow renewals.
const FRESH_MAX: Duration = Duration::from_secs(5);

/// The shortest between two looks at leases.
const FRESH_MIN: Duration = Duration::from_millis(500);

/// Looks at everything but the tasks themselves.
pub(super) async fn take(app: &App) -> Result<Snapshot, Error> {
    let client = &app.client;
    let seen = client.look_everywhere().await?;
    let tallies = client.tasks().tallies().await?;
    let mut sections = client.tasks().sections().await?;
    let paused = sections.iter().any(|seen| seen.section.name == EVERYTHING && seen.section.paused);
    sections.retain(|seen| seen.section.name != EVERYTHING);
    let info = client.info();
    let tallies = tallies.iter().map(|tally| {
        json!({ "section": tally.section, "status": tally.status.word(), "count": tally.count })
    });
    let body = json!({
        "revision": seen.revision,
        "now": view::time(seen.wall),
        "store": { "engine": info.engine, "local": info.local },
        "locks": locks(&seen, client.witness()),
        "tallies": tallies.collect::<Vec<_>>(),
        "sections": sections.iter().map(view::open_section_json).collect::<Vec<_>>(),
        "paused": paused,
        "workers": workers::workers_in(&seen, client.witness()),
        "health": {
            "ok": true,
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_seconds": app.started.elapsed().as_secs(),
        },
    });
    let (revision, fresh_for) = (seen.revision, fresh_for(&seen));
    Ok(Snapshot { revision, body, holds: seen.holds, fresh_for })
}

/// Leases are renewed from a third of their length, and lapse when their time is up.
fn fresh_for(seen: &Seen) -> Duration {
    let next = seen.holds.iter().map(|seen| match seen.left {
        Duration::ZERO => FRESH_MAX,
        left => left.min(seen.hold.ttl / 3),
    });
    next.min().unwrap_or(FRESH_MAX).clamp(FRESH_MIN, FRESH_MAX)
}

fn locks(seen: &Seen, witness: &dyn Witness) -> Vec<Value> {
    seen.holds.iter().map(|hold| lock_json(seen, hold, witness)).collect()
}

fn lock_json(seen: &Seen, hold: &SeenHold, witness: &dyn Witness) -> Value {
    let resource = &hold.hold.want.resource;
    let waits = |wanted: &Resource| wanted.overlaps(resource);
    let queue: Vec<_> = seen
        .waiters
        .iter()
        .filter(|seen| seen.waiter.wants.iter().any(|want| waits(&want.resource)))
        .collect();
    let shown = queue.iter().take(WAITERS_SENT).enumerate();
    let mut value = view::hold_json(hold, witness, queue.len());
    value["ttl_ms"] = json!(hold.hold.ttl.as_millis() as u64);
    value["held_seconds"] = json!(view::seconds(hold.held_for));
    value["waiters"] =
        shown.map(|(index, seen)| view::waiter_json(seen, index + 1)).collect::<Vec<_>>().into();
    value
}

/// The tasks that these events touched, as they are now, and which of them are gone.
pub(super) async fn touched(
    app: &App,
    events: &[Event],
    holds: &[SeenHold],
) -> Result<Option<Value>, Error> {
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
    let shown = tasks.iter().map(|task| view::task_json(task, view::hold_of(task, holds)));
    Ok(Some(json!({ "tasks": shown.collect::<Vec<_>>(), "deleted": deleted })))
}
