//! One worker of a swarm: takes a task, has it done, says how it ended, and takes the next.

use super::caught::caught;
use super::{Stop, Swarm, SwarmReport, WorkEvent};
use crate::client::claim::ClaimWaiting;
use crate::client::claimed_work::Work;
use crate::client::request::Wait;
use crate::client::tasks::ClaimRequest;
use crate::client::work::{Next, Runner};
use crate::error::Error;
use crate::store::{StoreError, TaskFilter};
use crate::world::World;
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenure_core::format_duration;
use tenure_core::rules::tasks::{Finish, Finished, NoClaim};
use tenure_core::{Status, Task};

/// The first pause of a worker whose store is in trouble, and the longest; each is twice the last.
const TROUBLE_PAUSE: Duration = Duration::from_millis(100);
const TROUBLE_PAUSE_MAX: Duration = Duration::from_secs(5);

/// What the workers of a swarm share.
pub(super) struct Shared<F> {
    pub(super) swarm: Swarm,
    pub(super) work: F,
    pub(super) watcher: Box<dyn Fn(WorkEvent) + Send + Sync>,
    pub(super) report: Arc<Mutex<SwarmReport>>,
    pub(super) taken: AtomicU64,
}

/// Why work on a task is stopped from outside.
enum CallOff {
    Lost,
    TimedOut(Duration),
    HandBack,
}

