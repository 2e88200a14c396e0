//! Many worker processes under kill -9 and SIGSTOP: every task is completed, each finish is
//! accepted once and from the latest claim only, and the count of attempts is that of the log.
//!
//! The workers are this very test program, started again with `worker_process` as its only test.

#![allow(clippy::print_stdout, reason = "what was measured or skipped is told")]

use rustix::process::{Pid, Signal, kill_process};
use std::collections::{HashMap, HashSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::core::rules::tasks::{Finish, Finished, ManualChange, NewTask};
use tenure::core::{EventKind, Revision, Status, Task, TaskId};
use tenure::store::TaskFilter;
use tenure::{ClaimRequest, Client, Runner, Swarm, Wait, Work, WorkEvent};

const FOLDER: &str = "SWARM_TEST_FOLDER";
const TTL_MS: &str = "SWARM_TEST_TTL_MS";
const STUBBORN: &str = "SWARM_TEST_STUBBORN";

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
        match variable(STUBBORN) {
            Some(_) => work_stubbornly(&client, request, folder).await,
            None => work_well(&client, request, folder).await,
        }
    });
}

/// How long a worker without work stays, should the test have forgotten it.
const IDLE: Duration = Duration::from_secs(20);

async fn work_well(client: &Client, request: ClaimRequest, folder: &Path) {
    let swarm = Swarm::new(client, request).forever().idle_exit(IDLE);
    let folder = folder.to_owned();
    let work = async |work: Arc<Work>| {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Finish::Complete { result: Some(work.lease().token.to_string()) }
    };
    let watcher = move |event| match event {
        WorkEvent::Finished { task, finish: Finish::Complete { result }, .. } => {
            note(&folder, &format!("accepted {} {}", task.id, result.unwrap_or_default()));
        }
        WorkEvent::Lost { task, .. } => {
            let token = task.claim.map(|claim| claim.token.to_string()).unwrap_or_default();
            note(&folder, &format!("lost {} {token}", task.id));
        }
        _ => {}
    };
    swarm.run(work, watcher).await.unwrap();
}

/// Never asks whether it still has its task: only the store can refuse what it says.
async fn work_stubbornly(client: &Client, request: ClaimRequest, folder: &Path) {
    let runner = Runner::new(client, request);
    while let tenure::Next::Work(work) = runner.next(Wait::UpTo(IDLE)).await.unwrap() {
        let (id, token) = (work.task().id.clone(), work.lease().token.to_string());
        std::thread::sleep(Duration::from_millis(30));
        let finish = Finish::Complete { result: Some(token.clone()) };
        let word = match runner.finish(work, finish).await.unwrap() {
            Finished::Done { .. } => "accepted",
            Finished::NotFound | Finished::NotYours(_) | Finished::ClaimLost { .. } => "lost",
        };
        note(folder, &format!("{word} {id} {token}"));
    }
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
    stubborn: bool,
    workers: Vec<Child>,
    numbers: Numbers,
}

impl Crowd {
    fn new(ttl: Duration, stubborn: bool) -> Crowd {
        let folder = tempfile::tempdir().unwrap();
        Crowd { folder, ttl, stubborn, workers: vec![], numbers: Numbers(1) }
    }

    fn gather(&mut self, workers: usize) {
        self.workers = (0..workers).map(|_| self.start()).collect();
    }

    fn disperse(&mut self) {
        for mut worker in self.workers.drain(..) {
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }

    fn start(&self) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "worker_process", "--ignored", "--nocapture"])
            .env(FOLDER, self.folder.path())
            .env(TTL_MS, self.ttl.as_millis().to_string())
            .envs(self.stubborn.then_some((STUBBORN, "1")))
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
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.disperse();
    }
}

/// How often a process is stopped. One that is stopped while it writes keeps all others from
/// writing: more often, and nobody else would get anything done.
const STOP_EVERY: Duration = Duration::from_millis(100);

/// Stops one process after another, each for so long, until told that all is done.
fn put_to_sleep(pids: Vec<Pid>, length: Duration, is_done: &std::sync::mpsc::Receiver<()>) {
    let mut numbers = Numbers(1);
    let mut asleep: Vec<(Pid, Instant)> = vec![];
    let pause = STOP_EVERY;
    while is_done.recv_timeout(pause) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
        let pid = pids[numbers.below(pids.len())];
        if asleep.len() < pids.len() / 2 && !asleep.iter().any(|(one, _)| *one == pid) {
            kill_process(pid, Signal::STOP).unwrap();
            asleep.push((pid, Instant::now()));
        }
        asleep.retain(|(pid, since)| {
            let goes_on = since.elapsed() < length;
            if !goes_on {
                kill_process(*pid, Signal::CONT).unwrap();
            }
            goes_on
        });
    }
    asleep.iter().for_each(|(pid, _)| kill_process(*pid, Signal::CONT).unwrap());
}

