//! Answers to requests that may be repeated: kept through generations, reboots and jumps of the time
//! of day, and in nobody's way who serves no clients.

use crate::{HOUR, StoreLocation, begin_next_generation, held, take};
use tenure::core::{Change, Decision, Scope, Snapshot, StoredReply, Write};
use tenure::store::FileStore;
use tenure::store::{RequestId, Store, StoreError, Transaction, transact_with};

fn answer(slot: usize) -> StoredReply {
    StoredReply { slot: format!("client-{slot}"), number: 1, text: "yes".to_owned() }
}

async fn put(store: &FileStore, slot: usize) {
    let decide = move |_: &Snapshot| {
        let writes = vec![Write::Answer(answer(slot))];
        Decision::Write(Change { writes, ..Change::default() })
    };
    store.transact(Transaction::new(Scope::Everything, decide)).await.unwrap();
}

async fn find(store: &FileStore, slot: usize) -> Result<Option<StoredReply>, StoreError> {
    let request = RequestId { slot: answer(slot).slot, number: 1 };
    let rule = |seen: &Snapshot| (Decision::Nothing, seen.answered.clone());
    let (_, answered) = transact_with(store, Scope::Everything, Some(request), rule).await?;
    Ok(answered)
}

async fn get(store: &FileStore, slot: usize) -> Option<StoredReply> {
    find(store, slot).await.unwrap()
}

#[tokio::test]
async fn answers_are_kept_through_generations_reboots_and_jumps_of_the_time_of_day() {
    let place = StoreLocation::new();
    let store = place.open();
    for slot in 0..50 {
        put(&store, slot).await;
    }
    begin_next_generation(&place, &store).await;
    drop(store);
    for round in 0..3 {
        place.clock.jump_wall(1_000_000_000_000 * (round - 1));
        let store = place.open();
        for slot in 0..50 {
            assert_eq!(get(&store, slot).await, Some(answer(slot)), "round {round}");
        }
        put(&store, 50).await;
        begin_next_generation(&place, &store).await;
        place.clock.reboot(&format!("boot-{}", round + 2));
    }
    let store = place.open();
    assert_eq!(get(&store, 7).await, Some(answer(7)));
    place.clock.advance(HOUR);
    put(&store, 51).await;
    assert_eq!((get(&store, 7).await, get(&store, 51).await), (None, Some(answer(51))));
}

#[tokio::test]
async fn whoever_serves_no_clients_does_not_read_answers() {
    let place = StoreLocation::new();
    let store = place.open();
    take(&store, "a").await.unwrap();
    for slot in 0..50 {
        put(&store, slot).await;
    }
    begin_next_generation(&place, &store).await;
    drop(store);
    // If one of them is damaged, only those notice who look for an answer.
    let journal = place.journal(place.newest());
    let mut bytes = std::fs::read(&journal).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let at = text.find("client-7\"").expect("the answer in the new generation");
    bytes[at] = b'X';
    std::fs::write(&journal, bytes).unwrap();
    let store = place.open();
    assert_eq!(held(&store).await, ["a"]);
    take(&store, "b").await.unwrap();
    assert!(find(&store, 7).await.is_err(), "a damaged answer is none");
}
