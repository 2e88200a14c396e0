//! Traps of etcd that a store falls into easily, each as a test of its own. Prototypes fell into all of
//! them.

use crate::acts::*;
use crate::kit::{open_used, raw};
use crate::proxy::Proxy;
use etcd_client::GetOptions;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::core::rules::tasks::{Finish, FinishAsk, finish_all, finish_all_look};
use tenure::core::{
    Ask, Change, Decision, EventKind, GrantId, Hold, Holder, NewEvent, NoWitness, Outcome, Proof,
    Revision, Scope, Snapshot, Token, Want, Write,
};
use tenure::store::{Renewal, Renewed, Store, StoreExt, Transaction, transact_with};
use tenure::{ClaimRequest, Claims, Client};
use tenure_testkit::Etcd;
use tenure_testkit::etcd::fresh_url;

async fn handles(count: usize) -> Vec<Arc<dyn Store>> {
    let url = fresh_url();
    let mut stores = Vec::new();
    for _ in 0..count {
        stores.push(open_used(&url).await);
    }
    stores
}

/// A comparison of what was read holds after a deletion too. So a release, beside the leave of the first
/// waiter, would wake one that is gone, and the next would sleep for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_release_beside_a_leave_wakes_the_next_waiter() {
    let stores = handles(3).await;
    for round in 0..30 {
        let name = format!("lock {round}");
        let [holder, first, second] = [(); 3].map(|()| GrantId::random());
        take(&*stores[0], &name, holder).await;
        queue(&*stores[1], &name, first).await;
        queue(&*stores[2], &name, second).await;
        tokio::join!(release(&*stores[0], &name, holder), leave(&*stores[1], &name, first));
        let begun = Instant::now();
        stores[2].turn(second, Duration::from_secs(20)).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(15), "round {round}: no wake came");
        let outcome = request(&*stores[2], ask(&name, second)).await.unwrap();
        assert!(matches!(outcome, Outcome::Granted(_)), "round {round}: {outcome:?}");
    }
}

