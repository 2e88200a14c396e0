//! A swarm: N workers in one process, over one client.

mod caught;
mod report;
mod worker;

pub use report::{SwarmReport, WorkEvent};

use super::Client;
use super::tasks::{ClaimRequest, Work};
use crate::error::Error;
use futures_util::future::try_join_all;
use parking_lot::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tenure_core::rules::tasks::Finish;
use tokio::sync::watch;
use worker::Shared;

/// How often a worker with nothing to do looks again, unless something changes before.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How a swarm is asked to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd)]
pub enum Stop {
    /// Not at all.
    #[default]
    No,
    /// Take nothing more, and let what runs come to its end.
    Drain,
    /// Hand back what runs.
    HandBack,
}

/// N workers in one process, over one client.
///
/// A worker function that panics fails its task and nothing else. A store that is in trouble is
/// tried again, with growing pauses, for as long as it takes.
pub struct Swarm {
    client: Client,
    request: ClaimRequest,
    workers: usize,
    limit: Option<u64>,
    until_empty: bool,
    idle_exit: Option<Duration>,
    look_every: Duration,
    margin: Option<Duration>,
    clean_up: Duration,
    stop: watch::Sender<Stop>,
}

impl Swarm {
    /// A swarm that takes tasks as the request says.
    pub fn new(client: &Client, request: ClaimRequest) -> Swarm {
        Swarm {
            client: client.clone(),
            request,
            workers: 1,
            limit: None,
            until_empty: true,
            idle_exit: None,
            look_every: LOOK_EVERY,
            margin: None,
            clean_up: Duration::ZERO,
            stop: watch::Sender::new(Stop::No),
        }
    }

    /// How many workers.
    pub fn workers(mut self, workers: usize) -> Swarm {
        self.workers = workers.max(1);
        self
    }

    /// Ends after so many tasks.
    pub fn limit(mut self, tasks: u64) -> Swarm {
        self.limit = Some(tasks);
        self
    }

    /// Goes on waiting when nothing is left to do.
    pub fn forever(mut self) -> Swarm {
        self.until_empty = false;
        self
    }

    /// Ends a worker that had nothing to do for so long.
    pub fn idle_exit(mut self, idle: Duration) -> Swarm {
        self.idle_exit = Some(idle);
        self
    }

    /// How often a worker with nothing to do looks again, unless something changes before.
    pub fn look_every(mut self, pause: Duration) -> Swarm {
        self.look_every = pause;
        self
    }

    /// How long before its end a claim is no longer trusted.
    pub fn margin(mut self, margin: Duration) -> Swarm {
        self.margin = Some(margin);
        self
    }

    /// How long a worker function may take to stop when its work is called off (see
    /// [`Work::called_off`]) before its future is dropped; no time at all by default.
    ///
    /// After a loss others may have the task from the end of the margin on, so a longer time only
    /// helps those that do nothing but stop.
    pub fn clean_up(mut self, limit: Duration) -> Swarm {
        self.clean_up = limit;
        self
    }

    /// What stops it: send [`Stop::Drain`] or [`Stop::HandBack`].
    pub fn stopper(&self) -> watch::Sender<Stop> {
        self.stop.clone()
    }

    /// Works until there is nothing left to do, or until stopped. The worker function is given the
    /// task and says how it ended. When the claim is lost, the task's time is over or the swarm is
    /// to hand back, what it would say no longer counts: it is called off, and dropped.
    pub async fn run<F>(&self, work: F, watcher: impl Fn(WorkEvent)) -> Result<SwarmReport, Error>
    where
        F: AsyncFn(&Work) -> Finish,
    {
        let report = Mutex::new(SwarmReport::default());
        let taken = AtomicU64::new(0);
        let shared =
            Shared { swarm: self, work: &work, watcher: &watcher, report: &report, taken: &taken };
        try_join_all((0..self.workers).map(|worker| shared.worker(worker))).await?;
        Ok(report.into_inner())
    }
}
