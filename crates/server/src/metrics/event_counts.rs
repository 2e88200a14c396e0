//! Counts the events of the store, whichever process caused them.

use super::metric_types::{Counter1, Histograms, counter, labelled, seconds, work_buckets};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tenure::Client;
use tenure::core::{Event, EventKind, Kind, Resource, Revision, Snapshot, Token, WallTime};
use tokio::task::JoinHandle;

/// How many events are read at once.
const PAGE: u32 = 1000;

/// The longest wait for a change.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long to gather further events after a change.
const GATHER: Duration = Duration::from_millis(200);

/// The pause after a store error.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// The background task that follows events; it ends on drop.
pub(super) struct EventFollower {
    task: JoinHandle<()>,
}

impl EventFollower {
    pub(super) fn start(client: Client, history: EventCounts) -> EventFollower {
        EventFollower { task: tokio::spawn(follow(client, history)) }
    }
}

impl Drop for EventFollower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(client: Client, history: EventCounts) {
    let mut spans = OpenSpans::default();
    let mut revision = loop {
        match client.look_everywhere().await {
            Ok(seen) => {
                spans.begin(&seen);
                history.followed.set(seen.revision.0 as i64);
                break seen.revision;
            }
            Err(_) => tokio::time::sleep(AFTER_ERROR).await,
        }
    };
    loop {
        match catch_up(&client, &history, &mut spans, revision).await {
            Ok(newest) => revision = newest,
            // The metrics of store calls count the error.
            Err(_) => tokio::time::sleep(AFTER_ERROR).await,
        }
    }
}

/// Waits for a change and counts a page of events.
async fn catch_up(
    client: &Client,
    history: &EventCounts,
    spans: &mut OpenSpans,
    after: Revision,
) -> Result<Revision, tenure::Error> {
    let changed = client.changed(after, PATIENCE).await?;
    // More events may follow; metrics are not read that often.
    tokio::time::sleep(GATHER).await;
    let events = client.events(after, PAGE).await?;
    events.iter().for_each(|event| history.count(event, spans));
    // A change without events is no reason to read again at once.
    let newest = events.last().map_or(changed, |event| event.revision);
    history.followed.set(newest.0 as i64);
    Ok(newest)
}

/// The metrics of events. Clones share them.
#[derive(Clone)]
pub(super) struct EventCounts {
    acquisitions: Counter1,
    releases: Counter1,
    lapses: Counter1,
    takeovers: Counter1,
    waits: Counter,
    deadlocks: Counter,
    claims: Counter,
    completions: Counter,
    failures: Counter1,
    recoveries: Counter,
    set_aside: Counter,
    holding: Histograms<2>,
    waiting: Histograms<1>,
    followed: Gauge,
}

const KINDS: [&str; 4] = ["lock", "section", "task", "path"];

impl EventCounts {
    pub(super) fn new(registry: &mut Registry) -> EventCounts {
        let mut plain = |name, help| counter(registry, name, help);
        let waits = plain("waits", "Places taken in the queue of a resource");
        let deadlocks = plain("deadlocks", "Waits refused because they would be a deadlock");
        let claims = plain("claims", "Tasks claimed by workers");
        let completions = plain("completions", "Tasks completed by their workers");
        let recoveries =
            plain("recoveries", "Tasks recovered: the worker died or stopped renewing");
        let set_aside =
            plain("set_aside", "Tasks blocked: too many workers died or stopped renewing");
        let mut by_kind = |name, help| labelled(registry, name, help, "kind", &KINDS);
        let acquisitions = by_kind("acquisitions", "Grants made, by kind of resource");
        let releases = by_kind("releases", "Holds that their holder ended, by kind of resource");
        let lapses = by_kind("lapses", "Holds removed because their lease lapsed");
        let takeovers = labelled(
            registry,
            "takeovers",
            "Holds not ended by their holder: it died, the lease lapsed, an operator broke it",
            "reason",
            &["died", "lapsed", "broken"],
        );
        let failures = labelled(
            registry,
            "failures",
            "Tasks failed by their workers, by whether they are retried",
            "retry",
            &["true", "false"],
        );
        let holding = seconds(registry, "hold", "Duration of ended holds", work_buckets);
        let waiting = seconds(registry, "wait", "Duration of ended waits", work_buckets);
        let followed = Gauge::default();
        let help = "The revision up to which events were counted";
        registry.register("followed_revision", help, followed.clone());
        EventCounts {
            acquisitions,
            releases,
            lapses,
            takeovers,
            waits,
            deadlocks,
            claims,
            completions,
            failures,
            recoveries,
            set_aside,
            holding,
            waiting,
            followed,
        }
    }

