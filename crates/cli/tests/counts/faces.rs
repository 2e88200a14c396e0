//! The numbers as each face of tenure shows them.

use crate::agent::Agent;
use crate::http::get;
use crate::scene::Scene;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    pub held: u64,
    pub lapsed: u64,
    pub dead: u64,
    pub waiting: u64,
    pub workers: u64,
    pub pending: u64,
    pub in_progress: u64,
}

/// All faces, by name.
pub fn all(scene: &Scene) -> Vec<(&'static str, Numbers)> {
    let place = &scene.place;
    let remote = format!("http://{}", scene.server.address());
    let over_server = |words: &[&str]| -> Value {
        let mut command = place.command(crate::support::TENURE);
        command.args(["--store", &remote, "--json"]).args(words);
        let ended = crate::support::Running::start(command).end();
        assert_eq!(ended.code, 0, "{ended:?}");
        ended.json()["data"].clone()
    };
    let stats = place.json(&["tasks", "stats"]);
    let total = |value: &Value| (number(&value["pending"]), number(&value["in_progress"]));
    let tasks = total(&stats["total"]);
    let top = place.json(&["top", "--once"]);
    let snapshot = scene.server.ask(get("/v1/snapshot")).json();
    vec![
        ("locks --json", counts(&place.json(&["locks"]), tasks)),
        ("locks --json, its lists", listed(&place.json(&["locks"]), tasks)),
        ("status --json", counts(&place.json(&["status"]), tasks)),
        ("status", in_words(&place.run(&["status"]).stdout, tasks)),
        ("doctor", in_words(&place.run(&["doctor"]).stdout, tasks)),
        ("top --json", counts(&top, tallied(&top["tallies"]))),
        ("locks --json over the server", counts(&over_server(&["locks"]), tasks)),
        ("top --json over the server", {
            let top = over_server(&["top", "--once"]);
            counts(&top, tallied(&top["tallies"]))
        }),
        ("GET /v1/locks", counts(&scene.server.ask(get("/v1/locks")).json(), tasks)),
        ("GET /v1/snapshot", counts(&snapshot, tallied(&snapshot["tallies"]))),
        ("GET /v1/workers", {
            let workers = scene.server.ask(get("/v1/workers")).json();
            let working = list(&workers["workers"]).iter().filter(|it| it["is_stale"] == false);
            Numbers { workers: working.count() as u64, ..counts(&snapshot, tasks) }
        }),
        ("GET /metrics", metrics(&scene.server.ask(get("/metrics")).body)),
        ("MCP get_status", agents(scene, tasks)),
        ("the page", page(&format!("http://{}/", scene.server.address()))),
    ]
}

/// How many wait for a resource, by face.
pub fn queue(scene: &Scene, resource: &str) -> Vec<(&'static str, usize)> {
    let place = &scene.place;
    let shown = scene.server.ask(get(&format!("/v1/locks/show?resource={resource}"))).json();
    let mut agent = Agent::start(place);
    let holders = agent.call("who_holds", json!({ "resources": [resource] }));
    vec![
        ("why --json", list(&place.why(resource)["waiters"]).len()),
        ("status --json", number(&place.json(&["status", resource])["waiting"]) as usize),
        ("GET /v1/locks/show", list(&shown["waiters"]).len()),
        ("MCP who_holds", list(&holders["waiting"]).len()),
    ]
}

/// The tasks whose claim no longer counts, with the reason, sorted, by face.
pub fn lost_claims(scene: &Scene) -> Vec<(&'static str, Vec<(String, String)>)> {
    let place = &scene.place;
    let get_json = |path: &str| scene.server.ask(get(path)).json();
    let mut agent = Agent::start(place);
    let ids = ["layout", "store", "swept", "forgotten"];
    let each = |show: &mut dyn FnMut(&str) -> Value| Value::Array(ids.map(show).to_vec());
    let snapshot = get_json("/v1/snapshot");
    let mut told = vec![
        ("tasks list --json", stale(&place.json(&["tasks", "list"])["tasks"], "id")),
        ("tasks list", in_lines(&place.run(&["tasks", "list"]).stdout)),
        ("tasks show --json", {
            let shown = each(&mut |id| place.json(&["tasks", "show", id])["task"].clone());
            stale(&shown, "id")
        }),
        (
            "why --json",
            stale(&each(&mut |id| place.why(&format!("task:{id}"))["task"].clone()), "id"),
        ),
        ("top --json", stale(&place.json(&["top", "--once"])["tasks"], "id")),
        ("top", in_lines(&place.run(&["top", "--once"]).stdout)),
        ("GET /v1/tasks", stale(&get_json("/v1/tasks")["tasks"], "id")),
        ("GET /v1/tasks/ID", {
            let shown = each(&mut |id| get_json(&format!("/v1/tasks/{id}"))["task"].clone());
            stale(&shown, "id")
        }),
        ("GET /v1/snapshot", stale(&snapshot["lost_claims"], "task")),
        ("MCP get_all_tasks", stale(&agent.call("get_all_tasks", json!({}))["tasks"], "id")),
    ];
    told.iter_mut().for_each(|(_, lost)| lost.sort());
    told
}

