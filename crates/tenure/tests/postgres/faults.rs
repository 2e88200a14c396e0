//! Workers under faults of the server and of the network, with a checker that knows nothing of the
//! store: a log that is fenced by tokens, and a count of tasks that were reported as done.
//!
//! `TENURE_FAULT_SECONDS` sets how long each fault is applied; a few seconds without it.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tenure::core::rules::tasks::{Finish, Finished, NewTask};
use tenure::core::{Proof, Status};
use tenure::{Attempt, ClaimRequest, Claims, Client, Wait};
use tenure_testkit::{Postgres, Proxy};

const WORKERS: usize = 6;
const LEASE: Duration = Duration::from_secs(3);

fn fault_time() -> Duration {
    let seconds = std::env::var("TENURE_FAULT_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(12))
}

/// What the checker has seen.
#[derive(Default)]
struct Seen {
    /// The highest token that wrote.
    highest: u64,
    writes: u64,
    /// Writes by a holder that trusted its lease although a higher token had written.
    stale: Vec<(u64, u64)>,
    /// By task, how often its completion was acknowledged.
    done: HashMap<String, u32>,
    last_progress: Option<Instant>,
    longest_pause: Duration,
}

impl Seen {
    fn progress(&mut self) {
        let now = Instant::now();
        if let Some(last) = self.last_progress.replace(now) {
            self.longest_pause = self.longest_pause.max(now - last);
        }
    }
}

struct Trial {
    seen: Mutex<Seen>,
    stop: AtomicBool,
    errors: AtomicU64,
}

/// Holds one lock again and again, and writes to the log while it trusts its lease.
async fn hold(trial: Arc<Trial>, url: String) {
    let client = Client::open(&url).await.unwrap();
    while !trial.stop.load(Ordering::SeqCst) {
        let wait = Wait::UpTo(Duration::from_secs(5));
        let held = match client.request("log").ttl(LEASE).wait(wait).hold().await {
            Ok(Attempt::Held(guard)) => guard,
            Ok(Attempt::Busy(_)) => continue,
            Err(_) => {
                trial.errors.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        for _ in 0..3 {
            {
                let mut seen = trial.seen.lock();
                // Asked inside, so that nobody writes between the answer and the write.
                if !held.is_held() {
                    break;
                }
                let token = held.token().0;
                if token < seen.highest {
                    let highest = seen.highest;
                    seen.stale.push((token, highest));
                }
                seen.highest = seen.highest.max(token);
                seen.writes += 1;
                seen.progress();
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        let _ = held.release().await;
    }
}

/// Claims and completes tasks.
async fn work(trial: Arc<Trial>, url: String) {
    let client = Client::open(&url).await.unwrap();
    let request = ClaimRequest { ttl: LEASE, section_ttl: LEASE, ..ClaimRequest::default() };
    while !trial.stop.load(Ordering::SeqCst) {
        let claimed = match client.tasks().claim(&request).await {
            Ok(Claims::Claimed { mut tasks, .. }) => tasks.remove(0),
            Ok(Claims::None(_)) => {
                tokio::time::sleep(Duration::from_millis(30)).await;
                continue;
            }
            Err(_) => {
                trial.errors.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let done = Finish::Complete { result: None };
        let (id, proof) = (claimed.task.id.clone(), Proof::Grant(claimed.grant));
        // An answer that was lost is asked for again: it must be the same.
        for _ in 0..20 {
            let token = Some(claimed.token);
            match client.tasks().finish(&id, proof.clone(), token, None, done.clone()).await {
                Ok(Finished::Done { .. }) => {
                    let mut seen = trial.seen.lock();
                    *seen.done.entry(id.to_string()).or_default() += 1;
                    seen.progress();
                    break;
                }
                Ok(_) => break,
                Err(_) => {
                    trial.errors.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
}

/// Runs workers while a fault is applied, and then until all tasks are done.
async fn trial(name: &str, url: &str, fault: impl FnOnce() + Send + 'static) {
    let trial = Arc::new(Trial {
        seen: Mutex::default(),
        stop: AtomicBool::new(false),
        errors: AtomicU64::new(0),
    });
    let client = Client::open(url).await.unwrap();
    let tasks: Vec<NewTask> = (0..400)
        .map(|number| {
            let mut task = NewTask::new(format!("t{number}").parse().unwrap(), "t");
            task.max_attempts = 1000;
            task.section = (number % 7 == 0).then(|| format!("s{}", number % 3));
            task
        })
        .collect();
    client.tasks().add(tasks).await.unwrap();
    let mut workers = Vec::new();
    for number in 0..WORKERS {
        let (trial, url) = (trial.clone(), url.to_owned());
        workers.push(match number % 2 {
            0 => tokio::spawn(hold(trial, url)),
            _ => tokio::spawn(work(trial, url)),
        });
    }
    tokio::task::spawn_blocking(fault).await.unwrap();
    let ended = Instant::now();
    let before = trial.seen.lock().writes;
    let patience = Duration::from_secs(90);
    let all_done = loop {
        let open = client.tasks().tallies().await.unwrap_or_default();
        let open: u64 =
            open.iter().filter(|tally| !tally.status.is_final()).map(|tally| tally.count).sum();
        if (open == 0 && trial.seen.lock().writes > before) || ended.elapsed() > patience {
            break open == 0;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    trial.stop.store(true, Ordering::SeqCst);
    for worker in workers {
        worker.await.unwrap();
    }
    let tasks = client.tasks().list(&Default::default()).await.unwrap();
    let seen = trial.seen.lock();
    println!(
        "{name}: {} writes, {} tasks acknowledged, {} errors seen by workers, longest pause {:?}, \
         all done {:?} after the fault",
        seen.writes,
        seen.done.len(),
        trial.errors.load(Ordering::Relaxed),
        seen.longest_pause,
        ended.elapsed()
    );
    assert!(seen.stale.is_empty(), "writes with old tokens: {:?}", seen.stale);
    assert!(all_done, "tasks are left");
    let lost: Vec<_> = tasks
        .iter()
        .filter(|task| seen.done.contains_key(task.id.as_str()) && task.status != Status::Completed)
        .collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    assert!(seen.writes > 0 && seen.done.len() > 300, "{} {}", seen.writes, seen.done.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_server_is_restarted_and_crashes() {
    let mut server = Postgres::start(&[]);
    let url = format!("{}?schema=s", server.url());
    trial("restart", &url, move || {
        let end = Instant::now() + fault_time();
        let mut round = 0;
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1500));
            match round % 2 {
                0 => server.stop(),
                _ => server.kill(),
            }
            std::thread::sleep(Duration::from_millis(500));
            server.run();
            round += 1;
        }
        // It runs on until the trial is over.
        Box::leak(Box::new(server));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_are_terminated() {
    let server = Arc::new(Postgres::start(&[]));
    let url = format!("{}?schema=s", server.url());
    let kept = server.clone();
    trial("terminated sessions", &url, move || {
        let end = Instant::now() + fault_time();
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(70));
            server.sql(
                "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
                 WHERE application_name = 'tenure' ORDER BY random() LIMIT 2) AS chosen",
            );
        }
    })
    .await;
    drop(kept);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn connections_are_cut_and_freeze() {
    let server = Postgres::start(&[]);
    let proxy = Proxy::to(server.port);
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres?schema=s", proxy.port);
    trial("cut connections", &url, move || {
        let end = Instant::now() + fault_time();
        let mut round = 0;
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(300));
            match round % 6 {
                5 => {
                    proxy.freeze();
                    std::thread::sleep(Duration::from_secs(4));
                    proxy.open();
                }
                2 => {
                    proxy.cut();
                    std::thread::sleep(Duration::from_millis(700));
                    proxy.open();
                }
                _ => proxy.drop_connections(),
            }
            round += 1;
        }
        proxy.open();
        Box::leak(Box::new(proxy));
    })
    .await;
    drop(server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stranger_keeps_locks_in_an_idle_transaction_and_connections_run_out() {
    let server = Arc::new(Postgres::start(&["max_connections=25"]));
    let url = format!("{}?schema=s&pool=2", server.url());
    let kept = server.clone();
    trial("stranger", &url, move || {
        let end = Instant::now() + fault_time();
        while Instant::now() < end {
            // All changes share one lock of the store; a stranger that takes rows blocks some.
            let _ = server.sql(
                "BEGIN; SELECT 1 FROM s.holds FOR UPDATE; SELECT 1 FROM s.meta FOR UPDATE;
                 SELECT pg_sleep(1.5); COMMIT;",
            );
            let sleepers: Vec<_> = (0..12)
                .map(|_| {
                    std::process::Command::new("psql")
                        .args(["-X", "-q", "-c", "SELECT pg_sleep(1)", &server.url()])
                        .stdout(std::process::Stdio::null())
                        .stderr(std::process::Stdio::null())
                        .spawn()
                        .unwrap()
                })
                .collect();
            for mut sleeper in sleepers {
                let _ = sleeper.wait();
            }
        }
    })
    .await;
    drop(kept);
}
