//! What happens to clusters: restarts, compaction, leaders that die or stop, answers that are lost.

use crate::acts::*;
use crate::kit::{client_of, open_used, raw};
use crate::proxy::Proxy;
use etcd_client::CompactionOptions;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tenure::core::Proof;
use tenure::core::rules::tasks::Finish;
use tenure::core::{
    Change, Decision, EventKind, GrantId, Keep, NewEvent, Outcome, Revision, Snapshot, Status,
    Token,
};
use tenure::store::{Renewal, Renewed, StoreError, StoreExt, TaskFilter, Transaction, Trim};
use tenure::{ClaimRequest, Claims, Client, Wait};
use tenure_testkit::Etcd;
use tenure_testkit::etcd::fresh_url;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_members_restart_and_nothing_is_lost() {
    let mut cluster = Etcd::start(3);
    let store = open_used(&cluster.url("kept")).await;
    let client = Client::builder().label("w").with_store(store.clone()).unwrap();
    client.tasks().add(tasks(20)).await.unwrap();
    let grant = GrantId::random();
    let token = take(&*store, "lock", grant).await;
    let events = store.events(Revision(0), u32::MAX).await.unwrap();
    for member in 0..3 {
        cluster.kill(member);
    }
    let refused = request(&*store, ask("other", GrantId::random())).await.unwrap_err();
    assert!(refused.is_passing(), "{refused}");
    for member in 0..3 {
        cluster.run(member);
    }
    cluster.wait_for_leader();
    let renewal =
        Renewal { grant, token, resources: vec![resource("lock")], ttl: LONG, bind: None };
    assert_eq!(store.renew(&[renewal]).await.unwrap(), [Renewed::Renewed]);
    assert_eq!(store.events(Revision(0), u32::MAX).await.unwrap(), events);
    assert_eq!(client.tasks().tallies().await.unwrap()[0].count, 20);
    release(&*store, "lock", grant).await;
    assert!(take(&*store, "lock", GrantId::random()).await > token);
}

/// What the servers forget is only the past of keys; the history of the store is in keys of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_follower_sleeps_while_the_servers_compact() {
    let cluster = Etcd::start(1);
    let url = cluster.url("compacted");
    let (store, other) = (open_used(&url).await, open_used(&url).await);
    let first = GrantId::random();
    take(&*store, "lock", first).await;
    let known = store.changed(Revision(0), Duration::ZERO).await.unwrap();
    let sleeper = store.clone();
    let asleep = tokio::spawn(async move { sleeper.changed(known, Duration::from_secs(60)).await });
    let waiter = GrantId::random();
    queue(&*store, "lock", waiter).await;
    asleep.await.unwrap().unwrap();
    for round in 0..5 {
        let known = store.changed(Revision(0), Duration::ZERO).await.unwrap();
        let sleeper = store.clone();
        let asleep =
            tokio::spawn(async move { sleeper.changed(known, Duration::from_secs(60)).await });
        let (mut etcd, prefix) = raw(&url).await;
        let newest = etcd.get(prefix, None).await.unwrap().header().unwrap().revision();
        let options = CompactionOptions::new().with_physical();
        etcd.compact(newest, Some(options)).await.unwrap();
        take(&*other, &format!("lock {round}"), GrantId::random()).await;
        let reached = asleep.await.unwrap().unwrap();
        assert!(reached > known);
        let events = store.events(known, u32::MAX).await.unwrap();
        assert_eq!(events.len(), 1, "{events:?}");
    }
    assert_eq!(store.events(Revision(0), u32::MAX).await.unwrap().len(), 7);
    // The waiter's watch has lived through it too.
    release(&*other, "lock", first).await;
    let begun = Instant::now();
    store.turn(waiter, Duration::from_secs(30)).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(25), "no wake came");
}

