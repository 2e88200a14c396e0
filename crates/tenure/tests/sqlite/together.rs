//! Changes that share a commit: what one that fails does to the others.

use crate::{Place, everything, grant, holding};
use tenure::core::{Decision, Holder, Look, Seen, TaskLook};
use tenure::store::sqlite::SqliteStore;
use tenure::store::{Store, StoreError};

/// Holds this in a batch with whoever is ready; `twice` makes it fail after the first write.
async fn take(
    store: &SqliteStore,
    name: &str,
    number: u128,
    twice: bool,
) -> Result<(), StoreError> {
    let holder = Holder::anonymous("somebody".to_owned());
    let mut decide = |seen: &Seen| {
        let mut change = holding(name, grant(number), &holder, seen);
        change.durable = true;
        if twice {
            change.writes.push(change.writes[0].clone());
        }
        Decision::Write(change)
    };
    store.transact(&Look::Tasks(TaskLook::default()), &mut decide).await.map(drop)
}

#[tokio::test]
async fn a_change_that_fails_halfway_leaves_nothing_and_says_so_to_all_of_its_batch() {
    let place = Place::new();
    let store = place.open();
    let (before, failed, after) = tokio::join!(
        take(&store, "before", 1, false),
        take(&store, "failing", 2, true),
        take(&store, "after", 3, false),
    );
    assert!(matches!(failed, Err(StoreError::Unavailable { .. })), "{failed:?}");
    // Whoever was told that it holds does, and nobody else.
    let mut expected = Vec::new();
    for (name, outcome) in [("before", before), ("after", after)] {
        if outcome.is_ok() {
            expected.push(name.to_owned());
        }
    }
    let held = |seen: Seen| -> Vec<String> {
        seen.holds.iter().map(|seen| seen.hold.want.resource.to_string()).collect()
    };
    assert_eq!(held(everything(&store).await), expected);
    // The store goes on, and so do others that share it.
    take(&place.open(), "elsewhere", 4, false).await.unwrap();
    take(&store, "later", 5, false).await.unwrap();
    expected.extend(["elsewhere".to_owned(), "later".to_owned()]);
    assert_eq!(held(everything(&store).await), expected);
}
