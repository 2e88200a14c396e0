//! Whoever loses a lease is told, whatever the store does; and nobody keeps one by accident.

use crate::faulty::{ALWAYS, Faulty};
use crate::{Stores, ensure_becomes_free, events, held, on_every_store};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenure::world::{ManualClock, SystemWorld};
use tenure::{Client, GUARD_LEASE, ReleaseOutcome, Wait};

on_every_store!(
    whoever_is_broken_is_told,
    a_store_that_fails_costs_the_lease_in_time,
    a_store_that_does_not_answer_costs_the_lease_in_time,
    passing_trouble_costs_nothing,
    a_renewal_that_is_late_is_warned_of_once,
    nobody_renews_for_a_guard_that_is_gone,
    a_lease_without_a_guard_runs_out,
    sleep_costs_a_lease_of_another_machine_and_none_of_this_one,
    a_guard_that_was_lost_is_not_recorded_as_released,
);

/// A lease short enough to be waited for.
const SHORT: Duration = Duration::from_millis(400);

async fn whoever_is_broken_is_told(stores: &Stores) {
    let store = Faulty::new(stores.handle());
    let one = Client::builder().with_store(store.clone()).unwrap();
    let operator = stores.anonymous();
    // A lease so long that no renewal tells the loss.
    let guard = held(one.request("a").ttl(Duration::from_secs(3600)).hold().await.unwrap());
    let other = held(one.request("b").hold().await.unwrap());
    operator.break_hold("a", guard.token(), "stuck").await.unwrap();
    guard.lost().await;
    assert!(!guard.is_held() && guard.trusted_for().is_zero());
    assert!(other.is_held(), "only one was broken");
    let losses = store.losses.load(Ordering::SeqCst);
    assert!(losses <= 1, "it was told {losses} times that it is lost, and went on");
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::Lost);
}

async fn a_store_that_fails_costs_the_lease_in_time(stores: &Stores) {
    let store = Faulty::new(stores.handle());
    let one = Client::builder().with_store(store.clone()).unwrap();
    let guard = held(one.request("a").ttl(SHORT).hold().await.unwrap());
    store.failing_renewals.store(ALWAYS, Ordering::SeqCst);
    store.failing_changes.store(ALWAYS, Ordering::SeqCst);
    guard.lost().await;
    assert!(!guard.is_held());
    // Once lost it stays lost, even if the store comes back before the lease has run out.
    store.failing_renewals.store(0, Ordering::SeqCst);
    guard.lost().await;
    assert!(!guard.is_held());
}

async fn a_store_that_does_not_answer_costs_the_lease_in_time(stores: &Stores) {
    let store = Faulty::new(stores.handle());
    let one = Client::builder().with_store(store.clone()).unwrap();
    let guard = held(one.request("a").ttl(SHORT).hold().await.unwrap());
    let silence = store.fall_silent();
    guard.lost().await;
    assert!(!guard.is_held());
    drop(silence);
}

async fn passing_trouble_costs_nothing(stores: &Stores) {
    let store = Faulty::new(stores.handle());
    let one = Client::builder().with_store(store.clone()).unwrap();
    let guard = held(one.request("a").ttl(Duration::from_secs(3)).hold().await.unwrap());
    store.failing_renewals.store(2, Ordering::SeqCst);
    while store.renewals.load(Ordering::SeqCst) == 0 {
        assert!(guard.is_held());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(store.failing_renewals.load(Ordering::SeqCst), 0, "two renewals failed");
    assert!(guard.is_held());
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::Released);
}

async fn a_renewal_that_is_late_is_warned_of_once(stores: &Stores) {
    let store = Faulty::new(stores.handle());
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let telling = move |warning: &str| tell.send(warning.to_owned()).unwrap();
    let one = Client::builder().on_warning(telling).with_store(store.clone()).unwrap();
    let guard = held(one.request("a").ttl(Duration::from_secs(3)).hold().await.unwrap());
    store.failing_renewals.store(ALWAYS, Ordering::SeqCst);
    let warning = told.recv().await.unwrap();
    assert!(warning.starts_with("the renewal of a is late: it was renewed 1."), "{warning}");
    assert!(warning.contains(" ago for 3s") && warning.ends_with("told to"), "{warning}");
    store.failing_renewals.store(0, Ordering::SeqCst);
    let renewed = store.renewals.load(Ordering::SeqCst);
    while store.renewals.load(Ordering::SeqCst) < renewed + 2 {
        assert!(guard.is_held());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(told.try_recv().is_err(), "it is warned of once, and renewals in time are not");
    // A store that does not answer is another reason, and told anew.
    let silence = store.fall_silent();
    let warning = told.recv().await.unwrap();
    assert!(warning.ends_with("the store does not answer"), "{warning}");
    drop(silence);
}

async fn nobody_renews_for_a_guard_that_is_gone(stores: &Stores) {
    let store = Faulty::new(stores.handle());
    let one = Client::builder().with_store(store.clone()).unwrap();
    let guard = held(one.request("a").ttl(SHORT).hold().await.unwrap());
    let kept = held(one.request("b").ttl(SHORT).hold().await.unwrap());
    // It cannot even be released: only an end to its renewals ends it.
    store.failing_changes.store(ALWAYS, Ordering::SeqCst);
    drop(guard);
    ensure_becomes_free(&stores.anonymous(), "a").await;
    assert!(store.renewals.load(Ordering::SeqCst) > 0, "the other one was renewed meanwhile");
    drop(kept);
}

async fn a_lease_without_a_guard_runs_out(stores: &Stores) {
    let (one, other) = (stores.anonymous(), stores.anonymous());
    crate::lease(one.request("a").ttl(SHORT)).await;
    let guard = held(other.request("a").wait(Wait::Forever).hold().await.unwrap());
    assert_eq!(guard.lease().reason, tenure::core::Reason::ClaimedExpired);
}

async fn sleep_costs_a_lease_of_another_machine_and_none_of_this_one(stores: &Stores) {
    for is_far in [false, true] {
        let store = Faulty::new(stores.handle());
        store.is_far.store(is_far, Ordering::SeqCst);
        let clock = Arc::new(ManualClock::new());
        let one = Client::builder()
            .world(SystemWorld::new().with_clock(clock.clone()))
            .with_store(store)
            .unwrap();
        let guard = held(one.request("a").hold().await.unwrap());
        clock.suspend(GUARD_LEASE);
        assert_eq!(guard.is_held(), !is_far, "on another machine: {is_far}");
        if is_far {
            guard.lost().await;
        }
        let _ = guard.release().await.unwrap();
    }
}

async fn a_guard_that_was_lost_is_not_recorded_as_released(stores: &Stores) {
    let clock = Arc::new(ManualClock::new());
    let one = Client::builder()
        .world(SystemWorld::new().with_clock(clock.clone()))
        .with_store(stores.handle())
        .unwrap();
    let guard = held(one.request("a").hold().await.unwrap());
    // It trusts its lease no longer, although the store would: it was stopped for almost as long.
    clock.advance(GUARD_LEASE);
    guard.lost().await;
    drop(guard);
    let other = stores.anonymous();
    ensure_becomes_free(&other, "a").await;
    let ends: Vec<_> = events(&other).await.into_iter().map(|kind| kind.word()).collect();
    assert_eq!(ends, ["acquired", "lapsed"]);
}