/// Looks take several reads at one revision, which the servers may forget in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn work_goes_on_while_the_servers_compact_all_the_time() {
    let cluster = Etcd::start(1);
    let url = cluster.url("compacted");
    let store = open_used(&url).await;
    let adder = Client::builder().label("adder").with_store(store.clone()).unwrap();
    adder.tasks().add(tasks(60)).await.unwrap();
    let mut etcd = client_of(&cluster).await;
    let compactor = tokio::spawn(async move {
        let mut compacted = 0;
        loop {
            let newest = etcd.get("any", None).await.unwrap().header().unwrap().revision();
            compacted += usize::from(etcd.compact(newest, None).await.is_ok());
            if compacted > 0 && compacted % 50 == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    });
    let mut workers = Vec::new();
    for number in 0..3 {
        let store = open_used(&url).await;
        let client = Client::builder().label(format!("w{number}")).with_store(store).unwrap();
        workers.push(tokio::spawn(async move {
            let mut done = 0;
            while let Claims::Claimed { tasks, .. } =
                client.tasks().claim(&ClaimRequest::default()).await.unwrap()
            {
                let one = &tasks[0];
                let (proof, token) = (Proof::Grant(one.grant), Some(one.token));
                let finish = Finish::Complete { result: None };
                client.tasks().finish(&one.task.id, proof, token, None, finish).await.unwrap();
                client.acquire("lock").await.unwrap().release().await.unwrap();
                client.events(Revision(0), 10).await.unwrap();
                done += 1;
            }
            done
        }));
    }
    let mut done = 0;
    for worker in workers {
        done += worker.await.unwrap();
    }
    compactor.abort();
    assert_eq!(done, 60);
}

/// An answer that is lost leaves it open whether a change was made. The store finds out.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_change_whose_answer_is_lost_is_made_once() {
    let cluster = Etcd::start(1);
    let proxy = Proxy::start(&cluster.endpoints()[0]).await;
    let store = open_used(&format!("etcd://{}/lost", proxy.address())).await;
    let direct = open_used(&cluster.url("lost")).await;
    for round in 0..12 {
        let (name, grant) = (format!("lock {round}"), GrantId::random());
        take(&*store, "warm", GrantId::random()).await;
        release_all(&*store, "warm").await;
        // From the answer to the commit on: a look and a lease come before it.
        proxy.lose_answers_after(round % 6);
        let outcome = request(&*store, ask(&name, grant)).await.unwrap();
        assert!(matches!(outcome, Outcome::Granted(_)), "round {round}: {outcome:?}");
        proxy.pass_all();
        // A change that would be made again if it were decided again.
        proxy.lose_answers_after(round % 6);
        let note = move |_: &Snapshot| {
            let label = format!("note {round}");
            let event = NewEvent::new(None, label, None, EventKind::Released);
            Decision::Write(Change { events: vec![event], ..Change::default() })
        };
        let committed = store.transact(Transaction::new(at(&name), note)).await.unwrap();
        proxy.pass_all();
        let events = direct.events(Revision(0), u32::MAX).await.unwrap();
        let noted = events.iter().filter(|event| event.event.label == format!("note {round}"));
        let noted: Vec<Revision> = noted.map(|event| event.revision).collect();
        assert_eq!(Some(noted), committed.revision.map(|revision| vec![revision]));
        let taken = events.iter().filter(|event| {
            matches!(event.event.kind, EventKind::Acquired { .. })
                && event.event.resource.as_ref() == Some(&resource(&name))
        });
        assert_eq!(taken.count(), 1, "round {round}");
        let held = direct.read(&at(&name)).await.unwrap().holds;
        assert_eq!(held.iter().map(|held| held.hold.grant).collect::<Vec<_>>(), [grant]);
    }
    assert!(proxy.lost() > 0, "no answer was lost");
    println!("{} answers were lost", proxy.lost());
}

async fn release_all(store: &dyn tenure::store::Store, name: &str) {
    for held in store.read(&at(name)).await.unwrap().holds {
        release(store, name, held.hold.grant).await;
    }
}

/// What one holder of the lock saw.
struct Held {
    token: Token,
    from: Instant,
    /// The end of its trust, or the moment at which it gave it back.
    until: Instant,
}

