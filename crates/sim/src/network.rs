//! The way between a process and the store, on which requests and answers are late, lost or repeated.
//!
//! The store is reached as through a server: a request is decided when it arrives, unless its
//! deadline is over, which is set by the code of the real protocol ([`KnownClocks`]).

use crate::checks::Observer;
use crate::dice::Dice;
use crate::machines::{MachineClock, Machines};
use crate::mutant::{ForgetfulProof, Mutant};
use async_trait::async_trait;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::{Decision, Snapshot};
use tenure::server_support::deadline::{KnownClocks, ServerTime, deadline_by};
use tenure::store::{
    Answer, Committed, Decide, Maintained, Maintenance, Query, Renewal, Renewed, Signal, Store,
    StoreError, StoreInfo, Transaction, Waited,
};
use tenure::world::Clock;
use tokio::sync::oneshot;

/// How long a call waits for its answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(4);

/// A call that takes longer than this may cost its caller its turn in a queue.
const SLOW: Duration = Duration::from_millis(300);

/// What all links to the store share.
pub struct Network {
    /// The store at the other end, for links that are made from now on.
    store: Mutex<Arc<dyn Store>>,
    /// Where faults are noted.
    pub observer: Arc<Observer>,
    machines: Arc<Machines>,
    /// The longest time that a request or an answer takes when nothing goes wrong.
    latency_max_ms: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    cut_off: BTreeSet<usize>,
    is_down: bool,
    /// How often the store was started.
    starts: u32,
    is_full: bool,
    /// In how many calls of a thousand something goes wrong.
    trouble_permille: u64,
}

impl Network {
    /// A network in front of this store.
    pub fn new(
        store: Arc<dyn Store>,
        observer: Arc<Observer>,
        latency_max_ms: u64,
    ) -> Arc<Network> {
        let machines = observer.machines.clone();
        let (store, state) = (Mutex::new(store), Mutex::default());
        Arc::new(Network { store, observer, machines, latency_max_ms, state })
    }

    /// Gives links that are made from now on another store.
    pub fn replace_store(&self, store: Arc<dyn Store>) {
        *self.store.lock() = store;
    }

    /// Cuts a machine off from the store, or connects it again.
    pub fn cut_off(&self, machine: usize, is_cut: bool) {
        let mut state = self.state.lock();
        match is_cut {
            true => state.cut_off.insert(machine),
            false => state.cut_off.remove(&machine),
        };
    }

    /// Lets the store be down, or up again.
    pub fn set_down(&self, is_down: bool) {
        let mut state = self.state.lock();
        state.starts += u32::from(state.is_down && !is_down);
        state.is_down = is_down;
    }

    /// Lets the store's disk be full, or not.
    pub fn set_full(&self, is_full: bool) {
        self.state.lock().is_full = is_full;
    }

    /// In how many calls of a thousand something goes wrong.
    pub fn set_trouble(&self, permille: u64) {
        self.state.lock().trouble_permille = permille;
    }

    fn reaches(&self, machine: usize) -> bool {
        !self.state.lock().cut_off.contains(&machine)
    }

    /// What the clock of the store's machine shows, which is another one after each start.
    fn time(&self) -> ServerTime {
        let clock = MachineClock { machines: self.machines.clone(), machine: 0 };
        let name = format!("start{}", self.state.lock().starts);
        ServerTime { clock: name, at: clock.now_with_suspend() }
    }

    /// Whether a request with these deadlines comes in time; none if it has no deadline by the clock of
    /// the store.
    fn is_in_time(&self, deadlines: &[ServerTime]) -> Option<bool> {
        let now = self.time();
        deadline_by(&now.clock, deadlines).map(|at| now.at < at)
    }
}

/// The store as one process reaches it.
pub struct Link {
    store: Arc<dyn Store>,
    network: Arc<Network>,
    machine: usize,
    pid: u32,
    who: String,
    dice: Mutex<Dice>,
    forgetful: Arc<Mutex<ForgetfulProof>>,
    clocks: KnownClocks,
}

