//! The stored reply to a request is shown when the request is repeated.

use crate::Harness;
use crate::kit::*;
use std::sync::Arc;
use tenure::core::{Decision, Snapshot, StoredReply, Write};
use tenure::store::Store;
use tokio::task::JoinSet;

cases!("answers":
    an_answer_is_shown_under_its_slot_alone,
    the_next_answer_takes_the_place_of_the_last,
    an_answer_is_written_with_its_change_or_not_at_all,
    of_many_copies_of_a_request_one_counts,
    answers_of_many_clients_are_kept_beside_each_other,
);

fn answered(slot: &str, number: u64, text: &str) -> StoredReply {
    StoredReply { slot: slot.to_owned(), number, text: text.to_owned() }
}

/// What is shown under a slot.
async fn shown(store: &dyn Store, slot: &str) -> Result<Option<StoredReply>, Failure> {
    let scope = |seen: &Snapshot| (Decision::Nothing, seen.answered.clone());
    apply(store, Some(slot), at(&["a"]), scope).await
}

/// Takes a lock and answers, unless this or a later request was answered; says whether it did.
async fn take_once(store: &dyn Store, name: &str, answer: &StoredReply) -> Result<bool, Failure> {
    let (name, answer) = (name.to_owned(), answer.clone());
    let (slot, scope) = (answer.slot.clone(), at(&[&name]));
    let rule = move |seen: &Snapshot| {
        let is_new = seen.answered.as_ref().is_none_or(|before| before.number < answer.number);
        if !is_new {
            return (Decision::Nothing, false);
        }
        let number = u128::from(seen.next);
        let mut change = holding(hold(&name, grant(number), seen.next_token()));
        change.writes.push(Write::Answer(answer.clone()));
        (Decision::Write(change), true)
    };
    apply(store, Some(&slot), scope, rule).await
}

async fn an_answer_is_shown_under_its_slot_alone(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    ensure_eq!(shown(&*store, "one").await?, None, "a fresh slot");
    let text = "{\"any\": \"text, 'quoted'\\n and 🚀\"}";
    let first = answered("one", 1, text);
    ensure!(take_once(&*store, "a", &first).await?, "the first request was not decided");
    let other = harness.another(&store).await;
    for handle in [&store, &other] {
        ensure_eq!(shown(&**handle, "one").await?, Some(first.clone()), "the slot");
        ensure_eq!(shown(&**handle, "two").await?, None, "another slot");
        ensure_eq!(everything(&**handle).await?.answered, None, "a look without a slot");
    }
    drop(other);
    let store = harness.reopen(store).await;
    ensure_eq!(shown(&*store, "one").await?, Some(first), "the slot after opening again");
    Ok(())
}

async fn the_next_answer_takes_the_place_of_the_last(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    for number in 1..=20 {
        let answer = answered("one", number, &format!("answer {number}"));
        let name = format!("lock-{number}");
        ensure!(take_once(&*store, &name, &answer).await?, "request {number} was not decided");
        ensure!(!take_once(&*store, &name, &answer).await?, "request {number} was decided twice");
        ensure_eq!(shown(&*store, "one").await?, Some(answer), "after request {number}");
    }
    let late = answered("one", 7, "late");
    ensure!(!take_once(&*store, "lock-7b", &late).await?, "a late copy was decided");
    Ok(())
}

async fn an_answer_is_written_with_its_change_or_not_at_all(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    apply(&*store, Some("one"), at(&["a"]), |_| (Decision::Nothing, ())).await?;
    ensure_eq!(shown(&*store, "one").await?, None, "after nothing was decided");
    Ok(())
}

async fn of_many_copies_of_a_request_one_counts(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let handles: Vec<Arc<dyn Store>> = vec![store.clone(), harness.another(&store).await];
    let mut copies = JoinSet::new();
    for copy in 0..16 {
        let handle = handles[copy % 2].clone();
        copies.spawn(async move {
            let answer = answered("one", 1, &format!("copy {copy}"));
            take_once(&*handle, &format!("lock-{copy}"), &answer).await
        });
    }
    let mut decided = 0;
    while let Some(copy) = copies.join_next().await {
        let copy = copy.map_err(|error| Failure(error.to_string()))?;
        decided += usize::from(copy?);
    }
    ensure_eq!(decided, 1, "copies that were decided");
    ensure_eq!(everything(&*store).await?.holds.len(), 1, "locks that were taken");
    Ok(())
}

async fn answers_of_many_clients_are_kept_beside_each_other(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    for client in 0..100 {
        let slot = format!("client-{client}");
        let answer = answered(&slot, 1, &slot);
        ensure!(take_once(&*store, &slot, &answer).await?, "{slot} was not decided");
    }
    let store = harness.reopen(store).await;
    for client in 0..100 {
        let slot = format!("client-{client}");
        let expected = Some(answered(&slot, 1, &slot));
        ensure_eq!(shown(&*store, &slot).await?, expected, "the answer to {slot}");
    }
    Ok(())
}
