//! Leases and looks that are used again: only where that is surely right.

use crate::acts::*;
use crate::kit::{open_used, raw};
use std::sync::Arc;
use std::time::Duration;
use tenure::core::rules;
use tenure::core::{
    Ask, GrantId, NoWitness, Outcome, Proof, ReleaseAsk, Scope, Snapshot, Token, Want,
};
use tenure::store::{Renewal, Renewed, Store, StoreExt, transact_with};
use tenure_testkit::etcd::fresh_url;

async fn two_handles() -> (String, [Arc<dyn Store>; 2]) {
    let url = fresh_url();
    let stores = [open_used(&url).await, open_used(&url).await];
    (url, stores)
}

fn ask_all(names: &[String], grant: GrantId) -> Ask {
    let wants = names.iter().map(|name| Want::exclusive(resource(name))).collect();
    Ask { wants, ..ask("any", grant) }
}

fn granted(outcome: &Outcome) -> Token {
    match outcome {
        Outcome::Granted(granted) => granted.token,
        other => panic!("{other:?}"),
    }
}

/// Releases one resource of a grant, with the look that clients use.
async fn release_one(store: &dyn Store, name: &str, grant: GrantId) {
    let resources = vec![resource(name)];
    let ask =
        ReleaseAsk { proof: Proof::Grant(grant), resources: Some(resources.clone()), lost: false };
    let rule = move |seen: &Snapshot| rules::release(seen, &ask, &NoWitness);
    let scope = Scope::At { resources, ticket: None };
    transact_with(store, scope, None, rule).await.unwrap();
}

/// Two handles give back the last two keys of one lease at the same moment. If both took it for theirs, one
/// could end it under a hold of the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lease_belongs_to_one_handle() {
    let (url, stores) = two_handles().await;
    let (mut etcd, prefix) = raw(&url).await;
    for round in 0..40 {
        let names = [format!("a {round}"), format!("b {round}")];
        let grant = GrantId::random();
        granted(&request(&*stores[0], ask_all(&names, grant)).await.unwrap());
        tokio::join!(
            release_one(&*stores[0], &names[0], grant),
            release_one(&*stores[1], &names[1], grant)
        );
        // What is done in the background is done.
        tokio::time::sleep(Duration::from_millis(10)).await;
        let grants = [GrantId::random(), GrantId::random()];
        for (store, (name, grant)) in stores.iter().zip(names.iter().zip(grants)) {
            take(&**store, name, grant).await;
        }
        let options = etcd_client::GetOptions::new().with_prefix();
        let lives = etcd.get(format!("{prefix}l/"), Some(options)).await.unwrap();
        let leases: Vec<i64> = lives.kvs().iter().map(|entry| entry.lease()).collect();
        assert!(leases.len() == 2 && leases[0] != leases[1], "round {round}: {leases:?}");
        for (store, (name, grant)) in stores.iter().zip(names.iter().zip(grants)) {
            release_one(&**store, name, grant).await;
        }
    }
}

/// What is used again is used by one hold at a time, and lives as long as any other.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lease_that_is_used_again_lasts_its_full_time() {
    let (_, stores) = two_handles().await;
    let ttl = Duration::from_secs(3);
    let hold = |grant| Ask { ttl, ..ask("lock", grant) };
    let first = GrantId::random();
    granted(&request(&*stores[0], hold(first)).await.unwrap());
    // It has used up some of its time when it is given back, and more when it is used again.
    tokio::time::sleep(Duration::from_millis(700)).await;
    release_one(&*stores[0], "lock", first).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    let asked = tokio::time::Instant::now();
    granted(&request(&*stores[0], hold(GrantId::random())).await.unwrap());
    tokio::time::sleep_until(asked + ttl - Duration::from_millis(150)).await;
    let outcome = request(&*stores[1], hold(GrantId::random())).await.unwrap();
    // A test that was stopped for a while cannot tell.
    if asked.elapsed() < ttl {
        assert!(!matches!(outcome, Outcome::Granted(_)), "it lapsed early: {outcome:?}");
    }
}

