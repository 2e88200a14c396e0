//! The thread that renews leases and runs errands for guards that were dropped.
//!
//! It is a thread of its own, so that long work on the caller's runtime cannot keep it from
//! renewing. It starts with the first guard, and sleeps until the next renewal is due; a guard
//! that comes and goes in between does not wake it.

use super::lease::Lease;
use crate::clock::Clock;
use crate::error::Error;
use crate::platform::LocalWitness;
use crate::store::{Renewal, Renewed, Store, StoreError};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;
use tenure_core::rules::tasks::FinishAsk;
use tenure_core::{GrantId, Look, Proof, ReleaseAsk, Resource, Seen, Witness, rules};
use tokio::sync::watch;

/// A renewal that failed is tried again after a twentieth of the lease, within these bounds: often
/// enough to have many tries, seldom enough not to burden a store that is in trouble.
const RETRY_MIN: Duration = Duration::from_millis(20);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// How long a client that is dropped waits for its last errands.
const LAST_ERRANDS: Duration = Duration::from_secs(2);

/// What a guard and the keeper both know of a lease.
pub(super) struct Held {
    pub(super) lease: Lease,
    /// Until when it may be trusted. Only moves while the lease is held.
    trusted_until: Mutex<Duration>,
    lost: watch::Sender<bool>,
}

impl Held {
    pub(super) fn new(lease: Lease) -> Held {
        let trusted_until = Mutex::new(lease.trusted_until);
        Held { lease, trusted_until, lost: watch::Sender::new(false) }
    }

    pub(super) fn trusted_until(&self) -> Duration {
        *self.trusted_until.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes note of a renewal that was asked for at this time.
    pub(super) fn renewed(&self, asked_at: Duration) {
        let mut until = self.trusted_until.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
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
pub(super) enum Errand {
    Leave { grant: GrantId, resources: Vec<Resource>, ticket: u64 },
    Release { grant: GrantId, resources: Vec<Resource> },
    HandBack { ask: Box<FinishAsk>, section: Option<String> },
}

impl Errand {
    pub(super) async fn run(
        self,
        store: &dyn Store,
        witness: &(dyn Witness + Sync),
    ) -> Result<(), Error> {
        let look = match &self {
            Errand::Leave { resources, ticket, .. } => {
                Look::At { resources: resources.clone(), ticket: Some(*ticket) }
            }
            Errand::Release { resources, .. } => {
                Look::At { resources: resources.clone(), ticket: None }
            }
            Errand::HandBack { ask, section } => ask.look(section.clone()),
        };
        let mut decide = |seen: &Seen| match &self {
            Errand::HandBack { ask, .. } => rules::tasks::finish(seen, ask, witness).0,
            Errand::Leave { grant, .. } => rules::leave(seen, *grant, witness).0,
            Errand::Release { grant, .. } => {
                let ask = ReleaseAsk { proof: Proof::Grant(*grant), resources: None };
                rules::release(seen, &ask, witness).0
            }
        };
        store.transact(&look, &mut decide).await?;
        Ok(())
    }
}

/// Renews what is held and runs errands, on its own thread.
pub(super) struct Keeper {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By the address of what is held: two guards may share one grant, and each counts.
    kept: HashMap<usize, Kept>,
    errands: VecDeque<Errand>,
    /// When the thread wakes by itself; `None` while it has no reason to.
    wakes_at: Option<Duration>,
    stop: bool,
    /// Whether the thread has ended.
    ended: bool,
}

struct Kept {
    held: Arc<Held>,
    due: Duration,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Keeper {
    pub(super) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Keeper {
        let state = Mutex::default();
        let shared = Arc::new(Shared { store, clock, state, changed: Condvar::new() });
        Keeper { shared, thread: Mutex::new(None) }
    }

    /// Renews this from now on.
    pub(super) fn keep(&self, held: Arc<Held>) {
        let due = self.shared.clock.now() + held.lease.ttl / 3;
        let mut state = self.shared.state();
        state.kept.insert(key(&held), Kept { held, due });
        let must_wake = state.wakes_at.is_none_or(|at| due < at);
        drop(state);
        if must_wake {
            self.wake();
        }
    }

    /// Renews this no longer.
    pub(super) fn forget(&self, held: &Held) {
        self.shared.state().kept.remove(&key(held));
    }

    /// Runs an errand soon.
    pub(super) fn send(&self, errand: Errand) {
        self.shared.state().errands.push_back(errand);
        self.wake();
    }

    fn wake(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
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
        self.shared.changed.notify_all();
        if self.thread.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).is_none() {
            return;
        }
        // Errands of guards dropped just before are still run; but a store that does not answer
        // must not keep its client from ending.
        let deadline = std::time::Instant::now() + LAST_ERRANDS;
        while !state.ended {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }
}

fn key(held: &Held) -> usize {
    std::ptr::from_ref(held).addr()
}

enum Job {
    Errand(Errand),
    Renew(Vec<Arc<Held>>),
}

fn run(shared: &Shared) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        shared.state().ended = true;
        return;
    };
    let witness = LocalWitness::new();
    while let Some(job) = next_job(shared) {
        match job {
            // What fails here ends by itself when its time has run out.
            Job::Errand(errand) => drop(runtime.block_on(errand.run(&*shared.store, &witness))),
            Job::Renew(due) => runtime.block_on(renew(shared, due)),
        }
    }
    shared.state().ended = true;
    shared.changed.notify_all();
}

/// Waits for something to do; nothing once the keeper was dropped and all errands are run.
fn next_job(shared: &Shared) -> Option<Job> {
    let mut state = shared.state();
    loop {
        if let Some(errand) = state.errands.pop_front() {
            return Some(Job::Errand(errand));
        }
        if state.stop {
            return None;
        }
        let now = shared.clock.now();
        let due: Vec<Arc<Held>> = state
            .kept
            .values()
            .filter(|kept| kept.due <= now)
            .map(|kept| kept.held.clone())
            .collect();
        if !due.is_empty() {
            return Some(Job::Renew(due));
        }
        state.wakes_at = state.kept.values().map(|kept| kept.due).min();
        state = match state.wakes_at {
            None => shared.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner()),
            Some(at) => {
                let pause = at.saturating_sub(now);
                let waited = shared.changed.wait_timeout(state, pause);
                waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0
            }
        };
    }
}

async fn renew(shared: &Shared, mut due: Vec<Arc<Held>>) {
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
    match shared.store.renew(&renewals).await {
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

fn try_again(shared: &Shared, held: &Held, error: &StoreError) {
    if !error.is_passing() {
        return lose(shared, held);
    }
    let pause = (held.lease.ttl / 20).clamp(RETRY_MIN, RETRY_MAX);
    let due = (shared.clock.now() + pause).min(held.trusted_until());
    reschedule(shared, held, due);
}

fn reschedule(shared: &Shared, held: &Held, due: Duration) {
    if let Some(kept) = shared.state().kept.get_mut(&key(held)) {
        kept.due = due;
    }
}

fn lose(shared: &Shared, held: &Held) {
    shared.state().kept.remove(&key(held));
    held.lose();
}
