//! The history is trimmed, counted right, and its numbers go on rising.

use crate::{StoreLocation, everything, resource, take};
use rusqlite::Connection;
use tenure::core::{Change, Decision, EventKind, Keep, NewEvent, Revision, Scope};
use tenure::store::{SqliteOptions, SqliteStore};
use tenure::store::{Store, StoreExt, Transaction, Trim};

/// How many are kept.
const KEPT: i64 = 4_000;

/// After so many events the tally is brought up to date.
const COUNTED: i64 = 1_024;

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
    let believed = one("SELECT kept FROM tally") + one("SELECT max(id) FROM events") % COUNTED;
    (one("SELECT count(*) FROM events"), believed)
}

async fn trim(store: &SqliteStore) -> u64 {
    let keep = Keep::newest(KEPT as u64);
    store.trim(Trim { keep, limit: u32::MAX, dry_run: false }).await.unwrap()
}

#[tokio::test]
async fn old_events_are_removed_and_the_tally_is_right() {
    let place = StoreLocation::new();
    let store = place.open();
    let mut recorded = 0;
    // Of every size: smaller than what is counted at once, larger, and a multiple.
    for count in [1, 1_022, 1, 1, 5_000, 2_048, 40, 1_023, 3_000, 900, 5_000, 1_024, 100] {
        assert_eq!(record(&store, count).await.0, recorded + count as u64);
        recorded += count as u64;
        let (there, believed) = counts(&place);
        assert_eq!(there, believed, "after {recorded}");
        let trimmed = trim(&store).await;
        assert_eq!(trimmed, u64::try_from(there - KEPT).unwrap_or(0), "after {recorded}");
        assert_eq!(counts(&place), (there.min(KEPT), there.min(KEPT)), "after {recorded}");
    }
    let oldest = store.events(Revision(0), 1).await.unwrap()[0].revision.0;
    assert_eq!(oldest, recorded - KEPT as u64 + 1, "the oldest go first");

    // Little by little it comes to the same.
    record(&store, 3_000).await;
    recorded += 3_000;
    let bounded = Trim { keep: Keep::newest(KEPT as u64), limit: 1_000, dry_run: false };
    for expected in [1_000, 1_000, 1_000, 0] {
        assert_eq!(store.trim(bounded).await.unwrap(), expected);
    }

    // The numbers rise on, also when the store is opened again, and over a reboot.
    let token = take(&place.open(), "a", 1).await.unwrap();
    assert_eq!(token.0, recorded + 1);
    place.clock.reboot("boot-2");
    let store = place.open();
    assert!(everything(&store).await.next > token.0);
    let (there, believed) = counts(&place);
    assert_eq!(there, believed, "after a reboot");
    record(&store, 2_000).await;
    trim(&store).await;
    assert_eq!(counts(&place), (KEPT, KEPT), "after a reboot and more");
}

#[tokio::test]
async fn a_log_that_grew_long_is_told_of_and_becomes_short_again() {
    let place = StoreLocation::new();
    let options = SqliteOptions {
        clock: place.clock.clone(),
        checkpoint_pages: 10,
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open_with(&place.path(), options).unwrap();
    take(&store, "first", 1).await.unwrap();
    let log = place.path().with_file_name("store.db-wal");
    let of_log = || async {
        let findings = store.check().await.unwrap();
        findings.into_iter().find(|finding| finding.subject == "log")
    };
    assert_eq!(of_log().await, None);
    // As a reader that does not end would have made it, in which no frame counts.
    std::fs::File::options().write(true).open(&log).unwrap().set_len(100 << 20).unwrap();
    let finding = of_log().await.unwrap();
    assert!(!finding.ok && finding.message.contains("100 MB"), "{finding:?}");
    for number in 2..60 {
        take(&store, &format!("lock {number}"), number).await.unwrap();
    }
    assert!(std::fs::metadata(&log).unwrap().len() <= 8 << 20);
    assert_eq!(of_log().await, None);
}
