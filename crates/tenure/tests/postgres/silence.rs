//! Servers, connections and sessions that say nothing: each wait has an end, and what else is there is used.

use super::{open, parsed, schema_of, shared_port};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;
use tenure::store::{Maintained, Maintenance, PostgresOptions, PostgresStore, Query, Store};
use tenure::{Client, Wait};
use tenure_testkit::Proxy;
use tenure_testkit::postgres::{fresh_url, psql, shared_url};

/// Longer than any wait that ends by itself.
const PATIENCE: Duration = Duration::from_secs(120);

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it does not end by itself")
}

/// A port at which connections are accepted by the kernel, and nothing is ever said.
fn silent() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// The URL of a new store behind this proxy.
fn behind(proxy: &Proxy) -> String {
    fresh_url().replace(&format!(":{}/", shared_port()), &format!(":{}/", proxy.port))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_accepts_a_connection_and_never_answers_is_left() {
    let (_listener, port) = silent();
    let url = format!("postgres://127.0.0.1:{port}/d?connect_timeout=2");
    let store = PostgresStore::open_with(&parsed(&url), PostgresOptions::default()).unwrap();
    let error = in_time(store.query(Query::TaskCounts)).await.unwrap_err();
    let expected = format!("127.0.0.1:{port} did not answer within 2s (connect_timeout)");
    assert!(error.to_string().contains(&expected), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_host_is_used_where_the_first_never_answers() {
    let (_listener, port) = silent();
    let url = fresh_url().replace("@127.0.0.1:", &format!("@127.0.0.1:{port},127.0.0.1:"));
    let client = Client::open(&format!("{url}&connect_timeout=2")).await.unwrap();
    let held = in_time(client.acquire("deploy")).await.unwrap();
    assert!(held.is_held());
    in_time(held.release()).await.unwrap();
}

/// The connection is made by a proxy, behind which nothing answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_silent_behind_a_proxy_is_left() {
    let proxy = Proxy::to(shared_port());
    proxy.freeze();
    let store = open(&format!("{}&connect_timeout=2", behind(&proxy)));
    let error = in_time(store.query(Query::TaskCounts)).await.unwrap_err();
    assert!(error.to_string().contains("did not answer within 2s"), "{error}");
}

/// Firewalls forget connections, and tell neither side.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_renewed_over_a_new_connection_where_all_others_died_silently() {
    let proxy = Proxy::to(shared_port());
    let client = Client::open(&behind(&proxy)).await.unwrap();
    let lease = Duration::from_secs(6);
    let held = client.request("x").ttl(lease).hold().await.unwrap().into_result().unwrap();
    // Several connections, of which each may be tried.
    let looks = (0..4).map(|_| client.look_everywhere());
    futures_util::future::try_join_all(looks).await.unwrap();
    proxy.forget_connections();
    tokio::time::sleep(lease * 2).await;
    assert!(held.is_held(), "it was not renewed in time");
    assert!(in_time(held.confirm()).await.unwrap());
}

/// `LOCK TABLE`, a migration, or a forgotten `psql`: the change waits, and `doctor` names the session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_keeps_a_table_is_named_and_waited_for() {
    let url = fresh_url();
    let client = Client::open(&url).await.unwrap();
    client.acquire("y").await.unwrap().release().await.unwrap();
    let table = format!("{}.holds", schema_of(&url));
    // Longer than a statement waits for a lock.
    let lock = format!("BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(9)");
    let mut session = Command::new("psql")
        .args(["-X", "-q", "-c", &lock, &shared_url()])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let keeps = format!(
        "SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
         WHERE l.mode = 'AccessExclusiveLock' AND l.relation = '{table}'::regclass
            AND l.granted AND clock_timestamp() - a.xact_start > interval '2 s'"
    );
    while psql(&shared_url(), &keeps).unwrap() == "0" {
        assert!(session.try_wait().unwrap().is_none(), "the lock was not taken");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let checked = open(&url).maintain(Maintenance::Check).await.unwrap();
    let Maintained::Checked(findings) = checked else { panic!("a check answers with findings") };
    let locks = findings.iter().find(|finding| finding.subject == "locks").unwrap();
    assert!(!locks.ok && locks.message.contains("\"psql\""), "{locks:?}");
    let held = in_time(client.request("x").wait(Wait::No).hold()).await.unwrap();
    assert!(held.into_result().unwrap().is_held());
    session.wait().unwrap();
}

/// Where the first of several hosts says nothing, a new connection tries the one that was reached last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_lease_is_kept_beside_a_silent_host_when_connections_break() {
    let (_listener, silent) = silent();
    let proxy = Proxy::to(shared_port());
    let url = behind(&proxy).replace("@127.0.0.1:", &format!("@127.0.0.1:{silent},127.0.0.1:"));
    let client = Client::open(&url).await.unwrap();
    // The first connection waits for the silent host.
    client.look_everywhere().await.unwrap();
    let lease = Duration::from_secs(6);
    let held = client.request("x").ttl(lease).hold().await.unwrap().into_result().unwrap();
    proxy.drop_connections();
    tokio::time::sleep(lease * 2).await;
    assert!(held.is_held(), "it was not renewed in time");
    assert!(in_time(held.confirm()).await.unwrap());
}

/// The first look of a new process meets the lock: it is named, and the server is not taken for silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_keeps_the_first_table_is_named_to_a_new_process() {
    let url = fresh_url();
    open(&url).query(Query::TaskCounts).await.unwrap();
    let table = format!("{}.meta", schema_of(&url));
    let lock = format!("BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(60)");
    let mut session = Command::new("psql")
        .args(["-X", "-q", "-c", &lock, &shared_url()])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let keeps = format!(
        "SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
         WHERE l.mode = 'AccessExclusiveLock' AND l.relation = '{table}'::regclass
            AND l.granted AND clock_timestamp() - a.xact_start > interval '2 s'"
    );
    while psql(&shared_url(), &keeps).unwrap() == "0" {
        assert!(session.try_wait().unwrap().is_none(), "the lock was not taken");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let checked = in_time(open(&url).maintain(Maintenance::Check)).await.unwrap();
    let Maintained::Checked(findings) = checked else { panic!("a check answers with findings") };
    let locks = findings.iter().find(|finding| finding.subject == "locks").unwrap();
    assert!(!locks.ok && locks.message.contains("\"psql\""), "{locks:?}");
    let error = in_time(open(&url).query(Query::TaskCounts)).await.unwrap_err();
    assert!(error.to_string().contains("another session keeps a lock"), "{error}");
    session.kill().unwrap();
    session.wait().unwrap();
}
