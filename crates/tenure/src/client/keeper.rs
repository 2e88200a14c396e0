//! The background task that renews leases and undoes what was dropped.
//!
//! On a real machine it has a thread of its own, so that long work on the caller's runtime cannot
//! keep it from renewing. It starts with the first guard, and sleeps until the next renewal is due;
//! a guard that comes and goes in between does not wake it. While it sleeps it does not keep the
//! store open.
//!
//! After `fork` the child has a keeper of its own, which starts with nothing to renew.

use super::Warn;
use super::backend::Backend;
use super::lease::Lease;
use super::revocable::Revocable;
use crate::error::Error;
use crate::store::{Renewal, Renewed, StoreError};
use crate::watched::Watched;
use crate::world::{BackgroundTask, Clock, PerProcess, World};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tenure_core::act::{
    CallOff, CallOffClaim, DropWorker, FinishTask, Leave, PutWorker, Recover, Release,
};
use tenure_core::{GrantId, HoldSnapshot, Proof, Resource, Scope, format_duration};
use tokio::sync::Notify;

/// A renewal that failed is tried again after a twentieth of the lease, within these bounds: often
/// enough to have many tries, seldom enough not to burden a store that is in trouble.
const RETRY_MIN: Duration = Duration::from_millis(20);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// A renewal waits for its answer for a third of the lease, and for this long at least.
const ANSWER_MIN: Duration = Duration::from_secs(1);

/// How often it is looked whether leases were broken, or their store was removed: the next renewal may
/// be far off, and a successor may hold by then.
const LOOK_FOR_BREAK: Duration = Duration::from_secs(1);

/// How many leases a look each second is for. Where there are more, it is looked more seldom.
const LOOKED_AT_EACH_SECOND: usize = 256;

/// How many late leases a warning names.
const NAMED_IN_A_WARNING: usize = 3;

/// How long a client that is dropped waits for its last cleanups.
const LAST_CLEANUPS: Duration = Duration::from_secs(2);

/// What a guard and the keeper both know of a lease.
pub(super) struct TrackedLease {
    pub(super) lease: Lease,
    /// Among the leases of this keeper. Two guards may share one grant, and each counts.
    number: u64,
    /// The process that holds it. A process forked from it has a copy of the guard, and no right to
    /// what it holds.
    process: u32,
    /// Until when it may be trusted. Only moves while the lease is held.
    trusted_until: Mutex<Duration>,
    lost: Watched<bool>,
    /// Whether the last try to renew it failed.
    is_tried_again: AtomicBool,
    /// Whether it was warned of that its next renewal is late.
    is_known_as_late: AtomicBool,
    /// Are told when trust begins anew or ends, on the thread that learned of it.
    watchers: Mutex<Vec<Weak<TrustWatcher>>>,
}

/// Is told when until when a lease may be trusted has changed. It must not wait for anything.
pub(super) type TrustWatcher = dyn Fn() + Send + Sync;

impl TrackedLease {
    pub(super) fn trusted_until(&self) -> Duration {
        *self.trusted_until.lock()
    }

    /// Takes note of a renewal that was asked for at this time.
    pub(super) fn renewed(&self, asked_at: Duration) {
        let until = (asked_at + self.lease.ttl).saturating_sub(self.lease.margin);
        *self.trusted_until.lock() = until;
        self.tell_watchers();
    }

    /// How long ago it was renewed last, or granted.
    fn renewed_ago(&self, now: Duration) -> Duration {
        let Lease { ttl, margin, .. } = self.lease;
        now.saturating_sub((self.trusted_until() + margin).saturating_sub(ttl))
    }

    pub(super) fn lose(&self) {
        self.lost.update(|_| true);
        self.tell_watchers();
    }

    pub(super) fn watch(&self, watcher: &Arc<TrustWatcher>) {
        self.watchers.lock().push(Arc::downgrade(watcher));
    }

    fn tell_watchers(&self) {
        let mut watchers = self.watchers.lock();
        watchers.retain(|watcher| watcher.upgrade().map(|watcher| watcher()).is_some());
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.get()
    }

