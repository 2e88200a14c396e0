//! Processes increment a file under one lock while some of them are killed or stopped.
//!
//! Each worker, while it holds the lock, notes in a log of its own under which token it began and
//! when, replaces the file by one with the next value, and then notes the value: that is the
//! acknowledgement. All workers build the new file under the same name and in two writes, so that
//! two of them at once would tear it. Every second one that is killed is asked to stay where it is
//! while it holds, just before or just after it has replaced the file, and killed there; the others
//! are killed wherever they are.

use crate::roles::variable;
use crate::support::{Dice, Engine, Over, PATIENCE, Running, Signal, StoreLocation};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tenure::ReleaseOutcome;
use tenure::blocking::{Attempt, Client};

/// So long that a test which waited for it would fail.
const LEASE: Duration = Duration::from_secs(600);

/// Nanoseconds on the clock that all processes share.
fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The value in the file. Each is written twice, so that half of one would be noticed.
fn read_counter(folder: &Path) -> u64 {
    let text = std::fs::read_to_string(folder.join("counter")).expect("the counter");
    let halves = text.strip_suffix('\n').and_then(|line| line.split_once(' '));
    let (one, two) = halves.unwrap_or_else(|| panic!("a torn value: {text:?}"));
    assert_eq!(one, two, "a torn value");
    one.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

/// Replaces the file in one step, having built the new one in two. The two files change places, so
/// that no disk has to be waited for.
fn write_counter(folder: &Path, value: u64) {
    let (old, new) = (folder.join("counter"), folder.join("counter.new"));
    let file = OpenOptions::new().write(true).open(&new).expect("the new file");
    file.write_all_at(format!("{value:020} ").as_bytes(), 0).expect("its first half");
    file.write_all_at(format!("{value:020}\n").as_bytes(), 21).expect("its second half");
    renameat_with(CWD, &new, CWD, &old, RenameFlags::EXCHANGE).expect("the new file in place");
}

/// The worker: increments until there is a file `stop`.
pub fn increment() {
    let folder = std::env::current_dir().expect("the scratch folder");
    let client = Client::open(&variable("URL")).expect("the store");
    let mut log = File::create_new(folder.join(variable("LOG"))).expect("a log");
    // One write each: a line is there or it is not.
    let mut note = |line: String| log.write_all(line.as_bytes()).expect("a line in the log");
    while !folder.join("stop").exists() {
        let request = client.request("counter").ttl(LEASE);
        let Attempt::Held(guard) = client.hold(request).expect("an answer") else {
            panic!("a request without a limit was given up");
        };
        note(format!("begun {} {}\n", guard.token(), now()));
        let value = read_counter(&folder) + 1;
        let early = value.is_multiple_of(2);
        stay_if_asked(&folder, early);
        write_counter(&folder, value);
        stay_if_asked(&folder, !early);
        note(format!("done {} {} {value}\n", guard.token(), now()));
        assert_eq!(guard.release().expect("an answer"), ReleaseOutcome::Released);
    }
}

/// Waits to be killed here, if that is wanted.
fn stay_if_asked(folder: &Path, here: bool) {
    if here && folder.join("stay").exists() {
        let me = format!("{}\n", std::process::id());
        std::fs::write(folder.join("staying"), me).expect("a note of who stays");
        std::thread::sleep(PATIENCE);
    }
}

/// A worker as the test sees it.
struct Worker {
    /// `None` once it was killed and collected.
    running: Option<Running>,
    log: String,
    /// Just before it was killed.
    killed_at: Option<u64>,
    /// Acknowledgements counted in its log, and how far the log was read for that.
    acknowledged: usize,
    read: usize,
}

/// One act of holding, as logged.
#[derive(Debug)]
struct Hold {
    token: u64,
    begun: u64,
    /// When it was done, or when its holder was killed.
    ended: u64,
    /// What it acknowledged; nothing if it was killed before.
    value: Option<u64>,
}

struct Fleet<'a> {
    place: &'a StoreLocation,
    workers: Vec<Worker>,
}

