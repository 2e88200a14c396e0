//! When it is not known whether a change was made, it is made once.

use crate::faulty::{ALWAYS, Faulty};
use crate::{Stores, events, held, on_every_store, until_waiting};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tenure::core::rules::tasks::{Added, NewTask};
use tenure::core::text::PAYLOAD_MAX;
use tenure::core::{EventKind, Reason};
use tenure::store::StoreError;
use tenure::{ClaimRequest, Claims, Client, Error, Finish, Swarm, Work};

on_every_store!(
    a_grant_whose_answer_was_lost_is_recognised,
    a_place_whose_answer_was_lost_is_recognised,
    a_place_far_back_whose_answer_was_lost_is_recognised,
    a_store_that_never_answers_clearly_is_reported,
    a_store_that_fails_is_reported_and_nothing_is_held,
    a_task_whose_adding_was_not_answered_is_there_once,
    a_claim_that_fails_takes_nothing,
    a_result_that_is_too_long_fails_its_own_task,
);

fn keyed() -> Vec<NewTask> {
    vec![NewTask { key: Some("k".to_owned()), ..NewTask::new("t".parse().unwrap(), "T") }]
}

/// Changes to tasks of several callers share a commit in some stores: they fail in the same way.
async fn a_task_whose_adding_was_not_answered_is_there_once(stores: &Stores) {
    let store = Faulty::new(stores.handle());
    let one = Client::builder().with_store(store.clone()).unwrap();
    store.unknown_changes.store(1, Ordering::SeqCst);
    let error = one.tasks().add(keyed()).await.unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::Unknown { .. })), "{error:?}");
    let added = one.tasks().add(keyed()).await.unwrap();
    assert_eq!(added, [Added::Existing("t".parse().unwrap())]);
    assert_eq!(events(&one).await, [EventKind::Added]);
}

async fn a_claim_that_fails_takes_nothing(stores: &Stores) {
    let store = Faulty::new(stores.handle());
    let one = Client::builder().label("w").with_store(store.clone()).unwrap();
    one.tasks().add(keyed()).await.unwrap();
    store.failing_changes.store(ALWAYS, Ordering::SeqCst);
    one.tasks().claim(&ClaimRequest::default()).await.unwrap_err();
    store.failing_changes.store(0, Ordering::SeqCst);
    assert_eq!(one.look_everywhere().await.unwrap().holds, []);
    let claimed = one.tasks().claim(&ClaimRequest::default()).await.unwrap();
    assert!(matches!(claimed, Claims::Claimed { .. }), "{claimed:?}");
    assert_eq!(events(&one).await.len(), 2);
}

async fn a_result_that_is_too_long_fails_its_own_task(stores: &Stores) {
    let client = stores.anonymous();
    let task = |id: &str| NewTask::new(id.parse().unwrap(), id);
    client.tasks().add(vec![task("long"), task("short")]).await.unwrap();
    let swarm = Swarm::new(&client, ClaimRequest::default());
    let work = |work: Arc<Work>| async move {
        let length = if work.task().id.as_str() == "long" { PAYLOAD_MAX } else { 1 };
        Finish::completed_with(&"x".repeat(length)).unwrap()
    };
    let report = swarm.run(work, |_| {}).await.unwrap();
    assert_eq!((report.completed, report.failed), (1, 1));
    let failed = client.tasks().get(&"long".parse().unwrap()).await.unwrap().unwrap();
    let expected = "the result has 300002 characters; the most allowed is 300000";
    assert_eq!(failed.error.as_deref(), Some(expected));
}

async fn a_grant_whose_answer_was_lost_is_recognised(stores: &Stores) {
    let store = Faulty::new(stores.handle());
    let one = Client::builder().with_store(store.clone()).unwrap();
    store.unknown_changes.store(2, Ordering::SeqCst);
    let guard = held(one.request("a").also("b").hold().await.unwrap());
    assert_eq!(guard.lease().reason, Reason::AlreadyOwned);
    let seen = stores.anonymous().look_everywhere().await.unwrap();
    assert_eq!(seen.holds.len(), 2);
    assert!(seen.holds.iter().all(|seen| seen.hold.token == guard.token()));
    assert_eq!(events(&one).await, vec![EventKind::Acquired { operation: None }; 2]);
}

async fn a_place_whose_answer_was_lost_is_recognised(stores: &Stores) {
    ensure_one_place(stores, 1).await;
}

async fn a_place_far_back_whose_answer_was_lost_is_recognised(stores: &Stores) {
    ensure_one_place(stores, 30).await;
}

/// Queues behind so many others, without hearing that it did, and shows that it has one place.
async fn ensure_one_place(stores: &Stores, others: usize) {
    let (holder, scope) = (stores.anonymous(), stores.anonymous());
    let guard = holder.acquire("a").await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..others {
        let client = holder.clone();
        tasks.spawn(async move { client.acquire("a").await.unwrap().release().await.unwrap() });
        until_waiting(&scope, number + 1).await;
    }
    let store = Faulty::new(stores.handle());
    let one = Client::builder().with_store(store.clone()).unwrap();
    store.unknown_changes.store(1, Ordering::SeqCst);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let request = one.request("a").on_wait(move |_| tell.send(()).unwrap_or_default());
    let waiting = tokio::spawn(request.hold());
    told.recv().await.unwrap();
    let seen = scope.look_everywhere().await.unwrap();
    assert_eq!(seen.waiters.len(), others + 1, "it queued twice");
    guard.release().await.unwrap();
    tasks.join_all().await;
    held(waiting.await.unwrap().unwrap()).release().await.unwrap();
    assert_eq!(scope.look_everywhere().await.unwrap().waiters, []);
}

async fn a_store_that_never_answers_clearly_is_reported(stores: &Stores) {
    let store = Faulty::new(stores.handle());
    let one = Client::builder().with_store(store.clone()).unwrap();
    store.unknown_changes.store(ALWAYS, Ordering::SeqCst);
    let error = one.acquire("a").await.unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::Unknown { .. })), "{error:?}");
}

async fn a_store_that_fails_is_reported_and_nothing_is_held(stores: &Stores) {
    let store = Faulty::new(stores.handle());
    let one = Client::builder().with_store(store.clone()).unwrap();
    store.failing_changes.store(1, Ordering::SeqCst);
    let error = one.acquire("a").await.unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::Unavailable { .. })), "{error:?}");
    assert_eq!(one.look_everywhere().await.unwrap().holds, []);
    held(one.try_acquire("a").await.unwrap()).release().await.unwrap();
}
