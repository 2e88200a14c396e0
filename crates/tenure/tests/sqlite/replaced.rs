//! No change is reported that went to a file which was removed or replaced meanwhile.

use crate::{StoreLocation, everything, grant, holding, resource, take};
use std::path::Path;
use tenure::core::{Change, Decision, Holder, Scope, Snapshot, TaskScope};
use tenure::store::{Store, StoreError, Transaction};

/// Moves the database with its log to another name.
fn rename(folder: &Path, from: &str, to: &str) {
    for suffix in ["", "-wal", "-shm"] {
        let name = |name: &str| folder.join(format!("{name}{suffix}"));
        let _ = std::fs::rename(name(from), name(to));
    }
}

#[tokio::test]
async fn a_change_that_went_to_a_file_taken_away_meanwhile_is_not_reported() {
    for scope in [
        Scope::At { resources: vec![resource("a")], ticket: None },
        Scope::Tasks(TaskScope::default()),
    ] {
        let place = StoreLocation::new();
        let store = place.open();
        let holder = Holder::anonymous("somebody".to_owned());
        let folder = place.folder.path().to_owned();
        let decide = move |seen: &Snapshot| {
            // It was shown the store, and is about to write.
            rename(&folder, "store.db", "aside.db");
            Decision::Write(Change { writes: vec![], ..holding("a", grant(1), &holder, seen) })
        };
        let error = store.transact(Transaction::new(scope, decide)).await.unwrap_err();
        assert!(matches!(error, StoreError::Gone { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn changes_made_together_in_a_file_taken_away_meanwhile_are_not_reported() {
    let place = StoreLocation::new();
    let store = place.open();
    let holder = Holder::anonymous("somebody".to_owned());
    let (from, to) = (place.path(), place.folder.path().join("aside.db"));
    let decide = move |seen: &Snapshot| {
        let _ = std::fs::rename(&from, &to);
        Decision::Write(Change { writes: vec![], ..holding("a", grant(1), &holder, seen) })
    };
    let scope = Scope::Tasks(TaskScope::default());
    let error = store.transact(Transaction::new(scope, decide)).await.unwrap_err();
    assert!(matches!(error, StoreError::Gone { .. }), "{error:?}");
}

#[tokio::test]
async fn a_file_that_was_put_back_is_not_used_again_by_those_who_missed_it() {
    let place = StoreLocation::new();
    let (store, other) = (place.open(), place.open());
    take(&store, "a", 1).await.unwrap();
    rename(place.folder.path(), "store.db", "aside.db");
    let error = take(&store, "b", 2).await.unwrap_err();
    assert!(matches!(error, StoreError::Gone { .. }), "{error:?}");
    rename(place.folder.path(), "aside.db", "store.db");
    for handle in [&store, &other] {
        let error = take(handle, "c", 3).await.unwrap_err();
        assert!(matches!(error, StoreError::Gone { .. }), "{error:?}");
    }
    let anew = place.open();
    assert_eq!(everything(&anew).await.holds.len(), 1, "only what was reported is held");
    take(&anew, "d", 4).await.unwrap();
}