impl Fleet<'_> {
    fn hire(&mut self) {
        let log = format!("log.{}", self.workers.len());
        let mut command = self.place.role("increment");
        command.env("LOG", &log);
        let running = Some(Running::start(command));
        self.workers.push(Worker { running, log, killed_at: None, acknowledged: 0, read: 0 });
    }

    fn alive(&self) -> Vec<usize> {
        let alive = self.workers.iter().enumerate().filter(|(_, w)| w.running.is_some());
        alive.map(|(index, _)| index).collect()
    }

    /// Has the next one that holds stay where it is, and returns it.
    fn holder(&self) -> usize {
        self.place.touch("stay");
        let pid = self.place.number("staying");
        std::fs::remove_file(self.place.path("stay")).expect("a file");
        std::fs::remove_file(self.place.path("staying")).expect("a file");
        let is_it = |worker: &Worker| worker.running.as_ref().is_some_and(|r| r.id() == pid);
        self.workers.iter().position(is_it).expect("one that is alive")
    }

    fn kill(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        let mut running = worker.running.take().expect("one that is alive");
        assert!(!running.has_ended(), "it ended by itself: {:?}", running.end());
        worker.killed_at = Some(now());
        running.signal(Signal::KILL);
        running.end();
    }

    /// How many increments have been acknowledged by now.
    fn acknowledged(&mut self) -> usize {
        for worker in &mut self.workers {
            let log = self.place.read(&worker.log);
            let new = log[worker.read..].rsplit_once('\n').map_or("", |(lines, _)| lines);
            worker.acknowledged += new.lines().filter(|line| line.starts_with("done")).count();
            worker.read += new.len();
        }
        self.workers.iter().map(|worker| worker.acknowledged).sum()
    }

    /// All holds of all workers, in the order of their beginnings.
    fn holds(&self) -> Vec<Hold> {
        let mut holds: Vec<Hold> = self.workers.iter().flat_map(|w| self.holds_of(w)).collect();
        holds.sort_by_key(|hold| hold.begun);
        holds
    }

    fn holds_of(&self, worker: &Worker) -> Vec<Hold> {
        let mut holds: Vec<Hold> = Vec::new();
        for line in self.place.read(&worker.log).lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |index: usize| words[index].parse::<u64>().expect("a number in a log");
            match words[0] {
                "begun" => holds.push(Hold {
                    token: number(1),
                    begun: number(2),
                    ended: worker.killed_at.unwrap_or(u64::MAX),
                    value: None,
                }),
                _ => {
                    let hold = holds.last_mut().expect("a beginning before an end");
                    assert_eq!((hold.token, hold.value), (number(1), None), "{}", worker.log);
                    (hold.ended, hold.value) = (number(2), Some(number(3)));
                }
            }
        }
        let unfinished = holds.iter().rev().skip(1).filter(|hold| hold.value.is_none()).count();
        assert_eq!(unfinished, 0, "{} went on without finishing", worker.log);
        holds
    }
}

/// Tokens rise, and no hold begins before the one before it has ended.
fn check_exclusion(holds: &[Hold]) {
    for pair in holds.windows(2) {
        assert!(pair[0].token < pair[1].token, "tokens do not rise: {pair:?}");
        assert!(pair[0].ended <= pair[1].begun, "two hold at once: {pair:?}");
    }
}

/// Each hold built on what the one before it wrote. One that was killed may have written without
/// acknowledging it, but nothing else explains a gap.
fn check_values(holds: &[Hold], shown: u64) {
    let (mut last, mut unsure) = (0, 0);
    for hold in holds {
        match hold.value {
            Some(value) => {
                let expected = last + 1..=last + 1 + unsure;
                assert!(expected.contains(&value), "{hold:?} after {last} and {unsure} killed");
                (last, unsure) = (value, 0);
            }
            None => unsure += 1,
        }
    }
    assert!((last..=last + unsure).contains(&shown), "{shown} after {last} and {unsure} killed");
}

fn tell(holds: &[Hold], killed: usize, took: Duration) {
    let takeovers = holds.windows(2).filter(|pair| pair[0].value.is_none());
    let times: Vec<u64> = takeovers.map(|pair| pair[1].begun - pair[0].ended).collect();
    let longest = times.iter().max().copied().unwrap_or(0);
    println!(
        "{} holds in {took:.1?}; {killed} workers killed, {} of them while they held; \
         longest takeover {:.1?}",
        holds.len(),
        times.len(),
        Duration::from_nanos(longest)
    );
    assert_eq!(times.is_empty(), killed == 0, "killed, but never a holder");
}

