//! Mistakes that are easy to make on PostgreSQL, each with the sessions that show it.

use super::{open, schema_of, shared_port};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::process::{Command, Stdio};
use std::time::Duration;
use tenure::core::rules::tasks::{Finish, NewTask};
use tenure::core::{Keep, Proof, Retention, Revision, Status, TaskId};
use tenure::store::StoreError;
use tenure::{ClaimRequest, Claims, Client, Error, Wait};
use tenure_testkit::postgres::{fresh_url, psql, shared_url};
use tenure_testkit::proxy::Proxy;

fn id(text: &str) -> TaskId {
    text.parse().unwrap()
}

/// A session that does something, waits, and commits.
fn session(sql: String) -> std::process::Child {
    let mut child = Command::new("psql")
        .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", &shared_url()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), sql.as_bytes()).unwrap();
    drop(child.stdin.take());
    child
}

/// The number of the lock that every change of a store shares.
fn space_of(schema: &str) -> i32 {
    let digest = Sha256::digest(format!("tenure\0{schema}\0").as_bytes());
    let bytes: [u8; 8] = digest[8..16].try_into().unwrap();
    (i64::from_be_bytes(bytes) & 0x7fff_ffff) as i32
}

/// The URL of a store in that server, through a proxy.
fn through(proxy: &Proxy, url: &str) -> String {
    let (_, options) = url.split_once('?').unwrap();
    format!("postgres://postgres@127.0.0.1:{}/postgres?{options}", proxy.port)
}

/// What is read must be read after the lock was obtained, not in the same statement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_committed_while_a_lock_was_waited_for_is_seen() {
    let url = fresh_url();
    let schema = schema_of(&url);
    let (one, other) = (Client::open(&url).await.unwrap(), Client::open(&url).await.unwrap());
    // The row that a change of another process would add, and its lock, taken from a real one.
    let held = one.acquire("a").await.unwrap();
    psql(&shared_url(), &format!("CREATE TABLE {schema}.kept AS SELECT * FROM {schema}.holds"))
        .unwrap();
    held.release().await.unwrap();
    let mut waiting = session(format!(
        "BEGIN; SELECT pg_advisory_xact_lock({}, 0);
         INSERT INTO {schema}.holds SELECT * FROM {schema}.kept; SELECT pg_sleep(1); COMMIT;",
        space_of(&schema)
    ));
    tokio::time::sleep(Duration::from_millis(400)).await;
    let attempt = other.request("a").wait(Wait::No).hold().await.unwrap();
    assert!(attempt.into_result().is_err(), "both hold it");
    waiting.wait().unwrap();
}

/// A connection ends before the answer to a commit comes, and the commit itself comes late. Whether it
/// was made is known only once it has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_is_still_on_its_way_is_waited_for() {
    let url = fresh_url();
    let direct = Client::open(&url).await.unwrap();
    let proxy = Proxy::to(shared_port());
    let client = Client::open(&through(&proxy, &url)).await.unwrap();
    for number in 0..4 {
        let task = NewTask::new(id(&format!("t{number}")), "a task");
        direct.tasks().add(vec![task]).await.unwrap();
    }
    for round in 0..4 {
        proxy.delay_next_commit(Duration::from_millis(400));
        let Claims::Claimed { tasks, .. } =
            client.tasks().claim(&ClaimRequest::default()).await.unwrap()
        else {
            panic!("nothing was claimed in round {round}");
        };
        assert_eq!(tasks.len(), 1);
        let claimed = direct.tasks().in_progress().await.unwrap().tasks.len();
        assert_eq!(claimed, 1, "a claim took more than the task that it reported");
        proxy.delay_next_commit(Duration::from_millis(400));
        let held = client.acquire("a").await.unwrap();
        assert!(held.is_held());
        held.release().await.unwrap();
        let proof = Proof::Grant(tasks[0].grant);
        let done = Finish::completed_with(&round).unwrap();
        client.tasks().finish(&tasks[0].task.id, proof, None, None, done).await.unwrap();
    }
}

