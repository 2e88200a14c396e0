//! What a swarm tells while it runs and when it is done.

use std::time::Duration;
use tenure_core::rules::tasks::Finish;
use tenure_core::{Status, Task};

/// What happens in a swarm, for watchers.
#[derive(Clone, Debug)]
pub enum WorkEvent {
    /// A worker has nothing to do.
    Idle {
        /// Which.
        worker: usize,
    },
    /// A worker took a task.
    Claimed {
        /// Which.
        worker: usize,
        /// What.
        task: Box<Task>,
    },
    /// A worker ended its work on a task.
    Finished {
        /// Which.
        worker: usize,
        /// The task as it is now.
        task: Box<Task>,
        /// How.
        finish: Finish,
        /// How long it took.
        took: Duration,
    },
    /// A worker lost its task: its lease lapsed or was broken.
    Lost {
        /// Which.
        worker: usize,
        /// What.
        task: Box<Task>,
    },
    /// The store was in trouble; the worker tries again.
    Trouble {
        /// Which.
        worker: usize,
        /// What was wrong.
        message: String,
    },
    /// A worker came to its end.
    Ended {
        /// Which.
        worker: usize,
    },
}

/// What a swarm did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SwarmReport {
    /// Tasks completed.
    pub completed: u64,
    /// Tasks sent to review.
    pub review: u64,
    /// Tasks that failed for good.
    pub failed: u64,
    /// Attempts that failed and are to be tried again.
    pub retried: u64,
    /// Tasks put off or handed back.
    pub returned: u64,
    /// Tasks lost to a lapsed or broken lease.
    pub lost: u64,
    /// The slowest task, by title, and how long it took.
    pub slowest: Option<(String, Duration)>,
}

impl SwarmReport {
    pub(super) fn note(&mut self, task: &Task, finish: &Finish, took: Duration) {
        match finish {
            Finish::Complete { .. } => self.completed += 1,
            Finish::Review { .. } => self.review += 1,
            Finish::Fail { .. } if task.status == Status::Failed => self.failed += 1,
            Finish::Fail { .. } => self.retried += 1,
            Finish::Snooze { .. } | Finish::Release => self.returned += 1,
        }
        if self.slowest.as_ref().is_none_or(|(_, slowest)| took > *slowest) {
            self.slowest = Some((task.title.clone(), took));
        }
    }

    /// How many tasks were taken in all.
    pub fn taken(&self) -> u64 {
        self.completed + self.review + self.failed + self.retried + self.returned + self.lost
    }
}