/// Carries out a request; none where it must not be carried out again.
type Request<T> =
    Box<dyn FnMut() -> Option<Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>> + Send>;

/// What comes back over the network.
enum Reply<T> {
    /// What came of it.
    Done(Result<T, StoreError>),
    /// It has no deadline by the clock of the store; nothing was done.
    ClockUnknown(Request<T>),
}

/// What becomes of one call.
#[derive(Clone, Copy)]
struct Fate {
    request_takes: Duration,
    answer_takes: Duration,
    request_is_lost: bool,
    answer_is_lost: bool,
    fails_before: bool,
    fails_after: bool,
    repeated_after: Option<Duration>,
}

impl Link {
    /// The link of this process.
    pub fn new(network: &Arc<Network>, pid: u32, who: &str, dice: Dice) -> Arc<Link> {
        Arc::new(Link {
            machine: network.machines.machine_of(pid),
            store: network.store.lock().clone(),
            network: network.clone(),
            pid,
            who: who.to_owned(),
            dice: Mutex::new(dice),
            forgetful: Arc::default(),
            clocks: KnownClocks::default(),
        })
    }

    fn fate(&self, is_write: bool) -> Fate {
        let trouble = self.network.state.lock().trouble_permille;
        let latency = self.network.latency_max_ms;
        let mut dice = self.dice.lock();
        let mut fate = Fate {
            request_takes: dice.time(0, latency),
            answer_takes: dice.time(0, latency),
            request_is_lost: false,
            answer_is_lost: false,
            fails_before: false,
            fails_after: false,
            repeated_after: None,
        };
        // The network of this mutant holds up many changes for so long that they come too late.
        if self.mutant() == Some(Mutant::LateRequests) && is_write && dice.permille(trouble * 5) {
            fate.request_takes = dice.time(4000, 6000);
            drop(dice);
            self.went_wrong(format_args!("the request takes {:?}", fate.request_takes));
            return fate;
        }
        if !dice.permille(trouble) {
            return fate;
        }
        let what = match dice.below(8) {
            0 => {
                fate.request_is_lost = true;
                "the request is lost".to_owned()
            }
            1 => {
                fate.answer_is_lost = true;
                "the answer is lost".to_owned()
            }
            2 => {
                fate.fails_before = true;
                "the store fails before the change".to_owned()
            }
            3 => {
                fate.fails_after = true;
                "the store fails after the change".to_owned()
            }
            4 => {
                // Also beyond the timeout: then it comes after its caller has given up.
                fate.request_takes = dice.time(200, 7000);
                format!("the request takes {:?}", fate.request_takes)
            }
            5 => {
                fate.answer_takes = dice.time(200, 5000);
                format!("the answer takes {:?}", fate.answer_takes)
            }
            _ => {
                let after = dice.time(1, 3000);
                fate.repeated_after = Some(after);
                format!("the request is repeated after {after:?} where that is allowed")
            }
        };
        drop(dice);
        self.went_wrong(format_args!("{what}"));
        fate
    }

    fn went_wrong(&self, what: std::fmt::Arguments<'_>) {
        self.network.observer.fault(&self.who, format_args!("call: {what}"));
        self.network.observer.disturb(self.pid);
    }

    fn mutant(&self) -> Option<Mutant> {
        self.network.machines.mutant()
    }

