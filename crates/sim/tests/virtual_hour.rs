//! An hour of locks and tasks under a virtual world: renewals, a queue that is served in order, a
//! holder that is stopped and loses its lease, one that is killed, and a swarm whose tasks fail, run
//! out of time and are broken. The same seed gives the same log, entry by entry.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure::core::rules::tasks::{Finish, NewTask};
use tenure::core::{EventKind, Revision, Section, TaskId, WallTime};
use tenure::store::MemoryStore;
use tenure::store::Store;
use tenure::world::{Clock, VirtualWorld, World};
use tenure::{Attempt, ClaimRequest, Client, Guard, Swarm, SwarmReport, Wait, Work, WorkEvent};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// The first two runs have one seed, the third has another.
#[test]
fn the_same_seed_gives_the_same_hour() {
    let [first, again, other] = [7, 7, 8].map(run);
    assert_eq!(first.log, again.log);
    assert_eq!(first.report, again.report);
    assert_ne!(first.log, other.log, "grants and the times that tasks take come from the seed");
    for hour in [first, other] {
        check(&hour);
    }
}

/// What came of an hour.
struct Hour {
    /// What the parties noticed, and what the store recorded.
    log: Vec<String>,
    report: SwarmReport,
    kinds: Vec<EventKind>,
}

fn check(hour: &Hour) {
    let said = |words: &str| {
        let at = hour.log.iter().position(|line| line.contains(words));
        at.unwrap_or_else(|| panic!("{words:?} is not in the log:\n{}", hour.log.join("\n")))
    };
    let in_order = |lines: &[&str]| {
        let places: Vec<usize> = lines.iter().map(|words| said(words)).collect();
        assert!(places.is_sorted(), "{lines:?} are at {places:?}");
    };
    in_order(&["2400s alice gives deploy back", "2400s bob has deploy", "2460s carol has deploy"]);
    in_order(&["2460s carol has deploy", "2520s dave has deploy"]);
    // Erin was stopped five minutes after she got the lease, which was last renewed before that.
    in_order(&["300s erin is stopped", "frank has db", "420s erin lost db"]);
    in_order(&["600s grace is killed", "600s henry has index"]);
    said("3600s the hour is over");
    let count = |word: &str| hour.kinds.iter().filter(|kind| kind.word() == word).count();
    assert_eq!((count("lapsed"), count("died"), count("broken")), (1, 1, 1));
    assert_eq!(count("completed"), 12);
    assert_eq!(hour.report.completed, 12);
    // Two tasks fail twice before they succeed, and one never does: it runs out of time.
    assert_eq!((hour.report.retried, hour.report.failed, hour.report.lost), (5, 1, 1));
}

fn run(seed: u64) -> Hour {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(hour(seed))
}

/// Notes what happens, with the time since the beginning.
#[derive(Clone)]
struct Notes {
    lines: Arc<Mutex<Vec<String>>>,
    clock: Arc<dyn Clock>,
    begun: Duration,
}

impl Notes {
    fn say(&self, words: &str) {
        let at = self.clock.now().saturating_sub(self.begun).as_secs();
        self.lines.lock().unwrap().push(format!("{at}s {words}"));
    }
}

struct Scene {
    world: VirtualWorld,
    store: Arc<dyn Store>,
    notes: Notes,
}

impl Scene {
    fn new(seed: u64) -> Scene {
        let world = VirtualWorld::new(seed);
        let clock = world.clock();
        let store = Arc::new(MemoryStore::with_clock(clock.clone()));
        let notes = Notes { lines: Arc::default(), begun: clock.now(), clock };
        Scene { world, store, notes }
    }

    /// A client in a process of its own.
    fn party(&self, name: &'static str) -> Party {
        let world = self.world.start_process();
        let builder = Client::builder().label(name).world(world.clone());
        let client = builder.with_store(self.store.clone()).unwrap();
        Party { name, world, client, notes: self.notes.clone() }
    }

    async fn at(&self, time: Duration) {
        let now = self.notes.clock.now().saturating_sub(self.notes.begun);
        self.world.sleep(time.saturating_sub(now)).await;
    }
}

#[derive(Clone)]
struct Party {
    name: &'static str,
    world: VirtualWorld,
    client: Client,
    notes: Notes,
}

impl Party {
    fn say(&self, words: &str) {
        self.notes.say(&format!("{} {words}", self.name));
    }

    async fn hold(&self, resource: &str) -> Guard {
        let guard = self.client.acquire(resource).await.unwrap();
        self.say(&format!("has {resource} under {:?}", guard.grant()));
        guard
    }

    async fn give_back(&self, guard: Guard) {
        let resource = guard.lease().resources[0].clone();
        self.say(&format!("gives {resource} back"));
        guard.release().await.unwrap();
    }
}

