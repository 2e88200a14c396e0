//! What Prometheus says of the metrics of a busy server, and the board for Grafana.

use crate::http::get;
use crate::server::Server;
use crate::support::StoreLocation;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;

/// A server that has something to tell.
fn busy(place: &StoreLocation) -> Server {
    let server = Server::start(place, &["--no-auth"]);
    place.json(&["tasks", "add", "one", "--section", "api"]);
    place.json(&["tasks", "add", "two"]);
    for _ in 0..2 {
        assert_eq!(place.run(&["work", "--once", "--", "true"]).code, 0);
    }
    place.json(&["tasks", "add", "three", "--section", "api", "--max-attempts", "1"]);
    place.run(&["work", "--once", "--", "false"]);
    place.acquire(&["db", "--ttl", "10m"]);
    let busy = place.run(&["run", "-w", "0.1", "db", "--", "true"]);
    assert_eq!(busy.code, 6, "{busy:?}");
    server.ask(get("/v1/nothing"));
    server
}

fn metrics(server: &Server) -> String {
    let done = || {
        let text = server.ask(get("/metrics")).body;
        text.contains("tenure_wait_seconds_count{outcome=\"left\"} 1\n").then_some(text)
    };
    crate::support::until("the events in the metrics", done)
}

#[test]
fn promtool_is_content() {
    let place = StoreLocation::new();
    let server = busy(&place);
    let text = metrics(&server);
    let mut command = place.command("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("promtool, of the package prometheus");
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "it has remarks");
    server.stop();
}

#[test]
fn a_scraper_that_asks_for_openmetrics_gets_it() {
    let place = StoreLocation::new();
    let server = busy(&place);
    let accept = "application/openmetrics-text;version=1.0.0;q=0.9,text/plain;q=0.5";
    let answer = server.ask(get("/metrics").header("Accept", accept));
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(answer.header("content-type"), Some(kind));
    assert!(answer.body.trim_end().ends_with("# EOF"), "{}", answer.body);
    server.stop();
}

#[test]
fn the_board_asks_only_for_metrics_that_there_are() {
    let place = StoreLocation::new();
    let server = busy(&place);
    let text = metrics(&server);
    server.stop();
    let names: BTreeSet<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/grafana.json");
    let board: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let panels = board["panels"].as_array().unwrap();
    assert!(panels.len() > 8, "{} panels", panels.len());
    let mut asked = BTreeSet::new();
    for target in panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten())
    {
        let words =
            target["expr"].as_str().unwrap().split(|c: char| !c.is_alphanumeric() && c != '_');
        let ours = |word: &&str| word.starts_with("tenure_") || word.starts_with("process_");
        asked.extend(words.filter(ours));
    }
    // Those have no series before the first error.
    let missing: Vec<&&str> = asked
        .iter()
        .filter(|name| !names.contains(**name) && **name != "tenure_store_errors_total")
        .collect();
    assert!(asked.len() > 12 && missing.is_empty(), "{missing:?} are not in {names:?}");
}