    /// Sends a request and waits for its answer. A request without a deadline is sent once more, when the
    /// clock of the store is known.
    async fn call<T: Send + 'static>(
        &self,
        fate: Fate,
        is_write: bool,
        request: Request<T>,
    ) -> Result<T, StoreError> {
        let begun = self.network.machines.true_time();
        let (mut fate, mut request) = (fate, request);
        let result = loop {
            match self.send(fate, is_write, request).await {
                Some(Reply::Done(result)) => break result,
                Some(Reply::ClockUnknown(unsent)) => {
                    (fate, request) = (self.fate(is_write), unsent);
                }
                None if is_write => break Err(unknown(self.mutant(), "no answer came")),
                None => break Err(unavailable("no answer came")),
            }
        };
        if result.is_err() || self.network.machines.true_time() - begun > SLOW {
            self.network.observer.disturb(self.pid);
        }
        result
    }

    /// What this process's clock shows.
    fn now(&self) -> Duration {
        let machines = self.network.machines.clone();
        MachineClock { machines, machine: self.machine }.now_with_suspend()
    }

    /// Sends a request and waits for its answer; none where no answer comes. The request goes on by
    /// itself once it is sent, whatever becomes of its caller.
    async fn send<T: Send + 'static>(
        &self,
        fate: Fate,
        is_write: bool,
        mut request: Request<T>,
    ) -> Option<Reply<T>> {
        let (sender, answer) = oneshot::channel();
        let (network, machine) = (self.network.clone(), self.machine);
        let mutant = self.mutant();
        let machines = self.network.machines.clone();
        let deadlines = self.clocks.deadlines(self.now(), CALL_TIMEOUT);
        let sent = async move {
            tokio::time::sleep(fate.request_takes).await;
            if fate.request_is_lost || !network.reaches(machine) {
                return tokio::time::sleep(CALL_TIMEOUT).await;
            }
            let (is_down, is_full) = {
                let state = network.state.lock();
                (state.is_down, state.is_full && is_write)
            };
            let in_time = match is_write && mutant != Some(Mutant::LateRequests) {
                true => network.is_in_time(&deadlines),
                false => Some(true),
            };
            let reply = match (is_down, is_full, fate.fails_before, in_time) {
                (true, ..) => Reply::Done(Err(unavailable("the store is down"))),
                (_, true, ..) => Reply::Done(Err(unavailable("no space is left"))),
                (_, _, true, _) => Reply::Done(Err(unavailable("it failed"))),
                (.., None) => Reply::ClockUnknown(request),
                (.., Some(false)) => Reply::Done(Err(unavailable("the request came too late"))),
                _ => {
                    let Some(executed) = request() else { return };
                    let result = executed.await;
                    if let Some(after) = fate.repeated_after.filter(|_| result.is_ok()) {
                        let network = network.clone();
                        tokio::spawn(async move {
                            tokio::time::sleep(after).await;
                            let in_time = !is_write || network.is_in_time(&deadlines) == Some(true);
                            if let Some(executed) = in_time.then(&mut request).flatten() {
                                drop(executed.await);
                            }
                        });
                    }
                    Reply::Done(match fate.fails_after && is_write {
                        true => result.and(Err(unknown(mutant, "it failed on the way back"))),
                        false => result,
                    })
                }
            };
            let time = network.time();
            tokio::time::sleep(fate.answer_takes).await;
            if !fate.answer_is_lost && network.reaches(machine) {
                let _ = sender.send((reply, time));
            } else {
                tokio::time::sleep(CALL_TIMEOUT).await;
            }
        };
        tokio::spawn(machines.catch_panic("store".to_owned(), sent));
        let (reply, time) = tokio::time::timeout(CALL_TIMEOUT, answer).await.ok()?.ok()?;
        self.clocks.learn(time, self.now());
        Some(reply)
    }

    /// By how much a store's lease must be shorter so that it ends where it would end if the holder
    /// counted its trust from the answer.
    fn shortened_by(&self, fate: &Fate) -> Duration {
        match self.mutant() {
            Some(Mutant::TrustFromAnswer) => fate.request_takes + fate.answer_takes,
            _ => Duration::ZERO,
        }
    }
}

/// What there is, as if all detached leases were those of this label.
fn as_if_all_were_of(label: &str, seen: &Snapshot) -> Snapshot {
    let mut shown = seen.clone();
    for seen in shown.holds.iter_mut().filter(|seen| seen.hold.holder.is_detached()) {
        seen.hold.holder.label = label.to_owned();
    }
    shown
}

fn unavailable(reason: &str) -> StoreError {
    StoreError::Unavailable { store: "sim:".to_owned(), reason: reason.to_owned(), hint: None }
}

fn unknown(mutant: Option<Mutant>, reason: &str) -> StoreError {
    match mutant {
        Some(Mutant::UnknownIsUnavailable) => unavailable(reason),
        _ => StoreError::Unknown { store: "sim:".to_owned(), reason: reason.to_owned() },
    }
}

