//! Tokens and tickets rise for each resource: after any end of a hold, for any caller, and across
//! reopening the store.
//!
//! A store promises no more than that. Numbers may have gaps, and unrelated resources may have the
//! same ones.

use crate::Harness;
use crate::kit::*;
use crate::tasks::{add, look_for, new};
use std::collections::HashMap;
use std::sync::Arc;
use tenure::core::{
    Change, Decision, EventKind, NoWitness, Outcome, Proof, ReleaseAsk, Resource, Revision, Scope,
    Snapshot, Token, Write, rules,
};
use tenure::store::{Store, transact_with};

cases!("numbers":
    the_next_number_is_beyond_all_in_its_scope,
    an_overlapping_scope_sees_a_higher_number,
    a_change_may_take_several_numbers,
    a_change_over_everything_raises_all_numbers,
    numbers_rise_beyond_all_that_ended,
    the_tokens_of_a_resource_rise_however_many_ask,
);

/// The first number that would lose precision in JavaScript and JSON tools.
const TOO_HIGH: u64 = 1 << 53;

async fn next(store: &dyn Store, scope: Scope) -> Result<u64, Failure> {
    let (_, next) =
        transact_with(store, scope, None, |seen| (Decision::Nothing, seen.next)).await?;
    ensure!(next > 0, "0 is no token: it would be below every other");
    ensure!(next < TOO_HIGH, "{next} is not below 2^53");
    Ok(next)
}

async fn the_next_number_is_beyond_all_in_its_scope(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    let mut highest = 0;
    for round in 1..=10_u128 {
        let before = next(&*store, at(&["a"])).await?;
        ensure!(before > highest, "{before} is not beyond {highest}");
        let Outcome::Granted(granted) = acquire(&*other, &["a"], grant(round)).await? else {
            return Err(Failure("it was free and not granted".to_owned()));
        };
        ensure!(granted.token.0 >= before, "token {} is below {before}", granted.token);
        highest = granted.token.0;
        release(&*store, "a", round).await?;
        // What happens elsewhere does not matter.
        acquire(&*store, &["elsewhere"], grant(1_000 + round)).await?;
    }
    Ok(())
}

async fn release(store: &dyn Store, name: &str, number: u128) -> Verdict {
    let ask = ReleaseAsk { proof: Proof::Grant(grant(number)), resources: None, lost: false };
    let rule = move |seen: &Snapshot| (rules::release(seen, &ask, &NoWitness).0, ());
    apply(store, None, at(&[name]), rule).await
}

async fn an_overlapping_scope_sees_a_higher_number(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let overlapping = [
        ("a", vec![at(&["a"]), at(&["b", "a"]), queues(&["a"]), Scope::Everything]),
        ("path:src/**", vec![at(&["path:src/x"]), queues(&["path:**/x"]), Scope::Everything]),
        ("task:t", vec![look_for(&["t"]), at(&["task:t"]), Scope::Everything]),
        ("section:S", vec![at(&["section:S"]), Scope::Everything]),
    ];
    add(&*store, vec![new("t")]).await?;
    for (number, (name, scopes)) in overlapping.into_iter().enumerate() {
        let grant = grant(number as u128 + 1);
        let Outcome::Granted(granted) = acquire(&*store, &[name], grant).await? else {
            return Err(Failure(format!("{name} was free and not granted")));
        };
        for scope in scopes {
            let next = next(&*store, scope.clone()).await?;
            ensure!(next > granted.token.0, "{next} for {scope:?}, after {}", granted.token);
        }
    }
    Ok(())
}

async fn a_change_may_take_several_numbers(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    for round in 0..3_u128 {
        let rule = move |seen: &Snapshot| {
            let (first, second) = (grant(10 * round + 1), grant(10 * round + 2));
            let place = waiter(&["a"], grant(10 * round + 3), seen.next + 3);
            let writes = vec![
                Write::DropHold {
                    resource: resource("a"),
                    grant: grant((10 * round).saturating_sub(9)),
                },
                Write::Hold(hold("a", first, Token(seen.next))),
                Write::Hold(hold("b", second, Token(seen.next + 1))),
                Write::Wait(place),
            ];
            (Decision::Write(Change { writes, ..noting("a") }), seen.next + 3)
        };
        let highest = apply(&*store, None, at(&["a", "b"]), rule).await?;
        for scope in [at(&["a"]), at(&["b", "c"]), Scope::Everything] {
            let next = next(&*store, scope).await?;
            ensure!(next > highest, "{next} is not beyond {highest}, which was taken");
        }
    }
    Ok(())
}

