//! Waiting in line: in order, without end only where it can end, and without leaving traces.

use crate::{
    PATIENCE, Stores, events, held, is_busy, lease, on_every_store, resource, until_waiting,
};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure::core::{
    Blocker, Change, Decision, EventKind, Evidence, GrantId, Holder, NewEvent, Reason, Scope,
    Snapshot, Waiter, Want, WhyLeft, Write,
};
use tenure::server_support::platform::process_evidence;
use tenure::store::{Store, Transaction};
use tenure::{Attempt, Client, Error, Wait};

on_every_store!(
    those_who_wait_are_served_in_order,
    a_waiting_writer_is_not_starved_by_readers,
    whoever_gives_up_in_time_leaves_no_trace,
    a_dropped_request_leaves_its_place,
    whoever_waits_is_told_who_is_in_the_way,
    a_cycle_of_waits_is_refused_and_named,
    waiting_for_oneself_is_refused,
    a_wait_for_a_guard_of_the_same_client_is_warned_of,
    a_dead_process_is_replaced_at_once,
    a_dead_waiter_leaves_the_queue,
);

async fn those_who_wait_are_served_in_order(stores: &Stores) {
    const MANY: usize = 50;
    let clients = [stores.anonymous(), stores.anonymous(), stores.anonymous()];
    let first = clients[0].acquire("a").await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..MANY {
        let (client, order) = (clients[number % 3].clone(), order.clone());
        tasks.spawn(async move {
            let guard = client.acquire("a").await.unwrap();
            order.lock().unwrap().push(number);
            guard.release().await.unwrap();
        });
        until_waiting(&clients[0], number + 1).await;
    }
    first.release().await.unwrap();
    tasks.join_all().await;
    assert_eq!(*order.lock().unwrap(), (0..MANY).collect::<Vec<_>>());
}

async fn a_waiting_writer_is_not_starved_by_readers(stores: &Stores) {
    let (readers, writer) = (stores.anonymous(), stores.anonymous());
    let read = |wait| readers.request("a").shared().wait(wait).hold();
    let first = held(read(Wait::No).await.unwrap());
    let waiting = tokio::spawn(async move { writer.acquire("a").await });
    until_waiting(&readers, 1).await;
    assert!(matches!(read(Wait::No).await.unwrap(), Attempt::Busy(_)), "a reader overtook");
    let later = {
        let readers = readers.clone();
        tokio::spawn(async move { readers.request("a").shared().hold().await })
    };
    until_waiting(&readers, 2).await;
    first.release().await.unwrap();
    let wrote = waiting.await.unwrap().unwrap();
    wrote.release().await.unwrap();
    let read = held(later.await.unwrap().unwrap());
    read.release().await.unwrap();
}

async fn whoever_gives_up_in_time_leaves_no_trace(stores: &Stores) {
    let (one, other) = (stores.client("one"), stores.anonymous());
    let guard = one.acquire("a").await.unwrap();
    let attempt = other.acquire_within("a", Duration::from_millis(30)).await.unwrap();
    let Attempt::Busy(busy) = attempt else { panic!("it was held") };
    let [Blocker::Hold(blocker)] = busy.blockers.as_slice() else { panic!("{busy:?}") };
    assert_eq!(blocker.hold.holder.label, "one");
    assert!(busy.waited >= Duration::from_millis(30), "{:?}", busy.waited);
    assert_eq!(one.look_everywhere().await.unwrap().waiters, []);
    guard.release().await.unwrap();
    assert!(!is_busy(&other, "a").await);
}

async fn a_dropped_request_leaves_its_place(stores: &Stores) {
    let (one, other, third) = (stores.anonymous(), stores.anonymous(), stores.anonymous());
    let guard = one.acquire("a").await.unwrap();
    let dropped = tokio::spawn(async move { other.acquire("a").await });
    until_waiting(&one, 1).await;
    let next = tokio::spawn(async move { third.acquire("a").await });
    until_waiting(&one, 2).await;
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    until_waiting(&one, 1).await;
    guard.release().await.unwrap();
    next.await.unwrap().unwrap().release().await.unwrap();
}

async fn whoever_waits_is_told_who_is_in_the_way(stores: &Stores) {
    let (one, two, three) = (stores.client("one"), stores.client("two"), stores.client("three"));
    let guard = one.request("a").operation("deploy").hold().await.unwrap();
    let second = tokio::spawn(async move { two.acquire("a").await });
    until_waiting(&one, 1).await;
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let request = three.request("a").on_wait(move |waiting| drop(tell.send(waiting.clone())));
    let third = tokio::spawn(request.hold());
    let waiting = told.recv().await.unwrap();
    assert_eq!(waiting.ahead, Some(1));
    let [Blocker::Hold(hold), Blocker::Waiter(before)] = waiting.blockers.as_slice() else {
        panic!("{waiting:?}")
    };
    assert_eq!(hold.hold.operation.as_deref(), Some("deploy"));
    assert_eq!(
        (hold.hold.holder.label.as_str(), before.waiter.holder.label.as_str()),
        ("one", "two")
    );
    drop(guard);
    second.await.unwrap().unwrap().release().await.unwrap();
    held(third.await.unwrap().unwrap()).release().await.unwrap();
}