    /// Whether this is not held any more where these holds are all of its resources.
    fn was_ended(&self, seen: &[HoldSnapshot]) -> bool {
        let lease = &self.lease;
        // A server may show the grant veiled.
        let own = Proof::Grant(lease.grant);
        let holds = |resource: &Resource| {
            seen.iter().any(|seen| {
                seen.hold.token == lease.token
                    && seen.hold.want.resource == *resource
                    && own.recognises(seen)
            })
        };
        !lease.resources.iter().all(holds)
    }

    /// Returns when the loss was noticed.
    pub(super) async fn noticed_loss(&self) {
        self.lost.wait_for(|lost| lost).await;
    }

    /// Whether this is a copy of what the parent process of this one holds.
    pub(super) fn is_inherited(&self, world: &dyn World) -> bool {
        self.process != world.process_id()
    }
}

/// Something to do in the store on behalf of what was dropped.
pub(super) enum BackgroundCleanup {
    Leave(Leave),
    Release(Release),
    HandBack(Box<FinishTask>),
    DropWorker(DropWorker),
    /// With whether the worker has ended: then nothing is reported any more.
    PutWorker(Box<(Arc<tokio::sync::Mutex<bool>>, PutWorker)>),
    Recover(Recover),
    CallOff(Box<(Revocable, CallOff)>),
    CallOffClaim(Box<(Revocable, CallOffClaim)>),
}

impl BackgroundCleanup {
    pub(super) async fn run(self, backend: &Backend) -> Result<(), Error> {
        match self {
            BackgroundCleanup::Leave(act) => drop(backend.perform(&act).await?),
            BackgroundCleanup::Release(act) => drop(backend.perform(&act).await?),
            BackgroundCleanup::HandBack(act) => drop(backend.perform(&*act).await?),
            BackgroundCleanup::DropWorker(act) => backend.perform(&act).await?,
            BackgroundCleanup::PutWorker(report) => {
                let ended = report.0.lock().await;
                if !*ended {
                    // The next report says the same and more.
                    let _ = backend.perform(&report.1).await;
                }
            }
            BackgroundCleanup::Recover(act) => drop(backend.perform(&act).await?),
            BackgroundCleanup::CallOff(cleanup) => cleanup.0.undo(backend, &cleanup.1).await?,
            BackgroundCleanup::CallOffClaim(cleanup) => cleanup.0.undo(backend, &cleanup.1).await?,
        }
        Ok(())
    }
}

/// Renews what is held and runs cleanups, in the background.
pub(super) struct Keeper {
    backend: Backend,
    clock: Arc<dyn Clock>,
    world: Arc<dyn World>,
    warn: Warn,
    here: PerProcess<InProcess>,
}

/// The keeper of one process.
struct InProcess {
    shared: Arc<Shared>,
    task: Mutex<Option<BackgroundTask>>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    world: Arc<dyn World>,
    warn: Warn,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    /// Taken away from a task that sleeps when the keeper is dropped.
    backend: Option<Backend>,
    kept: BTreeMap<u64, Kept>,
    cleanups: VecDeque<BackgroundCleanup>,
    /// When it is looked next whether the leases were broken.
    look_at: Duration,
    /// When the task wakes by itself; `None` while it has no reason to.
    wakes_at: Option<Duration>,
    /// Whether the task is at work.
    busy: bool,
    stop: bool,
    /// How many leases were tracked so far.
    tracked: u64,
}

