//! A swarm: N workers in one process, over one client.

mod caught;
mod report;
mod worker;

pub use report::{SwarmReport, WorkEvent};

use super::Client;
use super::claimed_work::Work;
use super::tasks::ClaimRequest;
use crate::error::Error;
use crate::watched::Watched;
use crate::world::TaskHandle;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tenure_core::rules::tasks::Finish;
use tokio::sync::mpsc;
use worker::Shared;

/// How often a worker with nothing to do looks again, unless something changes before.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How a swarm is asked to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Not at all.
    #[default]
    No,
    /// Take nothing more, and let what runs come to its end.
    Drain,
    /// Hand back what runs.
    HandBack,
}

/// Stops a swarm, from any thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    stop: Arc<Watched<Stop>>,
}

impl Stopper {
    /// Asks the swarm to stop. What was asked before is not taken back: after [`Stop::HandBack`],
    /// [`Stop::Drain`] changes nothing.
    pub fn stop(&self, how: Stop) {
        self.stop.update(|before| before.max(how));
    }

    /// Whether the swarm was asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.get() > Stop::No
    }

    fn get(&self) -> Stop {
        self.stop.get()
    }

    /// Returns when the swarm is asked to stop more urgently than before.
    async fn changed(&self) {
        let before = self.get();
        self.stop.wait_for(|stop| stop > before).await;
    }

    /// Returns when the swarm was asked to stop in this way, or more urgently.
    async fn asked(&self, how: Stop) {
        self.stop.wait_for(|stop| stop >= how).await;
    }
}

/// N workers in one process, over one client.
///
/// Each worker is a task of the caller's runtime. A worker function that panics fails its task and
/// nothing else. A store that is in trouble is tried again, with growing pauses, for as long as it
/// takes.
#[derive(Clone)]
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
    stop: Stopper,
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
            stop: Stopper { stop: Arc::new(Watched::new(Stop::No)) },
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
    /// helps functions that do nothing but stop.
    pub fn clean_up(mut self, limit: Duration) -> Swarm {
        self.clean_up = limit;
        self
    }

    /// What stops the swarm while it runs.
    pub fn stopper(&self) -> Stopper {
        self.stop.clone()
    }

    /// Works until there is nothing left to do, or until stopped. The worker function is given the
    /// task and says how it ended. When the claim is lost, the task's time is over or the swarm is
    /// to hand back, what it would say no longer counts: it is called off, and dropped.
    ///
    /// If this future is dropped, the workers are cancelled and hand back what they had.
    pub async fn run<F, W>(
        &self,
        work: F,
        watcher: impl Fn(WorkEvent) + Send + Sync + 'static,
    ) -> Result<SwarmReport, Error>
    where
        F: Fn(Arc<Work>) -> W + Send + Sync + 'static,
        W: Future<Output = Finish> + Send + 'static,
    {
        let report = Arc::new(Mutex::new(SwarmReport::default()));
        let shared = Arc::new(Shared {
            swarm: self.clone(),
            work,
            watcher: Box::new(watcher),
            report: report.clone(),
            taken: AtomicU64::new(0),
        });
        let (sender, mut ended) = mpsc::unbounded_channel();
        let spawn = |worker: usize| -> TaskHandle {
            let (shared, sender) = (shared.clone(), sender.clone());
            self.client.inner.world.spawn(Box::pin(async move {
                let _ = sender.send(shared.worker(worker).await);
            }))
        };
        let workers: Vec<TaskHandle> = (0..self.workers).map(spawn).collect();
        drop((sender, shared));
        for _ in 0..workers.len() {
            ended.recv().await.expect("the watcher of a swarm does not panic")?;
        }
        let report = report.lock();
        Ok(report.clone())
    }
}