/// Four clients contend for one lock while the leader is killed, stays away and comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_leader_dies_while_clients_contend() {
    const CLIENTS: usize = 4;
    let mut cluster = Etcd::start(3);
    let url = cluster.url("contended");
    let stop = Arc::new(AtomicBool::new(false));
    let history: Arc<Mutex<Vec<Held>>> = Arc::default();
    let counts: Arc<Vec<AtomicUsize>> =
        Arc::new((0..CLIENTS).map(|_| AtomicUsize::new(0)).collect());
    let mut workers = Vec::new();
    for number in 0..CLIENTS {
        let store = open_used(&url).await;
        let client = Client::builder().label(format!("c{number}")).with_store(store).unwrap();
        let (stop, history, counts) = (stop.clone(), history.clone(), counts.clone());
        workers.push(tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let request = client.request("contended").ttl(Duration::from_secs(6));
                let asked = request.wait(Wait::UpTo(Duration::from_secs(20))).hold().await;
                let Ok(Ok(guard)) = asked.map(|attempt| attempt.into_result()) else {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                };
                let from = Instant::now();
                tokio::time::sleep(Duration::from_millis(3)).await;
                let until = if guard.is_held() { Some(Instant::now()) } else { None };
                let token = guard.token();
                if let Some(until) = until {
                    history.lock().push(Held { token, from, until });
                    counts[number].fetch_add(1, Ordering::Relaxed);
                }
                let _ = guard.release().await;
            }
        }));
    }
    let total = || counts.iter().map(|count| count.load(Ordering::Relaxed)).sum::<usize>();
    let mut pauses = Vec::new();
    let begun = Instant::now();
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let leader = cluster.wait_for_leader();
        let killed = Instant::now();
        cluster.kill(leader);
        let before = total();
        while total() < before + 2 {
            assert!(killed.elapsed() < Duration::from_secs(60), "nobody got on");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        pauses.push(killed.elapsed());
        tokio::time::sleep(Duration::from_secs(2)).await;
        cluster.run(leader);
    }
    tokio::time::sleep(Duration::from_secs(15).saturating_sub(begun.elapsed())).await;
    let before: Vec<usize> = counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    let deadline = Instant::now() + Duration::from_secs(60);
    while counts.iter().zip(&before).any(|(now, before)| now.load(Ordering::Relaxed) == *before) {
        assert!(Instant::now() < deadline, "a client does not get on");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    stop.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }

    let mut history = std::mem::take(&mut *history.lock());
    history.sort_by_key(|held| held.from);
    for pair in history.windows(2) {
        assert!(pair[0].until <= pair[1].from, "two trusted the lock at once");
        assert!(pair[0].token < pair[1].token, "a token fell");
    }
    let store = open_used(&url).await;
    let events = store.events(Revision(0), u32::MAX).await.unwrap();
    let oldest = events.iter().find_map(|event| match event.event.kind {
        EventKind::Acquired { .. } => event.event.token,
        _ => None,
    });
    let recorded: BTreeSet<Token> = events
        .iter()
        .filter(|event| matches!(event.event.kind, EventKind::Acquired { .. }))
        .filter_map(|event| event.event.token)
        .collect();
    // Old events are trimmed; of the others none is missing.
    let kept = history.iter().filter(|held| Some(held.token) >= oldest);
    for held in kept {
        assert!(
            recorded.contains(&held.token),
            "the grant of {} is not in the history",
            held.token
        );
    }
    println!(
        "{} holds in {:.1?}; after the leader was killed, clients got on after {pauses:.2?}",
        history.len(),
        begun.elapsed()
    );
}

