//! Stores of every version are opened: the samples are their files.

use crate::{StoreLocation, files, is_in_order, resource, take};
use std::path::Path;
use tenure::core::{Decision, Revision, Scope, Snapshot, Status, Task, Token};
use tenure::store::{FileStore, RequestId, StoreExt, TaskFilter, transact_with};

/// The newest version of the format.
const NEWEST: u32 = 1;

/// A store as this version wrote it.
fn store_of(version: u32) -> StoreLocation {
    let place = StoreLocation::new();
    let name = format!("tests/samples/file-{version}");
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
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
async fn all_that_every_version_wrote_is_read() {
    for version in 1..=NEWEST {
        is_read(version).await;
    }
}

async fn is_read(version: u32) {
    let place = store_of(version);
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
    assert_eq!((build.notes.len(), build.tries.len()), (1, 2));
    assert_eq!(task(&store, "test").await.labels, ["late"], "changed after the state was written");
    assert_eq!(task(&store, "plan").await.finished_by.as_deref(), Some("dora"), "archived");
    let events = store.events(Revision(0), 100).await.unwrap();
    assert_eq!(events.len(), 33, "of both generations");
    let request = RequestId { slot: "client-0001".to_owned(), number: 7 };
    let rule = |seen: &Snapshot| (Decision::Nothing, seen.answered.clone());
    let answered = transact_with(&store, Scope::Everything, Some(request), rule).await.unwrap().1;
    assert_eq!(answered.unwrap().text, r#"{"answer":true}"#);
    is_in_order(&store).await;
}

#[tokio::test]
async fn a_store_of_an_older_version_goes_on_in_the_newest() {
    for version in 1..=NEWEST {
        let place = store_of(version);
        let token = take(&place.open(), "printer").await.unwrap();
        assert!(token > Token(32), "higher than all numbers before");
        let store = place.open();
        let seen = store.read(&Scope::Everything).await.unwrap();
        assert!(seen.holds.iter().any(|held| held.hold.want.resource == resource("printer")));
        let build = task(&store, "build").await;
        assert_eq!(build.status, Status::InProgress);
        // An older program must refuse the file from here on, rather than call it damaged.
        let journal = files(&place.path("journal"));
        let mut journals: Vec<_> = journal
            .iter()
            .filter(|file| file.extension().is_some_and(|end| end == "jsonl"))
            .collect();
        journals.sort();
        let newest = std::fs::read_to_string(journals.last().unwrap()).unwrap();
        let header = format!("\"tenure\":{NEWEST},");
        assert!(newest.lines().next().unwrap().contains(&header), "version {version}: {newest}");
    }
}
