//! The thread that renews leases and runs errands for guards that were dropped.
//!
//! It is a thread of its own, so that long work on the caller's runtime cannot keep it from
//! renewing. It starts with the first guard, and sleeps until the next renewal is due; a guard
//! that comes and goes in between does not wake it. While it sleeps it holds nothing, so that
//! nobody has to wait for its end.

use super::backend::Backend;
use super::lease::Lease;
use super::revocable::Revocable;
use crate::clock::Clock;
use crate::error::Error;
use crate::store::{Renewal, Renewed, StoreError};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tenure_core::GrantId;
use tenure_core::act::{CallOff, CallOffClaim, FinishTask, Leave, Recover, Release};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// A renewal that failed is tried again after a twentieth of the lease, within these bounds: often
/// enough to have many tries, seldom enough not to burden a store that is in trouble.
const RETRY_MIN: Duration = Duration::from_millis(20);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// How long a client that is dropped waits for its last errands.
const LAST_ERRANDS: Duration = Duration::from_secs(2);

/// What a guard and the keeper both know of a lease.
pub(super) struct TrackedLease {
    pub(super) lease: Lease,
    /// Until when it may be trusted. Only moves while the lease is held.
    trusted_until: Mutex<Duration>,
    lost: watch::Sender<bool>,
}

impl TrackedLease {
    pub(super) fn new(lease: Lease) -> TrackedLease {
        let trusted_until = Mutex::new(lease.trusted_until);
        TrackedLease { lease, trusted_until, lost: watch::Sender::new(false) }
    }

    pub(super) fn trusted_until(&self) -> Duration {
        *self.trusted_until.lock()
    }

    /// Takes note of a renewal that was asked for at this time.
    pub(super) fn renewed(&self, asked_at: Duration) {
        let mut until = self.trusted_until.lock();
        *until = (asked_at + self.lease.ttl).saturating_sub(self.lease.margin);
    }

    pub(super) fn lose(&self) {
        self.lost.send_replace(true);
    }

    pub(super) fn is_lost(&self) -> bool {
        *self.lost.borrow()
    }

    pub(super) fn watch_loss(&self) -> watch::Receiver<bool> {
        self.lost.subscribe()
    }
}

/// Something to do in the store on behalf of what was dropped.
pub(super) enum BackgroundCleanup {
    Leave(Leave),
    Release(Release),
    HandBack(Box<FinishTask>),
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
            BackgroundCleanup::Recover(act) => drop(backend.perform(&act).await?),
            BackgroundCleanup::CallOff(errand) => errand.0.undo(backend, &errand.1).await?,
            BackgroundCleanup::CallOffClaim(errand) => errand.0.undo(backend, &errand.1).await?,
        }
        Ok(())
    }
}

/// Renews what is held and runs errands, on its own thread.
pub(super) struct Keeper {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Taken away from a thread that sleeps when the keeper is dropped.
    backend: Option<Backend>,
    /// By the address of what is held: two guards may share one grant, and each counts.
    kept: HashMap<usize, Kept>,
    errands: VecDeque<BackgroundCleanup>,
    /// When the thread wakes by itself; `None` while it has no reason to.
    wakes_at: Option<Duration>,
    /// Whether the thread is at work.
    busy: bool,
    stop: bool,
    /// Whether the thread has come to its end.
    ended: bool,
}

struct Kept {
    held: Arc<TrackedLease>,
    due: Duration,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Errands of guards dropped just before are still run; but a store that does not answer must
    /// not keep its client from ending.
    fn wait_for_end(&self, mut state: MutexGuard<'_, State>) {
        self.changed.wait_while_for(&mut state, |state| !state.ended, LAST_ERRANDS);
    }

    fn end(&self) {
        self.state().ended = true;
        self.changed.notify_all();
    }
}

impl Keeper {
    pub(super) fn new(backend: Backend, clock: Arc<dyn Clock>) -> Keeper {
        let state = Mutex::new(State {
            backend: Some(backend),
            kept: HashMap::new(),
            errands: VecDeque::new(),
            wakes_at: None,
            busy: false,
            stop: false,
            ended: false,
        });
        let shared = Arc::new(Shared { clock, state, changed: Condvar::new() });
        Keeper { shared, thread: Mutex::new(None) }
    }

    /// Renews this from now on.
    pub(super) fn keep(&self, held: Arc<TrackedLease>) {
        let due = self.shared.clock.now() + held.lease.ttl / 3;
        let mut state = self.shared.state();
        state.kept.insert(key(&held), Kept { held, due });
        let must_wake = state.wakes_at.is_none_or(|at| due < at);
        if must_wake {
            state.wakes_at = Some(due);
        }
        drop(state);
        if must_wake {
            self.wake();
        }
    }

    /// Renews this no longer.
    pub(super) fn forget(&self, held: &TrackedLease) {
        self.shared.state().kept.remove(&key(held));
    }