    /// Counts one event.
    pub(super) fn count(&self, event: &Event, spans: &mut OpenSpans) {
        let Some(resource) = &event.event.resource else { return };
        let kind = resource.kind();
        match &event.event.kind {
            EventKind::Acquired { .. } => {
                self.acquisitions.get_or_create(&[("kind", kind.word())]).inc();
                if kind == Kind::Task {
                    self.claims.inc();
                }
            }
            EventKind::Lapsed { .. } => {
                self.lapses.get_or_create(&[("kind", kind.word())]).inc();
                self.taken_over("lapsed");
            }
            EventKind::Died => self.taken_over("died"),
            EventKind::Broken { .. } => self.taken_over("broken"),
            EventKind::Waiting => drop(self.waits.inc()),
            EventKind::Deadlock => drop(self.deadlocks.inc()),
            EventKind::Completed => drop(self.completions.inc()),
            EventKind::Failed { retry, .. } => {
                let word = if *retry { "true" } else { "false" };
                self.failures.get_or_create(&[("retry", word)]).inc();
            }
            EventKind::Recovered => drop(self.recoveries.inc()),
            EventKind::SetAside => drop(self.set_aside.inc()),
            _ => {}
        }
        self.measure(event, resource, spans);
    }

    fn taken_over(&self, reason: &'static str) {
        self.takeovers.get_or_create(&[("reason", reason)]).inc();
    }

    /// Records the start of a span, and the duration of one that this event ends.
    fn measure(&self, event: &Event, resource: &Resource, spans: &mut OpenSpans) {
        let label = &event.event.label;
        match (&event.event.kind, event.event.token) {
            (EventKind::Waiting, _) => spans.wait(resource, label, event.at),
            (EventKind::Left { .. }, _) => {
                self.waited(spans.waited(resource, label, event.at), "left");
            }
            (EventKind::Acquired { .. }, Some(token)) => {
                self.waited(spans.waited(resource, label, event.at), "acquired");
                spans.hold(resource, token, event.at);
            }
            // Any other event with the token of a hold ends it, if it has not ended before.
            (kind, Some(token)) => {
                let ended_at = match kind {
                    EventKind::Lapsed { ended_at: Some(ended_at) } => *ended_at,
                    _ => event.at,
                };
                let Some(held) = spans.held(resource, token, ended_at) else { return };
                let end = match kind {
                    EventKind::Lapsed { .. } => "lapsed",
                    EventKind::Died => "died",
                    EventKind::Broken { .. } => "broken",
                    _ => "released",
                };
                let word = resource.kind().word();
                if end == "released" {
                    self.releases.get_or_create(&[("kind", word)]).inc();
                }
                let labels = [("kind", word), ("end", end)];
                self.holding.get_or_create(&labels).observe(held.as_secs_f64());
            }
            _ => {}
        }
    }

    fn waited(&self, time: Option<Duration>, outcome: &'static str) {
        if let Some(time) = time {
            let labels = [("outcome", outcome)];
            self.waiting.get_or_create(&labels).observe(time.as_secs_f64());
        }
    }
}

/// Started holds and waits, with their start times.
#[derive(Default)]
pub(super) struct OpenSpans {
    holds: HashMap<(Resource, Token), WallTime>,
    /// Of several waits under one label, the first one is taken to end first.
    waits: HashMap<(Resource, String), VecDeque<WallTime>>,
    waiting: usize,
}

/// Beyond this number, holds and waits are counted but not measured.
const SPANS_MAX: usize = 100_000;

impl OpenSpans {
    /// Records what had started before events were followed.
    fn begin(&mut self, seen: &Snapshot) {
        for seen in &seen.holds {
            self.hold(&seen.hold.want.resource, seen.hold.token, seen.acquired_at);
        }
        for seen in &seen.waiters {
            for want in &seen.waiter.wants {
                self.wait(&want.resource, &seen.waiter.holder.label, seen.waiting_since);
            }
        }
    }

    fn hold(&mut self, resource: &Resource, token: Token, at: WallTime) {
        if self.holds.len() < SPANS_MAX {
            self.holds.insert((resource.clone(), token), at);
        }
    }

    fn held(&mut self, resource: &Resource, token: Token, at: WallTime) -> Option<Duration> {
        let begun = self.holds.remove(&(resource.clone(), token))?;
        Some(between(begun, at))
    }

    fn wait(&mut self, resource: &Resource, label: &str, at: WallTime) {
        if self.waiting < SPANS_MAX {
            self.waiting += 1;
            self.waits.entry((resource.clone(), label.to_owned())).or_default().push_back(at);
        }
    }

    fn waited(&mut self, resource: &Resource, label: &str, at: WallTime) -> Option<Duration> {
        let key = (resource.clone(), label.to_owned());
        let queue = self.waits.get_mut(&key)?;
        let begun = queue.pop_front();
        if queue.is_empty() {
            self.waits.remove(&key);
        }
        self.waiting -= 1;
        Some(between(begun?, at))
    }
}

/// The time between two readings of a clock that may have been set back.
fn between(begun: WallTime, at: WallTime) -> Duration {
    Duration::from_millis(at.0.saturating_sub(begun.0).max(0) as u64)
}
