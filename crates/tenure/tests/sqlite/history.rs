//! The history is trimmed, counted right, and its numbers go on rising.

use crate::{StoreLocation, everything, resource, take};
use rusqlite::Connection;
use tenure::core::{Change, Decision, EventKind, NewEvent, Revision, Scope};
use tenure::store::SqliteStore;
use tenure::store::{Store, StoreExt, Transaction};

/// How many are kept, and how many more there may be before the oldest are removed.
const KEPT: i64 = 100_000;
const SLACK: i64 = 1_024;

async fn record(store: &SqliteStore, count: usize) -> Revision {
    let event = NewEvent::new(Some(resource("busy")), "somebody", None, EventKind::Released);
    let change = Change { events: vec![event; count], ..Change::default() };
    let decide = move |_: &tenure::core::Snapshot| Decision::Write(change.clone());
    let scope = Scope::At { resources: vec![resource("busy")], ticket: None };
    store.transact(Transaction::new(scope, decide)).await.unwrap().revision.unwrap()
}

/// How many events there are, and how many the store believes to have.
fn counts(place: &StoreLocation) -> (i64, i64) {
    let plain = Connection::open(place.path()).unwrap();
    let one = |sql: &str| plain.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let believed = one("SELECT kept FROM tally") + one("SELECT max(id) FROM events") % SLACK;
    (one("SELECT count(*) FROM events"), believed)
}

#[tokio::test]
async fn old_events_are_removed_and_the_tally_is_right() {
    let place = StoreLocation::new();
    let store = place.open();
    let mut recorded = 0;
    // Of every size: smaller than what is removed at once, larger, and a multiple.
    for count in [1, 1_022, 1, 1, 5_000, 2_048, 40_000, 1_023, 50_000, 900] {
        assert_eq!(record(&store, count).await.0, recorded + count as u64);
        recorded += count as u64;
        let (there, believed) = counts(&place);
        assert_eq!(there, believed, "after {recorded}");
        assert!(there <= KEPT + SLACK, "{there} after {recorded}");
    }
    let (before, _) = counts(&place);
    for count in [5_000, 1_024, 100, 3_000] {
        let revision = record(&store, count).await;
        recorded += count as u64;
        assert_eq!(revision.0, recorded);
        let (there, believed) = counts(&place);
        assert_eq!(there, believed, "after {recorded}");
        assert!(there <= KEPT + SLACK && there >= KEPT.min(before), "{there} after {recorded}");
    }
    let oldest = store.events(Revision(0), 1).await.unwrap()[0].revision.0;
    assert_eq!(oldest, recorded - counts(&place).0 as u64 + 1, "the oldest go first");

    // The numbers rise on, also when the store is opened again, and over a reboot.
    let token = take(&place.open(), "a", 1).await.unwrap();
    assert_eq!(token.0, recorded + 1);
    place.clock.reboot("boot-2");
    let store = place.open();
    assert!(everything(&store).await.next > token.0);
    let (there, believed) = counts(&place);
    assert_eq!(there, believed, "after a reboot");
    record(&store, 2_000).await;
    let (there, believed) = counts(&place);
    assert_eq!(there, believed, "after a reboot and more");
    assert!(there <= KEPT + SLACK);
}
