//! Workers for which no task is ready: changes that make none ready do not make them ask again.

use crate::faulty::Faulty;
use crate::{PATIENCE, Stores, on_every_store};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenure::core::rules::tasks::NewTask;
use tenure::{ClaimRequest, Claims, Client, Finish, Next, NoClaim, Runner, Wait};

on_every_store!(
    changes_of_locks_wake_no_idle_worker,
    a_claim_for_a_section_ends_when_nothing_is_left_there,
    a_worker_of_a_section_waits_for_new_tasks,
);

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

fn of_section(name: &str) -> ClaimRequest {
    ClaimRequest { section: Some(name.to_owned()), ..ClaimRequest::default() }
}

fn in_section(title: &str) -> NewTask {
    NewTask { section: Some("s".to_owned()), ..NewTask::titled(title) }
}

/// It waits while another works there, and no longer.
async fn a_claim_for_a_section_ends_when_nothing_is_left_there(stores: &Stores) {
    let (worker, waiter) = (stores.client("worker"), stores.client("waiter"));
    worker.tasks().add(vec![in_section("one")]).await.unwrap();
    let runner = Runner::new(&worker, of_section("s"));
    let Next::Work(work) = runner.next(Wait::No).await.unwrap() else { panic!("it is ready") };
    let waits = Arc::new(tokio::sync::Notify::new());
    let told = waits.clone();
    let claim = tokio::spawn(async move {
        let claim = waiter.tasks().request(of_section("s")).wait(Wait::Forever);
        let go_on = move |_| {
            told.notify_one();
            std::future::ready(Ok::<_, tenure::Error>(true))
        };
        claim.take_while(go_on).await
    });
    waits.notified().await;
    runner.finish(work, Finish::Complete { result: None }).await.unwrap();
    let claimed = claim.await.unwrap().unwrap();
    assert!(matches!(claimed, Claims::None(NoClaim::NothingReady)));
}

async fn a_worker_of_a_section_waits_for_new_tasks(stores: &Stores) {
    let (adder, store) = (stores.client("adder"), Faulty::new(stores.handle()));
    let idle = Client::builder().label("idle").with_store(store.clone()).unwrap();
    let next = tokio::spawn(async move {
        let runner = Runner::new(&idle, of_section("s"));
        let Next::Work(work) = runner.next(Wait::Forever).await.unwrap() else { return false };
        runner.finish(work, Finish::Complete { result: None }).await.unwrap();
        true
    });
    // It has looked, and found the section empty.
    until(|| store.changes.load(Ordering::SeqCst) > 0).await;
    adder.tasks().add(vec![in_section("one")]).await.unwrap();
    assert!(next.await.unwrap(), "it ended before the task came");
}