/// The number of claims that no longer count, by face.
pub fn how_many_lost_claims(scene: &Scene) -> Vec<(&'static str, u64)> {
    let place = &scene.place;
    let metrics = scene.server.ask(get("/metrics")).body;
    let gauge = metrics.lines().find_map(|line| line.strip_prefix("tenure_claims_lost "));
    let stats = place.run(&["tasks", "stats"]).stdout;
    let said = stats.lines().find_map(|line| line.split_once(" in progress with a lost claim"));
    let status = Agent::start(place).call("get_status", json!({}));
    vec![
        ("tasks stats --json", number(&place.json(&["tasks", "stats"])["lost_claims"])),
        ("tasks stats", said.and_then(|(number, _)| number.parse().ok()).unwrap_or(0)),
        ("top --json", number(&place.json(&["top", "--once"])["lost_claims"])),
        ("GET /metrics", gauge.and_then(|number| number.parse().ok()).unwrap_or(0)),
        ("MCP get_status", number(&status["lost_claims"])),
    ]
}

/// Ids and reasons from a list of JSON objects.
fn stale(tasks: &Value, id: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let reason = |task: &Value| text(&task["stale_reason"]).or_else(|| text(&task["reason"]));
    let lost = list(tasks).iter().filter_map(|task| Some((text(&task[id])?, reason(task)?)));
    lost.collect()
}

/// Ids and reasons from lines that begin with an id and contain a reason.
fn in_lines(text: &str) -> Vec<(String, String)> {
    let lost = text.lines().filter_map(|line| {
        let id = line.split_whitespace().next()?;
        let mut reasons = crate::LOST.iter().map(|(_, reason)| *reason);
        let reason = reasons.find(|reason| line.contains(reason))?;
        let known = crate::LOST.iter().any(|(lost, _)| *lost == id);
        known.then(|| (id.to_owned(), reason.to_owned()))
    });
    lost.collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

fn counts(data: &Value, (pending, in_progress): (u64, u64)) -> Numbers {
    let count = |name: &str| data["counts"][name].as_u64().unwrap_or_else(|| panic!("{data}"));
    Numbers {
        held: count("held"),
        lapsed: count("lapsed"),
        dead: count("dead"),
        waiting: count("waiting"),
        workers: count("workers"),
        pending,
        in_progress,
    }
}

/// Counted by hand from the lists, except for what they do not show.
fn listed(data: &Value, tasks: (u64, u64)) -> Numbers {
    let lists = ["locks", "path_locks", "section_locks", "task_locks"];
    let holds: Vec<&Value> = lists.iter().flat_map(|name| list(&data[*name])).collect();
    let of = |state: &str| holds.iter().filter(|hold| hold["state"] == state).count() as u64;
    Numbers { held: of("held"), lapsed: of("lapsed"), dead: of("dead"), ..counts(data, tasks) }
}

fn tallied(tallies: &Value) -> (u64, u64) {
    let of = |status: &str| {
        let tallies = list(tallies).iter().filter(|tally| tally["status"] == status);
        tallies.map(|tally| number(&tally["count"])).sum()
    };
    (of("pending"), of("in_progress"))
}

/// The number before each word. How many work is not said in words.
fn in_words(text: &str, (pending, in_progress): (u64, u64)) -> Numbers {
    let line = text.lines().find(|line| line.contains(" held, ")).expect("a line of numbers");
    let of = |word: &str| {
        let before = line.split(word).next().expect("a part").trim_end();
        let digits = before.rsplit(' ').next().expect("a word");
        digits.parse().unwrap_or_else(|_| panic!("{word}: {line}"))
    };
    let [held, lapsed, dead, waiting] =
        [" held", " lapsed", " of dead holders", " waiting"].map(of);
    let workers = crate::EXPECTED.workers;
    Numbers { held, lapsed, dead, waiting, workers, pending, in_progress }
}

/// Lapsed and dead are one number here.
fn metrics(text: &str) -> Numbers {
    let of = |name: &str| -> u64 {
        let lines = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        lines.map(|number| number.parse::<u64>().expect("a number")).sum()
    };
    let by_kind = ["lock", "path", "section", "task"];
    let gone = of("tenure_holds_gone");
    let lapsed = crate::EXPECTED.lapsed;
    Numbers {
        held: by_kind.iter().map(|kind| of(&format!("tenure_holds{{kind=\"{kind}\"}}"))).sum(),
        lapsed,
        dead: gone - lapsed,
        waiting: of("tenure_waiters"),
        workers: of("tenure_workers"),
        pending: of("tenure_tasks{status=\"pending\"}"),
        in_progress: of("tenure_tasks{status=\"in_progress\"}"),
    }
}

/// Agents are told only of what counts.
fn agents(scene: &Scene, tasks: (u64, u64)) -> Numbers {
    let mut agent = Agent::start(&scene.place);
    let status = agent.call("get_status", json!({}));
    let said = (number(&status["tasks"]["pending"]), number(&status["tasks"]["in_progress"]));
    assert_eq!(said, tasks, "{status}");
    Numbers {
        held: number(&status["held"]),
        waiting: number(&status["waiting"]),
        workers: number(&status["agents"]),
        lapsed: crate::EXPECTED.lapsed,
        dead: crate::EXPECTED.dead,
        pending: said.0,
        in_progress: said.1,
    }
}

/// What a person reads on the page, and that its title and its panels say the same.
fn page(url: &str) -> Numbers {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = root.join("target/needs/venv/bin/python");
    assert!(python.exists(), "{} is missing: run scripts/test", python.display());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/counts/page.py");
    let ended = Command::new(python).arg(script).arg(url).output().expect("python runs");
    let said = String::from_utf8_lossy(&ended.stdout);
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}\n{errors}");
    let shown: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}\n{errors}"));
    Numbers {
        held: number(&shown["held"]),
        lapsed: number(&shown["lapsed"]),
        dead: number(&shown["dead"]),
        waiting: number(&shown["waiting"]),
        workers: number(&shown["workers"]),
        pending: number(&shown["pending"]),
        in_progress: number(&shown["in progress"]),
    }
}