    /// Whether this is the grant, in its public form, of something that is renewed here.
    pub(super) fn keeps(&self, grant: GrantId) -> bool {
        let state = self.shared.state();
        state.kept.values().any(|kept| kept.held.lease.grant.redacted() == grant.redacted())
    }

    /// Runs an errand soon.
    pub(super) fn send(&self, errand: BackgroundCleanup) {
        self.shared.state().errands.push_back(errand);
        self.wake();
    }

    fn wake(&self) {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = self.shared.clone();
            let run = move || run(&shared);
            // Without a thread the lease simply runs out, and its holder learns that it did.
            *thread = std::thread::Builder::new().name("tenure-keeper".to_owned()).spawn(run).ok();
        }
        self.shared.changed.notify_one();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.stop = true;
        let busy = state.busy || !state.errands.is_empty();
        let backend = if busy { None } else { state.backend.take() };
        self.shared.changed.notify_all();
        let started = self.thread.lock().is_some();
        if busy && started {
            self.shared.wait_for_end(state);
        }
        // Closed here and now if it was the last, not whenever the thread has noticed.
        drop(backend);
    }
}

fn key(held: &TrackedLease) -> usize {
    std::ptr::from_ref(held).addr()
}

enum Work {
    BackgroundCleanup(BackgroundCleanup),
    Renew(Vec<Arc<TrackedLease>>),
}

struct Job {
    work: Work,
    backend: Backend,
}

fn run(shared: &Shared) {
    // Most holds end before there is anything to do, so the means to do it are made when needed.
    let mut means: Option<Runtime> = None;
    while let Some(Job { work, backend }) = next_job(shared) {
        if means.is_none() {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            means = runtime.ok();
        }
        let Some(runtime) = &means else { break };
        match work {
            // What fails here ends by itself when its time has run out.
            Work::BackgroundCleanup(errand) => drop(runtime.block_on(errand.run(&backend))),
            Work::Renew(due) => runtime.block_on(renew(shared, &backend, due)),
        }
    }
    drop(means);
    shared.end();
}

/// Waits for something to do; nothing once the keeper was dropped and all errands are run.
fn next_job(shared: &Shared) -> Option<Job> {
    let mut state = shared.state();
    state.busy = false;
    loop {
        let now = shared.clock.now();
        if let Some(work) = state.work(now) {
            let backend = state.backend.clone()?;
            state.busy = true;
            return Some(Job { work, backend });
        }
        if state.stop {
            return None;
        }
        let next = state.kept.values().map(|kept| kept.due).min();
        // Where all are gone, it sleeps on until the first of them would have been due: the next
        // one will be due later still, and need not wake it.
        state.wakes_at = next.or(state.wakes_at.filter(|at| *at > now));
        match state.wakes_at {
            None => shared.changed.wait(&mut state),
            Some(at) => drop(shared.changed.wait_for(&mut state, at.saturating_sub(now))),
        }
    }
}

impl State {
    /// What is to be done now. Once the keeper was dropped, only errands are.
    fn work(&mut self, now: Duration) -> Option<Work> {
        if let Some(errand) = self.errands.pop_front() {
            return Some(Work::BackgroundCleanup(errand));
        }
        if self.stop {
            return None;
        }
        let due = self.kept.values().filter(|kept| kept.due <= now);
        let due: Vec<Arc<TrackedLease>> = due.map(|kept| kept.held.clone()).collect();
        (!due.is_empty()).then_some(Work::Renew(due))
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
    let renewals: Vec<Renewal> = due.iter().map(|held| held.lease.renewal()).collect();
    if renewals.is_empty() {
        return;
    }
    match backend.renew(&renewals).await {
        Ok(answers) => {
            for (held, answer) in due.iter().zip(answers) {
                match answer {
                    Renewed::Renewed => {
                        held.renewed(asked_at);
                        reschedule(shared, held, asked_at + held.lease.ttl / 3);
                    }
                    Renewed::Lost => lose(shared, held),
                }
            }
        }
        Err(error) => due.iter().for_each(|held| try_again(shared, held, &error)),
    }
}

fn try_again(shared: &Shared, held: &TrackedLease, error: &StoreError) {
    if !error.is_passing() {
        return lose(shared, held);
    }
    let pause = (held.lease.ttl / 20).clamp(RETRY_MIN, RETRY_MAX);
    let due = (shared.clock.now() + pause).min(held.trusted_until());
    reschedule(shared, held, due);
}

fn reschedule(shared: &Shared, held: &TrackedLease, due: Duration) {
    if let Some(kept) = shared.state().kept.get_mut(&key(held)) {
        kept.due = due;
    }
}

fn lose(shared: &Shared, held: &TrackedLease) {
    shared.state().kept.remove(&key(held));
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
