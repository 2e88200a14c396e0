//! A server that goes away: holders stop in time and say so; when it comes back, work goes on.

use crate::engine_support::{run, tenure};
use crate::support::{Running, StoreLocation, until};
use std::time::Duration;
use tenure_testkit::Postgres;

/// Appends a line as long as it lives.
const BEAT: &str = r#"while :; do echo beat >> "$D/beats"; sleep 0.05; done"#;

#[test]
fn run_stops_its_command_before_the_lease_ends_and_another_goes_on_later() {
    let mut server = Postgres::start(&[]);
    let url = format!("{}?schema=s", server.url());
    let place = StoreLocation::new();
    let holder = Running::start(tenure(
        &place,
        &url,
        &["run", "deploy", "--ttl", "4s", "--", "sh", "-c", BEAT],
    ));
    place.wait_for("beats");
    server.stop();
    let ended = holder.end();
    assert_eq!(ended.code, 8, "{ended:?}");
    let beats = place.read("beats").len();
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(place.read("beats").len(), beats, "the command lives on");
    assert!(ended.text().contains("lost"), "{ended:?}");
    let meanwhile = run(&place, &url, &["run", "-n", "other", "--", "true"]);
    assert_ne!(meanwhile.code, 0, "there is no store");
    server.run();
    let next = run(&place, &url, &["run", "deploy", "-w", "30", "--", "true"]);
    assert_eq!(next.code, 0, "{next:?}");
}

#[test]
fn workers_go_on_when_the_server_comes_back() {
    let mut server = Postgres::start(&[]);
    let url = format!("{}?schema=s", server.url());
    let place = StoreLocation::new();
    for number in 0..12 {
        let name = format!("t{number}");
        assert_eq!(run(&place, &url, &["tasks", "add", &name, "--id", &name]).code, 0);
    }
    let work = [
        "work",
        "--until-empty",
        "--",
        "sh",
        "-c",
        r#"echo "$TENURE_TASK_ID" >> "$D/done"; sleep 0.4"#,
    ];
    let workers: Vec<Running> =
        (0..2).map(|_| Running::start(tenure(&place, &url, &work))).collect();
    until("some are done", || (place.read("done").lines().count() > 3).then_some(()));
    server.kill();
    std::thread::sleep(Duration::from_secs(2));
    server.run();
    for worker in workers {
        let ended = worker.end();
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    let listed = run(&place, &url, &["--json", "tasks", "list"]);
    let listed = listed.json();
    let tasks = listed["data"]["tasks"].as_array().unwrap();
    assert!(tasks.iter().all(|task| task["status"] == "completed"), "{tasks:?}");
    assert_eq!(tasks.len(), 12);
}
