//! Looking and writing are one step, against all other calls on all handles.

use crate::Harness;
use crate::kit::*;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure::core::{
    Change, Decision, EventKind, GrantId, Hold, NoWitness, Outcome, Proof, ReleaseAsk, Revision,
    Scope, Snapshot, Token, Write, rules,
};
use tenure::store::{Store, Transaction, transact_with};

cases!("atomic":
    what_was_written_is_read_on_every_handle,
    nothing_is_written_when_nothing_is_decided,
    a_rule_that_looks_wider_sees_everything,
    a_durable_change_is_made_once,
    one_of_many_wins,
    a_counter_loses_no_step,
    a_change_is_seen_whole_or_not_at_all,
    several_resources_are_taken_all_or_nothing,
    a_call_that_is_dropped_leaves_all_or_nothing,
);

async fn what_was_written_is_read_on_every_handle(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let stores = four_handles(harness, &store).await;
    for round in 1..=8 {
        let name = format!("round {round}");
        take(&*stores[round % stores.len()], &name, grant(round as u128), LONG).await?;
        for store in &stores {
            ensure_eq!(hold_of(&**store, &name).await?.hold.grant, grant(round as u128), "{name}");
            let events = store.events(Revision(0), u32::MAX).await?;
            ensure_eq!(events.len(), round, "the number of events after {name}");
        }
    }
    Ok(())
}

async fn nothing_is_written_when_nothing_is_decided(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    take(&*store, "a", grant(1), LONG).await?;
    let before = everything(&*store).await?;
    for scope in [at(&["a"]), queues(&["a"]), Scope::Everything] {
        let nothing = Transaction::new(scope, |_| Decision::Nothing);
        ensure_eq!(store.transact(nothing).await?.revision, None, "the revision of nothing");
    }
    let after = everything(&*store).await?;
    ensure_eq!(after.holds[0].hold, before.holds[0].hold, "the hold");
    ensure_eq!(store.events(Revision(0), u32::MAX).await?.len(), 1, "the number of events");
    Ok(())
}

async fn a_rule_that_looks_wider_sees_everything(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    take(&*store, "far away", grant(1), LONG).await?;
    queue(&*store, &["further"], grant(2), LONG).await?;
    let decide = |seen: &Snapshot| match seen.whole {
        false => (Decision::NeedAll, None),
        true => {
            let change = holding(hold("near", grant(3), seen.next_token()));
            (Decision::Write(change), Some(seen.clone()))
        }
    };
    let (committed, wide) = transact_with(&*store, at(&["near"]), None, decide).await?;
    let Some(wide) = wide else {
        return Err(Failure("the rule needed to see all and was not asked again".to_owned()));
    };
    ensure_eq!(grants(&wide.holds), [grant(1)], "who holds anything");
    ensure_eq!(wide.waiters.len(), 1, "how many wait for anything");
    ensure_eq!(wide.shown_until, None, "where the wider look ends");
    ensure!(committed.revision > Some(wide.revision), "the change has no revision of its own");
    ensure_eq!(hold_of(&*store, "near").await?.hold.grant, grant(3), "what was then decided");
    Ok(())
}

async fn a_durable_change_is_made_once(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    for (number, scope) in [(1, at(&["a"])), (2, Scope::Everything)] {
        let before = everything(&*store).await?;
        let decide = move |seen: &Snapshot| {
            let hold = hold("a", grant(number), seen.next_token());
            Decision::Write(Change { durable: true, ..holding(hold) })
        };
        let committed = store.transact(Transaction::new(scope, decide)).await?;
        let after = everything(&*store).await?;
        ensure_eq!(after.holds.len(), before.holds.len() + 1, "the number of holds");
        ensure!(
            committed.revision.is_some_and(|revision| revision <= after.revision),
            "{:?} was reported and {:?} is shown",
            committed.revision,
            after.revision
        );
        ensure_eq!(store.events(before.revision, u32::MAX).await?.len(), 1, "the new events");
    }
    let store = harness.reopen(store).await;
    ensure_eq!(everything(&*store).await?.holds.len(), 2, "the holds after opening again");
    Ok(())
}

