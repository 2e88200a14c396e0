//! No change is reported that went to files which were removed or replaced meanwhile.

use crate::{StoreLocation, held, take};
use tenure::core::{Change, Decision, EventKind, NewEvent, Scope, Snapshot};
use tenure::store::{Store, StoreError, Transaction};

#[tokio::test]
async fn a_change_that_went_to_a_folder_taken_away_meanwhile_is_not_reported() {
    for durable in [false, true] {
        let place = StoreLocation::new();
        let store = place.open();
        let (from, to) = (place.folder.path().join("store"), place.folder.path().join("aside"));
        let decide = move |_: &Snapshot| {
            let _ = std::fs::rename(&from, &to);
            let event = NewEvent::new(None, "somebody", None, EventKind::Rebooted);
            Decision::Write(Change { events: vec![event], durable, ..Change::default() })
        };
        let error = store.transact(Transaction::new(Scope::Everything, decide)).await.unwrap_err();
        assert!(matches!(error, StoreError::Gone { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_journal_that_was_removed_alone_is_a_store_that_is_gone() {
    let place = StoreLocation::new();
    let store = place.open();
    take(&store, "a").await.unwrap();
    std::fs::remove_dir_all(place.path("journal")).unwrap();
    let anew = place.open();
    take(&anew, "a").await.unwrap();
    for _ in 0..3 {
        let error = take(&store, "b").await.unwrap_err();
        assert!(matches!(error, StoreError::Gone { .. }), "{error:?}");
    }
    assert_eq!(held(&anew).await, ["a"]);
}
