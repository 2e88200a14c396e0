//! Programs that know only task and section locks read them as they always did.

use crate::{StoreLocation, open_with, take};
use rusqlite::Connection;
use std::sync::Arc;
use tenure::Client;
use tenure::core::Token;
use tenure::world::SystemClock;

fn column(plain: &Connection, sql: &str) -> Vec<String> {
    let mut statement = plain.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

#[tokio::test]
async fn task_and_section_locks_are_views_of_what_is_held() {
    let place = StoreLocation::new();
    let store = place.open();
    for (number, name) in
        ["task:T-1", "section:Front end", "deploy", "path:task/x", "task:🚀:2"].iter().enumerate()
    {
        take(&store, name, number as u128 + 1).await.unwrap();
    }
    place.clock.advance(std::time::Duration::from_secs(90));
    let plain = Connection::open(place.path()).unwrap();
    let tasks = column(&plain, "SELECT task_id FROM task_locks ORDER BY task_id");
    assert_eq!(tasks, ["T-1", "🚀:2"]);
    let sections = column(&plain, "SELECT section_id FROM section_locks");
    assert_eq!(sections, ["Front end"]);
    let row = column(
        &plain,
        "SELECT runner_id || '|' || acquired_at || '|' || heartbeat_at || '|' || expires_at
         FROM task_locks WHERE task_id = 'T-1'",
    );
    let hour_later = "somebody|2023-11-14 22:13:20|2023-11-14 22:13:20|2023-11-14 23:13:20";
    assert_eq!(row, [hour_later]);
    let row = column(
        &plain,
        "SELECT runner_id || '|' || acquired_at || '|' || expires_at FROM section_locks",
    );
    assert_eq!(row, ["somebody|2023-11-14 22:13:20|2023-11-14 23:13:20"]);
}

#[tokio::test]
async fn their_times_compare_with_those_of_sqlite() {
    let place = StoreLocation::new();
    let store = open_with(&place.path(), Arc::new(SystemClock)).unwrap();
    take(&store, "task:now", 1).await.unwrap();
    take(&store, "section:now", 2).await.unwrap();
    let plain = Connection::open(place.path()).unwrap();
    for (view, id) in [("task_locks", "task_id"), ("section_locks", "section_id")] {
        let find =
            |condition: &str| column(&plain, &format!("SELECT {id} FROM {view} WHERE {condition}"));
        let nobody: [&str; 0] = [];
        assert_eq!(find("expires_at > datetime('now')"), ["now"]);
        assert_eq!(find("expires_at < datetime('now')"), nobody);
        assert_eq!(find("expires_at < datetime('now', '+61 minutes')"), ["now"]);
        assert_eq!(find("acquired_at <= datetime('now')"), ["now"]);
        assert_eq!(find("acquired_at > datetime('now', '-1 day')"), ["now"]);
    }
}

/// The query of docs/reference.md: a token is checked in the transaction of a program's own rows.
#[tokio::test]
async fn a_token_is_checked_together_with_rows_of_ones_own() {
    let place = StoreLocation::new();
    let client = Client::builder().with_store(Arc::new(place.open())).unwrap();
    let first = client.acquire("deploy").await.unwrap();
    let own = Connection::open(place.path().with_file_name("own.db")).unwrap();
    own.execute_batch("CREATE TABLE releases (current TEXT); INSERT INTO releases VALUES ('v1')")
        .unwrap();
    own.execute("ATTACH ?1 AS tenure", [place.path().to_str().unwrap()]).unwrap();
    let release = |version: &str, token: Token| {
        own.execute_batch("BEGIN IMMEDIATE").unwrap();
        let holds =
            "SELECT count(*) FROM tenure.holds WHERE resource = 'lock:deploy' AND token = ?1";
        let counts: u32 = own.query_row(holds, [token.0 as i64], |row| row.get(0)).unwrap();
        own.execute("UPDATE releases SET current = ?1", [version]).unwrap();
        own.execute_batch(if counts == 1 { "COMMIT" } else { "ROLLBACK" }).unwrap();
        column(&own, "SELECT current FROM releases").remove(0)
    };
    assert_eq!(release("v2", first.token()), "v2");
    client.break_hold("deploy", first.token(), "stuck").await.unwrap();
    let second = client.acquire("deploy").await.unwrap();
    assert_eq!(release("v3, too late", first.token()), "v2");
    assert_eq!(release("v3", second.token()), "v3");
}