/// Workers go on through the death of a leader, and each task is done once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_leader_dies_while_workers_do_tasks() {
    const TASKS: usize = 150;
    let mut cluster = Etcd::start(3);
    let url = cluster.url("tasks");
    let store = open_used(&url).await;
    let adder = Client::builder().label("adder").with_store(store.clone()).unwrap();
    adder.tasks().add(tasks(TASKS)).await.unwrap();
    let is_done = Arc::new(AtomicBool::new(false));
    let mut workers = Vec::new();
    for number in 0..4 {
        let store = open_used(&url).await;
        let client = Client::builder().label(format!("w{number}")).with_store(store).unwrap();
        let is_done = is_done.clone();
        workers.push(tokio::spawn(async move {
            while !is_done.load(Ordering::Relaxed) {
                let claim = ClaimRequest { ttl: Duration::from_secs(4), ..ClaimRequest::default() };
                let Ok(Claims::Claimed { tasks, .. }) = client.tasks().claim(&claim).await else {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let one = &tasks[0];
                tokio::time::sleep(Duration::from_millis(20)).await;
                for _ in 0..5 {
                    let (proof, token) = (Proof::Grant(one.grant), Some(one.token));
                    let finish = Finish::Complete { result: None };
                    let client = client.tasks();
                    let finished = client.finish(&one.task.id, proof, token, None, finish);
                    if finished.await.is_ok() {
                        break;
                    }
                }
            }
        }));
    }
    tokio::time::sleep(Duration::from_millis(700)).await;
    let leader = cluster.wait_for_leader();
    cluster.kill(leader);
    let completed = TaskFilter { status: Some(Status::Completed), ..TaskFilter::default() };
    let begun = Instant::now();
    loop {
        let done = store.read(&completed).await.map_or(0, |tasks| tasks.len());
        if done == TASKS {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(100), "only {done} of {TASKS} are done");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    is_done.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    cluster.run(leader);
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for event in store.events(Revision(0), u32::MAX).await.unwrap() {
        if let (EventKind::Completed, Some(task)) = (event.event.kind, event.event.resource) {
            *times.entry(task.to_string()).or_default() += 1;
        }
    }
    assert_eq!(times.len(), TASKS);
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    println!(
        "{TASKS} tasks were done; the last {:.1?} after the leader was killed",
        begun.elapsed()
    );
}

/// A leader that stops without closing its connections is noticed by time-outs.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_leader_freezes_and_others_go_on() {
    let cluster = Etcd::start(3);
    let url = cluster.url("frozen");
    let (store, other) = (open_used(&url).await, open_used(&url).await);
    let (holder, waiter) = (GrantId::random(), GrantId::random());
    let token = take(&*store, "lock", holder).await;
    queue(&*other, "lock", waiter).await;
    let leader = cluster.wait_for_leader();
    cluster.freeze(leader, true);
    let begun = Instant::now();
    let mut tries = 0;
    loop {
        let outcome = request(&*store, ask("another", GrantId::from_bits(1))).await;
        match outcome {
            Ok(outcome) => {
                assert!(matches!(outcome, Outcome::Granted(_)), "{outcome:?}");
                break;
            }
            Err(error) => assert!(error.is_passing(), "{error}"),
        }
        tries += 1;
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody gets on");
    }
    println!(
        "after the leader froze, a change was made after {:.1?}, {tries} failed",
        begun.elapsed()
    );
    release(&*store, "lock", holder).await;
    other.turn(waiter, Duration::from_secs(40)).await.unwrap();
    let outcome = request(&*other, ask("lock", waiter)).await.unwrap();
    let Outcome::Granted(granted) = outcome else { panic!("{outcome:?}") };
    assert!(granted.token > token);
    cluster.freeze(leader, false);
    let taken = store.events(Revision(0), u32::MAX).await.unwrap();
    let another = taken.iter().filter(|event| {
        matches!(event.event.kind, EventKind::Acquired { .. })
            && event.event.resource.as_ref() == Some(&resource("another"))
    });
    assert_eq!(another.count(), 1, "the change was made once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_dead_clients_left_is_tidied_and_tokens_rise_on() {
    let url = fresh_url();
    let store = open_used(&url).await;
    let first = GrantId::random();
    let token = take(&*store, "first", first).await;
    release(&*store, "first", first).await;
    for number in 0..1100 {
        let grant = GrantId::from_bits(number + 1);
        let name = format!("once {number}");
        take(&*store, &name, grant).await;
        release(&*store, &name, grant).await;
    }
    let (mut etcd, prefix) = raw(&url).await;
    etcd.put(format!("{prefix}w/nobody/{}", GrantId::random()), "", None).await.unwrap();
    let tidied = store.tidy().await.unwrap();
    assert!(tidied > 0, "nothing was tidied");
    let options = etcd_client::GetOptions::new().with_prefix().with_count_only();
    let wakes = etcd.get(format!("{prefix}w/"), Some(options.clone())).await.unwrap().count();
    let guards = etcd.get(format!("{prefix}g/"), Some(options)).await.unwrap().count();
    assert_eq!((wakes, guards), (0, 1000));
    assert!(take(&*store, "first", GrantId::random()).await > token);
}

/// Servers without space refuse changes, but leases that live go on living.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_are_renewed_though_the_servers_have_no_space() {
    let cluster = Etcd::start_with(1, &["--quota-backend-bytes", "2000000"]);
    let store = open_used(&cluster.url("full")).await;
    let grant = GrantId::random();
    let token = take(&*store, "lock", grant).await;
    let mut etcd = client_of(&cluster).await;
    let block = "x".repeat(500_000);
    let mut blocks = 0;
    while etcd.put(format!("block {blocks}"), block.as_str(), None).await.is_ok() {
        blocks += 1;
        assert!(blocks < 100, "the servers do not run out of space");
    }
    let error = request(&*store, ask("other", GrantId::random())).await.unwrap_err();
    assert!(error.to_string().contains("used up its space"), "{error}");
    let renewal =
        Renewal { grant, token, resources: vec![resource("lock")], ttl: LONG, bind: None };
    let stranger = Renewal { token: Token(token.0 + 1), ..renewal.clone() };
    let renewed = store.renew(&[renewal, stranger]).await.unwrap();
    assert_eq!(renewed, [Renewed::Renewed, Renewed::Lost]);
    let findings = store.check().await.unwrap();
    assert!(
        findings.iter().any(|finding| finding.subject == "alarms" && !finding.ok),
        "{findings:?}"
    );
}

