//! Ends that must not hurt others: of one of two guards of a grant, and of a client whose store
//! hangs.

use crate::faulty::Faulty;
use crate::{Stores, ensure_becomes_free, held};
use std::time::Duration;
use tenure::{Client, Wait};

/// Two guards of one grant share its hold, but the first that ends releases it for both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_guard_trusts_what_another_of_its_grant_released() {
    let stores = Stores::memory();
    let (one, other) = (stores.anonymous(), stores.anonymous());
    let outer = one.acquire("a").await.unwrap();
    let inner = one.request("a").with_grant(outer.grant()).wait(Wait::No).hold().await.unwrap();
    drop(inner);
    // Either the outer one keeps it, or it knows that it does not.
    if outer.is_held() {
        tokio::time::timeout(Duration::from_millis(300), ensure_becomes_free(&other, "a"))
            .await
            .expect_err("it became free while the outer guard trusted it");
    }
}

/// Whoever lost a lease because the store hangs must be able to end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_does_not_answer_does_not_keep_a_client_from_ending() {
    let stores = Stores::memory();
    let store = Faulty::new(stores.handle());
    let one = Client::builder().with_store(store.clone()).unwrap();
    let short = Duration::from_millis(400);
    let guard = held(one.request("a").ttl(short).hold().await.unwrap());
    let silence = store.fall_silent();
    guard.lost().await;
    let ending = tokio::task::spawn_blocking(move || drop((guard, one)));
    let ended = tokio::time::timeout(Duration::from_secs(10), ending).await;
    drop(silence);
    assert!(ended.is_ok(), "it waited for the store");
}