struct Kept {
    held: Arc<TrackedLease>,
    due: Duration,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Keeper {
    pub(super) fn new(
        backend: Backend,
        clock: Arc<dyn Clock>,
        world: Arc<dyn World>,
        warn: Warn,
    ) -> Keeper {
        Keeper { backend, clock, world, warn, here: PerProcess::new() }
    }

    fn here(&self) -> &InProcess {
        self.here.get_or_init(|| {
            let state = Mutex::new(State {
                backend: Some(self.backend.clone()),
                kept: BTreeMap::new(),
                cleanups: VecDeque::new(),
                look_at: Duration::ZERO,
                wakes_at: None,
                busy: false,
                stop: false,
                tracked: 0,
            });
            let (clock, world) = (self.clock.clone(), self.world.clone());
            let (warn, changed) = (self.warn.clone(), Notify::new());
            let shared = Arc::new(Shared { clock, world, warn, state, changed });
            InProcess { shared, task: Mutex::new(None) }
        })
    }

    /// Renews this lease from now on.
    pub(super) fn keep(&self, lease: Lease) -> Arc<TrackedLease> {
        let now = self.clock.now();
        let due = now + lease.ttl / 3;
        let here = self.here();
        let mut state = here.shared.state();
        state.tracked += 1;
        let held = Arc::new(TrackedLease {
            number: state.tracked,
            process: self.world.process_id(),
            trusted_until: Mutex::new(lease.trusted_until),
            lost: Watched::new(false),
            is_tried_again: AtomicBool::new(false),
            is_known_as_late: AtomicBool::new(false),
            watchers: Mutex::default(),
            lease,
        });
        if state.kept.is_empty() {
            // Most leases are short, and are given back before the first look.
            state.look_at = now + LOOK_FOR_BREAK;
        }
        state.kept.insert(held.number, Kept { held: held.clone(), due });
        let wakes_at = due.min(state.look_at);
        let must_wake = state.wakes_at.is_none_or(|at| wakes_at < at);
        if must_wake {
            state.wakes_at = Some(wakes_at);
        }
        drop(state);
        if must_wake {
            self.wake(here);
        }
        held
    }

    /// Renews this no longer.
    pub(super) fn forget(&self, held: &TrackedLease) {
        if !held.is_inherited(&*self.world) {
            self.here().shared.state().kept.remove(&held.number);
        }
    }

    /// Whether the store knows that this is not held any more.
    pub(super) async fn was_ended(&self, held: &TrackedLease) -> bool {
        let seen = look(&self.backend, held.lease.resources.clone()).await;
        seen.is_some_and(|seen| held.was_ended(&seen))
    }

    /// Whether this is the grant, in its public form, of something that is renewed here.
    pub(super) fn keeps(&self, grant: GrantId) -> bool {
        let state = self.here().shared.state();
        state.kept.values().any(|kept| kept.held.lease.grant.redacted() == grant.redacted())
    }

    /// Runs a cleanup soon.
    pub(super) fn send(&self, cleanup: BackgroundCleanup) {
        let here = self.here();
        here.shared.state().cleanups.push_back(cleanup);
        self.wake(here);
    }

    fn wake(&self, here: &InProcess) {
        let mut task = here.task.lock();
        if task.is_none() {
            *task = Some(self.world.spawn_background(Box::pin(run(here.shared.clone()))));
        }
        here.shared.changed.notify_one();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let Some(here) = self.here.get() else { return };
        let mut state = here.shared.state();
        state.stop = true;
        let busy = state.busy || !state.cleanups.is_empty();
        // Closed here and now if it was the last, not whenever the task has noticed.
        let backend = if busy { None } else { state.backend.take() };
        drop(state);
        drop(backend);
        here.shared.changed.notify_one();
        let task = here.task.lock();
        // Cleanups of guards dropped just before are still run; but a store that does not answer
        // must not keep its client from ending.
        if let Some(task) = task.as_ref().filter(|_| busy) {
            task.wait_for_end(LAST_CLEANUPS);
        }
    }
}

enum Work {
    Cleanup(BackgroundCleanup),
    Renew(Vec<Arc<TrackedLease>>),
    Look(Vec<Arc<TrackedLease>>),
}

enum Next {
    Work(Work, Backend),
    SleepUntil(Option<Duration>),
    Stop,
}

async fn run(shared: Arc<Shared>) {
    // A cleanup in a store that does not answer must not keep renewals waiting.
    let mut cleaning: Option<Pin<Box<dyn Future<Output = ()> + Send>>> = None;
    loop {
        let now = shared.clock.now();
        let sleep_until = match shared.next(now, cleaning.is_some()) {
            // What fails here ends by itself when its time has run out.
            Next::Work(Work::Cleanup(cleanup), backend) => {
                cleaning = Some(Box::pin(async move { drop(cleanup.run(&backend).await) }));
                continue;
            }
            Next::Work(Work::Renew(due), backend) => {
                renew(&shared, &backend, due).await;
                continue;
            }
            Next::Work(Work::Look(kept), backend) => {
                look_for_breaks(&shared, &backend, kept).await;
                continue;
            }
            Next::SleepUntil(at) => at,
            Next::Stop => return,
        };
        let woken = async {
            match sleep_until {
                None => shared.changed.notified().await,
                Some(at) => {
                    let pause = at.saturating_sub(now);
                    shared.world.timeout(pause, shared.changed.notified()).await;
                }
            }
        };
        let is_clean = match &mut cleaning {
            Some(cleanup) => tokio::select! {
                biased;
                () = cleanup => true,
                () = woken => false,
            },
            None => {
                woken.await;
                false
            }
        };
        if is_clean {
            cleaning = None;
        }
    }
}

impl Shared {
    /// What to do now, beside a cleanup that is on its way. Once the keeper was dropped, only cleanups
    /// are left to do.
    fn next(&self, now: Duration, is_cleaning: bool) -> Next {
        let mut state = self.state();
        state.busy = is_cleaning;
        if let Some(work) = state.work(now, is_cleaning) {
            let Some(backend) = state.backend.clone() else { return Next::Stop };
            state.busy = true;
            return Next::Work(work, backend);
        }
        if state.stop {
            return if is_cleaning { Next::SleepUntil(None) } else { Next::Stop };
        }
        let next = state.kept.values().map(|kept| kept.due.min(state.look_at)).min();
        // Where all are gone, it sleeps on until the first of them would have been due: the next
        // one will be due later still, and need not wake it.
        state.wakes_at = next.or(state.wakes_at.filter(|at| *at > now));
        Next::SleepUntil(state.wakes_at)
    }
}

impl State {
    fn work(&mut self, now: Duration, is_cleaning: bool) -> Option<Work> {
        if !is_cleaning && let Some(cleanup) = self.cleanups.pop_front() {
            return Some(Work::Cleanup(cleanup));
        }
        if self.stop {
            return None;
        }
        let due = self.kept.values().filter(|kept| kept.due <= now);
        let due: Vec<Arc<TrackedLease>> = due.map(|kept| kept.held.clone()).collect();
        if !due.is_empty() {
            return Some(Work::Renew(due));
        }
        if self.kept.is_empty() || now < self.look_at {
            return None;
        }
        let seldom = u32::try_from(self.kept.len() / LOOKED_AT_EACH_SECOND).unwrap_or(u32::MAX);
        self.look_at = now + LOOK_FOR_BREAK * (1 + seldom);
        Some(Work::Look(self.kept.values().map(|kept| kept.held.clone()).collect()))
    }
}

/// Notices what ended before its time. Renewals wait for that no longer than for each other.
async fn look_for_breaks(shared: &Shared, backend: &Backend, kept: Vec<Arc<TrackedLease>>) {
    let resources = kept.iter().flat_map(|held| held.lease.resources.clone()).collect();
    let next_due = shared.state().kept.values().map(|kept| kept.due).min();
    let patience = next_due.unwrap_or_default().saturating_sub(shared.clock.now());
    let Some(Some(seen)) = shared.world.timeout(patience, look(backend, resources)).await else {
        return;
    };
    kept.iter().filter(|held| held.was_ended(&seen)).for_each(|held| lose(shared, held));
}

/// What is held of these. Nothing is, in a store that is gone; `None` if the store does not tell: then
/// the leases' own time decides.
async fn look(backend: &Backend, resources: Vec<Resource>) -> Option<Vec<HoldSnapshot>> {
    match backend.read(&Scope::At { resources, ticket: None }).await {
        Ok(seen) => Some(seen.holds),
        Err(StoreError::Gone { .. }) => Some(vec![]),
        Err(_) => None,
    }
}

async fn renew(shared: &Shared, backend: &Backend, mut due: Vec<Arc<TrackedLease>>) {
    let asked_at = shared.clock.now();
    // Once trust has ended it does not come back: the holder may already have acted on it.
    due.retain(|held| {
        let trusted = asked_at < held.trusted_until();
        if !trusted {
            lose(shared, held);
        }
        trusted
    });
    let first_tries = || due.iter().filter(|held| !held.is_tried_again.load(Ordering::Relaxed));
    let why = "this process was stopped, or the machine is busy";
    warn_of_late(shared, first_tries(), asked_at, why);
    let renewals: Vec<Renewal> = due.iter().map(|held| held.lease.renewal()).collect();
    if renewals.is_empty() {
        return;
    }
    // A store that does not answer is asked again, perhaps over another connection, and must not keep
    // the end of a lease from being noticed.
    let trusted = due.iter().map(|held| held.trusted_until().saturating_sub(asked_at)).min();
    let third = due.iter().map(|held| held.lease.ttl / 3).min().unwrap_or_default();
    let patience = third.max(ANSWER_MIN).min(trusted.unwrap_or_default());
    let Some(answered) = shared.world.timeout(patience, backend.renew(&renewals)).await else {
        let now = shared.clock.now();
        warn_of_late(shared, due.iter(), now, "the store does not answer");
        due.iter().for_each(|held| held.is_tried_again.store(true, Ordering::Relaxed));
        return due.iter().for_each(|held| reschedule(shared, held, now));
    };
    match answered {
        Ok(answers) => {
            for (held, answer) in due.iter().zip(answers) {
                match answer {
                    Renewed::Renewed => {
                        held.renewed(asked_at);
                        held.is_tried_again.store(false, Ordering::Relaxed);
                        held.is_known_as_late.store(false, Ordering::Relaxed);
                        reschedule(shared, held, asked_at + held.lease.ttl / 3);
                    }
                    Renewed::Lost => lose(shared, held),
                }
            }
        }
        Err(error) => {
            if error.is_passing() {
                warn_of_late(shared, due.iter(), shared.clock.now(), &error.to_string());
            }
            due.iter().for_each(|held| try_again(shared, held, &error));
        }
    }
}

/// Warns once of leases that were not renewed although half of their time has passed: renewals begin
/// after a third of it.
fn warn_of_late<'a>(
    shared: &Shared,
    due: impl Iterator<Item = &'a Arc<TrackedLease>>,
    now: Duration,
    why: &str,
) {
    let is_news = |held: &&Arc<TrackedLease>| {
        let is_late = held.renewed_ago(now) >= held.lease.ttl / 2;
        is_late && !held.is_known_as_late.swap(true, Ordering::Relaxed)
    };
    let late: Vec<&Arc<TrackedLease>> = due.filter(is_news).collect();
    let Some(first) = late.first() else { return };
    let resources = late.iter().flat_map(|held| &held.lease.resources);
    let names: Vec<String> = resources.map(Resource::to_string).collect();
    let more = match names.len().saturating_sub(NAMED_IN_A_WARNING) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names = names[..names.len().min(NAMED_IN_A_WARNING)].join(", ");
    let (ago, ttl) = (format_duration(first.renewed_ago(now)), format_duration(first.lease.ttl));
    (shared.warn)(&format!(
        "the renewal of {names}{more} is late: it was renewed {ago} ago for {ttl}; {why}"
    ));
}

