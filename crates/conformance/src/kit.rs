//! What the cases share: how they fail, and short ways to ask, hold, queue and look.

use crate::Harness;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::{
    Ask, Change, Decision, EventKind, Evidence, GrantId, Group, Hold, HoldSnapshot, Holder, Mode,
    NewEvent, NoWitness, Outcome, Process, Resource, Revision, Scope, Snapshot, Token, Waiter,
    WaiterSnapshot, Want, Write, rules,
};
pub(super) use tenure::store::StoreExt;
use tenure::store::{Renewal, RequestId, Store, StoreError, Transaction, transact_with};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// One thing that every store must show.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) run: for<'a> fn(&'a dyn Harness) -> Running<'a>,
}

pub(super) type Running<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// What a case comes to.
pub(super) type Verdict = Result<(), Failure>;

/// Why a case failed.
#[derive(Debug)]
pub(super) struct Failure(pub(super) String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure(format!("the store refused: {error}"))
    }
}

/// Lists functions of this module as cases, named by their topic.
macro_rules! cases {
    ($topic:literal: $($case:ident),+ $(,)?) => {
        pub(super) const CASES: &[$crate::kit::Case] = &[$(
            $crate::kit::Case {
                name: concat!($topic, "::", stringify!($case)),
                run: |harness| Box::pin($case(harness)),
            }
        ),+];
    };
}

/// Ends the case with this sentence unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($why:tt)+) => {
        if !$condition {
            return Err($crate::kit::Failure(format!($($why)+)));
        }
    };
}

/// Ends the case unless both are equal.
macro_rules! ensure_eq {
    ($found:expr, $expected:expr, $($what:tt)+) => {
        match (&$found, &$expected) {
            (found, expected) => ensure!(
                *found == *expected,
                "{}: {found:?} was found instead of {expected:?}",
                format_args!($($what)+)
            ),
        }
    };
}

pub(super) use {cases, ensure, ensure_eq};

/// A lease that does not lapse while a case runs.
pub(super) const LONG: Duration = Duration::from_secs(3600);

pub(super) fn resource(text: &str) -> Resource {
    text.parse().expect("the suite names its resources well")
}

pub(super) fn grant(number: u128) -> GrantId {
    GrantId::from_bits(number)
}

pub(super) fn at(names: &[&str]) -> Scope {
    Scope::At { resources: names.iter().map(|name| resource(name)).collect(), ticket: None }
}

pub(super) fn queues(names: &[&str]) -> Scope {
    Scope::Queues(names.iter().map(|name| resource(name)).collect())
}

pub(super) fn event(resource: &Resource, token: Option<Token>, kind: EventKind) -> NewEvent {
    NewEvent::new(Some(resource.clone()), "somebody", token, kind)
}

/// Evidence with all that there can be.
pub(super) fn full_evidence() -> Evidence {
    Evidence {
        host: "büro-7.local".to_owned(),
        machine: "f0e1d2c3".to_owned(),
        boot: "11111111-2222-3333-4444-555555555555".to_owned(),
        pid_namespace: 4_026_531_836,
        process: Some(Process { pid: 4_194_304, start: u64::from(u32::MAX) * 100 }),
        group: Some(Group { leader: 77, start: Some(12_345) }),
    }
}

/// A plain hold; cases change what they are about.
pub(super) fn hold(name: &str, grant: GrantId, token: Token) -> Hold {
    Hold {
        want: Want { resource: resource(name), mode: Mode::Exclusive },
        grant,
        token,
        holder: Holder::anonymous("somebody".to_owned()),
        operation: None,
        ttl: LONG,
        slot: None,
    }
}

/// A plain place in these queues; cases change what they are about.
pub(super) fn waiter(names: &[&str], grant: GrantId, ticket: u64) -> Waiter {
    Waiter {
        grant,
        ticket,
        wants: names.iter().map(|name| Want::exclusive(resource(name))).collect(),
        holder: Holder::anonymous("somebody".to_owned()),
        operation: None,
        keeps: vec![],
        ttl: LONG,
    }
}

/// A change that makes this hold, with its event.
pub(super) fn holding(hold: Hold) -> Change {
    let kind = EventKind::Acquired { operation: None };
    let events = vec![event(&hold.want.resource, Some(hold.token), kind)];
    Change { writes: vec![Write::Hold(hold)], events, ..Change::default() }
}

/// A change that ends this hold, with its event.
pub(super) fn dropping(name: &str, grant: GrantId) -> Change {
    let resource = resource(name);
    let events = vec![event(&resource, None, EventKind::Released)];
    Change { writes: vec![Write::DropHold { resource, grant }], events, ..Change::default() }
}

/// A change that takes this place, with its event.
pub(super) fn queueing(waiter: Waiter) -> Change {
    let events = vec![event(&waiter.wants[0].resource, None, EventKind::Waiting)];
    Change { writes: vec![Write::Wait(waiter)], events, ..Change::default() }
}

/// A change that only records that something happened.
pub(super) fn noting(name: &str) -> Change {
    Change { events: vec![event(&resource(name), None, EventKind::Released)], ..Change::default() }
}

