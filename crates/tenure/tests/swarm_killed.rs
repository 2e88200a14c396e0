//! Many worker processes under kill -9 and SIGSTOP: every task is completed, each finish is
//! accepted once and from the latest claim only, and the count of attempts is that of the log.
//!
//! The workers are this very test program, started again with `worker_process` as its only test.

#![allow(clippy::print_stdout, reason = "what was measured or skipped is told")]
#![cfg(unix)]

use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tenure::core::rules::tasks::{Finish, HandVerb, NewTask};
use tenure::core::{EventKind, Revision, Status, Task, TaskId};
use tenure::store::TaskFilter;
use tenure::{ClaimRequest, Client, Swarm, WorkEvent};

const FOLDER: &str = "SWARM_TEST_FOLDER";
const TTL_MS: &str = "SWARM_TEST_TTL_MS";

/// A broken swarm would go on for ever.
const PATIENCE: Duration = Duration::from_secs(300);

#[expect(clippy::disallowed_methods, reason = "how the test speaks to its own workers")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn url(folder: &Path) -> String {
    format!("sqlite:{}", folder.join("tenure.db").display())
}

/// What a worker believes: a line for each finish that was accepted, and each claim that was lost.
fn note(folder: &Path, line: &str) {
    let mut file =
        OpenOptions::new().create(true).append(true).open(folder.join("beliefs")).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

#[test]
#[ignore = "one worker of the tests below, not a test"]
fn worker_process() {
    let Some(folder) = variable(FOLDER) else { return };
    let folder = Path::new(&folder);
    let ttl = Duration::from_millis(variable(TTL_MS).unwrap().parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::open(&url(folder)).await.unwrap();
        let request = ClaimRequest { ttl, section_ttl: ttl, ..ClaimRequest::default() };
        let swarm = Swarm::new(&client, request).forever().idle_exit(Duration::from_secs(20));
        let work = async |work: &tenure::Work| {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Finish::Complete { result: Some(work.lease().token.to_string()) }
        };
        let watcher = |event| match event {
            WorkEvent::Finished { task, finish: Finish::Complete { result }, .. } => {
                note(folder, &format!("accepted {} {}", task.id, result.unwrap_or_default()));
            }
            WorkEvent::Lost { task, .. } => {
                let token = task.claim.map(|claim| claim.token.to_string()).unwrap_or_default();
                note(folder, &format!("lost {} {token}", task.id));
            }
            _ => {}
        };
        swarm.run(work, watcher).await.unwrap();
    });
}

/// A handful of numbers that look random; the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % limit
    }
}

struct Crowd {
    folder: tempfile::TempDir,
    ttl: Duration,
    workers: Vec<Child>,
    numbers: Numbers,
}

impl Crowd {
    fn new(workers: usize, ttl: Duration) -> Crowd {
        let folder = tempfile::tempdir().unwrap();
        let mut crowd = Crowd { folder, ttl, workers: vec![], numbers: Numbers(1) };
        crowd.workers = (0..workers).map(|_| crowd.start()).collect();
        crowd
    }

