//! Who shares with whom: readers, slots, several resources at once, and nobody by accident.

use crate::{Stores, held, is_busy, lease, on_every_store, resource, until_waiting};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tenure::core::{Mode, Reason, ResourceError};
use tenure::{Attempt, Client, Error, Free, Guard, Wait};

on_every_store!(
    clients_without_labels_never_share,
    grants_of_one_label_do_not_share,
    the_same_grant_renews_what_it_holds,
    readers_share_and_writers_do_not,
    so_many_hold_as_there_are_slots,
    several_resources_are_taken_all_or_nothing,
    opposite_orders_do_not_lock_each_other_out,
    overlapping_paths_exclude_each_other_and_others_do_not,
);

async fn clients_without_labels_never_share(stores: &Stores) {
    let (one, other) = (stores.anonymous(), stores.anonymous());
    assert!(!one.holder().chosen && !other.holder().chosen);
    let guard = one.acquire("a").await.unwrap();
    assert!(is_busy(&other, "a").await);
    assert!(is_busy(&one, "a").await, "not even with itself, by another grant");
    assert!(guard.is_held());
}

async fn grants_of_one_label_do_not_share(stores: &Stores) {
    let (one, other) = (stores.client("agent"), stores.client("agent"));
    let guard = one.acquire("a").await.unwrap();
    assert!(is_busy(&other, "a").await, "the same label is not the same holder");
    assert!(is_busy(&one, "a").await);
    drop(guard);
}

async fn the_same_grant_renews_what_it_holds(stores: &Stores) {
    let (one, other) = (stores.anonymous(), stores.anonymous());
    let first = lease(one.request("a").also("b").ttl(Duration::from_secs(60))).await;
    assert_eq!(first.reason, Reason::AcquiredNew);
    let again = one.request("b").also("a").ttl(Duration::from_secs(900)).with_grant(first.grant);
    let again = lease(again).await;
    assert_eq!((again.reason, again.token), (Reason::AlreadyOwned, first.token));
    let seen = other.look(&[resource("a"), resource("b")]).await.unwrap();
    assert_eq!(seen.holds.len(), 2);
    assert!(seen.holds.iter().all(|seen| seen.left > Duration::from_secs(60)), "{seen:?}");
    // More than it holds is not a renewal: it begins anew with another token.
    let more = lease(one.request("a").also("c").with_grant(first.grant)).await;
    assert!(more.token > first.token);
}

async fn share(client: &Client, mode: Mode) -> Attempt {
    client.request("a").mode(mode).wait(Wait::No).hold().await.unwrap()
}

async fn readers_share_and_writers_do_not(stores: &Stores) {
    let clients = [stores.anonymous(), stores.anonymous(), stores.anonymous()];
    let readers: Vec<Guard> = [
        held(share(&clients[0], Mode::Shared).await),
        held(share(&clients[1], Mode::Shared).await),
        held(share(&clients[0], Mode::Shared).await),
    ]
    .into();
    assert!(matches!(share(&clients[2], Mode::Exclusive).await, Attempt::Busy(_)));
    for reader in readers {
        reader.release().await.unwrap();
    }
    let writer = held(share(&clients[2], Mode::Exclusive).await);
    assert!(matches!(share(&clients[0], Mode::Shared).await, Attempt::Busy(_)));
    drop(writer);
}

async fn so_many_hold_as_there_are_slots(stores: &Stores) {
    const SLOTS: u32 = 3;
    let clients = [stores.anonymous(), stores.anonymous()];
    let (holding, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..12 {
        let client = clients[number % 2].clone();
        let (holding, most) = (holding.clone(), most.clone());
        tasks.spawn(async move {
            let guard = held(client.request("a").slots(SLOTS).hold().await.unwrap());
            most.fetch_max(holding.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(5)).await;
            holding.fetch_sub(1, Ordering::SeqCst);
            guard.release().await.unwrap();
        });
    }
    tasks.join_all().await;
    let most = most.load(Ordering::SeqCst);
    assert!((1..=SLOTS).contains(&most), "{most} held {SLOTS} slots at once");

    let mut guards = Vec::new();
    for _ in 0..SLOTS {
        guards.push(held(share(&clients[0], Mode::Slot { of: SLOTS }).await));
    }
    let full = share(&clients[1], Mode::Slot { of: SLOTS }).await;
    assert!(matches!(full, Attempt::Busy(_)), "{full:?}");
    guards.pop().unwrap().release().await.unwrap();
    held(share(&clients[1], Mode::Slot { of: SLOTS }).await).release().await.unwrap();
}

async fn several_resources_are_taken_all_or_nothing(stores: &Stores) {
    let (one, other) = (stores.anonymous(), stores.anonymous());
    let b = one.acquire("b").await.unwrap();
    let request = other.request("a").also("b").also("c").wait(Wait::No);
    let Attempt::Busy(busy) = request.hold().await.unwrap() else { panic!("b was held") };
    assert_eq!(busy.blockers.len(), 1);
    for free in ["a", "c"] {
        held(one.try_acquire(free).await.unwrap()).release().await.unwrap();
    }
    // While it waits for all, it has none.
    let waiting = tokio::spawn(async move { other.request("a").also("b").hold().await });
    until_waiting(&one, 1).await;
    let seen = one.look_everywhere().await.unwrap();
    assert_eq!(seen.holds.len(), 1, "only b is held: {:?}", seen.holds);
    b.release().await.unwrap();
    let both = held(waiting.await.unwrap().unwrap());
    let seen = one.look_everywhere().await.unwrap();
    assert!(seen.holds.iter().all(|seen| seen.hold.token == both.token()), "{seen:?}");
    assert_eq!((seen.holds.len(), seen.waiters.len()), (2, 0));
}

async fn opposite_orders_do_not_lock_each_other_out(stores: &Stores) {
    let mut tasks = tokio::task::JoinSet::new();
    for (first, second) in [("a", "b"), ("b", "a"), ("a", "b"), ("b", "a")] {
        let client = stores.anonymous();
        tasks.spawn(async move {
            for _ in 0..10 {
                let guard = held(client.request(first).also(second).hold().await.unwrap());
                guard.release().await.unwrap();
            }
        });
    }
    tasks.join_all().await;
}

async fn overlapping_paths_exclude_each_other_and_others_do_not(stores: &Stores) {
    let (one, other) = (stores.anonymous(), stores.anonymous());
    let guard = one.acquire("path:src/**").await.unwrap();
    assert!(is_busy(&other, "path:src/main.rs").await);
    assert!(is_busy(&other, "path:**/*.rs").await);
    held(other.try_acquire("path:docs/**").await.unwrap()).release().await.unwrap();
    held(other.try_acquire("lock:src/**").await.unwrap()).release().await.unwrap();
    // Without a kind it would be that lock, beside the path.
    let refused = other.try_acquire("src/**").await.map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::Resource(ResourceError::LooksLikePath { .. })), "{refused}");
    // To wait for a path is to wait for what overlaps it, not for any path.
    let free = other.wait_until_free("path:docs/a.md", Wait::No).await.unwrap();
    assert_eq!(free, Free::Free);
    let busy = other.wait_until_free("path:src/lib.rs", Wait::No).await.unwrap();
    assert!(matches!(busy, Free::Busy(_)), "{busy:?}");
    drop(guard);
}