impl<F, W> Shared<F>
where
    F: Fn(Arc<Work>) -> W + Send + Sync,
    W: Future<Output = Finish> + Send,
{
    pub(super) async fn worker(self: Arc<Self>, worker: usize) -> Result<(), Error> {
        let name = (self.swarm.workers > 1).then(|| format!("{}", worker + 1));
        let request = ClaimRequest { worker: name, ..self.swarm.request.clone() };
        let mut runner = Runner::new(&self.swarm.client, request);
        if let Some(margin) = self.swarm.margin {
            runner = runner.margin(margin);
        }
        let mut trouble = Trouble { pause: TROUBLE_PAUSE };
        let idle_since = Mutex::new(None);
        while self.swarm.stop.get() == Stop::No {
            match self.one(worker, &runner, &idle_since).await {
                Ok(true) => trouble = Trouble { pause: TROUBLE_PAUSE },
                Ok(false) => break,
                Err(error) if error.is_passing() => {
                    self.wait_out(worker, &error, &mut trouble).await;
                }
                Err(error) => {
                    let _ = runner.leave().await;
                    runner.end().await;
                    return Err(error);
                }
            }
        }
        // A section that cannot be given back now lapses by itself.
        let _ = runner.leave().await;
        runner.end().await;
        (self.watcher)(WorkEvent::Ended { worker });
        Ok(())
    }

    async fn wait_out(&self, worker: usize, error: &Error, trouble: &mut Trouble) {
        (self.watcher)(WorkEvent::Trouble { worker, message: error.to_string() });
        self.world().timeout(trouble.pause, self.swarm.stop.changed()).await;
        trouble.pause = (trouble.pause * 2).min(TROUBLE_PAUSE_MAX);
    }

    /// Waits for one task and does it; says whether to go on.
    async fn one(&self, worker: usize, runner: &Runner, idle: &IdleSince) -> Result<bool, Error> {
        let Some(place) = TaskQuota::reserve(&self.taken, self.swarm.limit) else {
            return Ok(false);
        };
        let claim = runner.claim().wait(self.patience(idle)).look_every(self.swarm.look_every);
        let go_on = |waiting| self.goes_on(worker, runner, waiting, idle);
        let next = tokio::select! {
            biased;
            next = runner.next_while(claim, go_on) => next?,
            () = self.swarm.stop.asked(Stop::Drain) => return Ok(false),
        };
        let work = match next {
            Next::Work(work) => Arc::new(work),
            Next::None(_) => return Ok(false),
        };
        place.keep();
        *idle.lock() = None;
        let begun = self.swarm.client.inner.clock.now();
        let task = Box::new(work.task().clone());
        (self.watcher)(WorkEvent::Claimed { worker, task: task.clone() });
        let finish = match self.do_it(&work).await {
            Ok(finish) => finish,
            Err(CallOff::TimedOut(limit)) => {
                let reason = format!("timed out after {}", format_duration(limit));
                Finish::Fail { reason, retry: true }
            }
            Err(CallOff::HandBack) => Finish::Release,
            Err(CallOff::Lost) => {
                work.abandon().await;
                runner.lost(&task.id);
                return Ok(self.lost(worker, task));
            }
        };
        let took = self.swarm.client.inner.clock.now().saturating_sub(begun);
        match self.finish(worker, runner, work, finish).await? {
            Some((task, finish)) => {
                self.report().note(&task, &finish, took);
                (self.watcher)(WorkEvent::Finished { worker, task: Box::new(task), finish, took });
                Ok(true)
            }
            None => Ok(self.lost(worker, task)),
        }
    }

    /// Has the task done, unless it is called off. A function that is called off gets a little time.
    async fn do_it(&self, work: &Arc<Work>) -> Result<Finish, CallOff> {
        let mut doing = pin!(caught(async { (self.work)(work.clone()).await }));
        let why = tokio::select! {
            biased;
            finish = &mut doing => return Ok(finish),
            why = self.call_off(work) => why,
            () = work.keep_saving_output() => unreachable!("saving output has no end"),
        };
        work.call_off();
        self.world().timeout(self.swarm.clean_up, doing).await;
        Err(why)
    }

    async fn call_off(&self, work: &Work) -> CallOff {
        let timeout = async {
            match work.task().timeout {
                Some(limit) => {
                    self.world().sleep(limit).await;
                    limit
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = work.lost() => CallOff::Lost,
            limit = timeout => CallOff::TimedOut(limit),
            () = self.swarm.stop.asked(Stop::HandBack) => CallOff::HandBack,
        }
    }

    /// Says how it ended, again and again while the store is in trouble and the claim is held:
    /// what was done must not be done again because of that. Returns how it ended in the end; nothing if the
    /// claim was lost.
    async fn finish(
        &self,
        worker: usize,
        runner: &Runner,
        work: Arc<Work>,
        mut finish: Finish,
    ) -> Result<Option<(Task, Finish)>, Error> {
        let mut trouble = Trouble { pause: TROUBLE_PAUSE };
        loop {
            match runner.try_finish(&work, &finish).await {
                Ok(Finished::Done { task, .. }) => return Ok(Some((task, finish))),
                Ok(Finished::NotFound | Finished::NotYours(_) | Finished::ClaimLost { .. }) => {
                    return Ok(None);
                }
                // One bad result ends its own task, not the worker.
                Err(Error::Store(StoreError::Text(error))) => {
                    finish = Finish::failed(error.to_string());
                }
                Err(error) if error.is_passing() && work.is_held() => {
                    self.wait_out(worker, &error, &mut trouble).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn world(&self) -> &Arc<dyn World> {
        &self.swarm.client.inner.world
    }

    fn report(&self) -> parking_lot::MutexGuard<'_, SwarmReport> {
        self.report.lock()
    }

    fn lost(&self, worker: usize, task: Box<Task>) -> bool {
        self.report().lost += 1;
        (self.watcher)(WorkEvent::Lost { worker, task });
        true
    }

    /// How long to wait for a task: as long as the worker may still be idle.
    fn patience(&self, idle: &IdleSince) -> Wait {
        let now = self.swarm.client.inner.clock.now();
        let since = idle.lock().unwrap_or(now);
        self.swarm.idle_exit.map_or(Wait::Forever, |limit| {
            Wait::UpTo(limit.saturating_sub(now.saturating_sub(since)))
        })
    }

    /// Whether to wait for a task, since there is none now.
    async fn goes_on(
        &self,
        worker: usize,
        runner: &Runner,
        waiting: ClaimWaiting,
        idle: &IdleSince,
    ) -> Result<bool, Error> {
        let now = self.swarm.client.inner.clock.now();
        let is_new = idle.lock().is_none();
        if is_new {
            *idle.lock() = Some(now.saturating_sub(waiting.waited));
            (self.watcher)(WorkEvent::Idle { worker });
        }
        if waiting.left.is_zero() {
            return Ok(false);
        }
        if self.swarm.until_empty
            && waiting.none == NoClaim::NothingReady
            && self.nothing_will_come().await?
        {
            return Ok(false);
        }
        // A worker that waits for others must not keep a section from them.
        runner.leave().await?;
        Ok(true)
    }

    /// Whether no task is being worked on that could free or become one of ours, and none of ours
    /// waits for its time.
    async fn nothing_will_come(&self) -> Result<bool, Error> {
        let tasks = self.swarm.client.tasks();
        let tallies = tasks.tallies().await?;
        if tallies.iter().any(|tally| tally.status == Status::InProgress && tally.count > 0) {
            return Ok(false);
        }
        let request = &self.swarm.request;
        let pending = TaskFilter {
            status: Some(Status::Pending),
            section: request.section.clone(),
            label: request.labels.first().cloned(),
            ..TaskFilter::default()
        };
        let pending = tasks.list(&pending).await?;
        let wanted = |task: &&Task| request.labels.iter().all(|label| task.labels.contains(label));
        Ok(!pending.iter().filter(wanted).any(|task| task.unmet == 0))
    }
}

/// Since when a worker has nothing to do, if it has not.
type IdleSince = Mutex<Option<Duration>>;

/// How long to wait while the store is in trouble.
struct Trouble {
    pause: Duration,
}

/// One of the tasks that may be taken, kept for this worker while it looks for one.
struct TaskQuota<'a> {
    taken: &'a AtomicU64,
}

impl<'a> TaskQuota<'a> {
    fn reserve(taken: &'a AtomicU64, limit: Option<u64>) -> Option<TaskQuota<'a>> {
        let before = taken.fetch_add(1, Ordering::Relaxed);
        let place = TaskQuota { taken };
        limit.is_none_or(|limit| before < limit).then_some(place)
    }

    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for TaskQuota<'_> {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}
