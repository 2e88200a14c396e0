//! Workers: a runner that takes one task after another, and a swarm of them in one process.

use super::Client;
use super::keeper::Held;
use super::lease::Lease;
use super::request::Wait;
use super::tasks::{ClaimRequest, Claims, Tasks, Work, release_runner};
use crate::error::Error;
use crate::store::TaskFilter;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use tenure_core::rules::tasks::{Finish, Finished, NoClaim};
use tenure_core::{GrantId, Kind, Reason, Resource, Status, Task, WallTime};
use tokio::sync::watch;

/// A worker's identity from task to task: it keeps its section while there is work in it.
pub struct Runner {
    tasks: Tasks,
    id: GrantId,
    request: ClaimRequest,
    margin: Duration,
    section: Mutex<Option<Arc<Held>>>,
}

impl Runner {
    /// A runner that takes tasks as the request says.
    pub fn new(client: &Client, request: ClaimRequest) -> Runner {
        let id = GrantId::random();
        let margin = (request.ttl / 10).min(Duration::from_secs(1));
        let request = ClaimRequest { runner: Some(id), count: 1, ..request };
        Runner { tasks: client.tasks(), id, request, margin, section: Mutex::new(None) }
    }

    /// How long before its end a claim is no longer trusted.
    pub fn margin(mut self, margin: Duration) -> Runner {
        self.margin = margin;
        self
    }

    /// Takes the next task, waiting for one if told to.
    pub async fn next(&self, wait: Wait) -> Result<Result<Work, NoClaim>, Error> {
        let claims = self.tasks.claim_within(&self.request, wait).await?;
        let (claimed, asked_at) = match claims {
            Claims::None(none) => return Ok(Err(none)),
            Claims::Claimed { mut tasks, asked_at } => (tasks.remove(0), asked_at),
        };
        self.keep_section(&claimed.task, claimed.token, asked_at);
        Ok(Ok(self.tasks.keep(claimed, self.request.ttl, self.margin, asked_at, Some(self.id))))
    }

    fn section(&self) -> std::sync::MutexGuard<'_, Option<Arc<Held>>> {
        self.section.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn keep_section(&self, task: &Task, token: tenure_core::Token, asked_at: Duration) {
        let name = task.section.as_deref();
        let resource = name.and_then(|name| Resource::new(Kind::Section, name).ok());
        let Some(resource) = resource else { return };
        let mut section = self.section();
        let already = section
            .as_ref()
            .is_some_and(|held| held.lease.resources == [resource.clone()] && !held.is_lost());
        if already {
            return;
        }
        let ttl = self.request.section_ttl;
        let lease = Lease {
            resources: vec![resource],
            grant: self.id,
            token,
            ttl,
            reason: Reason::AcquiredNew,
            takeovers: vec![],
            waited: Duration::ZERO,
            acquired_at: WallTime::default(),
            expires_at: WallTime::default(),
            trusted_until: asked_at + ttl,
            margin: Duration::ZERO,
        };
        let held = Arc::new(Held::new(lease));
        self.tasks.client.inner.keeper.keep(held.clone());
        *section = Some(held);
    }

    fn forget_section(&self) {
        if let Some(held) = self.section().take() {
            self.tasks.client.inner.keeper.forget(&held);
        }
    }

    /// Says how the work ended.
    pub async fn finish(&self, work: Work, finish: Finish) -> Result<Finished, Error> {
        let finished = work.finish(finish).await?;
        if matches!(finished, Finished::Done { gave_up_section: true, .. }) {
            self.forget_section();
        }
        Ok(finished)
    }

    /// Gives up the section that the runner keeps.
    pub async fn leave(&self) -> Result<(), Error> {
        let keeps = self.section().is_some();
        self.forget_section();
        if keeps {
            release_runner(&self.tasks.client, self.id).await?;
        }
        Ok(())
    }
}

/// How much longer each pause of a worker whose store is in trouble is, from the first to the last.
const TROUBLE_PAUSE: Duration = Duration::from_millis(100);
const TROUBLE_PAUSE_MAX: Duration = Duration::from_secs(5);