async fn hour(seed: u64) -> Hour {
    let scene = Scene::new(seed);
    let alice = scene.party("alice");
    let guard = alice.hold("deploy").await;
    let mut waiting = Vec::new();
    for (number, name) in ["bob", "carol", "dave"].into_iter().enumerate() {
        let party = scene.party(name);
        waiting.push(tokio::spawn(async move {
            party.world.sleep(SECOND * (number as u32 + 1)).await;
            let guard = party.hold("deploy").await;
            party.world.sleep(MINUTE).await;
            party.give_back(guard).await;
        }));
    }
    waiting.push(tokio::spawn(is_stopped(scene.party("erin"), scene.party("frank"))));
    waiting.push(tokio::spawn(is_killed(scene.party("grace"), scene.party("henry"))));
    let report = tokio::spawn(swarm(scene.party("swarm"), scene.party("operator")));

    for minutes in [10, 20, 30, 40] {
        scene.at(MINUTE * minutes).await;
        assert!(guard.is_held(), "it is renewed");
    }
    alice.give_back(guard).await;
    for party in waiting {
        party.await.unwrap();
    }
    let report = report.await.unwrap();
    scene.at(HOUR).await;
    scene.notes.say("the hour is over");
    assert!(alice.client.look_everywhere().await.unwrap().holds.is_empty());
    let events = alice.client.events(Revision::default(), u32::MAX).await.unwrap();
    let mut log = std::mem::take(&mut *scene.notes.lines.lock().unwrap());
    log.extend(events.iter().map(line));
    Hour { log, report, kinds: events.into_iter().map(|event| event.event.kind).collect() }
}

fn line(event: &impl Debug) -> String {
    format!("{event:?}")
}

/// One holder is stopped for longer than its lease: a waiter gets what it held, and it learns of it.
async fn is_stopped(holder: Party, waiter: Party) {
    let guard = holder.hold("db").await;
    holder.world.sleep(5 * MINUTE).await;
    holder.say("is stopped");
    holder.world.stop();
    let next = waiter.hold("db").await;
    waiter.world.sleep(7 * MINUTE - (waiter.notes.clock.now() - waiter.notes.begun)).await;
    holder.world.resume();
    guard.lost().await;
    holder.say("lost db");
    assert!(!guard.is_held());
    drop(guard);
    waiter.give_back(next).await;
}

/// One holder is killed: its waiter need not wait for the lease to lapse.
async fn is_killed(holder: Party, waiter: Party) {
    let guard = holder.hold("index").await;
    let next = tokio::spawn({
        let waiter = waiter.clone();
        async move {
            let next = waiter.hold("index").await;
            waiter.give_back(next).await;
        }
    });
    holder.world.sleep(10 * MINUTE).await;
    holder.say("is killed");
    holder.world.kill();
    drop(guard);
    next.await.unwrap();
    let attempt = waiter.client.request("index").wait(Wait::No).hold().await.unwrap();
    assert!(matches!(attempt, Attempt::Held(_)));
}

fn id(name: &str) -> TaskId {
    name.parse().unwrap()
}

/// Three workers: tasks of a section that admits one at a time, tasks that fail and are tried again,
/// one that takes too long, one whose claim is broken, and one that has its time.
async fn swarm(party: Party, operator: Party) -> SwarmReport {
    let tasks = party.client.tasks();
    let section = Section::named("narrow");
    tasks.put_section(&section).await.unwrap();
    let in_a_while = WallTime(party.notes.clock.wall().0 + (15 * MINUTE).as_millis() as i64);
    let new = |number: u32| {
        let name = format!("t{number}");
        let mut task = NewTask::new(id(&name), &name);
        task.section = (number < 4).then(|| "narrow".to_owned());
        task.timeout = (number == 6).then_some(MINUTE);
        task.max_attempts = if number == 6 { 2 } else { 5 };
        task.not_before = (number == 7).then_some(in_a_while);
        task.depends_on = if number == 8 { vec![id("t4")] } else { vec![] };
        task
    };
    tasks.add((0..13).map(new).collect()).await.unwrap();
    let watcher = {
        let party = party.clone();
        move |event| match event {
            WorkEvent::Idle { worker } => party.say(&format!("worker {worker} is idle")),
            WorkEvent::Claimed { worker, task } => {
                party.say(&format!("worker {worker} took {}", task.id));
            }
            WorkEvent::Finished { worker, task, finish, took } => {
                let id = &task.id;
                party.say(&format!("worker {worker} ended {id}: {finish:?} after {took:?}"));
            }
            WorkEvent::Lost { worker, task } => {
                party.say(&format!("worker {worker} lost {}", task.id));
            }
            WorkEvent::Trouble { message, .. } => panic!("{message}"),
            WorkEvent::Ended { worker } => party.say(&format!("worker {worker} ended")),
        }
    };
    let work = {
        let world = party.world.clone();
        move |work: Arc<Work>| do_task(work, world.clone(), operator.clone())
    };
    let swarm =
        Swarm::new(&party.client, ClaimRequest::default()).workers(3).look_every(10 * SECOND);
    swarm.run(work, watcher).await.unwrap()
}

async fn do_task(work: Arc<Work>, world: VirtualWorld, operator: Party) -> Finish {
    let task = work.task();
    let takes = Duration::from_millis((world.random() % 200_000) as u64);
    match task.title.as_str() {
        "t4" | "t5" if task.attempts < 3 => {
            Finish::Fail { reason: "not yet".to_owned(), retry: true }
        }
        "t6" => std::future::pending().await,
        "t9" if task.attempts == 1 => {
            let (resource, token) = (task.id.resource(), work.lease().token);
            operator.client.break_hold(&resource, token, "to see it").await.unwrap();
            std::future::pending().await
        }
        _ => {
            world.sleep(takes).await;
            Finish::Complete { result: None }
        }
    }
}
