//! Generations follow each other under those who have the store open, and nothing is lost.

use crate::{StoreLocation, begin_next_generation, held, is_in_order, take};
use tenure::core::Revision;
use tenure::store::StoreExt;

#[tokio::test]
async fn whoever_has_it_open_follows_through_many_generations() {
    let place = StoreLocation::new();
    let (writer, reader, idle) = (place.open(), place.open(), place.open());
    take(&writer, "kept").await.unwrap();
    assert_eq!(held(&idle).await, ["kept"]);
    for number in 0..4 {
        begin_next_generation(&place, &writer).await;
        take(&writer, &format!("kept {number}")).await.unwrap();
        assert_eq!(held(&reader).await.len(), number + 2);
        take(&reader, &format!("too {number}")).await.unwrap();
        give_back_all(&reader, number).await;
    }
    assert_eq!(held(&idle).await, held(&place.open()).await);
    let token = take(&idle, "last").await.unwrap();
    assert!(held(&reader).await.contains(&"last".to_owned()));
    assert!(take(&writer, "later").await.unwrap() > token);
    is_in_order(&place.open()).await;
}

async fn give_back_all(store: &tenure::store::FileStore, number: usize) {
    let seen = store.read(&tenure::core::Scope::Everything).await.unwrap();
    let name = format!("too {number}");
    let too = seen.holds.iter().find(|seen| seen.hold.want.resource.name() == name).unwrap();
    crate::give_back(store, &name, too.hold.token).await;
}

#[tokio::test]
async fn one_who_slept_while_its_generation_was_removed_reads_anew() {
    let place = StoreLocation::new();
    let (writer, sleeper) = (place.open(), place.open());
    take(&writer, "kept").await.unwrap();
    assert_eq!(held(&sleeper).await, ["kept"]);
    for _ in 0..3 {
        begin_next_generation(&place, &writer).await;
    }
    // As trimming does, once there is enough history.
    for generation in 2..place.newest() {
        std::fs::remove_file(place.journal(generation)).unwrap();
    }
    take(&sleeper, "woken").await.unwrap();
    assert_eq!(held(&writer).await, ["kept", "woken"]);
    assert_eq!(held(&sleeper).await, ["kept", "woken"]);
}

#[tokio::test]
async fn a_generation_that_was_begun_and_not_sealed_is_followed_by_all() {
    let place = StoreLocation::new();
    let old = place.open();
    take(&old, "kept").await.unwrap();
    begin_next_generation(&place, &place.open()).await;
    // As if whoever began it had died before it said so.
    let journal = std::fs::read(place.journal(1)).unwrap();
    assert!(journal.ends_with(b"\"sealed\":2}\n"));
    let last = journal[..journal.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
    std::fs::write(place.journal(1), &journal[..=last]).unwrap();

    take(&old, "old").await.unwrap();
    take(&place.open(), "new").await.unwrap();
    assert_eq!(held(&old).await, ["kept", "new", "old"]);
    assert_eq!(held(&place.open()).await, ["kept", "new", "old"]);
    assert_eq!(std::fs::read(place.journal(1)).unwrap(), journal, "it is sealed");
}

#[tokio::test]
async fn the_history_goes_on_over_generations() {
    let place = StoreLocation::new();
    let store = place.open();
    for _ in 0..3 {
        begin_next_generation(&place, &store).await;
    }
    let fresh = place.open();
    let events = fresh.events(Revision(0), u32::MAX).await.unwrap();
    let numbers: Vec<u64> = events.iter().map(|event| event.revision.0).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let middle = Revision(numbers.len() as u64 / 2);
    let later = fresh.events(middle, 3).await.unwrap();
    assert_eq!(later, events[middle.0 as usize..middle.0 as usize + 3]);
    assert_eq!(store.events(middle, 3).await.unwrap(), later);
}
