//! Follows the events of the store, whichever process caused them, for metrics and rates.

use super::event_counts::EventCounts;
use super::rates::Rates;
use super::spans::{OpenSpans, Tasks, claimed, task_id};
use std::time::Duration;
use tenure::core::{Event, Revision, TaskId};
use tenure::{Client, Error};
use tokio::task::JoinHandle;

/// How many events are read at once.
const PAGE: u32 = 1000;

/// The longest wait for a change.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long to gather further events after a change.
const GATHER: Duration = Duration::from_millis(200);

/// The pause after a store error.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// How many stored events are read at the start, for the rates of the last day: some megabytes.
const HISTORY_MAX: u32 = 20_000;

/// The background task that follows events; it ends on drop.
pub(super) struct EventFollower {
    task: JoinHandle<()>,
}

impl EventFollower {
    pub(super) fn start(client: Client, counts: EventCounts, rates: Rates) -> EventFollower {
        let spans = OpenSpans::default();
        EventFollower { task: tokio::spawn(Follower { client, counts, rates, spans }.follow()) }
    }
}

impl Drop for EventFollower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Follower {
    client: Client,
    counts: EventCounts,
    rates: Rates,
    spans: OpenSpans,
}

impl Follower {
    async fn follow(mut self) {
        let mut revision = loop {
            match self.begin().await {
                Ok(revision) => break revision,
                Err(_) => tokio::time::sleep(AFTER_ERROR).await,
            }
        };
        self.counts.followed_to(revision);
        loop {
            match self.catch_up(revision).await {
                Ok(newest) => revision = newest,
                // The metrics of store calls count the error.
                Err(_) => tokio::time::sleep(AFTER_ERROR).await,
            }
        }
    }

    /// Looks at what is held now, and fills the rates from the stored history up to there.
    async fn begin(&mut self) -> Result<Revision, Error> {
        let seen = self.client.look_everywhere().await?;
        let held = seen.holds.iter().filter_map(|seen| task_id(&seen.hold.want.resource));
        let tasks = self.tasks(held.collect()).await?;
        let mut history = self.client.newest_events(HISTORY_MAX).await?;
        let was_cut = history.len() >= HISTORY_MAX as usize;
        let begins = history.first().filter(|_| was_cut).map(|event| event.at);
        history.retain(|event| event.revision <= seen.revision);
        let mut past = OpenSpans::default();
        let mut rates = self.rates.begin(begins);
        for page in history.chunks(PAGE as usize) {
            let tasks = self.tasks(claimed(page)).await?;
            for event in page {
                let spans = past.observe(event, &tasks);
                rates.add(event, &spans);
            }
        }
        rates.publish();
        self.spans = OpenSpans::default();
        self.spans.begin(&seen, &tasks);
        Ok(seen.revision)
    }

    /// Waits for a change and counts a page of events.
    async fn catch_up(&mut self, after: Revision) -> Result<Revision, Error> {
        let changed = self.client.changed(after, PATIENCE).await?;
        // More events may follow; metrics are not read that often.
        tokio::time::sleep(GATHER).await;
        let events = self.client.events(after, PAGE).await?;
        let tasks = self.tasks(claimed(&events)).await?;
        self.count(&events, &tasks);
        // A change without events is no reason to read again at once.
        let newest = events.last().map_or(changed, |event| event.revision);
        self.counts.followed_to(newest);
        Ok(newest)
    }

    fn count(&mut self, events: &[Event], tasks: &Tasks) {
        for event in events {
            let spans = self.spans.observe(event, tasks);
            self.counts.count(event, &spans);
            self.rates.add(event, &spans);
        }
    }

    async fn tasks(&self, ids: Vec<TaskId>) -> Result<Tasks, Error> {
        let found = match ids.is_empty() {
            true => vec![],
            false => self.client.tasks().get_all(ids).await?,
        };
        Ok(found.into_iter().map(|task| (task.id.clone(), task)).collect())
    }
}
