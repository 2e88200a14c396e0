//! Servers and sessions that are in the way: each command ends, with a code and a sentence that says why.

use crate::engine_support::run;
use crate::support::{StoreLocation, until};
use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use tenure_testkit::Postgres;

#[test]
fn commands_end_where_a_server_never_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("postgres://127.0.0.1:{port}/d?connect_timeout=2");
    let place = StoreLocation::new();
    let refused = run(&place, &url, &["run", "-n", "deploy", "--", "true"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.text().contains("did not answer within 2s"), "{refused:?}");
    let checked = run(&place, &url, &["doctor"]);
    assert_ne!(checked.code, 0, "{checked:?}");
    assert!(checked.text().contains("did not answer within 2s"), "{checked:?}");
}

#[test]
fn doctor_names_a_session_that_keeps_a_table_in_an_idle_transaction() {
    let server = Postgres::start(&[]);
    let url = format!("{}?schema=s", server.url());
    let place = StoreLocation::new();
    assert_eq!(run(&place, &url, &["run", "-n", "deploy", "--", "true"]).code, 0);
    let mut session = Command::new("psql")
        .args(["-X", "-q", &server.url()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = session.stdin.take().unwrap();
    input.write_all(b"BEGIN; LOCK TABLE s.holds IN ACCESS EXCLUSIVE MODE;\n").unwrap();
    until("the session is idle in its transaction", || {
        let sql = "SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction'
            AND xact_start < clock_timestamp() - interval '3 s'";
        Some(server.sql(sql)).filter(|pid| !pid.is_empty())
    });
    let checked = run(&place, &url, &["doctor"]);
    assert_eq!(checked.code, 7, "{checked:?}");
    let text = checked.text();
    assert!(text.contains("psql") && text.contains("idle in transaction"), "{text}");
    drop(input);
    session.wait().unwrap();
}

/// After a failover, a command that does not wait says for how long nothing is granted, and one that waits waits.
#[test]
fn run_waits_while_nothing_is_granted() {
    let server = Postgres::start(&[]);
    let url = format!("{}?schema=s", server.url());
    let place = StoreLocation::new();
    assert_eq!(run(&place, &url, &["run", "-n", "deploy", "--", "true"]).code, 0);
    server.sql("UPDATE s.meta SET withhold_ms = 15000, timeline = '00000000'");
    let refused = run(&place, &url, &["run", "-n", "deploy", "--", "true"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.text().contains("grants nothing for the next"), "{refused:?}");
    let waited = run(&place, &url, &["run", "-w", "120", "deploy", "--", "true"]);
    assert_eq!(waited.code, 0, "{waited:?}");
}