/// Lets workers increment until so many increments are acknowledged, disturbing them meanwhile;
/// then checks all that they did.
fn increment_under(
    place: &StoreLocation,
    workers: usize,
    increments: usize,
    mut disturb: impl FnMut(&mut Fleet<'_>),
) {
    ["counter", "counter.new"].iter().for_each(|name| place.touch(name));
    write_counter(&place.path(""), 0);
    let mut fleet = Fleet { place, workers: vec![] };
    (0..workers).for_each(|_| fleet.hire());

    let begun = Instant::now();
    std::thread::scope(|scope| {
        let over = Over::default();
        let flag = over.flag();
        let watching = scope.spawn(|| watch(place, flag));
        let (mut most, mut progress) = (0, Instant::now());
        while most < increments && !watching.is_finished() {
            let acknowledged = fleet.acknowledged();
            let shown = read_counter(&place.path(""));
            assert!(shown >= acknowledged as u64, "{shown} is shown, {acknowledged} were done");
            if acknowledged > most {
                (most, progress) = (acknowledged, Instant::now());
            }
            assert!(progress.elapsed() < PATIENCE, "nobody got the lock for long, at {most}");
            disturb(&mut fleet);
        }
    });
    let took = begun.elapsed();

    place.touch("stop");
    for index in fleet.alive() {
        let ended = fleet.workers[index].running.take().expect("one that is alive").end();
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
    }
    let holds = fleet.holds();
    check_exclusion(&holds);
    check_values(&holds, read_counter(&place.path("")));
    tell(&holds, fleet.workers.len() - workers, took);
    assert_eq!(place.run(&["run", "-n", "counter", "--", "true"]).code, 0);
    assert_eq!(place.run(&["doctor"]).code, 0);
}

/// Reads the file all the while: it is never torn and never falls.
fn watch(place: &StoreLocation, over: Arc<AtomicBool>) {
    let mut last = 0;
    while !over.load(Ordering::Relaxed) {
        let shown = read_counter(&place.path(""));
        assert!(shown >= last, "{shown} after {last}");
        last = shown;
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn fifty_processes_increment_a_file_while_one_is_killed_every_50_ms() {
    increment_while_killing(Engine::Sqlite, 50, 10_000);
}

#[test]
fn processes_that_are_killed_lose_and_repeat_no_increment_with_files_either() {
    increment_while_killing(Engine::Files, 16, 3_000);
}

fn increment_while_killing(engine: Engine, workers: usize, increments: usize) {
    let mut dice = Dice::new();
    let mut killed = 0;
    increment_under(&StoreLocation::with(engine), workers, increments, |fleet| {
        std::thread::sleep(Duration::from_millis(50));
        let alive = fleet.alive();
        let victim = match killed % 2 {
            0 => alive[dice.below(alive.len())],
            _ => fleet.holder(),
        };
        fleet.kill(victim);
        fleet.hire();
        killed += 1;
    });
}

#[test]
fn processes_that_are_stopped_and_continued_at_any_moment_delay_others_and_break_nothing() {
    increment_while_stopping(Engine::Sqlite, 2_000);
}

#[test]
fn processes_that_are_stopped_and_continued_break_nothing_with_files_either() {
    increment_while_stopping(Engine::Files, 1_000);
}

fn increment_while_stopping(engine: Engine, increments: usize) {
    let mut dice = Dice::new();
    increment_under(&StoreLocation::with(engine), 10, increments, |fleet| {
        let alive = fleet.alive();
        let stopped = [0; 3].map(|_| alive[dice.below(alive.len())]);
        let signal = |which| {
            for index in stopped {
                fleet.workers[index].running.as_ref().expect("one that is alive").signal(which);
            }
        };
        signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(dice.below(20) as u64));
        signal(Signal::CONT);
        std::thread::sleep(Duration::from_millis(dice.below(10) as u64));
    });
}