/// Whether a change was made is seen by its event, which another client may have removed by then. A claim whose answer
/// was lost must not be decided again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_claim_whose_event_is_removed_is_not_made_twice() {
    let url = fresh_url();
    let keep = Keep::newest(1);
    let retention = Retention { events: keep, tasks: Keep::ALL, failed: Keep::ALL };
    let direct = Client::builder().retention(retention).open(&url).await.unwrap();
    let proxy = Proxy::to(shared_port());
    let client = Client::open(&through(&proxy, &url)).await.unwrap();
    let task = |number: usize| NewTask::new(id(&format!("t{number}")), "a task");
    direct.tasks().add((0..40).map(task).collect()).await.unwrap();
    let trimming = tokio::spawn({
        let direct = direct.clone();
        async move {
            loop {
                direct.acquire("other").await.unwrap().release().await.unwrap();
                direct.collect(false).await.unwrap();
            }
        }
    });
    let mut acknowledged = 0;
    for round in 0..8 {
        proxy.delay_next_commit(Duration::from_millis(300));
        match client.tasks().claim(&ClaimRequest::default()).await {
            Ok(Claims::Claimed { tasks, .. }) => acknowledged += tasks.len(),
            // It was made, and nothing shows it any more: it is called off in the background.
            Err(Error::Store(StoreError::Unknown { .. })) => {}
            other => panic!("in round {round}: {other:?}"),
        }
        let only_those = async {
            while direct.tasks().in_progress().await.unwrap().tasks.len() != acknowledged {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let only_those = tokio::time::timeout(Duration::from_secs(60), only_those).await;
        only_those.expect("a claim took more than the task that it reported");
    }
    trimming.abort();
}

/// A claim that has to begin again had locked the first tasks. If it met its own locks, it would leave these
/// tasks out and take later ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_begins_again_still_takes_the_first_task() {
    let (url, proxy) = (fresh_url(), Proxy::to(shared_port()));
    let client = Client::open(&through(&proxy, &url)).await.unwrap();
    // More connections than one, so that there is another to begin again with.
    let acquire = |name: &'static str| {
        let client = client.clone();
        async move { client.acquire(name).await.unwrap().release().await.unwrap() }
    };
    tokio::join!(acquire("a"), acquire("b"), acquire("c"));
    proxy.delay_rollbacks(Duration::from_millis(60));
    for round in 0..8 {
        // Tasks with files need more than the statements for plain tasks show; so does a task that is
        // picked where another section has tasks too.
        let task = |number: usize| NewTask {
            files: vec![format!("src/{number}.rs")],
            section: (number == 1 && round % 2 == 1).then(|| "one".to_owned()),
            ..NewTask::new(id(&format!("r{round}n{number}")), "a task")
        };
        client.tasks().add((0..3).map(task).collect()).await.unwrap();
        let mut taken = Vec::new();
        for _ in 0..3 {
            // No task has this label: the claim chooses nothing, and the next one does not meet its locks.
            let nothing = ClaimRequest { labels: vec!["none".into()], ..ClaimRequest::default() };
            assert!(matches!(client.tasks().claim(&nothing).await.unwrap(), Claims::None(_)));
            let claims = client.tasks().claim(&ClaimRequest::default()).await.unwrap();
            let Claims::Claimed { tasks, .. } = claims else { panic!("nothing in round {round}") };
            let proof = Proof::Grant(tasks[0].grant);
            let done = Finish::completed_with(&round).unwrap();
            client.tasks().finish(&tasks[0].task.id, proof, None, None, done).await.unwrap();
            taken.push(tasks[0].task.id.to_string());
            // So that plain tasks are expected again.
            let plain = id(&format!("r{round}plain{}", taken.len()));
            client
                .tasks()
                .add(vec![NewTask { priority: 99, ..NewTask::new(plain, "a") }])
                .await
                .unwrap();
        }
        let expected: Vec<String> = (0..3).map(|number| format!("r{round}n{number}")).collect();
        assert_eq!(taken, expected, "round {round}");
        while let Claims::Claimed { tasks, .. } =
            client.tasks().claim(&ClaimRequest::default()).await.unwrap()
        {
            let proof = Proof::Grant(tasks[0].grant);
            let done = Finish::completed_with(&round).unwrap();
            client.tasks().finish(&tasks[0].task.id, proof, None, None, done).await.unwrap();
        }
    }
}