/// A renewal of more holds than can be compared one by one still notices that one of them was broken.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_large_renewal_does_not_bring_back_what_was_broken() {
    let (_, stores) = two_handles().await;
    let mut renewals = 0;
    for round in 0..12 {
        let names: Vec<String> = (0..40).map(|number| format!("r {round} {number}")).collect();
        let grant = GrantId::random();
        let token = granted(&request(&*stores[0], ask_all(&names, grant)).await.unwrap());
        let resources = names.iter().map(|name| resource(name)).collect();
        // Another length puts each hold on another lease.
        let ttl = LONG + Duration::from_secs(round + 1);
        let renewal = Renewal { grant, token, resources, ttl, bind: None };
        let breaking = async {
            // Sooner or later than the renewal has looked, and has written.
            tokio::time::sleep(Duration::from_millis(round % 6 * 2)).await;
            break_hold(&*stores[1], &names[20], token).await;
        };
        let renewal = [renewal];
        let (renewed, ()) = tokio::join!(stores[0].renew(&renewal), breaking);
        renewals += usize::from(renewed.is_ok_and(|renewed| renewed == [Renewed::Renewed]));
        let seen = stores[1].read(&at(&names[20])).await.unwrap();
        assert!(seen.holds.is_empty(), "round {round}: the broken hold is back");
        let next = GrantId::random();
        assert!(take(&*stores[1], &names[20], next).await > token);
    }
    println!("{renewals} of 12 renewals came before the break");
}

/// A renewal of many holds is not in the way of all other changes, nor they in its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_large_renewal_is_made_beside_other_changes() {
    let (url, stores) = two_handles().await;
    let names: Vec<String> = (0..40).map(|number| format!("r {number}")).collect();
    let grant = GrantId::random();
    let token = granted(&request(&*stores[0], ask_all(&names, grant)).await.unwrap());
    let mut busy = Vec::new();
    for number in 0..4 {
        let store = open_used(&url).await;
        busy.push(tokio::spawn(async move {
            let name = format!("busy {number}");
            loop {
                let grant = GrantId::random();
                take(&*store, &name, grant).await;
                release_one(&*store, &name, grant).await;
            }
        }));
    }
    let resources: Vec<_> = names.iter().map(|name| resource(name)).collect();
    for _ in 0..30 {
        let resources = resources.clone();
        let renewal = Renewal { grant, token, resources, ttl: LONG, bind: None };
        assert_eq!(stores[0].renew(&[renewal]).await.unwrap(), [Renewed::Renewed]);
    }
    break_hold(&*stores[1], &names[20], token).await;
    let renewal = Renewal { grant, token, resources, ttl: LONG, bind: None };
    assert_eq!(stores[0].renew(&[renewal]).await.unwrap(), [Renewed::Lost]);
    busy.iter().for_each(tokio::task::JoinHandle::abort);
}

/// What a handle remembers of a lock is not what it decides by, if others changed it meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_others_did_meanwhile_is_noticed() {
    let (_, [store, other]) = two_handles().await;
    // It was free.
    let mine = GrantId::random();
    take(&*store, "a", mine).await;
    release_one(&*store, "a", mine).await;
    let theirs = GrantId::random();
    let token = take(&*other, "a", theirs).await;
    let outcome = request(&*store, ask("a", GrantId::random())).await.unwrap();
    assert!(!matches!(outcome, Outcome::Granted(_)), "{outcome:?}");
    release_one(&*other, "a", theirs).await;
    // It was held.
    tokio::time::sleep(Duration::from_millis(600)).await;
    let mine = GrantId::random();
    let first = take(&*store, "a", mine).await;
    assert!(first > token);
    break_hold(&*other, "a", first).await;
    let again = take(&*store, "a", GrantId::random()).await;
    assert!(again > first);
    // It was held by this handle, and is now by another.
    tokio::time::sleep(Duration::from_millis(600)).await;
    let mine = GrantId::random();
    let first = take(&*store, "b", mine).await;
    break_hold(&*other, "b", first).await;
    let theirs = GrantId::random();
    let second = take(&*other, "b", theirs).await;
    release_one(&*store, "b", mine).await;
    let held = other.read(&at("b")).await.unwrap().holds;
    let held: Vec<(GrantId, Token)> =
        held.iter().map(|seen| (seen.hold.grant, seen.hold.token)).collect();
    assert_eq!(held, [(theirs, second)]);
}

/// A lease that ends changes no guard. A handle that remembers a hold does not take it for alive.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lapse_is_noticed_by_the_handle_that_remembers_the_hold() {
    let (_, [store, _]) = two_handles().await;
    let ttl = Duration::from_secs(2);
    let first = Ask { ttl, ..ask("lock", GrantId::random()) };
    let token = granted(&request(&*store, first).await.unwrap());
    tokio::time::sleep(ttl + Duration::from_millis(1500)).await;
    let outcome = request(&*store, Ask { queue: Some(LONG), ..ask("lock", GrantId::random()) });
    assert!(granted(&outcome.await.unwrap()) > token);
}
