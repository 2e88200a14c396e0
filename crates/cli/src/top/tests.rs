//! Whole screens, drawn into memory.

use super::keys::{Pane, State};
use super::model::{ClaimedTask, Held, ViewData, Worker};
use super::text::Theme;
use super::view;
use super::watch::{Health, LatestData};
use insta::assert_snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::core::{
    Claim, Counts, Event, EventKind, GrantId, Hold, HoldSnapshot, HoldState, Holder, Kind,
    Liveness, Mode, NewEvent, Resource, Revision, Section, SectionSnapshot, Status, Task, Token,
    Waiter, WaiterSnapshot, WallTime, Want,
};
use tenure::store::Tally;

/// 2026-01-02 03:04:05.
const NOW: i64 = 1_767_323_045_000;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn before(seconds: i64) -> WallTime {
    WallTime(NOW - seconds * 1000)
}

fn want(resource: &str) -> Want {
    Want { resource: resource.parse().unwrap(), mode: Mode::Exclusive }
}

fn holder(label: &str) -> Holder {
    Holder { label: label.to_owned(), chosen: true, agent: false, evidence: None }
}

fn held(resource: &str, label: &str, operation: Option<&str>, token: u64, left: u64) -> Held {
    let hold = Hold {
        want: want(resource),
        grant: GrantId::random(),
        token: Token(token),
        holder: holder(label),
        operation: operation.map(str::to_owned),
        ttl: seconds(30),
        slot: None,
    };
    let seen = HoldSnapshot {
        hold,
        left: seconds(left),
        held_for: seconds(75),
        acquired_at: before(75),
        renewed_at: before(30 - left as i64),
        expires_at: before(-(left as i64)),
        stale: None,
    };
    let stale = (left == 0).then(|| "lease lapsed".to_owned());
    let state = if left == 0 { HoldState::Lapsed } else { HoldState::Held };
    Held { seen, state, stale, waiters: vec![] }
}

fn waiter(label: &str, operation: &str) -> WaiterSnapshot {
    let waiter = Waiter {
        grant: GrantId::random(),
        ticket: 1,
        wants: vec![want("deploy")],
        holder: holder(label),
        operation: Some(operation.to_owned()),
        keeps: vec![],
        ttl: seconds(30),
    };
    WaiterSnapshot {
        waiter,
        left: seconds(20),
        waited_for: seconds(12),
        waiting_since: before(12),
        woken_for: None,
    }
}

fn task(id: &str, title: &str, section: Option<&str>, by: &str) -> ClaimedTask {
    let mut task = Task::new(id.parse().unwrap(), title, before(4000));
    task.section = section.map(str::to_owned);
    task.status = Status::InProgress;
    task.age = 1;
    task.attempts = 1;
    task.claim = Some(Claim::new(by, GrantId::random(), Token(9)));
    task.claimed_at = Some(before(200));
    ClaimedTask { task, stale: None, json: Value::Null }
}

fn event(
    revision: u64,
    ago: i64,
    resource: &str,
    label: &str,
    token: u64,
    kind: EventKind,
) -> Event {
    let resource = Some(resource.parse().unwrap());
    let event = NewEvent::new(resource, label, Some(Token(token)), kind);
    Event::new(Revision(revision), before(ago), event)
}

fn worker(label: &str, liveness: Liveness, locks: &[&str], tasks: &[(&str, &str)]) -> Worker {
    let owned = |(id, title): &(&str, &str)| (id.to_string(), title.to_string());
    Worker {
        label: label.to_owned(),
        host: Some("build-7".to_owned()),
        pid: Some(4711),
        liveness,
        is_idle: false,
        is_gone: liveness == Liveness::Dead,
        held_for: seconds(75),
        left: Some(seconds(18)),
        locks: locks.iter().map(|lock| lock.to_string()).collect(),
        tasks: tasks.iter().map(owned).collect(),
        json: serde_json::Value::Null,
    }
}

fn tally(section: Option<&str>, status: Status, count: u64) -> Tally {
    Tally { section: section.map(str::to_owned), status, count }
}