async fn add(client: &Client, count: usize) {
    let task = |n: usize| {
        let id: TaskId = format!("t{n}").parse().unwrap();
        let section = n.is_multiple_of(7).then(|| format!("s{}", n % 3));
        NewTask { section, ..NewTask::new(id, format!("task {n}")) }
    };
    client.tasks().add((0..count).map(task).collect()).await.unwrap();
}

/// Plays the operator, who takes back tasks and sets those that lost their workers too often to be
/// done again. Says whether all are done.
async fn look_after(client: &Client, begun: Instant) -> bool {
    let blocked = TaskFilter { status: Some(Status::Blocked), ..TaskFilter::default() };
    for task in client.tasks().list(&blocked).await.unwrap() {
        client.tasks().edit(&task.id, ManualChange::Retry).await.unwrap();
    }
    client.tasks().recover().await.unwrap();
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
            EventKind::HandedBack => history.since_retry -= 1,
            _ => {}
        }
    }
    histories
}

/// Shows the end of the test to be worth something: `kind` befell some worker in the middle.
async fn check(client: &Client, folder: &Path, count: usize, kind: &EventKind) {
    let events = client.events(Revision::default(), u32::MAX).await.unwrap();
    let times =
        |kind: &EventKind| events.iter().filter(|one| one.event.kind.word() == kind.word()).count();
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
    check_beliefs(folder, &histories);
}

/// Who was told that its finish counted is the one whose finish is in the log, and nobody was told
/// so twice; who was told that it had lost its claim is in the log with no finish.
fn check_beliefs(folder: &Path, histories: &HashMap<String, History>) {
    let beliefs = std::fs::read_to_string(folder.join("beliefs")).unwrap();
    let mut accepted = HashSet::new();
    for line in beliefs.lines() {
        let [word, id, token] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let completed = histories[id].completed.contains(&token.parse().unwrap());
        assert_eq!(completed, word == "accepted", "{line}");
        assert!(word != "accepted" || accepted.insert(id), "accepted twice: {line}");
    }
    let refused = beliefs.lines().filter(|line| line.starts_with("lost ")).count();
    println!("{} finishes accepted, {refused} refused or called off", accepted.len());
}

#[tokio::test]
async fn a_hundred_workers_that_are_killed_do_each_of_a_thousand_tasks_once() {
    const TASKS: usize = 1000;
    let mut crowd = Crowd::new(Duration::from_secs(30), false);
    let folder = crowd.folder.path().to_owned();
    let client = Client::open(&url(&folder)).await.unwrap();
    add(&client, TASKS).await;
    crowd.gather(100);
    let begun = Instant::now();
    while !look_after(&client, begun).await {
        crowd.kill_one();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    crowd.disperse();
    check(&client, &folder, TASKS, &EventKind::DIED).await;
}

#[tokio::test]
async fn a_hundred_workers_that_sleep_through_their_leases_do_each_of_a_thousand_tasks_once() {
    const TASKS: usize = 1000;
    let ttl = Duration::from_secs(1);
    let mut crowd = Crowd::new(ttl, true);
    let folder = crowd.folder.path().to_owned();
    let client = Client::open(&url(&folder)).await.unwrap();
    add(&client, TASKS).await;
    crowd.gather(100);
    let begun = Instant::now();
    // On a thread of its own: one that sleeps in the middle of a write keeps everybody else from
    // writing, us too, until it is woken.
    let pids = crowd.workers.iter().map(Pid::from_child).collect();
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let tormentor = std::thread::spawn(move || put_to_sleep(pids, ttl * 2, &is_done));
    while !look_after(&client, begun).await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(done);
    tormentor.join().unwrap();
    // Those that slept last wake up to find that their task is another's, and done.
    tokio::time::sleep(ttl).await;
    check(&client, &folder, TASKS, &EventKind::LAPSED).await;
    let beliefs = std::fs::read_to_string(folder.join("beliefs")).unwrap();
    let told = |word: &str| beliefs.lines().filter(|line| line.starts_with(word)).count();
    assert_eq!(told("accepted "), TASKS, "nobody was killed, so each learnt of its finish");
    assert!(told("lost ") > 0, "nobody finished too late: nothing was shown");
}
