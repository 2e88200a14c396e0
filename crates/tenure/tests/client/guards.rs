//! A guard holds as long as it lives, and not longer.

use crate::{PATIENCE, Stores, ensure_becomes_free, events, held, is_busy, on_every_store};
use tenure::blocking::{self, Attempt};
use tenure::core::EventKind;
use tenure::{Client, Guard, ReleaseOutcome};

on_every_store!(
    a_guard_holds_until_it_is_dropped,
    a_guard_that_is_released_says_so,
    a_guard_that_was_broken_says_so_on_release,
    a_guard_outlives_its_client,
);

/// Holds it for longer than the test waits, so that only a release frees it.
async fn hold_long(client: &Client) -> Guard {
    held(client.request("a").ttl(2 * PATIENCE).hold().await.unwrap())
}

async fn a_guard_holds_until_it_is_dropped(stores: &Stores) {
    let (one, other) = (stores.anonymous(), stores.anonymous());
    let guard = hold_long(&one).await;
    assert!(guard.is_held() && !guard.trusted_for().is_zero());
    assert!(is_busy(&other, "a").await);
    drop(guard);
    ensure_becomes_free(&other, "a").await;
    held(other.try_acquire("a").await.unwrap()).release().await.unwrap();
}

async fn a_guard_that_is_released_says_so(stores: &Stores) {
    let (one, other) = (stores.anonymous(), stores.anonymous());
    let guard = one.acquire("a").await.unwrap();
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::Released);
    let guard = held(other.try_acquire("a").await.unwrap());
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::Released);
    let expected = [
        EventKind::Acquired { operation: None },
        EventKind::Released,
        EventKind::Acquired { operation: None },
        EventKind::Released,
    ];
    assert_eq!(events(&one).await, expected);
}

async fn a_guard_that_was_broken_says_so_on_release(stores: &Stores) {
    let (one, other) = (stores.anonymous(), stores.anonymous());
    let guard = one.acquire("a").await.unwrap();
    other.break_hold("a", guard.token(), "stuck").await.unwrap();
    let successor = held(other.try_acquire("a").await.unwrap());
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::Lost);
    assert!(is_busy(&one, "a").await, "a late release must not end the successor's hold");
    drop(successor);
}

async fn a_guard_outlives_its_client(stores: &Stores) {
    let (one, other) = (stores.anonymous(), stores.anonymous());
    let guard = hold_long(&one).await;
    drop(one);
    assert!(guard.is_held() && is_busy(&other, "a").await);
    drop(guard);
    ensure_becomes_free(&other, "a").await;
}

#[test]
fn a_blocking_guard_is_released_when_its_drop_returns() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = format!("sqlite:{}", folder.path().join("store.db").display());
    for url in [sqlite.as_str(), "memory:"] {
        let client = blocking::Client::open(url).unwrap();
        // Whoever uses the memory of another process does not see its locks.
        let other = match url {
            "memory:" => client.clone(),
            _ => blocking::Client::open(url).unwrap(),
        };
        for _ in 0..20 {
            let guard = client.acquire("a").unwrap();
            assert!(matches!(other.try_acquire("a").unwrap(), Attempt::Busy(_)), "{url}");
            drop(guard);
            let Attempt::Held(guard) = other.try_acquire("a").unwrap() else {
                panic!("{url}: it was still held after the drop")
            };
            assert_eq!(guard.release().unwrap(), ReleaseOutcome::Released);
        }
    }
}