/// Applies a rule, for a request of this slot if there is one; returns its last answer.
pub(super) async fn apply<T: Send + 'static>(
    store: &dyn Store,
    slot: Option<&str>,
    scope: Scope,
    rule: impl FnMut(&Snapshot) -> (Decision, T) + Send + 'static,
) -> Result<T, Failure> {
    let request = slot.map(|slot| RequestId { slot: slot.to_owned(), number: 1 });
    let (_, answer) = transact_with(store, scope, request, rule).await?;
    Ok(answer)
}

/// Writes what `make` makes of everything that is there; returns the revision of its last event.
pub(super) async fn write(
    store: &dyn Store,
    mut make: impl FnMut(&Snapshot) -> Change + Send + 'static,
) -> Result<Option<Revision>, Failure> {
    let decide = move |snapshot: &Snapshot| Decision::Write(make(snapshot));
    Ok(store.transact(Transaction::new(Scope::Everything, decide)).await?.revision)
}

/// Holds this one resource under this grant for so long; returns the token.
pub(super) async fn take(
    store: &dyn Store,
    name: &str,
    grant: GrantId,
    ttl: Duration,
) -> Result<Token, Failure> {
    let name = name.to_owned();
    apply(store, None, Scope::Everything, move |seen| {
        let token = seen.next_token();
        (Decision::Write(holding(Hold { ttl, ..hold(&name, grant, token) })), token)
    })
    .await
}

/// Takes a place in these queues for so long; returns the ticket.
pub(super) async fn queue(
    store: &dyn Store,
    names: &[&str],
    grant: GrantId,
    ttl: Duration,
) -> Result<u64, Failure> {
    let waiter = Waiter { ttl, ..waiter(names, grant, 0) };
    apply(store, None, Scope::Everything, move |seen| {
        let ticket = seen.next;
        (Decision::Write(queueing(Waiter { ticket, ..waiter.clone() })), ticket)
    })
    .await
}

pub(super) fn renewal(names: &[&str], grant: GrantId, token: Token, ttl: Duration) -> Renewal {
    let resources = names.iter().map(|name| resource(name)).collect();
    Renewal { grant, token, resources, ttl, bind: None }
}

/// Asks for these, all or nothing, by the rule that clients use.
pub(super) async fn acquire(
    store: &dyn Store,
    names: &[&str],
    grant: GrantId,
) -> Result<Outcome, Failure> {
    let ask = Ask {
        grant,
        wants: names.iter().map(|name| Want::exclusive(resource(name))).collect(),
        holder: Holder::anonymous("somebody".to_owned()),
        presence: None,
        operation: None,
        ttl: LONG,
        keeps: vec![],
        owner: Default::default(),
        queue: None,
    };
    apply(store, None, at(names), move |seen| rules::acquire(seen, &ask, &NoWitness)).await
}

pub(super) async fn everything(store: &dyn Store) -> Result<Snapshot, Failure> {
    Ok(store.read(&Scope::Everything).await?)
}

/// The one hold of this resource.
pub(super) async fn hold_of(store: &dyn Store, name: &str) -> Result<HoldSnapshot, Failure> {
    let seen = store.read(&at(&[name])).await?;
    match <[HoldSnapshot; 1]>::try_from(seen.holds) {
        Ok([hold]) => Ok(hold),
        Err(holds) => Err(Failure(format!("{name} should have one hold, but has {holds:?}"))),
    }
}

/// The place of this grant, as everybody sees it.
pub(super) async fn place_of(store: &dyn Store, grant: GrantId) -> Result<WaiterSnapshot, Failure> {
    let seen = everything(store).await?;
    let place = seen.waiters.into_iter().find(|seen| seen.waiter.grant == grant);
    place.ok_or_else(|| Failure(format!("{grant} should have a place, but has none")))
}

pub(super) fn grants(seen: &[HoldSnapshot]) -> Vec<GrantId> {
    seen.iter().map(|seen| seen.hold.grant).collect()
}

pub(super) fn tickets(seen: &[WaiterSnapshot]) -> Vec<u64> {
    seen.iter().map(|seen| seen.waiter.ticket).collect()
}

/// This store and three more handles to its records.
pub(super) async fn four_handles(
    harness: &dyn Harness,
    store: &Arc<dyn Store>,
) -> Vec<Arc<dyn Store>> {
    let mut stores = vec![store.clone()];
    while stores.len() < 4 {
        stores.push(harness.another(store).await);
    }
    stores
}

/// Runs so many tasks that begin together, spread over the handles; returns what each came to.
pub(super) async fn at_once<T: Send + 'static, F>(
    stores: &[Arc<dyn Store>],
    count: usize,
    task: impl Fn(Arc<dyn Store>, usize) -> F,
) -> Result<Vec<T>, Failure>
where
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let start = Arc::new(Barrier::new(count));
    let mut tasks = JoinSet::new();
    for (index, store) in stores.iter().cycle().take(count).enumerate() {
        let (start, task) = (start.clone(), task(store.clone(), index));
        tasks.spawn(async move {
            start.wait().await;
            task.await
        });
    }
    let mut results = Vec::new();
    while let Some(result) = tasks.join_next().await {
        results.push(result.map_err(|error| Failure(format!("a task ended early: {error}")))??);
    }
    Ok(results)
}
