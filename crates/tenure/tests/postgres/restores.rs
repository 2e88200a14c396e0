//! Backups that are put back: no token comes again, and nothing is granted beside a lease that is missing.

use super::failover::{refusal, withholds_until};
use super::open;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tenure::store::{Maintained, Maintenance};
use tenure::{Client, Guard};
use tenure_testkit::Postgres;
use tenure_testkit::postgres::program;

/// A lease that a backup from before does not have, its token, and when it ends.
async fn lease(client: &Client, server: &Postgres) -> (Guard, u64, String) {
    let request = client.request("x").ttl(Duration::from_secs(40));
    let held = request.hold().await.unwrap().into_result().unwrap();
    let token = held.token().0;
    (held, token, server.sql("SELECT deadline_ms FROM s.holds"))
}

fn url(server: &Postgres) -> String {
    format!("{}?schema=s", server.url())
}

/// Copies a folder with all rights; what was there is replaced.
fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    let done = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(done.success());
}

fn next_number(server: &Postgres) -> u64 {
    server.sql("SELECT last_value FROM s.numbers").parse().unwrap()
}

fn dump(server: &Postgres, file: &Path) {
    let mut command = Command::new(program("pg_dump"));
    command.args(["-n", "s", "-f"]).arg(file).arg(server.url());
    assert!(command.status().unwrap().success());
}

/// Both servers are on their first timeline.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_in_another_server_accepts_no_old_token() {
    let (server, other) = (Postgres::start(&[]), Postgres::start(&[]));
    let client = Client::open(&url(&server)).await.unwrap();
    client.acquire("x").await.unwrap().release().await.unwrap();
    let file = server.folder().join("dump.sql");
    dump(&server, &file);
    let (_held, token, deadline) = lease(&client, &server).await;
    let restored =
        Command::new("psql").args(["-X", "-q", "-f"]).arg(&file).arg(other.url()).output();
    assert!(restored.unwrap().status.success());
    let late = Client::open(&url(&other)).await.unwrap();
    refusal(&late, "x").await;
    withholds_until(&other, &deadline);
    assert!(next_number(&other) > token);
}

/// A snapshot of the disk is put back: the same server, with an older state. A process that saw more notices.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_saw_higher_numbers_notices_an_older_state() {
    let mut server = Postgres::start(&[]);
    let client = Client::open(&url(&server)).await.unwrap();
    client.acquire("x").await.unwrap().release().await.unwrap();
    let (data, saved) = (server.folder().join("data"), server.folder().join("saved"));
    server.stop();
    copy(&data, &saved);
    server.run();
    let (_held, token, deadline) = lease(&client, &server).await;
    server.stop();
    copy(&saved, &data);
    server.run();
    refusal(&client, "x").await;
    withholds_until(&server, &deadline);
    assert!(next_number(&server) > token);
    assert_eq!(server.sql("SELECT count(*) FROM s.events WHERE kind = 'rebooted'"), "1");
}

/// Processes that begin after that know nothing of it: an operator says it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_says_that_an_older_state_was_put_back() {
    let mut server = Postgres::start(&[]);
    let client = Client::open(&url(&server)).await.unwrap();
    client.acquire("x").await.unwrap().release().await.unwrap();
    let (data, saved) = (server.folder().join("data"), server.folder().join("saved"));
    server.stop();
    copy(&data, &saved);
    server.run();
    let (_held, token, deadline) = lease(&client, &server).await;
    server.stop();
    copy(&saved, &data);
    server.run();
    let store = open(&url(&server));
    let moved = store.maintain(Maintenance::Moved).await.unwrap();
    assert!(matches!(moved, Maintained::Moved { withheld } if withheld > Duration::from_secs(40)));
    refusal(&Client::open(&url(&server)).await.unwrap(), "x").await;
    withholds_until(&server, &deadline);
    assert!(next_number(&server) > token);
    let Maintained::Checked(findings) = store.maintain(Maintenance::Check).await.unwrap() else {
        panic!("a check answers with findings");
    };
    let grants = findings.iter().find(|finding| finding.subject == "grants").unwrap();
    assert!(!grants.ok && grants.message.contains("grants withheld for "), "{grants:?}");
}

/// A server that was only started anew has all that it reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_crashed_grants_at_once() {
    let mut server = Postgres::start(&[]);
    let client = Client::open(&url(&server)).await.unwrap();
    client.acquire("x").await.unwrap().release().await.unwrap();
    server.kill();
    server.run();
    client.acquire("x").await.unwrap().release().await.unwrap();
    let fresh = Client::open(&url(&server)).await.unwrap();
    fresh.acquire("x").await.unwrap().release().await.unwrap();
    assert_eq!(server.sql("SELECT count(*) FROM s.events WHERE kind = 'rebooted'"), "0");
    assert_eq!(server.sql("SELECT started = pg_postmaster_start_time() FROM s.meta"), "t");
}
