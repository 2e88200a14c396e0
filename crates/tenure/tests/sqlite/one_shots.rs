//! Commands that follow one another without overlapping leave a short log and lose nothing.

use super::*;

#[tokio::test]
async fn one_after_the_other_keeps_the_log_short() {
    const PAGES: u32 = 32;
    let place = StoreLocation::new();
    let open = || {
        let clock = place.clock.clone();
        let options =
            SqliteOptions { clock, checkpoint_pages: PAGES, one_shot: true, ..Default::default() };
        SqliteStore::open_with(&place.path(), options).unwrap()
    };
    let log = place.folder.path().join("store.db-wal");
    let mut longest = 0;
    for number in 0..60 {
        take(&open(), &format!("lock:{number}"), number).await.unwrap();
        longest = longest.max(std::fs::metadata(&log).unwrap().len());
    }
    // A page of 2048 bytes and what stands before it; the last change may go beyond the limit.
    let limit = u64::from(PAGES + 16) * 2072;
    assert!(longest < limit, "the log grew to {longest} bytes");
    assert_eq!(everything(&open()).await.holds.len(), 60);
}

#[tokio::test]
async fn a_reader_in_the_way_does_not_stop_anybody() {
    let place = StoreLocation::new();
    let options = || SqliteOptions {
        clock: place.clock.clone(),
        checkpoint_pages: 1,
        one_shot: true,
        ..Default::default()
    };
    let store = SqliteStore::open_with(&place.path(), options()).unwrap();
    take(&store, "lock:first", 1).await.unwrap();
    let reader = rusqlite::Connection::open(place.path()).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let count = |reader: &rusqlite::Connection| -> i64 {
        reader.query_row("SELECT count(*) FROM holds", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(count(&reader), 1);
    take(&store, "lock:second", 2).await.unwrap();
    assert_eq!(count(&reader), 1, "it sees what it saw");
    assert_eq!(everything(&store).await.holds.len(), 2);
}