/// Each has locks of its own: through such a URL two processes would hold the same, both with token 1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_of_two_clusters_are_not_one_store() {
    let (one, other) = (Etcd::start(1), Etcd::start(1));
    let both = one.endpoints().into_iter().chain(other.endpoints());
    let hosts: Vec<String> = both
        .map(|url| url.split_once("//").map_or(url.clone(), |(_, host)| host.to_owned()))
        .collect();
    let url = format!("etcd://{}/both", hosts.join(","));
    for _ in 0..4 {
        let client = Client::open(&url).await.unwrap();
        let error = client.acquire("deploy").await.unwrap_err().to_string();
        assert!(error.contains("different clusters"), "{error}");
    }
}

/// A new process begins with any of the servers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_processes_pass_a_member_that_is_silent() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let url = fresh_url().replace("etcd://", &format!("etcd://{address},"));
    let clients = (0..8).map(|number| {
        let url = url.clone();
        tokio::spawn(async move {
            let client = Client::open(&url).await.unwrap();
            let held = client.acquire(format!("lock-{number}").as_str()).await.unwrap();
            held.release().await.unwrap();
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
}

/// A network that forgets connections, as when a firewall restarts: the server lives, and new connections work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_lease_is_renewed_over_a_new_connection_where_the_old_one_died_silently() {
    let cluster = Etcd::start(1);
    let port = cluster.endpoints()[0].rsplit_once(':').unwrap().1.parse().unwrap();
    let proxy = tenure_testkit::Proxy::to(port);
    let client = Client::open(&format!("etcd://127.0.0.1:{}/silent", proxy.port)).await.unwrap();
    let lease = Duration::from_secs(8);
    let held = client.request("x").ttl(lease).hold().await.unwrap().into_result().unwrap();
    proxy.forget_connections();
    tokio::time::sleep(lease * 2).await;
    assert!(held.is_held(), "it was not renewed in time");
    assert!(held.confirm().await.unwrap());
}

/// The key that shows whether a change was made is removed with its history before the change is settled.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_change_whose_history_was_removed_is_not_decided_again() {
    let cluster = Etcd::start(1);
    let proxy = Proxy::start(&cluster.endpoints()[0]).await;
    let store = open_used(&format!("etcd://{}/trimmed", proxy.address())).await;
    let direct = open_used(&cluster.url("trimmed")).await;
    let note = |label: &str| {
        let label = label.to_owned();
        let decide = move |_: &Snapshot| {
            let event = NewEvent::new(None, label.clone(), None, EventKind::Released);
            Decision::Write(Change { events: vec![event], ..Change::default() })
        };
        Transaction::new(at("lock"), decide)
    };
    store.transact(note("before")).await.unwrap();
    let noted = async || {
        let events = direct.events(Revision(0), u32::MAX).await.unwrap();
        events.iter().filter(|event| event.event.label == "once").count()
    };
    // After the answer to the look.
    proxy.lose_all_answers_after(1);
    let settling = tokio::spawn({
        let (store, once) = (store.clone(), note("once"));
        async move { store.transact(once).await }
    });
    let made = async {
        while noted().await == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), made).await.expect("it is made");
    // More than a segment of the history has.
    for _ in 0..300 {
        direct.transact(note("other")).await.unwrap();
    }
    let keep = Keep::newest(1);
    direct.trim(Trim { keep, limit: u32::MAX, dry_run: false }).await.unwrap();
    assert_eq!(noted().await, 0, "its history is removed");
    proxy.pass_all();
    let settled = settling.await.unwrap();
    assert!(matches!(settled, Err(StoreError::Unknown { .. })), "{settled:?}");
    assert_eq!(noted().await, 0, "it was decided again");
}