async fn a_cycle_of_waits_is_refused_and_named(stores: &Stores) {
    let (alice, bob) = (stores.client("alice"), stores.client("bob"));
    let a = alice.acquire("a").await.unwrap();
    let b = bob.acquire("b").await.unwrap();
    let request = alice.request("b").while_holding(a.grant());
    let waiting = tokio::spawn(request.hold());
    until_waiting(&bob, 1).await;
    let refused = bob.request("a").while_holding(b.grant()).hold().await;
    let Err(Error::Deadlock(cycle)) = refused else { panic!("{refused:?}") };
    let named = cycle.to_string();
    for part in ["alice", "bob", "a (", "b ("] {
        assert!(named.contains(part), "{named}");
    }
    until_waiting(&bob, 1).await;
    let events = bob.events(Default::default(), 99).await.unwrap();
    assert_eq!(events.last().unwrap().event.kind, EventKind::Deadlock);
    // Whoever was refused gives way, and the other goes on.
    b.release().await.unwrap();
    held(waiting.await.unwrap().unwrap()).release().await.unwrap();
}

async fn waiting_for_oneself_is_refused(stores: &Stores) {
    let one = stores.client("one");
    let guard = one.acquire("a").await.unwrap();
    let refused = one.request("a").while_holding(guard.grant()).hold().await;
    let Err(Error::Deadlock(cycle)) = refused else { panic!("{refused:?}") };
    assert_eq!(cycle.steps.len(), 1);
    assert_eq!(one.look_everywhere().await.unwrap().waiters, []);
    // The same through a path that overlaps.
    let path = held(one.try_acquire("path:src/**").await.unwrap());
    let refused = one.request("path:src/a.rs").while_holding(path.grant()).hold().await;
    assert!(matches!(refused, Err(Error::Deadlock(_))), "{refused:?}");
}

async fn a_dead_process_is_replaced_at_once(stores: &Stores) {
    let (one, other) = (stores.anonymous(), stores.anonymous());
    let mut worker = Command::new("sleep").arg("1000").spawn().unwrap();
    let long = Duration::from_secs(24 * 3600);
    lease(one.request("a").for_process(worker.id()).ttl(long)).await;
    let waiting = tokio::spawn(async move { other.acquire("a").await });
    until_waiting(&one, 1).await;
    worker.kill().unwrap();
    worker.wait().unwrap();
    let guard = waiting.await.unwrap().unwrap();
    assert_eq!(guard.lease().reason, Reason::ClaimedDead);
}

async fn a_dead_waiter_leaves_the_queue(stores: &Stores) {
    let (one, last) = (stores.anonymous(), stores.anonymous());
    let guard = one.acquire("a").await.unwrap();
    let mut worker = Command::new("sleep").arg("1000").spawn().unwrap();
    queue_as(&*stores.handle(), process_evidence(worker.id()).unwrap()).await;
    let last = tokio::spawn(async move { last.acquire("a").await });
    until_waiting(&one, 2).await;
    worker.kill().unwrap();
    worker.wait().unwrap();
    guard.release().await.unwrap();
    last.await.unwrap().unwrap().release().await.unwrap();
    assert_eq!(one.look_everywhere().await.unwrap().waiters, []);
    let died = EventKind::Left { why: WhyLeft::Died };
    assert!(events(&one).await.contains(&died));
}

/// Takes a place, for longer than the test waits, in the name of this process.
async fn queue_as(store: &dyn Store, evidence: Evidence) {
    let decide = move |seen: &Snapshot| {
        let waiter = Waiter {
            grant: GrantId::random(),
            ticket: seen.next,
            wants: vec![Want::exclusive(resource("a"))],
            holder: Holder::anonymous("worker".to_owned()).with_evidence(evidence.clone()),
            operation: None,
            keeps: vec![],
            ttl: 2 * PATIENCE,
        };
        let event = NewEvent::new(Some(resource("a")), "worker", None, EventKind::Waiting);
        let writes = vec![Write::Wait(waiter)];
        Decision::Write(Change { writes, events: vec![event], ..Change::default() })
    };
    store.transact(Transaction::new(Scope::Everything, decide)).await.unwrap();
}

async fn a_wait_for_a_guard_of_the_same_client_is_warned_of(stores: &Stores) {
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let telling = move |warning: &str| tell.send(warning.to_owned()).unwrap();
    let one = Client::builder().on_warning(telling).with_store(stores.handle()).unwrap();
    let first = one.acquire("a").await.unwrap();
    let limited = one.acquire_within("a", Duration::from_millis(10)).await.unwrap();
    assert!(matches!(limited, Attempt::Busy(_)), "guards of one client exclude each other");
    assert!(told.try_recv().is_err(), "a limit is honoured, and ends the wait");
    let second = tokio::spawn({
        let one = one.clone();
        async move { one.acquire("a").await }
    });
    let warning = told.recv().await.unwrap();
    assert!(warning.contains("a guard of this client holds"), "{warning}");
    first.release().await.unwrap();
    second.await.unwrap().unwrap().release().await.unwrap();
}