/// How often a worker with nothing to do looks whether the swarm's work is done.
const IDLE_LOOK: Duration = Duration::from_millis(500);

/// What happens in a swarm, for those who watch.
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
}

/// What a swarm did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    fn note(&mut self, task: &Task, took: Duration) {
        match task.status {
            Status::Completed => self.completed += 1,
            Status::Review => self.review += 1,
            Status::Failed => self.failed += 1,
            Status::Pending if task.error.is_some() && task.not_before.is_some() => {
                self.retried += 1
            }
            _ => self.returned += 1,
        }
        if self.slowest.as_ref().is_none_or(|(_, slowest)| took > *slowest) {
            self.slowest = Some((task.title.clone(), took));
        }
    }
}

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
pub struct Swarm {
    client: Client,
    request: ClaimRequest,
    workers: usize,
    limit: Option<u64>,
    until_empty: bool,
    idle_exit: Option<Duration>,
    margin: Option<Duration>,
    stop: watch::Sender<Stop>,
}

type Watcher<'a> = &'a (dyn Fn(WorkEvent) + 'a);

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
            margin: None,
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

    /// How long before its end a claim is no longer trusted.
    pub fn margin(mut self, margin: Duration) -> Swarm {
        self.margin = Some(margin);
        self
    }

    /// What stops it: send [`Stop::Drain`] or [`Stop::HandBack`].
    pub fn stopper(&self) -> watch::Sender<Stop> {
        self.stop.clone()
    }

    /// Works until there is nothing left to do, or until stopped. The worker function is given the
    /// task and says how it ended; when the claim is lost, its future is dropped.
    pub async fn run<F>(&self, work: F, watcher: impl Fn(WorkEvent)) -> Result<SwarmReport, Error>
    where
        F: AsyncFn(&Work) -> Finish,
    {
        let report = Mutex::new(SwarmReport::default());
        let taken = std::sync::atomic::AtomicU64::new(0);
        let shared =
            Shared { swarm: self, work: &work, watcher: &watcher, report: &report, taken: &taken };
        let mut workers: Vec<Pin<Box<dyn Future<Output = Result<(), Error>> + '_>>> = Vec::new();
        for worker in 0..self.workers {
            workers.push(Box::pin(shared.worker(worker)));
        }
        join(workers).await?;
        Ok(report.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

struct Shared<'a, F> {
    swarm: &'a Swarm,
    work: &'a F,
    watcher: Watcher<'a>,
    report: &'a Mutex<SwarmReport>,
    taken: &'a std::sync::atomic::AtomicU64,
}

impl<F: AsyncFn(&Work) -> Finish> Shared<'_, F> {
    async fn worker(&self, worker: usize) -> Result<(), Error> {
        let name = (self.swarm.workers > 1).then(|| format!("{}", worker + 1));
        let request = ClaimRequest { worker: name, ..self.swarm.request.clone() };
        let mut runner = Runner::new(&self.swarm.client, request);
        if let Some(margin) = self.swarm.margin {
            runner = runner.margin(margin);
        }
        let mut pause = TROUBLE_PAUSE;
        let mut idle_since = None;
        while *self.swarm.stop.borrow() == Stop::No && self.may_take() {
            match self.one(worker, &runner, &mut idle_since).await {
                Ok(true) => pause = TROUBLE_PAUSE,
                Ok(false) => break,
                Err(Error::Store(error)) if error.is_passing() => {
                    (self.watcher)(WorkEvent::Trouble { worker, message: error.to_string() });
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(TROUBLE_PAUSE_MAX);
                }
                Err(error) => {
                    let _ = runner.leave().await;
                    return Err(error);
                }
            }
        }
        runner.leave().await
    }

    fn may_take(&self) -> bool {
        let taken = self.taken.load(std::sync::atomic::Ordering::Relaxed);
        self.swarm.limit.is_none_or(|limit| taken < limit)
    }

    /// Takes and does one task; says whether to go on.
    async fn one(
        &self,
        worker: usize,
        runner: &Runner,
        idle_since: &mut Option<Duration>,
    ) -> Result<bool, Error> {
        let work = match runner.next(Wait::No).await? {
            Ok(work) => work,
            Err(none) => return self.idle(worker, runner, &none, idle_since).await,
        };
        *idle_since = None;
        self.taken.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let begun = self.swarm.client.inner.clock.now();
        let task = Box::new(work.task().clone());
        (self.watcher)(WorkEvent::Claimed { worker, task: task.clone() });
        let mut stop = self.swarm.stop.subscribe();
        let finish = tokio::select! {
            finish = (self.work)(&work) => Some(finish),
            () = work.lost() => None,
            _ = stop.wait_for(|stop| *stop == Stop::HandBack) => Some(Finish::Release),
        };
        let Some(finish) = finish else {
            work.abandon();
            return Ok(self.lost(worker, task));
        };
        let took = self.swarm.client.inner.clock.now().saturating_sub(begun);
        match runner.finish(work, finish).await? {
            Finished::Done { task, .. } => {
                self.report().note(&task, took);
                (self.watcher)(WorkEvent::Finished { worker, task: Box::new(task), took });
                Ok(true)
            }
            Finished::NotFound | Finished::NotYours(_) => Ok(self.lost(worker, task)),
        }
    }

    fn report(&self) -> std::sync::MutexGuard<'_, SwarmReport> {
        self.report.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn lost(&self, worker: usize, task: Box<Task>) -> bool {
        self.report().lost += 1;
        (self.watcher)(WorkEvent::Lost { worker, task });
        true
    }

    /// Nothing to be had: waits a little, unless nothing will ever come.
    async fn idle(
        &self,
        worker: usize,
        runner: &Runner,
        none: &NoClaim,
        idle_since: &mut Option<Duration>,
    ) -> Result<bool, Error> {
        let now = self.swarm.client.inner.clock.now();
        let since = *idle_since.get_or_insert_with(|| {
            (self.watcher)(WorkEvent::Idle { worker });
            now
        });
        if self.swarm.idle_exit.is_some_and(|limit| now.saturating_sub(since) >= limit) {
            return Ok(false);
        }
        if self.swarm.until_empty
            && *none == NoClaim::NothingReady
            && self.nothing_will_come().await?
        {
            return Ok(false);
        }
        // Whoever waits for others must not keep a section from them.
        runner.leave().await?;
        let store = &self.swarm.client.inner.store;
        let revision = store.changed(Default::default(), Duration::ZERO).await?;
        let mut stop = self.swarm.stop.subscribe();
        tokio::select! {
            changed = store.changed(revision, IDLE_LOOK) => { changed?; }
            _ = stop.changed() => {}
        }
        Ok(true)
    }

    /// Whether no task is being worked on, and none waits for its time.
    async fn nothing_will_come(&self) -> Result<bool, Error> {
        let tasks = self.swarm.client.tasks();
        let concerned = |section: &Option<String>| {
            self.swarm.request.section.is_none() || self.swarm.request.section == *section
        };
        let tallies = tasks.tallies().await?;
        let count = |status: Status| {
            let some = tallies.iter().filter(|tally| tally.status == status);
            some.filter(|tally| concerned(&tally.section)).map(|tally| tally.count).sum::<u64>()
        };
        if count(Status::InProgress) > 0 {
            return Ok(false);
        }
        if count(Status::Pending) == 0 {
            return Ok(true);
        }
        let pending = TaskFilter {
            status: Some(Status::Pending),
            section: self.swarm.request.section.clone(),
            ..TaskFilter::default()
        };
        let pending = tasks.list(&pending).await?;
        Ok(!pending.iter().any(|task| task.unmet == 0))
    }
}

/// Runs all to their end; the first error ends it.
async fn join(
    mut futures: Vec<Pin<Box<dyn Future<Output = Result<(), Error>> + '_>>>,
) -> Result<(), Error> {
    std::future::poll_fn(|context| {
        let mut index = 0;
        while index < futures.len() {
            match futures[index].as_mut().poll(context) {
                Poll::Pending => index += 1,
                Poll::Ready(Ok(())) => drop(futures.swap_remove(index)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
        if futures.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
}