/// A key that was made and deleted since compares as untouched: tokens would come twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_token_comes_twice_though_records_come_and_go() {
    let stores = handles(4).await;
    let workers = (0..12).map(|worker| {
        let store = stores[worker % 4].clone();
        tokio::spawn(async move {
            for _ in 0..25 {
                let grant = GrantId::random();
                let outcome = request(&*store, ask("busy", grant)).await.unwrap();
                if matches!(outcome, Outcome::Granted(_)) {
                    release(&*store, "busy", grant).await;
                }
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    let mut last = Token(0);
    let mut count = 0;
    for event in stores[0].events(Revision(0), u32::MAX).await.unwrap() {
        if let EventKind::Acquired { .. } = event.event.kind {
            let token = event.event.token.unwrap();
            assert!(token > last, "token {token} came after {last}");
            (last, count) = (token, count + 1);
        }
    }
    assert!(count > 0);
}

/// A change can take more numbers than one: the next number is beyond all of them, for everybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_takes_many_numbers_leaves_none_for_others() {
    let stores = handles(2).await;
    let decide = |seen: &Snapshot| {
        let holds = (0..50_u64).map(|number| {
            Write::Hold(Hold {
                want: Want::exclusive(resource(&format!("part {number}"))),
                grant: GrantId::from_bits(u128::from(number) + 1),
                token: Token(seen.next + number),
                holder: Holder::anonymous("somebody".to_owned()),
                operation: None,
                ttl: LONG,
                slot: None,
            })
        });
        let event = NewEvent::new(None, "somebody", None, EventKind::Released);
        let writes = holds.collect();
        Decision::Write(Change { writes, events: vec![event], ..Change::default() })
    };
    stores[0].transact(Transaction::new(Scope::Everything, decide)).await.unwrap();
    let seen = stores[0].read(&Scope::Everything).await.unwrap();
    let highest = seen.holds.iter().map(|held| held.hold.token).max().unwrap();
    for number in [0, 49] {
        let name = format!("part {number}");
        release(&*stores[1], &name, GrantId::from_bits(number + 1)).await;
        let token = take(&*stores[1], &name, GrantId::random()).await;
        assert!(token > highest, "{token} is not beyond {highest}");
    }
}

/// What does not fit into one flat transaction is not made in pieces.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn large_batches_are_one_change() {
    let stores = handles(1).await;
    let client = Client::builder().label("w").with_store(stores[0].clone()).unwrap();
    client.tasks().add(tasks(2000)).await.unwrap();
    let (mut etcd, prefix) = raw(&stores[0].info().url).await;
    let all = Some(GetOptions::new().with_prefix().with_keys_only());
    let found = etcd.get(format!("{prefix}t/"), all).await.unwrap();
    let revisions: BTreeSet<i64> = found.kvs().iter().map(|entry| entry.mod_revision()).collect();
    assert_eq!((found.kvs().len(), revisions.len()), (2000, 1), "all at one revision");
    assert_eq!(stores[0].events(Revision(0), u32::MAX).await.unwrap().len(), 2000);

    // A hundred at once are claimed and finished.
    let claim = ClaimRequest { count: 100, ..ClaimRequest::default() };
    let Claims::Claimed { tasks: claimed, .. } = client.tasks().claim(&claim).await.unwrap() else {
        panic!("nothing was claimed");
    };
    assert_eq!(claimed.len(), 100);
    let asks: Vec<FinishAsk> = claimed
        .iter()
        .map(|one| FinishAsk {
            task: one.task.id.clone(),
            proof: Proof::Grant(one.grant),
            token: Some(one.token),
            runner: None,
            finish: Finish::Complete { result: None },
        })
        .collect();
    let scope = finish_all_look(&asks);
    let rule = move |seen: &Snapshot| finish_all(seen, &asks, &NoWitness);
    transact_with(&*stores[0], scope, None, rule).await.unwrap();
    let counts = client.tasks().tallies().await.unwrap();
    let mut counts: Vec<u64> = counts.iter().map(|tally| tally.count).collect();
    counts.sort_unstable();
    assert_eq!(counts, [100, 1900]);

    // What is larger than a request can be is refused whole.
    let mut large = tasks(3000);
    for (number, task) in large.iter_mut().enumerate() {
        task.id = format!("large{number}").parse().unwrap();
        task.description = Some("x".repeat(1000));
    }
    let refused = client.tasks().add(large).await.unwrap_err().to_string();
    assert!(refused.contains("larger than etcd takes at once"), "{refused}");
    let counts = client.tasks().tallies().await.unwrap();
    assert_eq!(counts.iter().map(|tally| tally.count).sum::<u64>(), 2000);
}

/// Where the servers take larger requests, larger changes are made.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_that_take_more_are_given_more() {
    let cluster = Etcd::start_with(1, &["--max-request-bytes", "16000000"]);
    let store = open_used(&cluster.url("large")).await;
    let client = Client::builder().label("w").with_store(store).unwrap();
    client.tasks().add(tasks(8000)).await.unwrap();
    assert_eq!(client.tasks().tallies().await.unwrap()[0].count, 8000);
    let claimed = client.tasks().claim(&ClaimRequest::default()).await.unwrap();
    let Claims::Claimed { tasks, .. } = claimed else { panic!("nothing was claimed") };
    assert_eq!(tasks[0].task.id.to_string(), "t00000");
}

/// Keys of events that are named before they are committed are not in the order of commits: a follower
/// would miss some. Here slow writers look, and commit when the next segment of the history has begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn followers_read_events_in_the_order_of_commits() {
    const WRITERS: usize = 8;
    const CHANGES: usize = 100;
    const SLOW: usize = 4;
    const SLOW_CHANGES: usize = 3;
    let cluster = Etcd::start(1);
    let proxy = Proxy::start(&cluster.endpoints()[0]).await;
    let store = open_used(&cluster.url("followed")).await;
    let slow = open_used(&format!("etcd://{}/followed", proxy.address())).await;
    proxy.delay(Duration::from_millis(150));
    let write = |store: &Arc<dyn Store>, writer: usize, changes: usize| {
        let store = store.clone();
        tokio::spawn(async move {
            for number in 0..changes {
                take(&*store, &format!("{writer} {number}"), GrantId::random()).await;
            }
        })
    };
    let mut writers: Vec<_> = (0..WRITERS).map(|one| write(&store, one, CHANGES)).collect();
    writers.extend((0..SLOW).map(|one| write(&slow, WRITERS + one, SLOW_CHANGES)));
    let mut followed: Vec<Revision> = Vec::new();
    while followed.len() < WRITERS * CHANGES + SLOW * SLOW_CHANGES {
        let last = followed.last().copied().unwrap_or(Revision(0));
        let reached = store.changed(last, Duration::from_secs(30)).await.unwrap();
        assert!(reached > last, "no change came after {last}");
        let events = store.events(last, 50).await.unwrap();
        followed.extend(events.iter().map(|event| event.revision));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let all = store.events(Revision(0), u32::MAX).await.unwrap();
    let all: Vec<Revision> = all.iter().map(|event| event.revision).collect();
    assert!(all.is_sorted_by(|one, next| one < next));
    assert_eq!(followed, all);
}

/// A lease of etcd can be kept alive after the hold was broken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_hold_cannot_be_renewed_though_its_lease_lives() {
    let stores = handles(2).await;
    for round in 0..10 {
        let (name, grant) = (format!("lock {round}"), GrantId::random());
        let token = take(&*stores[0], &name, grant).await;
        let renewal =
            Renewal { grant, token, resources: vec![resource(&name)], ttl: LONG, bind: None };
        let renewals = [renewal];
        assert_eq!(stores[0].renew(&renewals).await.unwrap(), [Renewed::Renewed]);
        let (renewed, ()) =
            tokio::join!(stores[0].renew(&renewals), break_hold(&*stores[1], &name, token));
        // Before or after the break.
        renewed.unwrap();
        assert_eq!(stores[0].renew(&renewals).await.unwrap(), [Renewed::Lost]);
        assert_eq!(stores[1].read(&at(&name)).await.unwrap().holds.len(), 0);
    }
}

