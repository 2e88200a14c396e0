//! What crashed processes leave behind is cleared away; what living ones use is not.

use crate::{StoreLocation, grant, open_with, process, resource};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tenure::Client;
use tenure::core::rules::tasks::NewTask;
use tenure::core::{
    Change, Decision, EventKind, GrantId, Holder, NewEvent, Scope, Snapshot, Waiter, Want, Write,
};
use tenure::store::SqliteStore;
use tenure::store::{Store, StoreExt, Transaction};
use tenure::world::SystemClock;

async fn change(store: &SqliteStore, mut make: impl FnMut(&Snapshot) -> Change + Send + 'static) {
    let decide = move |seen: &Snapshot| {
        let event = NewEvent::new(None, "", None, EventKind::Waiting);
        Decision::Write(Change { events: vec![event], ..make(seen) })
    };
    store.transact(Transaction::new(Scope::Everything, decide)).await.unwrap();
}

/// Takes a place, for which a mailbox is needed.
async fn queue(store: &SqliteStore, grant: GrantId) {
    change(store, move |seen| {
        let waiter = Waiter {
            grant,
            ticket: seen.next,
            wants: vec![Want::exclusive(resource("a"))],
            holder: Holder::anonymous("somebody".to_owned()),
            operation: None,
            keeps: vec![],
            ttl: crate::HOUR,
        };
        Change { writes: vec![Write::Wait(waiter)], ..Change::default() }
    })
    .await;
}

fn mailboxes(place: &StoreLocation) -> usize {
    std::fs::read_dir(place.folder.path().join("store.db.side/wake")).unwrap().count()
}

/// Starts a process, which waits by now.
fn start_waiting(place: &StoreLocation) -> Child {
    let mut command = process("mailboxes::wait_until_killed", &place.path());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while lines.next().expect("the process ended early").unwrap() != "waiting" {}
    child
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Without anyone cleaning up: the turns that follow changes do it.
#[tokio::test]
async fn commands_remove_the_mailboxes_of_killed_processes() {
    let place = StoreLocation::new();
    kill(start_waiting(&place));
    assert_eq!(mailboxes(&place), 1);
    let store = Arc::new(open_with(&place.path(), Arc::new(SystemClock)).unwrap());
    let command = Client::builder().one_shot().with_store(store).unwrap();
    // A change of so many events is always followed by a turn.
    let task = |number| NewTask::titled(format!("task {number}"));
    command.tasks().add((0..600).map(task).collect()).await.unwrap();
    assert_eq!(mailboxes(&place), 0);
}

#[tokio::test]
async fn the_mailbox_of_a_killed_process_is_removed_and_that_of_a_living_one_kept() {
    let place = StoreLocation::new();
    let store = open_with(&place.path(), Arc::new(SystemClock)).unwrap();
    queue(&store, grant(1)).await;
    let child = start_waiting(&place);
    assert_eq!(mailboxes(&place), 2);
    assert_eq!(store.tidy().await.unwrap(), 0, "both still live");

    kill(child);
    let other = open_with(&place.path(), Arc::new(SystemClock)).unwrap();
    assert_eq!(other.tidy().await.unwrap(), 1);
    assert_eq!(mailboxes(&place), 1);
    change(&other, |_| Change { wake: vec![grant(1)], ..Change::default() }).await;
    let woken = store.turn(grant(1), Duration::MAX);
    tokio::time::timeout(Duration::from_secs(60), woken).await.expect("its mailbox works").unwrap();

    drop(store);
    assert_eq!(mailboxes(&place), 0, "a process that ends well takes its mailbox with it");
}

#[tokio::test]
#[ignore = "run as a process of its own by the test above"]
async fn wait_until_killed() {
    let store = open_with(&crate::given_store(), Arc::new(SystemClock)).unwrap();
    queue(&store, grant(2)).await;
    println!("\nwaiting");
    store.turn(grant(2), Duration::MAX).await.unwrap();
}
