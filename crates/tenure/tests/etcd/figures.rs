//! Prints how long operations take. It asserts nothing: run it with
//! `cargo test -p tenure --features etcd --test etcd figures -- --ignored --nocapture`.

#![expect(clippy::print_stdout, reason = "its figures are for a person who runs it")]

use crate::acts::*;
use crate::kit::open_used;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::core::rules::tasks::Finish;
use tenure::core::{GrantId, Proof};
use tenure::store::{Store, StoreExt};
use tenure::{ClaimRequest, Claims, Client};
use tenure_testkit::Etcd;

/// The median and the time that one in a hundred is above.
fn shown(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    format!("p50 {:.1?}, p99 {:.1?}", at(50), at(99))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "it measures and asserts nothing"]
async fn figures() {
    for members in [1, 3] {
        let cluster = Etcd::start(members);
        let store = open_used(&cluster.url("figures")).await;
        let (mut taken, mut released) = (vec![], vec![]);
        for _ in 0..300 {
            let grant = GrantId::random();
            let begun = Instant::now();
            take(&*store, "lock", grant).await;
            taken.push(begun.elapsed());
            let begun = Instant::now();
            release(&*store, "lock", grant).await;
            released.push(begun.elapsed());
        }
        println!("{members} members: acquire {}; release {}", shown(taken), shown(released));
        contended(&cluster, 2).await;
        contended(&cluster, 8).await;
        hand_off(&cluster).await;
        for (count, label) in [(1000, "1k"), (20_000, "20k")] {
            claims(&cluster, count, label).await;
        }
    }
}

async fn contended(cluster: &Etcd, clients: usize) {
    let url = cluster.url(&format!("contended{clients}"));
    let begun = Instant::now();
    let mut workers = Vec::new();
    for number in 0..clients {
        let store = open_used(&url).await;
        workers.push(tokio::spawn(async move {
            let client = Client::builder().label(format!("c{number}")).with_store(store).unwrap();
            let (begun, mut holds) = (Instant::now(), 0);
            while begun.elapsed() < Duration::from_secs(5) {
                client.acquire("lock").await.unwrap().release().await.unwrap();
                holds += 1;
            }
            holds
        }));
    }
    let mut holds = 0;
    for worker in workers {
        holds += worker.await.unwrap();
    }
    let rate = f64::from(holds) / begun.elapsed().as_secs_f64();
    println!("  {clients} clients at one lock: {rate:.0} holds/s");
}

async fn hand_off(cluster: &Etcd) {
    let url = cluster.url("handoff");
    let (one, other) = (open_used(&url).await, open_used(&url).await);
    let (mut woken, mut granted) = (vec![], vec![]);
    for round in 0..100 {
        let name = format!("lock {round}");
        let (holder, waiter) = (GrantId::random(), GrantId::random());
        take(&*one, &name, holder).await;
        queue(&*other, &name, waiter).await;
        let sleeper: Arc<dyn Store> = other.clone();
        let asleep = tokio::spawn(async move {
            sleeper.turn(waiter, Duration::from_secs(30)).await.unwrap();
            Instant::now()
        });
        tokio::time::sleep(Duration::from_millis(5)).await;
        let begun = Instant::now();
        release(&*one, &name, holder).await;
        woken.push(asleep.await.unwrap().duration_since(begun));
        request(&*other, ask(&name, waiter)).await.unwrap();
        granted.push(begun.elapsed());
    }
    println!("  hand-off: woken {}; granted {}", shown(woken), shown(granted));
}

async fn claims(cluster: &Etcd, count: usize, label: &str) {
    let store = open_used(&cluster.url(&format!("claims{label}"))).await;
    let client = Client::builder().label("w").with_store(store).unwrap();
    let all = tasks(count);
    let begun = Instant::now();
    for part in all.chunks(1000) {
        client.tasks().add(part.to_vec()).await.unwrap();
    }
    let added = begun.elapsed();
    let (mut claimed, mut finished) = (vec![], vec![]);
    for _ in 0..200 {
        let begun = Instant::now();
        let answer = client.tasks().claim(&ClaimRequest::default()).await.unwrap();
        claimed.push(begun.elapsed());
        let Claims::Claimed { tasks, .. } = answer else { panic!("nothing was claimed") };
        let one = &tasks[0];
        let begun = Instant::now();
        let (proof, token) = (Proof::Grant(one.grant), Some(one.token));
        let finish = Finish::Complete { result: None };
        client.tasks().finish(&one.task.id, proof, token, None, finish).await.unwrap();
        finished.push(begun.elapsed());
    }
    println!(
        "  of {label} tasks (added in {added:.1?}): claim {}; complete {}",
        shown(claimed),
        shown(finished)
    );
}