fn acquired() -> EventKind {
    EventKind::Acquired { operation: None }
}

fn busy() -> ViewData {
    let mut deploy = held("deploy", "alice", Some("release 4.2"), 12, 24);
    deploy.waiters = vec![waiter("bob", "hotfix"), waiter("carol", "docs")];
    let paused = Section { paused: true, ..Section::named("backend") };
    ViewData {
        store: "sqlite:/srv/shop/.tenure/tenure.db".to_owned(),
        engine: "sqlite 3.51".to_owned(),
        local: true,
        revision: Revision(40),
        now: WallTime(NOW),
        locks: vec![
            deploy,
            held("path:src/**", "agent-1", None, 9, 9),
            held("section:backend", "agent-2", None, 7, 3),
            held("backup", "cron", Some("nightly"), 3, 0),
        ],
        counts: Counts { held: 3, lapsed: 1, dead: 0, waiting: 2, workers: 2 },
        free_queues: vec![],
        tallies: vec![
            tally(None, Status::Pending, 3),
            tally(Some("backend"), Status::Completed, 30),
            tally(Some("backend"), Status::InProgress, 2),
            tally(Some("backend"), Status::Pending, 8),
            tally(Some("frontend"), Status::Blocked, 1),
            tally(Some("frontend"), Status::Completed, 1),
        ],
        sections: [(paused, 10), (Section::named("frontend"), 1)]
            .map(|(section, open)| SectionSnapshot { section, open })
            .to_vec(),
        lost_claims: 0,
        tasks: vec![
            task("t-1", "Write the importer", Some("backend"), "agent-1"),
            task("t-2", "Fix the flaky test of the cart", Some("backend"), "agent-2"),
        ],
        stuck: vec![],
        workers: vec![
            worker("agent-1", Liveness::Alive, &["path:src/**"], &[("t-1", "Write the importer")]),
            worker("alice", Liveness::Unknown, &["deploy"], &[]),
            worker("cron", Liveness::Dead, &["backup"], &[]),
        ],
        events: vec![
            event(30, 110, "deploy", "dave", 5, acquired()),
            event(31, 100, "task:t-0", "agent-1", 6, acquired()),
            event(
                32,
                90,
                "deploy",
                "dave",
                5,
                EventKind::Broken { by: "root".to_owned(), reason: "gone home".to_owned() },
            ),
            event(33, 80, "task:t-0", "agent-1", 6, EventKind::Completed),
            event(34, 75, "deploy", "alice", 12, acquired()),
        ],
    }
}

fn screen(width: u16, height: u16, data: ViewData, state: &mut State) -> String {
    screen_of(width, height, data, Health::Live, state)
}

fn screen_of(width: u16, height: u16, data: ViewData, health: Health, state: &mut State) -> String {
    let latest = LatestData { data: Arc::new(data), health, looked_at: Instant::now() };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let theme = Theme { colours: false };
    terminal.draw(|frame| view::draw(frame, &latest, state, theme, seconds(1))).unwrap();
    terminal.backend().to_string()
}

fn at(pane: Pane) -> State {
    State { pane, ..State::default() }
}

#[test]
fn nothing_is_held() {
    let nowhere = screen_of(80, 24, ViewData::default(), Health::NoStore, &mut State::default());
    assert_snapshot!("no_store", nowhere);
    let data = ViewData {
        store: "sqlite:x.db".to_owned(),
        engine: "sqlite 3.51".to_owned(),
        ..ViewData::default()
    };
    assert_snapshot!("empty", screen(80, 24, data, &mut State::default()));
}

#[test]
fn each_pane_on_a_usual_terminal() {
    for (pane, name) in Pane::ALL.into_iter().zip(["locks", "tasks", "workers", "events"]) {
        assert_snapshot!(name, screen(80, 24, busy(), &mut at(pane)));
    }
}

