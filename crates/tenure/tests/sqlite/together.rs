//! Changes that share a commit: what one that fails does to the others.

use crate::{StoreLocation, everything, grant, holding};
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tenure::core::rules::tasks::NewTask;
use tenure::core::{Decision, Holder, Scope, Snapshot, Status, TaskScope};
use tenure::store::{SqliteStore, Store, StoreError, TaskFilter, Transaction};
use tenure::{ClaimRequest, Finish, Wait, Work, blocking};

/// Holds this in a batch with whoever is ready; `twice` makes it fail after the first write.
async fn take(
    store: &SqliteStore,
    name: &str,
    number: u128,
    twice: bool,
) -> Result<(), StoreError> {
    let (resource, name) = (crate::resource(name), name.to_owned());
    let rule = move |seen: &Snapshot| {
        let holder = Holder::anonymous("somebody".to_owned());
        let mut change = holding(&name, grant(number), &holder, seen);
        change.durable = true;
        if twice {
            change.writes.push(change.writes[0].clone());
        }
        Decision::Write(change)
    };
    let scope = Scope::At { resources: vec![resource], ticket: None };
    store.transact(Transaction::new(scope, rule)).await.map(drop)
}

fn held(seen: &Snapshot) -> Vec<String> {
    seen.holds.iter().map(|seen| seen.hold.want.resource.to_string()).collect()
}

#[tokio::test]
async fn a_change_that_fails_halfway_leaves_nothing_and_says_so_to_all_of_its_batch() {
    let place = StoreLocation::new();
    let store = place.open();
    let (before, failed, after) = tokio::join!(
        take(&store, "before", 1, false),
        take(&store, "failing", 2, true),
        take(&store, "after", 3, false),
    );
    assert!(matches!(failed, Err(StoreError::Unavailable { .. })), "{failed:?}");
    // Whoever was told that it holds does, and nobody else.
    let mut expected = Vec::new();
    for (name, outcome) in [("before", before), ("after", after)] {
        if outcome.is_ok() {
            expected.push(name.to_owned());
        }
    }
    assert_eq!(held(&everything(&store).await), expected);
    // The store goes on, and so do others that share it.
    take(&place.open(), "elsewhere", 4, false).await.unwrap();
    take(&store, "later", 5, false).await.unwrap();
    expected.extend(["elsewhere".to_owned(), "later".to_owned()]);
    assert_eq!(held(&everything(&store).await), expected);
}

#[tokio::test]
async fn a_rule_that_panics_takes_nothing_with_it_but_its_batch() {
    let place = StoreLocation::new();
    let store = place.open();
    let scope = Scope::Tasks(TaskScope::default());
    let rule = |_: &Snapshot| -> Decision { panic!("a rule that panics, as this test wants") };
    let panicked = store.transact(Transaction::new(scope, rule)).await;
    assert!(matches!(panicked, Err(StoreError::Unknown { .. })), "{panicked:?}");
    take(&store, "after", 1, false).await.unwrap();
    take(&place.open(), "elsewhere", 2, false).await.unwrap();
    assert_eq!(held(&everything(&store).await), ["after", "elsewhere"]);
}

#[test]
fn whoever_comes_after_a_runtime_that_ended_is_served() {
    let place = StoreLocation::new();
    let store = place.open();
    let new_runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    // One that has ended starts no threads any more.
    let ended = new_runtime().unwrap().handle().clone();
    {
        let _inside = ended.enter();
        let lost = std::pin::pin!(take(&store, "lost", 1, false));
        let answer = lost.poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(answer, Poll::Ready(Err(StoreError::Unknown { .. }))), "{answer:?}");
    }
    new_runtime().unwrap().block_on(async {
        take(&store, "after", 2, false).await.unwrap();
        assert_eq!(held(&everything(&store).await), ["after"]);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_at_once_are_all_made_and_each_number_is_given_once() {
    let place = StoreLocation::new();
    let stores = [Arc::new(place.open()), Arc::new(place.open())];
    let mut running = tokio::task::JoinSet::new();
    for number in 1..=400 {
        let store = stores[number as usize % 2].clone();
        running.spawn(async move { take(&store, &format!("r{number}"), number, false).await });
    }
    for ended in running.join_all().await {
        ended.unwrap();
    }
    let seen = everything(&stores[0]).await;
    let tokens: HashSet<u64> = seen.holds.iter().map(|seen| seen.hold.token.0).collect();
    assert_eq!((seen.holds.len(), tokens.len()), (400, 400));
}

/// Threads that block make changes themselves where they can, and leave them to another thread where they
/// would have to wait: for each other here, and for a second client as for another process.
#[test]
fn each_task_is_done_once_by_threads_that_block() {
    const TASKS: usize = 120;
    let place = StoreLocation::new();
    let url = format!("sqlite:{}", place.path().display());
    let first = blocking::Client::open(&url).unwrap();
    let second = blocking::Client::open(&url).unwrap();
    let task = |number: usize| NewTask::new(format!("t{number}").parse().unwrap(), "a task");
    first.tasks().add((0..TASKS).map(task).collect()).unwrap();
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for client in [&first, &first, &first, &second] {
            scope.spawn(|| {
                let runner = client.runner(ClaimRequest::default());
                let work = |work: &Work| {
                    done.lock().unwrap().push(work.task().id.clone());
                    Finish::Complete { result: None }
                };
                runner.work(Wait::No, work).unwrap();
            });
        }
    });
    let done = done.into_inner().unwrap();
    assert_eq!(done.len(), TASKS, "every task is handed out once");
    assert_eq!(done.iter().collect::<HashSet<_>>().len(), TASKS, "none is handed out twice");
    let completed = |task: &tenure::core::Task| task.status == Status::Completed;
    let tasks = second.tasks().list(&TaskFilter::default()).unwrap();
    assert!(tasks.iter().all(completed), "each finish that was acknowledged is there");
}
