//! Stores of every version are opened: the samples are their files.

use crate::{StoreLocation, files, is_in_order, resource, take};
use std::path::Path;
use tenure::core::{Decision, Revision, Scope, Snapshot, Status, Task, Token};
use tenure::store::{FileStore, RequestId, StoreExt, TaskFilter, transact_with};

/// A store as version 1 wrote it.
fn store_of_version_1() -> StoreLocation {
    let place = StoreLocation::new();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/file-1");
    for file in files(&sample) {
        let copy = place.path("").join(file.strip_prefix(&sample).unwrap());
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(&file, copy).unwrap();
    }
    place
}

async fn task(store: &FileStore, id: &str) -> Task {
    let filter = TaskFilter { id_prefix: Some(id.to_owned()), ..TaskFilter::default() };
    store.read(&filter).await.unwrap().remove(0)
}

#[tokio::test]
async fn all_that_version_1_wrote_is_read() {
    let place = store_of_version_1();
    let store = place.open();
    let seen = store.read(&Scope::Everything).await.unwrap();
    let held: Vec<(u64, String)> = seen
        .holds
        .iter()
        .map(|held| (held.hold.token.0, held.hold.want.resource.to_string()))
        .collect();
    let expected = [(1, "deploy"), (2, "path:src/**"), (3, "section:api"), (8, "task:build")];
    assert_eq!(held, expected.map(|(token, name)| (token, name.to_owned())));
    assert!(seen.holds.iter().all(|held| !held.lapsed()));
    assert_eq!(seen.holds[2].hold.slot, Some(0));
    assert_eq!(seen.waiters.len(), 1);
    let build = task(&store, "build").await;
    assert_eq!((build.status, build.claim.unwrap().parts.len()), (Status::InProgress, 1));
    assert_eq!(task(&store, "test").await.labels, ["late"], "changed after the state was written");
    assert_eq!(task(&store, "plan").await.finished_by.as_deref(), Some("dora"), "archived");
    let events = store.events(Revision(0), 100).await.unwrap();
    assert_eq!(events.len(), 32, "of both generations");
    let request = RequestId { slot: "client-0001".to_owned(), number: 7 };
    let rule = |seen: &Snapshot| (Decision::Nothing, seen.answered.clone());
    let answered = transact_with(&store, Scope::Everything, Some(request), rule).await.unwrap().1;
    assert_eq!(answered.unwrap().text, r#"{"answer":true}"#);
    is_in_order(&store).await;
}

#[tokio::test]
async fn a_store_of_version_1_goes_on() {
    let place = store_of_version_1();
    let token = take(&place.open(), "printer").await.unwrap();
    assert!(token > Token(32), "higher than all numbers before");
    let seen = place.open().read(&Scope::Everything).await.unwrap();
    assert!(seen.holds.iter().any(|held| held.hold.want.resource == resource("printer")));
}