#[test]
fn failed_and_blocked_tasks_and_idle_workers_are_shown() {
    let stuck = |id: &str, status| {
        let mut stuck = task(id, id, Some("backend"), "x").task;
        stuck.status = status;
        stuck
    };
    let idle = Worker { is_idle: true, ..worker("agent-9", Liveness::Alive, &[], &[]) };
    let data = ViewData {
        stuck: vec![stuck("t-7", Status::Failed), stuck("t-8", Status::Blocked)],
        workers: vec![idle],
        ..busy()
    };
    let tasks = screen(80, 24, data.clone(), &mut at(Pane::Tasks));
    for words in ["t-7", "failed", "t-8", "blocked", "Write the importer"] {
        assert!(tasks.contains(words), "{words} is missing:\n{tasks}");
    }
    let workers = screen(80, 24, data, &mut at(Pane::Workers));
    assert!(workers.contains("agent-9") && workers.contains("idle"), "{workers}");
}

#[test]
fn everything_on_a_large_terminal() {
    assert_snapshot!(screen(140, 40, busy(), &mut State::default()));
}

#[test]
fn a_narrow_terminal_shows_what_matters_most() {
    let panes = Pane::ALL.map(|pane| screen(40, 12, busy(), &mut at(pane)));
    assert_snapshot!(panes.join("\n"));
}

#[test]
fn help_and_search() {
    let mut state = State { help: true, ..State::default() };
    assert_snapshot!("help", screen(80, 24, busy(), &mut state));
    let mut state = State { search: "DEPLOY".to_owned(), ..State::default() };
    assert_snapshot!("search", screen(80, 12, busy(), &mut state));
    let mut state = State { search: "nobody".to_owned(), typing: true, ..State::default() };
    assert_snapshot!("search_finds_nothing", screen(80, 12, busy(), &mut state));
}

#[test]
fn trouble_is_said_and_what_was_seen_last_stays() {
    let trouble = Health::Trouble("the store at x.db is not available: disk\x1b[2J".to_owned());
    assert_snapshot!(screen_of(80, 12, busy(), trouble, &mut State::default()));
}

#[test]
fn what_others_write_stays_in_its_cell() {
    let mut data = busy();
    let hostile = "\x1b[31m\u{202e}evil\r\n日本語日本語日本語日本語日本語日本語 שלום e\u{301}\u{301}\u{301}\u{301}";
    data.locks.truncate(1);
    data.locks[0].seen.hold.operation = Some(hostile.to_owned());
    data.locks[0].seen.hold.holder.label =
        "👨\u{200d}👩\u{200d}👧 team 👨\u{200d}👩\u{200d}👧".to_owned();
    data.tasks[0].task.title = hostile.to_owned();
    data.workers[0].tasks[0].1 = hostile.to_owned();
    let panes = [Pane::Locks, Pane::Tasks, Pane::Workers];
    let screens = panes.map(|pane| screen(90, 12, data.clone(), &mut at(pane)));
    assert_snapshot!(screens.join("\n"));
}

#[test]
fn scrolling_stops_at_the_end() {
    let mut data = busy();
    let hold = |n: u64| held(&format!("lock {n:02}"), "x", None, n, 20);
    data.locks = (0..30).map(hold).collect();
    let mut state = State { scroll: [usize::MAX; 4], ..State::default() };
    let shown = screen(60, 14, data, &mut state);
    assert!(shown.contains("lock 29") && !shown.contains("lock 10"), "{shown}");
    assert_eq!(state.scroll[0], 21);
}

#[test]
fn no_size_is_too_small() {
    for width in [1, 2, 5, 9, 10, 15, 20, 39, 55, 56, 83, 84, 110, 200] {
        for height in [1, 2, 3, 4, 5, 8, 18, 31, 32, 60] {
            for pane in Pane::ALL {
                let mut state = State { pane, help: width % 2 == 0, ..State::default() };
                screen(width, height, busy(), &mut state);
            }
        }
    }
}

#[test]
fn a_resource_of_every_kind_can_be_shown() {
    for kind in Kind::ALL {
        let resource = Resource::new(kind, "x").unwrap().to_string();
        let mut data = busy();
        data.locks = vec![held(&resource, "x", None, 1, 5)];
        assert!(screen(80, 24, data, &mut State::default()).contains(&resource));
    }
}