/// A watch that is opened at a past revision is served at the next tick. Here one watch stands, and a wake
/// that comes before the wait, or while it is on, is heard.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_standing_watch_hears_every_wake() {
    let stores = handles(2).await;
    let mut times = Vec::new();
    for round in 0..20 {
        let name = format!("lock {round}");
        let (holder, waiter) = (GrantId::random(), GrantId::random());
        take(&*stores[0], &name, holder).await;
        queue(&*stores[1], &name, waiter).await;
        let sleeper = stores[1].clone();
        let asleep = tokio::spawn(async move {
            sleeper.turn(waiter, Duration::from_secs(30)).await.unwrap();
            Instant::now()
        });
        if round % 2 == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let begun = Instant::now();
        release(&*stores[0], &name, holder).await;
        times.push(asleep.await.unwrap().duration_since(begun));
        let outcome = request(&*stores[1], ask(&name, waiter)).await.unwrap();
        assert!(matches!(outcome, Outcome::Granted(_)), "{outcome:?}");
    }
    times.sort_unstable();
    assert!(times[0] < Duration::from_secs(20), "no wake was heard");
    println!("from the beginning of a release to the wake: median {:?}", times[times.len() / 2]);
}

/// The servers walk over all keys of a range whatever the limit: what is looked at must not grow with a
/// queue or a list of tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_look_at_a_long_queue_shows_its_front() {
    let stores = handles(1).await;
    let store = &stores[0];
    take(&**store, "popular", GrantId::random()).await;
    for _ in 0..120 {
        queue(&**store, "popular", GrantId::random()).await;
    }
    let scope = Scope::At { resources: vec![resource("popular")], ticket: None };
    let seen = store.read(&scope).await.unwrap();
    assert!(seen.waiters.len() < 20, "{} places are shown", seen.waiters.len());
    assert!(seen.shown_until.is_some());
    let client = Client::builder().label("w").with_store(store.clone()).unwrap();
    client.tasks().add(tasks(1500)).await.unwrap();
    for number in 0..3 {
        let claimed = client.tasks().claim(&ClaimRequest::default()).await.unwrap();
        let Claims::Claimed { tasks, .. } = claimed else { panic!("nothing was claimed") };
        assert_eq!(tasks[0].task.id.to_string(), format!("t{number:05}"), "the first in order");
    }
}

/// Two waits, each for what the other keeps: both commit where each compares only its own resource.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cycle_closed_from_both_ends_is_refused() {
    let stores = handles(2).await;
    for round in 0..15 {
        let names = [format!("left {round}"), format!("right {round}")];
        let holders = [GrantId::random(), GrantId::random()];
        for side in 0..2 {
            take(&*stores[side], &names[side], holders[side]).await;
        }
        let wait = |side: usize| {
            let ask = Ask {
                keeps: vec![holders[side]],
                queue: Some(LONG),
                ..ask(&names[1 - side], GrantId::random())
            };
            let store = stores[side].clone();
            async move { request(&*store, ask).await.unwrap() }
        };
        let (left, right) = tokio::join!(wait(0), wait(1));
        let refused = |outcome: &Outcome| matches!(outcome, Outcome::Deadlock(_));
        assert!(
            refused(&left) != refused(&right),
            "round {round}: one of two is refused: {left:?} and {right:?}"
        );
    }
}
