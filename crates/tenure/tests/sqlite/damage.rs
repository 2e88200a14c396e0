//! Files that are no store are refused with the right error, and stay as they are.

use crate::{StoreLocation, take};
use rusqlite::Connection;
use tenure::store::{StoreError, StoreExt};

/// Puts these bytes where the store should be, and shows that opening refuses and changes nothing.
fn refused_untouched(content: &[u8]) -> StoreError {
    let place = StoreLocation::new();
    std::fs::write(place.path(), content).unwrap();
    let error = place.try_open().err().expect("it should have been refused");
    assert_eq!(std::fs::read(place.path()).unwrap(), content, "the file was changed");
    error
}

/// The same, and shows that nothing was made beside it either.
fn refused_alone(content: &[u8]) -> StoreError {
    let place = StoreLocation::new();
    std::fs::write(place.path(), content).unwrap();
    assert!(place.try_open().is_err());
    assert_eq!(place.files(), ["store.db"], "something was made beside it");
    refused_untouched(content)
}

#[test]
fn an_empty_file_is_damaged_and_not_a_new_store() {
    let error = refused_alone(b"");
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains("empty"), "{error}");
}

#[test]
fn a_file_that_is_not_sqlite_is_damaged() {
    for content in [&b"{\"tasks\": []}"[..], &[0; 5000], &b"SQLite format 3\0 and no more"[..]] {
        let error = refused_alone(content);
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_truncated_store_is_damaged() {
    let place = StoreLocation::new();
    take(&place.open(), "a", 1).await.unwrap();
    // All of it in one file, so that nothing can be restored from the log.
    Connection::open(place.path())
        .unwrap()
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    let whole = std::fs::read(place.path()).unwrap();
    for length in [30, 100, 4096, whole.len() - 4096] {
        let error = refused_untouched(&whole[..length]);
        assert!(matches!(error, StoreError::Corrupt { .. }), "{length} bytes: {error:?}");
        assert!(error.hint().unwrap().contains("aside"), "{error}");
    }
}

#[tokio::test]
async fn a_damaged_record_is_reported_and_never_free() {
    let place = StoreLocation::new();
    let store = place.open();
    take(&store, "a", 1).await.unwrap();
    let plain = Connection::open(place.path()).unwrap();
    for damage in ["mode = 'sometimes'", "evidence = '{'", "grant_id = 'nobody'"] {
        plain.execute(&format!("UPDATE holds SET {damage}"), []).unwrap();
        let error = take(&store, "b", 2).await.unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{damage}: {error:?}");
        assert!(store.read(&tenure::core::Scope::Everything).await.is_err(), "{damage}");
    }
}

#[test]
fn the_database_of_another_program_is_refused() {
    let place = StoreLocation::new();
    let other = Connection::open(place.path()).unwrap();
    other.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)").unwrap();
    other.close().unwrap();
    let error = refused_alone(&std::fs::read(place.path()).unwrap());
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains("not a tenure store"), "{error}");
}

#[test]
fn a_store_of_a_newer_version_is_refused() {
    let place = StoreLocation::new();
    drop(place.open());
    let plain = Connection::open(place.path()).unwrap();
    plain.pragma_update(None, "journal_mode", "DELETE").unwrap();
    plain.pragma_update(None, "user_version", 1_000).unwrap();
    plain.close().unwrap();
    let error = refused_alone(&std::fs::read(place.path()).unwrap());
    let StoreError::Unsupported { what, instead } = error else { panic!("{error:?}") };
    assert!(what.contains("version 1000"), "{what}");
    assert!(instead.contains("newer tenure"), "{instead}");
}

#[test]
fn a_folder_in_its_place_is_refused() {
    let place = StoreLocation::new();
    std::fs::create_dir(place.path()).unwrap();
    let error = place.try_open().err().unwrap();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert_eq!(place.files(), ["store.db"], "something was made beside it");
}

#[test]
fn a_place_where_nothing_can_be_made_is_unavailable() {
    let place = StoreLocation::new();
    std::fs::write(place.folder.path().join("file"), "a file is no folder").unwrap();
    let below_a_file = place.folder.path().join("file").join("store.db");
    for path in [below_a_file.as_path(), "/proc/store.db".as_ref()] {
        let error = crate::open_with(path, place.clock.clone()).err().unwrap();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{path:?}: {error:?}");
        assert!(error.hint().is_some(), "{error}");
    }
}

#[tokio::test]
async fn the_log_of_a_database_that_was_taken_away_is_not_played_into_a_new_one() {
    let place = StoreLocation::new();
    take(&place.open(), "a", 1).await.unwrap();
    std::fs::remove_file(place.path()).unwrap();
    let before = place.files();
    assert!(before.contains(&"store.db-wal".to_owned()), "{before:?}");
    let error = place.try_open().err().expect("it should have been refused");
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert_eq!(place.files(), before);

    for name in before {
        let path = place.folder.path().join(name);
        if path.is_file() {
            std::fs::remove_file(path).unwrap();
        }
    }
    assert_eq!(crate::everything(&place.open()).await.holds, []);
}

#[tokio::test]
async fn a_store_without_its_side_folder_makes_a_new_one() {
    let place = StoreLocation::new();
    take(&place.open(), "a", 1).await.unwrap();
    std::fs::remove_dir_all(place.folder.path().join("store.db.side")).unwrap();
    let store = place.open();
    take(&store, "b", 2).await.unwrap();
    assert_eq!(crate::everything(&store).await.holds.len(), 2);
    assert!(store.check().await.unwrap().iter().all(|finding| finding.ok));
}