/// A store that takes over from another must give out higher numbers than the other did, wherever. The
/// jump is far, and must not cost as much as it is long.
async fn a_change_over_everything_raises_all_numbers(harness: &dyn Harness) -> Verdict {
    const JUMP: u64 = 3_000_000_000;
    let mut store = harness.fresh().await;
    let other = harness.another(&store).await;
    add(&*store, vec![new("t")]).await?;
    let held = take(&*store, "held", grant(1), LONG).await?;
    let rule = |seen: &Snapshot| {
        let high = seen.next + JUMP;
        let writes = vec![
            Write::Hold(hold("mark", grant(2), Token(high))),
            Write::DropHold { resource: resource("mark"), grant: grant(2) },
        ];
        (Decision::Write(Change { writes, ..noting("mark") }), high)
    };
    let highest = apply(&*store, None, Scope::Everything, rule).await?;
    ensure!(highest > JUMP + held.0, "{highest} is not far above {held}");
    ensure!(hold_of(&*store, "mark").await.is_err(), "it ended in the change that began it");
    let scopes = [at(&["mark"]), at(&["held"]), at(&["other"]), at(&["path:a/**"])];
    let scopes = [&scopes[..], &[look_for(&["t"]), queues(&["more"]), Scope::Everything]].concat();
    for scope in &scopes {
        let next = next(&*store, scope.clone()).await?;
        ensure!(next > highest, "{next} for {scope:?}, after {highest}");
    }
    let token = take(&*other, "other", grant(3), LONG).await?;
    ensure!(token.0 > highest, "token {token} should be beyond {highest}");
    add(&*other, vec![new("u")]).await?;
    drop(other);
    store = harness.reopen(store).await;
    let token = take(&*store, "later", grant(4), LONG).await?;
    ensure!(token.0 > highest, "token {token} after reopening should be beyond {highest}");
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
        write(&*store, move |_| {
            let mut change = dropping("a", grant(1));
            change.writes.push(Write::DropWait(leaving.clone()));
            change
        })
        .await?;
        let before = everything(&*store).await?;
        ensure!(before.holds.is_empty() && before.waiters.is_empty(), "all ended: {before:?}");
        store = harness.reopen(store).await;
        let after = everything(&*store).await?;
        ensure!(after.revision >= before.revision, "{:?} fell", after.revision);
    }
    Ok(())
}

async fn the_tokens_of_a_resource_rise_however_many_ask(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let stores = four_handles(harness, &store).await;
    let names = ["a", "b", "path:src/**"];
    let task = |store: Arc<dyn Store>, index: usize| async move {
        for round in 0..12 {
            let name = names[(index + round) % names.len()];
            let number = (index * 100 + round + 1) as u128;
            if let Outcome::Granted(_) = acquire(&*store, &[name], grant(number)).await? {
                release(&*store, name, number).await?;
            }
        }
        Ok(())
    };
    at_once(&stores, 16, task).await?;
    let mut last: HashMap<Resource, Token> = HashMap::new();
    for event in store.events(Revision(0), u32::MAX).await? {
        let (Some(resource), Some(token)) = (event.event.resource, event.event.token) else {
            return Err(Failure("an event of a hold lacks its resource or token".to_owned()));
        };
        let before = last.insert(resource.clone(), token).unwrap_or_default();
        match event.event.kind {
            EventKind::Acquired { .. } => {
                ensure!(token > before, "{resource} got token {token} after {before}");
            }
            _ => ensure_eq!(token, before, "the token of {resource} that ended"),
        }
    }
    ensure_eq!(last.len(), names.len(), "the number of resources that were held");
    Ok(())
}