async fn one_of_many_wins(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let stores = four_handles(harness, &store).await;
    let ask = |store: Arc<dyn Store>, index| async move {
        let grant = grant(index as u128 + 1);
        Ok((grant, acquire(&*store, &["prize"], grant).await?))
    };
    let answers = at_once(&stores, 64, ask).await?;
    let winners: Vec<GrantId> = answers
        .iter()
        .filter(|(_, outcome)| matches!(outcome, Outcome::Granted(_)))
        .map(|(grant, _)| *grant)
        .collect();
    ensure_eq!(winners.len(), 1, "the number of winners");
    ensure_eq!(hold_of(&*store, "prize").await?.hold.grant, winners[0], "who holds");
    ensure_eq!(store.events(Revision(0), u32::MAX).await?.len(), 1, "the number of events");
    Ok(())
}

const COUNTERS: usize = 16;
const STEPS: usize = 12;

/// Reads the number that stands in a hold and writes the next one in its place.
async fn step(store: &dyn Store) -> Result<u64, Failure> {
    let decide = |seen: &Snapshot| {
        let before = seen.holds.first().and_then(|seen| seen.hold.operation.as_ref()?.parse().ok());
        let counted = before.unwrap_or(0_u64) + 1;
        let mut change = dropping("counter", grant(1));
        let operation = Some(counted.to_string());
        let token = seen.next_token();
        change.writes.push(Write::Hold(Hold { operation, ..hold("counter", grant(1), token) }));
        (Decision::Write(change), counted)
    };
    apply(store, None, at(&["counter"]), decide).await
}

async fn a_counter_loses_no_step(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let stores = four_handles(harness, &store).await;
    let count = |store: Arc<dyn Store>, _| async move {
        let mut counted = Vec::new();
        for _ in 0..STEPS {
            counted.push(step(&*store).await?);
        }
        Ok(counted)
    };
    let mut counted: Vec<u64> = at_once(&stores, COUNTERS, count).await?.concat();
    counted.sort_unstable();
    let total = (COUNTERS * STEPS) as u64;
    ensure!(counted.iter().copied().eq(1..=total), "each number should come once: {counted:?}");
    let events = store.events(Revision(0), u32::MAX).await?;
    ensure_eq!(events.len() as u64, total, "the number of events");
    Ok(())
}

/// Hands both resources to the next grant, with one event for each.
async fn hand_on(store: &dyn Store, to: GrantId) -> Result<Option<Revision>, Failure> {
    write(store, move |seen| {
        let mut change = Change::default();
        for name in ["left", "right"] {
            for held in seen.holds.iter().filter(|seen| seen.hold.want.resource == resource(name)) {
                let (resource, grant) = (resource(name), held.hold.grant);
                change.writes.push(Write::DropHold { resource, grant });
            }
            let hold = hold(name, to, seen.next_token());
            change.events.push(event(&hold.want.resource, Some(hold.token), EventKind::Released));
            change.writes.push(Write::Hold(hold));
        }
        change
    })
    .await
}

fn ensure_pair(seen: &Snapshot, events: usize) -> Verdict {
    let found: Vec<_> = seen.holds.iter().map(|seen| (seen.hold.grant, seen.hold.token)).collect();
    let whole = matches!(found[..], [one, other] if one == other);
    ensure!(whole || (found.is_empty() && events == 0), "half a change is seen: {found:?}");
    ensure!(events.is_multiple_of(2), "{events} events are half a change");
    Ok(())
}