fn try_again(shared: &Shared, held: &TrackedLease, error: &StoreError) {
    if !error.is_passing() {
        return lose(shared, held);
    }
    held.is_tried_again.store(true, Ordering::Relaxed);
    let pause = (held.lease.ttl / 20).clamp(RETRY_MIN, RETRY_MAX);
    let due = (shared.clock.now() + pause).min(held.trusted_until());
    reschedule(shared, held, due);
}

fn reschedule(shared: &Shared, held: &TrackedLease, due: Duration) {
    if let Some(kept) = shared.state().kept.get_mut(&held.number) {
        kept.due = due;
    }
}

fn lose(shared: &Shared, held: &TrackedLease) {
    shared.state().kept.remove(&held.number);
    held.lose();
}

#[cfg(test)]
mod tests {
    use crate::store::Store;
    use crate::store::memory::MemoryStore;
    use crate::{Attempt, Client};
    use std::sync::Arc;

    #[tokio::test]
    async fn a_sleeping_keeper_lets_go_of_the_store_at_once() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let client = Client::builder().with_store(store.clone()).unwrap();
        client.acquire("deploy").await.unwrap().release().await.unwrap();
        drop(client);
        assert_eq!(Arc::strong_count(&store), 1);
    }

    #[tokio::test]
    async fn a_dropped_guard_is_released_before_its_client_is_gone() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let client = Client::builder().with_store(store.clone()).unwrap();
        drop(client.acquire("deploy").await.unwrap());
        drop(client);
        let other = Client::builder().with_store(store).unwrap();
        assert!(matches!(other.try_acquire("deploy").await.unwrap(), Attempt::Held(_)));
    }
}