/// A claim of many leaves out what others are taking at the same time, and finds as many further back.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn batches_that_are_claimed_at_once_are_full() {
    const WORKERS: usize = 8;
    const BATCH: usize = 50;
    let url = fresh_url();
    let mut clients = Vec::new();
    for _ in 0..WORKERS {
        clients.push(Client::open(&url).await.unwrap());
    }
    for round in 0..3 {
        let task = |number| NewTask::new(id(&format!("r{round}n{number}")), "a task");
        clients[0].tasks().add((0..WORKERS * BATCH).map(task).collect()).await.unwrap();
        let claims = clients.iter().cloned().map(|client| {
            tokio::spawn(async move {
                let request = ClaimRequest { count: BATCH, ..ClaimRequest::default() };
                client.tasks().claim(&request).await.unwrap()
            })
        });
        for claim in claims.collect::<Vec<_>>() {
            let Claims::Claimed { tasks, .. } = claim.await.unwrap() else {
                panic!("nothing was claimed in round {round}");
            };
            assert_eq!(tasks.len(), BATCH, "round {round}");
        }
    }
}

/// Followers must not wait for transactions of others that have nothing to do with the store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_transaction_of_a_stranger_stops_no_follower() {
    let url = fresh_url();
    let (client, store) = (Client::open(&url).await.unwrap(), open(&url));
    client.acquire("first").await.unwrap().release().await.unwrap();
    let schema = schema_of(&url);
    let mut stranger = session(format!(
        "CREATE TABLE {schema}.strange (a int); BEGIN; INSERT INTO {schema}.strange VALUES (1);
         SELECT pg_sleep(20); COMMIT;"
    ));
    tokio::time::sleep(Duration::from_millis(300)).await;
    client.acquire("second").await.unwrap().release().await.unwrap();
    let events = Client::builder().with_store(store).unwrap();
    let events = events.events(Revision(0), u32::MAX).await.unwrap();
    assert_eq!(events.len(), 4, "{events:?}");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