    fn start(&self) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "worker_process", "--ignored", "--nocapture"])
            .env(FOLDER, self.folder.path())
            .env(TTL_MS, self.ttl.as_millis().to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap()
    }

    fn kill_one(&mut self) {
        let index = self.numbers.below(self.workers.len());
        let _ = self.workers[index].kill();
        let _ = self.workers[index].wait();
        self.workers[index] = self.start();
    }

    fn signal(&self, index: usize, signal: Signal) {
        let pid = Pid::from_child(&self.workers[index]);
        let _ = kill_process(pid, signal);
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

async fn add(client: &Client, count: usize) {
    let task = |n: usize| {
        let id: TaskId = format!("t{n}").parse().unwrap();
        let section = n.is_multiple_of(7).then(|| format!("s{}", n % 3));
        NewTask { section, ..NewTask::new(id, format!("task {n}")) }
    };
    client.tasks().add((0..count).map(task).collect()).await.unwrap();
}

/// Plays the operator, who sets tasks that lost their workers too often to be done again. Says
/// whether all are done.
async fn look_after(client: &Client, begun: Instant) -> bool {
    let blocked = TaskFilter { status: Some(Status::Blocked), ..TaskFilter::default() };
    for task in client.tasks().list(&blocked).await.unwrap() {
        client.tasks().edit(&task.id, HandVerb::Retry).await.unwrap();
    }
    let tallies = client.tasks().tallies().await.unwrap();
    assert!(begun.elapsed() < PATIENCE, "not done in time: {tallies:?}");
    tallies.iter().all(|tally| tally.status == Status::Completed || tally.count == 0)
}

/// What the log says of a task.
#[derive(Default)]
struct History {
    claimed: Vec<u64>,
    completed: Vec<u64>,
    /// Retried by hand: the count of attempts begins anew.
    since_retry: u32,
}

async fn histories(client: &Client) -> HashMap<String, History> {
    let mut histories = HashMap::<String, History>::new();
    for event in client.events(Revision::default(), u32::MAX).await.unwrap() {
        let Some(resource) = event.event.resource else { continue };
        if resource.kind() != tenure::core::Kind::Task {
            continue;
        }
        let history = histories.entry(resource.name().to_owned()).or_default();
        let token = event.event.token.map_or(0, |token| token.0);
        match event.event.kind {
            EventKind::Acquired { .. } => {
                history.claimed.push(token);
                history.since_retry += 1;
            }
            EventKind::Completed => history.completed.push(token),
            EventKind::Retried => history.since_retry = 0,
            _ => {}
        }
    }
    histories
}

/// Shows the end of the test to be worth something: `kind` befell some worker in the middle.
async fn check(client: &Client, folder: &Path, count: usize, kind: &EventKind) {
    let events = client.events(Revision::default(), u32::MAX).await.unwrap();
    let times = |kind: &EventKind| events.iter().filter(|one| one.event.kind == *kind).count();
    println!("{} x {}, {} x recovered", times(kind), kind.word(), times(&EventKind::Recovered));
    assert!(times(kind) > 0 && times(&EventKind::Recovered) > 0, "nothing happened");

    let tasks: Vec<Task> = client.tasks().list(&TaskFilter::default()).await.unwrap();
    assert_eq!(tasks.len(), count);
    let histories = histories(client).await;
    for task in &tasks {
        let history = &histories[task.id.as_str()];
        let latest = *history.claimed.last().unwrap();
        assert_eq!(task.status, Status::Completed, "{}", task.id);
        assert_eq!(history.completed, [latest], "{}: {:?}", task.id, history.claimed);
        assert!(history.claimed.is_sorted_by(|a, b| a < b), "{}: {:?}", task.id, history.claimed);
        assert_eq!(task.attempts, history.since_retry, "{}", task.id);
        assert_eq!(task.result, Some(latest.to_string()), "{}", task.id);
    }
    let beliefs = std::fs::read_to_string(folder.join("beliefs")).unwrap();
    for line in beliefs.lines() {
        let [word, id, token] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let completed = histories[id].completed.contains(&token.parse().unwrap());
        assert_eq!(completed, word == "accepted", "{line}");
    }
}

#[tokio::test]
async fn a_thousand_tasks_are_done_once_by_workers_that_are_killed() {
    const TASKS: usize = 1000;
    let mut crowd = Crowd::new(0, Duration::from_secs(30));
    let folder = crowd.folder.path().to_owned();
    let client = Client::open(&url(&folder)).await.unwrap();
    add(&client, TASKS).await;
    crowd.workers = (0..100).map(|_| crowd.start()).collect();
    let begun = Instant::now();
    while !look_after(&client, begun).await {
        crowd.kill_one();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    drop(
        std::mem::take(&mut crowd.workers)
            .into_iter()
            .map(|mut worker| {
                let _ = worker.kill();
                worker.wait()
            })
            .collect::<Vec<_>>(),
    );
    check(&client, &folder, TASKS, &EventKind::Died).await;
}

#[tokio::test]
async fn workers_that_slept_through_their_lease_are_refused() {
    const TASKS: usize = 300;
    let ttl = Duration::from_secs(1);
    let mut crowd = Crowd::new(0, ttl);
    let folder = crowd.folder.path().to_owned();
    let client = Client::open(&url(&folder)).await.unwrap();
    add(&client, TASKS).await;
    crowd.workers = (0..20).map(|_| crowd.start()).collect();
    let begun = Instant::now();
    let mut asleep: Vec<(usize, Instant)> = vec![];
    while !look_after(&client, begun).await {
        let index = crowd.numbers.below(crowd.workers.len());
        if asleep.len() < crowd.workers.len() / 2 && !asleep.iter().any(|(one, _)| *one == index) {
            crowd.signal(index, Signal::STOP);
            asleep.push((index, Instant::now()));
        }
        asleep.retain(|(index, since)| {
            let slept_enough = since.elapsed() > ttl * 2;
            if slept_enough {
                crowd.signal(*index, Signal::CONT);
            }
            !slept_enough
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Those still asleep wake up to find that their task is another's, and done.
    asleep.iter().for_each(|(index, _)| crowd.signal(*index, Signal::CONT));
    tokio::time::sleep(ttl).await;
    check(&client, &folder, TASKS, &EventKind::Lapsed).await;
}