#[async_trait]
impl Store for Link {
    fn info(&self) -> StoreInfo {
        let local = self.mutant() == Some(Mutant::SuspendIsNotCounted);
        StoreInfo { local, ..self.store.info() }
    }

    async fn transact(&self, transaction: Transaction) -> Result<Committed, StoreError> {
        let fate = self.fate(true);
        let Transaction { scope, request, mut decide } = transaction;
        let mutant = self.mutant();
        let (shorter, forgetful) = (self.shortened_by(&fate), self.forgetful.clone());
        let decide: Decide = match mutant {
            Some(Mutant::TrustFromAnswer) => Box::new(move |seen| {
                let mut decision = decide(seen);
                if let Decision::Write(change) = &mut decision {
                    crate::mutant::shorten(change, shorter);
                }
                decision
            }),
            Some(Mutant::CoversAnotherOwner) => {
                // The label of an agent is without the number of its start.
                let label = self.who.split('.').next().unwrap_or_default().to_owned();
                Box::new(move |seen| decide(&as_if_all_were_of(&label, seen)))
            }
            Some(Mutant::FinishByLabel | Mutant::ReleaseByName) => {
                Box::new(move |seen| forgetful.lock().decide(mutant, seen, &mut decide))
            }
            _ => decide,
        };
        // A change that names its request may be repeated by the network. Others may not: a store's
        // own protocol sees to it that they are carried out at most once.
        let may_repeat = request.is_some();
        let store = self.store.clone();
        let shared = Arc::new(Mutex::new(decide));
        let mut sent = false;
        let send = move || {
            if sent && !may_repeat {
                return None;
            }
            sent = true;
            let (store, decide) = (store.clone(), shared.clone());
            let transaction = Transaction {
                scope: scope.clone(),
                request: request.clone(),
                decide: Box::new(move |seen| (decide.lock())(seen)),
            };
            let executed: Pin<Box<dyn Future<Output = _> + Send>> =
                Box::pin(async move { store.transact(transaction).await });
            Some(executed)
        };
        self.call(fate, true, Box::new(send)).await
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        let fate = self.fate(true);
        let shorter = self.shortened_by(&fate);
        let mut renewals = renewals.to_vec();
        for renewal in &mut renewals {
            renewal.ttl = renewal.ttl.saturating_sub(shorter);
        }
        let store = self.store.clone();
        let send = move || {
            let (store, renewals) = (store.clone(), renewals.clone());
            let executed: Pin<Box<dyn Future<Output = _> + Send>> =
                Box::pin(async move { store.renew(&renewals).await });
            Some(executed)
        };
        self.call(fate, true, Box::new(send)).await
    }

    async fn query(&self, query: Query) -> Result<Answer, StoreError> {
        let fate = self.fate(false);
        let store = self.store.clone();
        let send = move || {
            let (store, query) = (store.clone(), query.clone());
            let executed: Pin<Box<dyn Future<Output = _> + Send>> =
                Box::pin(async move { store.query(query).await });
            Some(executed)
        };
        self.call(fate, false, Box::new(send)).await
    }

    /// A wait is a connection that stands: it breaks when the store cannot be reached at its end.
    async fn wait(&self, signal: Signal, patience: Duration) -> Result<Waited, StoreError> {
        let takes = self.dice.lock().time(0, self.network.latency_max_ms);
        let patience = match self.mutant() {
            Some(Mutant::WaitsOnlyForWake) => Duration::from_secs(600),
            _ => patience,
        };
        let waited = self.store.wait(signal, patience).await;
        tokio::time::sleep(takes).await;
        if !self.network.reaches(self.machine) || self.network.state.lock().is_down {
            self.network.observer.disturb(self.pid);
            tokio::time::sleep(Duration::from_millis(200)).await;
            return Err(unavailable("the connection broke"));
        }
        waited
    }

    async fn maintain(&self, work: Maintenance) -> Result<Maintained, StoreError> {
        self.store.maintain(work).await
    }
}