async fn a_change_is_seen_whole_or_not_at_all(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let stores = four_handles(harness, &store).await;
    let done = Arc::new(AtomicBool::new(false));
    // One task writes, the others look until it is done.
    let task = |store: Arc<dyn Store>, index: usize| {
        let done = done.clone();
        async move {
            if index == 0 {
                for number in 1..=100 {
                    hand_on(&*store, grant(number)).await?;
                }
                done.store(true, Ordering::Relaxed);
            }
            while !done.load(Ordering::Relaxed) {
                let events = store.events(Revision(0), u32::MAX).await?;
                let seen = everything(&*store).await?;
                ensure_pair(&seen, events.len())?;
                let known = events.last().map_or(Revision(0), |event| event.revision);
                ensure!(seen.revision >= known, "a later look shows less: {:?}", seen.revision);
                tokio::task::yield_now().await;
            }
            Ok(())
        }
    };
    at_once(&stores, 4, task).await?;
    Ok(())
}

const TABLE: [&str; 5] = ["fork 0", "fork 1", "fork 2", "fork 3", "path:forks/*"];

/// No fork may have two holders, and every grant has all three of its forks.
fn ensure_table(seen: &Snapshot) -> Verdict {
    let mut by_resource = HashMap::new();
    let mut by_grant: HashMap<(GrantId, Token), usize> = HashMap::new();
    for held in seen.holds.iter().map(|seen| &seen.hold) {
        let other = by_resource.insert(held.want.resource.clone(), held.grant);
        ensure!(other.is_none(), "{} has two holders", held.want.resource);
        *by_grant.entry((held.grant, held.token)).or_default() += 1;
    }
    let half = by_grant.iter().find(|(_, count)| **count != 3);
    ensure!(half.is_none(), "{half:?} does not have three forks");
    Ok(())
}

async fn give_back(store: &dyn Store, grant: GrantId, names: &[&str]) -> Verdict {
    let ask = ReleaseAsk { proof: Proof::Grant(grant), resources: None, lost: false };
    let decide = move |seen: &Snapshot| rules::release(seen, &ask, &NoWitness).0;
    store.transact(Transaction::new(at(names), decide)).await?;
    Ok(())
}

async fn several_resources_are_taken_all_or_nothing(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let stores = four_handles(harness, &store).await;
    let dine = |store: Arc<dyn Store>, index: usize| async move {
        let names: Vec<&str> = (0..3).map(|fork| TABLE[(index + fork * 2) % 5]).collect();
        let mut meals = 0;
        for round in 0..20 {
            let grant = grant((index * 1_000 + round + 1) as u128);
            let granted = matches!(acquire(&*store, &names, grant).await?, Outcome::Granted(_));
            ensure_table(&everything(&*store).await?)?;
            if granted {
                meals += 1;
                give_back(&*store, grant, &names).await?;
            }
        }
        Ok(meals)
    };
    let meals: usize = at_once(&stores, 8, dine).await?.iter().sum();
    ensure!(meals > 0, "somebody must have been able to eat");
    let seen = everything(&*store).await?;
    ensure!(seen.holds.is_empty(), "all was given back, but there is {:?}", seen.holds);
    let events = store.events(Revision(0), u32::MAX).await?;
    ensure_eq!(events.len(), meals * 6, "the number of events");
    Ok(())
}

async fn a_call_that_is_dropped_leaves_all_or_nothing(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let stores = four_handles(harness, &store).await;
    let mut calls = Vec::new();
    for number in 1..=100 {
        let store = stores[number % stores.len()].clone();
        calls.push(tokio::spawn(async move { hand_on(&*store, grant(number as u128)).await }));
        if number % 2 == 0 {
            tokio::task::yield_now().await;
            calls[number / 2].abort();
        }
    }
    let mut finished = 0;
    for call in calls {
        // One that was dropped may or may not have been made; one that was not must have been.
        match call.await {
            Ok(made) => finished += usize::from(made?.is_some()),
            Err(error) => ensure!(error.is_cancelled(), "a call ended early: {error}"),
        }
    }
    let events = store.events(Revision(0), u32::MAX).await?;
    ensure_pair(&everything(&*store).await?, events.len())?;
    ensure!(events.len() >= finished * 2, "{} events for {finished} changes", events.len());
    for (number, store) in stores.iter().enumerate() {
        take(&**store, &format!("after {number}"), grant(1_000), LONG).await?;
    }
    Ok(())
}
