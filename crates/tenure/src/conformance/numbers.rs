//! Revisions, tokens and tickets only rise: whatever ends, whoever asks, however often the store
//! is opened again.

use super::Harness;
use super::kit::*;
use crate::store::Store;
use std::sync::Arc;
use tenure_core::{Change, Decision, Hold, Outcome, Revision, Scope, Write};

cases!("numbers":
    numbers_rise_with_every_change,
    events_take_the_numbers_that_were_promised,
    numbers_rise_beyond_all_that_ended,
    every_look_shows_the_same_numbers,
    no_two_grants_share_a_token,
);

async fn numbers_rise_with_every_change(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let first = everything(&*store).await?;
    ensure!(first.next > 0, "0 is no token: it would be below every other");
    let mut before = first;
    for number in 0..10 {
        let name = format!("lock {number}");
        let token = take(&*store, &name, grant(number), LONG).await?;
        let after = everything(&*store).await?;
        ensure_eq!(token.0, before.next, "the token");
        ensure!(after.next > before.next, "{} should be beyond {}", after.next, before.next);
        ensure!(after.revision > before.revision, "{:?} should rise", after.revision);
        ensure!(after.next > after.revision.0, "the next number must be new: {}", after.next);
        before = after;
    }
    Ok(())
}

async fn events_take_the_numbers_that_were_promised(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    for count in [1, 2, 7] {
        let mut next = 0;
        let revision = write(&*store, |seen| {
            next = seen.next;
            let events = (0..count).flat_map(|_| noting("a").events).collect();
            Change { events, ..Change::default() }
        })
        .await?;
        let events = store.events(Revision(next - 1), u32::MAX).await?;
        let found: Vec<u64> = events.iter().map(|event| event.revision.0).collect();
        let promised: Vec<u64> = (next..next + count).collect();
        ensure_eq!(found, promised, "the numbers of {count} events");
        ensure_eq!(revision.0, next + count - 1, "the revision that was reported");
        ensure_eq!(everything(&*store).await?.revision, revision, "the revision that is shown");
    }
    Ok(())
}

async fn numbers_rise_beyond_all_that_ended(harness: &dyn Harness) -> Verdict {
    let mut store = harness.fresh().await;
    let mut highest = 0;
    for round in 0..4 {
        let token = take(&*store, "a", grant(1), LONG).await?;
        ensure!(token.0 > highest, "token {token} of round {round} should be beyond {highest}");
        let ticket = queue(&*store, &["a"], grant(2), LONG).await?;
        ensure!(ticket > token.0, "ticket {ticket} should be beyond {token}");
        highest = ticket;
        let leaving = waiter(&["a"], grant(2), ticket);
        write(&*store, |_| {
            let mut change = dropping("a", grant(1));
            change.writes.push(Write::DropWait(leaving.clone()));
            change
        })
        .await?;
        let before = everything(&*store).await?;
        ensure!(before.holds.is_empty() && before.waiters.is_empty(), "all ended: {before:?}");
        highest = highest.max(before.revision.0);
        store = harness.reopen(store).await;
        let after = everything(&*store).await?;
        ensure!(after.next >= before.next, "{} after {}", after.next, before.next);
        ensure!(after.revision >= before.revision, "{:?} fell", after.revision);
    }
    Ok(())
}

async fn every_look_shows_the_same_numbers(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    take(&*store, "a", grant(1), LONG).await?;
    take(&*store, "b", grant(2), LONG).await?;
    let expected = everything(&*store).await?;
    for store in [&store, &other] {
        for scope in [at(&["a"]), at(&["free"]), queues(&["path:x"]), Scope::Everything] {
            let read = store.read(&scope).await?;
            let mut decided = None;
            let mut decide = |seen: &tenure_core::Snapshot| {
                decided = Some((seen.next, seen.revision));
                Decision::Nothing
            };
            store.transact(&scope, &mut decide).await?;
            let numbers = (expected.next, expected.revision);
            ensure_eq!((read.next, read.revision), numbers, "what {scope:?} reads");
            ensure_eq!(decided, Some(numbers), "what a rule is shown by {scope:?}");
        }
    }
    Ok(())
}

async fn no_two_grants_share_a_token(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let stores = four_handles(harness, &store).await;
    let ask = |store: Arc<dyn Store>, index: usize| async move {
        let mut tokens = Vec::new();
        for round in 0..4_usize {
            let name = format!("lock {}", index * 4 + round);
            let grant = grant((index * 4 + round + 1) as u128);
            match acquire(&*store, &[&name], grant).await? {
                Outcome::Granted(granted) => tokens.push(granted.token.0),
                other => return Err(Failure(format!("{name} was free, but: {other:?}"))),
            }
        }
        ensure!(tokens.is_sorted_by(|one, next| one < next), "tokens fell: {tokens:?}");
        Ok(tokens)
    };
    let mut tokens: Vec<u64> = at_once(&stores, 32, ask).await?.concat();
    tokens.sort_unstable();
    ensure!(tokens.is_sorted_by(|one, next| one < next), "a token came twice: {tokens:?}");
    let held: Vec<u64> = held_tokens(everything(&*store).await?.holds.iter().map(|s| &s.hold));
    ensure_eq!(held, tokens, "the tokens of all holds, in their order");
    let events = store.events(Revision(0), u32::MAX).await?;
    let numbers: Vec<u64> = events.iter().map(|event| event.revision.0).collect();
    ensure_eq!(numbers, tokens, "the number of each event, which is the token of its grant");
    Ok(())
}

fn held_tokens<'a>(holds: impl Iterator<Item = &'a Hold>) -> Vec<u64> {
    holds.map(|hold| hold.token.0).collect()
}