/// Requests for several locks in different orders never wait for each other in a circle.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn locks_in_any_order_never_deadlock() {
    let url = fresh_url();
    let names = ["a", "b", "c", "path:src/**", "path:src/x"];
    let deadlocks = || {
        let sql = "SELECT sum(deadlocks) FROM pg_stat_database";
        psql(&shared_url(), sql).unwrap().parse::<u64>().unwrap_or(0)
    };
    let before = deadlocks();
    let workers = (0..12_usize).map(|worker| {
        let url = url.clone();
        tokio::spawn(async move {
            let client = Client::open(&url).await.unwrap();
            for round in 0..15 {
                let (one, other) =
                    (names[(worker + round) % 5], names[(worker * 3 + round + 1) % 5]);
                if one == other {
                    continue;
                }
                let held =
                    client.request(one).also(other).wait(Wait::Forever).hold().await.unwrap();
                held.into_result().unwrap().release().await.unwrap();
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    assert_eq!(deadlocks(), before, "deadlocks");
}

/// A task that is added while the one that it waits for is completed must not wait for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_task_added_beside_a_completion_becomes_ready() {
    let url = fresh_url();
    let client = Client::open(&url).await.unwrap();
    let adder = Client::open(&url).await.unwrap();
    for round in 0..25 {
        let first = format!("first{round}");
        client.tasks().add(vec![NewTask::new(id(&first), first.as_str())]).await.unwrap();
        let request = ClaimRequest { task: Some(id(&first)), ..ClaimRequest::default() };
        let Claims::Claimed { tasks, .. } = client.tasks().claim(&request).await.unwrap() else {
            panic!("{first} was not claimed");
        };
        let added = {
            let (adder, first) = (adder.clone(), first.clone());
            tokio::spawn(async move {
                for number in 0..4 {
                    let name = format!("{first}-after{number}");
                    let mut task = NewTask::new(id(&name), name.as_str());
                    task.depends_on = vec![id(&first)];
                    adder.tasks().add(vec![task]).await.unwrap();
                }
            })
        };
        let proof = Proof::Grant(tasks[0].grant);
        let done = Finish::Complete { result: None };
        client.tasks().finish(&id(&first), proof, Some(tasks[0].token), None, done).await.unwrap();
        added.await.unwrap();
    }
    let all = client.tasks().list(&Default::default()).await.unwrap();
    let stuck: Vec<_> =
        all.iter().filter(|task| task.status == Status::Pending && task.unmet > 0).collect();
    assert!(stuck.is_empty(), "{stuck:?}");
    assert_eq!(all.len(), 125);
}

/// Claimers that meet at the head of the list neither collide nor find nothing while there is some.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_claimer_finds_nothing_while_tasks_are_left() {
    let url = fresh_url();
    let client = Client::open(&url).await.unwrap();
    let tasks: Vec<NewTask> = (0..240)
        .map(|number| {
            let mut task = NewTask::new(id(&format!("t{number}")), "t");
            task.section = (number % 3 == 0).then(|| format!("s{}", number % 5));
            task.files = if number % 4 == 0 { vec![format!("src/{number}/**")] } else { vec![] };
            task
        })
        .collect();
    client.tasks().add(tasks).await.unwrap();
    let workers = (0..8).map(|_| {
        let url = url.clone();
        tokio::spawn(async move {
            let client = Client::open(&url).await.unwrap();
            let mut claimed = Vec::new();
            loop {
                match client.tasks().claim(&ClaimRequest::default()).await.unwrap() {
                    Claims::Claimed { tasks, .. } => {
                        let task = &tasks[0];
                        claimed.push(task.task.id.to_string());
                        let (proof, token) = (Proof::Grant(task.grant), Some(task.token));
                        let done = Finish::Complete { result: None };
                        client
                            .tasks()
                            .finish(&task.task.id, proof, token, None, done)
                            .await
                            .unwrap();
                    }
                    Claims::None(_) => {
                        let left = client.tasks().tallies().await.unwrap();
                        let pending = left.iter().filter(|tally| tally.status == Status::Pending);
                        if pending.map(|tally| tally.count).sum::<u64>() == 0 {
                            return claimed;
                        }
                    }
                }
            }
        })
    });
    let mut all = Vec::new();
    for worker in workers.collect::<Vec<_>>() {
        all.extend(worker.await.unwrap());
    }
    let different: HashSet<&String> = all.iter().collect();
    assert_eq!((all.len(), different.len()), (240, 240));
}

/// Whatever the role's defaults are: isolation, commits that are not synced, a time zone, a path.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn defaults_of_the_role_change_nothing() {
    let role = format!("odd_{}", std::process::id());
    let server = shared_url();
    psql(
        &server,
        &format!(
            "CREATE ROLE {role} LOGIN SUPERUSER;
             ALTER ROLE {role} SET default_transaction_isolation = 'serializable';
             ALTER ROLE {role} SET synchronous_commit = 'off';
             ALTER ROLE {role} SET timezone = 'Asia/Kolkata';
             ALTER ROLE {role} SET search_path = 'nowhere';
             ALTER ROLE {role} SET statement_timeout = '5s'"
        ),
    )
    .unwrap();
    let url = fresh_url().replace("postgres@", &format!("{role}@"));
    let workers = (0..6).map(|_| {
        let url = url.clone();
        tokio::spawn(async move {
            let client = Client::open(&url).await.unwrap();
            for _ in 0..10 {
                client.acquire("one").await.unwrap().release().await.unwrap();
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    let schema = schema_of(&url);
    psql(&server, &format!("DROP SCHEMA {schema} CASCADE; DROP ROLE {role}")).unwrap();
}

/// What waits holds no connection of the pool, which the release that ends the wait may need.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_wait_in_one_process_over_one_connection() {
    let client = Client::open(&format!("{}&pool=1", fresh_url())).await.unwrap();
    let held = client.acquire("a").await.unwrap();
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                let held = client.acquire("a").await?;
                held.release().await
            })
        })
        .collect();
    while client.look_everywhere().await.unwrap().waiters.len() < 50 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    held.release().await.unwrap();
    for waiter in waiting {
        assert_eq!(waiter.await.unwrap().unwrap(), tenure::ReleaseOutcome::Released);
    }
}
