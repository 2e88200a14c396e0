//! Workers for which no task is ready: changes that make none ready do not make them ask again.

use crate::faulty::Faulty;
use crate::{PATIENCE, Stores, on_every_store};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenure::core::rules::tasks::NewTask;
use tenure::{Claims, Client, Wait};

on_every_store!(changes_of_locks_wake_no_idle_worker);

async fn changes_of_locks_wake_no_idle_worker(stores: &Stores) {
    let (other, store) = (stores.client("other"), Faulty::new(stores.handle()));
    let idle = Client::builder().label("idle").with_store(store.clone()).unwrap();
    let claim = tokio::spawn(async move {
        let claim = idle.tasks().request(Default::default());
        claim.wait(Wait::UpTo(PATIENCE)).look_every(PATIENCE).take().await
    });
    // It asks in vain until it sleeps; what happens then, it looks at.
    while store.looks_at_events.load(Ordering::SeqCst) == 0 {
        other.acquire("a").await.unwrap().release().await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let before = store.changes.load(Ordering::SeqCst);
    for _ in 0..10 {
        change_a_lock(&other, &store).await;
    }
    assert_eq!(store.changes.load(Ordering::SeqCst), before, "it asked again");
    other.tasks().add(vec![NewTask::titled("one")]).await.unwrap();
    let claimed = claim.await.unwrap().unwrap();
    assert!(matches!(claimed, Claims::Claimed { tasks, .. } if tasks.len() == 1));
}

/// Takes and releases a lock, and waits until the worker has read what happened.
async fn change_a_lock(client: &Client, store: &Arc<Faulty>) {
    let before = store.looks_at_events.load(Ordering::SeqCst);
    client.acquire("a").await.unwrap().release().await.unwrap();
    until(|| store.looks_at_events.load(Ordering::SeqCst) > before).await;
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
