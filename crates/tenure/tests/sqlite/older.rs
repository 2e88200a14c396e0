//! Files of older versions are brought up to date, and what they hold is still found; so is what
//! an older program writes that had the file open before.

use crate::{StoreLocation, everything, grant, resource, take};
use rusqlite::Connection;
use tenure::core::{
    Change, Decision, EventKind, GrantId, Holder, NewEvent, Scope, Snapshot, StoredReply, Waiter,
    Want, Write,
};
use tenure::store::SqliteStore;
use tenure::store::{RequestId, Store, StoreExt, Transaction, transact_with};

/// Undoes what versions 6 to 9 added.
fn make_version_5(plain: &Connection) {
    plain
        .execute_batch(
            "DROP INDEX tasks_ended;
             ALTER TABLE tasks DROP COLUMN tries;
             ALTER TABLE tasks DROP COLUMN notes;
             ALTER TABLE tasks DROP COLUMN claim_parts;
             ALTER TABLE tasks DROP COLUMN finished_by;
             ALTER TABLE tasks DROP COLUMN finished_grant;
             ALTER TABLE tasks DROP COLUMN finished_token;
             ALTER TABLE holds DROP COLUMN slot;
             ALTER TABLE holds DROP COLUMN agent;
             ALTER TABLE waits DROP COLUMN agent;
             ALTER TABLE waits DROP COLUMN woken_ms;
             DROP TABLE ended_boots;
             ALTER TABLE events DROP COLUMN actor;
             DROP TABLE records;
             PRAGMA user_version = 5;",
        )
        .unwrap();
}

/// Undoes what later versions added.
fn make_version_2(plain: &Connection) {
    make_version_5(plain);
    plain
        .execute_batch(
            "DROP INDEX holds_prefix;
             DROP INDEX waits_prefix;
             ALTER TABLE holds DROP COLUMN prefix;
             ALTER TABLE waits DROP COLUMN prefix;
             DROP TABLE answers;
             PRAGMA user_version = 2;",
        )
        .unwrap();
}

/// The same for answers, which had another table.
fn make_version_4(plain: &Connection) {
    make_version_5(plain);
    plain
        .execute_batch(
            "ALTER TABLE answers RENAME TO newer;
             DROP INDEX answers_old;
             CREATE TABLE answers (slot TEXT PRIMARY KEY, number INTEGER NOT NULL,
                text TEXT NOT NULL, at_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;
             CREATE INDEX answers_old ON answers (at_ms);
             INSERT INTO answers SELECT slot, number, text, at_ms FROM newer;
             DROP TABLE newer;
             PRAGMA user_version = 4;",
        )
        .unwrap();
}

fn version(place: &StoreLocation) -> i32 {
    let plain = Connection::open(place.path()).unwrap();
    plain.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

async fn queue(store: &SqliteStore, names: &[&str], number: u128) {
    let wants: Vec<Want> = names.iter().map(|name| Want::exclusive(resource(name))).collect();
    let decide = move |seen: &Snapshot| {
        let place = Waiter {
            grant: grant(number),
            ticket: seen.next,
            wants: wants.clone(),
            holder: Holder::anonymous("somebody".to_owned()),
            operation: None,
            keeps: vec![],
            ttl: crate::HOUR,
        };
        let event = NewEvent::new(None, "", None, EventKind::Waiting);
        let writes = vec![Write::Wait(place)];
        Decision::Write(Change { writes, events: vec![event], ..Change::default() })
    };
    store.transact(Transaction::new(Scope::Everything, decide)).await.unwrap();
}

/// Who holds and who waits for what overlaps these.
async fn around(store: &SqliteStore, names: &[&str]) -> (Vec<GrantId>, Vec<GrantId>) {
    let resources = names.iter().map(|name| resource(name)).collect();
    let seen = store.read(&Scope::At { resources, ticket: None }).await.unwrap();
    let holding = seen.holds.iter().map(|seen| seen.hold.grant).collect();
    (holding, seen.waiters.iter().map(|seen| seen.waiter.grant).collect())
}

async fn ensure_all_found(store: &SqliteStore) {
    let both = |number: u128| (vec![grant(number)], vec![grant(number + 10)]);
    assert_eq!(around(store, &["path:src/api/user.rs"]).await, both(1));
    assert_eq!(around(store, &["path:docs/**"]).await, both(2));
    assert_eq!(around(store, &["path:tests/x"]).await, (vec![], vec![]));
    assert_eq!(around(store, &["deploy", "path:elsewhere"]).await, both(3));
    assert_eq!(around(store, &["path:**", "deploy"]).await.0, [1, 2, 3].map(grant));
}

async fn fill(store: &SqliteStore) {
    for (number, name) in [(1, "path:src/**"), (2, "path://tree/docs/a.md"), (3, "deploy")] {
        take(store, name, number).await.unwrap();
        queue(store, &[name], number + 10).await;
    }
}

#[tokio::test]
async fn paths_of_version_2_are_found() {
    let place = StoreLocation::new();
    fill(&place.open()).await;
    make_version_2(&Connection::open(place.path()).unwrap());
    let store = place.open();
    ensure_all_found(&store).await;
    take(&store, "path:new/a", 4).await.unwrap();
    assert_eq!(around(&store, &["path:new/*"]).await.0, [grant(4)]);
    drop(store);
    let new = StoreLocation::new();
    drop(new.open());
    assert_eq!(version(&place), version(&new));
    let store = place.open();
    assert_eq!(everything(&store).await.holds.len(), 4);
    assert_eq!(around(&store, &["path:src/api/user.rs"]).await.0, [grant(1)]);
}

#[tokio::test]
async fn what_an_older_program_writes_meanwhile_is_found_once() {
    let place = StoreLocation::new();
    let store = place.open();
    fill(&store).await;
    let plain = Connection::open(place.path()).unwrap();
    // An older program does not name the column.
    for table in ["holds", "waits"] {
        let columns: String = plain
            .query_row(
                "SELECT group_concat(name) FROM pragma_table_info(?1) WHERE name <> 'prefix'",
                [table],
                |row| row.get(0),
            )
            .unwrap();
        plain
            .execute_batch(&format!(
                "CREATE TEMP TABLE kept AS SELECT {columns} FROM {table};
                 DELETE FROM {table};
                 INSERT INTO {table} ({columns}) SELECT {columns} FROM kept;
                 DROP TABLE kept;"
            ))
            .unwrap();
    }
    ensure_all_found(&store).await;
}

#[tokio::test]
async fn answers_of_version_4_are_given_again() {
    let place = StoreLocation::new();
    let store = place.open();
    let answered = StoredReply { slot: "client-1".to_owned(), number: 7, text: "yes".to_owned() };
    let writes = vec![Write::Answer(answered.clone())];
    let change = Change { writes, ..Change::default() };
    let decide = move |_: &Snapshot| Decision::Write(change.clone());
    store.transact(Transaction::new(Scope::Everything, decide)).await.unwrap();
    drop(store);
    make_version_4(&Connection::open(place.path()).unwrap());
    let store = place.open();
    let request = RequestId { slot: "client-1".to_owned(), number: 7 };
    let rule = |seen: &Snapshot| (Decision::Nothing, seen.answered.clone());
    let found = transact_with(&store, Scope::Everything, Some(request), rule).await;
    let (_, seen_before) = found.unwrap();
    assert_eq!(seen_before, Some(answered));
}
