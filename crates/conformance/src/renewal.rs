//! A lease is renewed only by who holds it: the same grant, the same token, all that was named,
//! and not once it has lapsed.

use crate::Harness;
use crate::kit::*;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::{Change, Decision, Evidence, Hold, Holder, Scope, Snapshot, Token, Write};
use tenure::store::{Renewal, Renewed, Store};

cases!("renewal":
    renewing_starts_the_lease_anew,
    who_does_not_hold_it_cannot_renew_it,
    a_lapsed_lease_cannot_be_renewed,
    all_that_is_named_must_be_held,
    what_is_not_named_is_left_alone,
    each_of_many_is_answered_by_itself,
    evidence_is_replaced_when_there_is_new,
    renewing_is_no_event,
    a_late_renewal_cannot_touch_a_successor,
);

const OTHER: Duration = Duration::from_secs(7200);

async fn renewing_starts_the_lease_anew(harness: &dyn Harness) -> Verdict {
    let short = harness.short_lease();
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    let token = take(&*store, "a", grant(1), short).await?;
    let before = hold_of(&*store, "a").await?;
    harness.pass(Duration::from_millis(5)).await;
    let answers = other.renew(&[renewal(&["a"], grant(1), token, OTHER)]).await?;
    ensure_eq!(answers, [Renewed::Renewed], "the answer");
    harness.pass(short).await;
    for store in [&store, &other] {
        let after = hold_of(&**store, "a").await?;
        ensure!(after.left > LONG && after.left < OTHER, "{:?} is left of {OTHER:?}", after.left);
        ensure_eq!(after.hold, Hold { ttl: OTHER, ..before.hold.clone() }, "the renewed hold");
        ensure_eq!(after.acquired_at, before.acquired_at, "when it was acquired");
        ensure!(after.renewed_at != before.renewed_at, "a renewed hold was renewed just now");
    }
    Ok(())
}

async fn who_does_not_hold_it_cannot_renew_it(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let token = take(&*store, "a", grant(1), LONG).await?;
    take(&*store, "b", grant(2), LONG).await?;
    let before = everything(&*store).await?;
    let strangers = [
        renewal(&["a"], grant(2), token, OTHER),
        renewal(&["a"], grant(3), token, OTHER),
        renewal(&["b"], grant(1), token, OTHER),
        renewal(&["free"], grant(1), token, OTHER),
        renewal(&["task:a"], grant(1), token, OTHER),
        renewal(&["a"], grant(1), Token(token.0 - 1), OTHER),
        renewal(&["a"], grant(1), Token(token.0 + 1), OTHER),
        renewal(&["a"], grant(1), Token(u64::MAX), OTHER),
    ];
    for stranger in strangers {
        let answers = store.renew(std::slice::from_ref(&stranger)).await?;
        ensure_eq!(answers, [Renewed::Lost], "the answer to {stranger:?}");
    }
    ensure_same(&before, &everything(&*store).await?)
}

fn ensure_same(before: &Snapshot, after: &Snapshot) -> Verdict {
    let facts = |seen: &Snapshot| -> Vec<_> {
        seen.holds.iter().map(|seen| (seen.hold.clone(), seen.renewed_at)).collect()
    };
    ensure_eq!(facts(after), facts(before), "what nobody was allowed to renew");
    Ok(())
}

async fn a_lapsed_lease_cannot_be_renewed(harness: &dyn Harness) -> Verdict {
    let short = harness.short_lease();
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    let token = take(&*store, "a", grant(1), short).await?;
    harness.pass(short).await;
    for store in [&store, &other, &store] {
        let answers = store.renew(&[renewal(&["a"], grant(1), token, LONG)]).await?;
        ensure_eq!(answers, [Renewed::Lost], "the answer at the end of the lease");
        ensure!(hold_of(&**store, "a").await?.lapsed(), "a lapsed lease came back");
    }
    Ok(())
}

/// Holds these under one grant and one token.
async fn take_all(store: &dyn Store, holds: &[(&str, Duration)]) -> Result<Token, Failure> {
    let made = holds.iter().map(|(name, ttl)| Hold { ttl: *ttl, ..hold(name, grant(1), Token(0)) });
    let made: Vec<Hold> = made.collect();
    let rule = move |seen: &Snapshot| {
        let token = seen.next_token();
        let writes = made.iter().map(|hold| Write::Hold(Hold { token, ..hold.clone() }));
        let change = Change { writes: writes.collect(), ..noting("taken") };
        (Decision::Write(change), token)
    };
    apply(store, None, Scope::Everything, rule).await
}

async fn all_that_is_named_must_be_held(harness: &dyn Harness) -> Verdict {
    let short = harness.short_lease();
    let store = harness.fresh().await;
    let token = take_all(&*store, &[("a", LONG), ("b", short), ("c", LONG)]).await?;
    let all = renewal(&["a", "b", "c"], grant(1), token, OTHER);
    harness.pass(short).await;
    ensure_eq!(store.renew(std::slice::from_ref(&all)).await?, [Renewed::Lost], "one had lapsed");
    write(&*store, |_| dropping("b", grant(1))).await?;
    ensure_eq!(store.renew(&[all]).await?, [Renewed::Lost], "one is gone");
    for name in ["a", "c"] {
        ensure_eq!(hold_of(&*store, name).await?.hold.ttl, LONG, "the lease of {name}");
    }
    let left = renewal(&["c", "a"], grant(1), token, OTHER);
    ensure_eq!(store.renew(&[left]).await?, [Renewed::Renewed], "the two that are left");
    for name in ["a", "c"] {
        ensure_eq!(hold_of(&*store, name).await?.hold.ttl, OTHER, "the lease of {name}");
    }
    Ok(())
}

async fn what_is_not_named_is_left_alone(harness: &dyn Harness) -> Verdict {
    let short = harness.short_lease();
    let store = harness.fresh().await;
    let token = take_all(&*store, &[("a", LONG), ("b", short), ("c", LONG)]).await?;
    harness.pass(short).await;
    let one = renewal(&["a"], grant(1), token, OTHER);
    ensure_eq!(store.renew(&[one]).await?, [Renewed::Renewed], "the one that was named");
    ensure!(hold_of(&*store, "b").await?.lapsed(), "a lapsed lease came back with another");
    ensure_eq!(hold_of(&*store, "c").await?.hold.ttl, LONG, "the lease that was not named");
    Ok(())
}

async fn each_of_many_is_answered_by_itself(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    ensure_eq!(store.renew(&[]).await?, [], "the answers to nothing");
    let mut renewals = Vec::new();
    for number in 0..100_u64 {
        let name = format!("lock {number}");
        let token = take(&*store, &name, grant(u128::from(number)), LONG).await?;
        let token = Token(token.0 + u64::from(number % 3 == 0));
        renewals.push(renewal(&[&name], grant(u128::from(number)), token, OTHER));
    }
    let answers = store.renew(&renewals).await?;
    let expected: Vec<Renewed> = (0..100)
        .map(|number| if number % 3 == 0 { Renewed::Lost } else { Renewed::Renewed })
        .collect();
    ensure_eq!(answers, expected, "the answers, in order");
    let renewed = everything(&*store).await?.holds.iter().filter(|s| s.hold.ttl == OTHER).count();
    ensure_eq!(renewed, 66, "how many were renewed");
    Ok(())
}

async fn evidence_is_replaced_when_there_is_new(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let token = take_all(&*store, &[("a", LONG), ("b", LONG)]).await?;
    let first = Evidence { group: None, ..full_evidence() };
    let second = full_evidence();
    let plain = renewal(&["a", "b"], grant(1), token, LONG);
    let steps = [
        (None, None),
        (Some(&first), Some(&first)),
        (None, Some(&first)),
        (Some(&second), Some(&second)),
        (None, Some(&second)),
    ];
    for (bind, expected) in steps {
        let renewal = Renewal { bind: bind.cloned(), ..plain.clone() };
        ensure_eq!(store.renew(&[renewal]).await?, [Renewed::Renewed], "the answer");
        for name in ["a", "b"] {
            let Holder { evidence, label, .. } = hold_of(&*store, name).await?.hold.holder;
            ensure_eq!(evidence.as_ref(), expected, "the evidence of {name} after {bind:?}");
            ensure_eq!(label, "somebody", "the label of {name}");
        }
    }
    let stranger = Renewal { bind: Some(first), token: Token(token.0 + 1), ..plain };
    ensure_eq!(store.renew(&[stranger]).await?, [Renewed::Lost], "the answer to a stranger");
    let evidence = hold_of(&*store, "a").await?.hold.holder.evidence;
    ensure_eq!(evidence, Some(second), "the evidence that a stranger wanted to replace");
    Ok(())
}

async fn renewing_is_no_event(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let token = take(&*store, "a", grant(1), LONG).await?;
    let before = everything(&*store).await?;
    for _ in 0..3 {
        store.renew(&[renewal(&["a"], grant(1), token, OTHER)]).await?;
    }
    ensure_eq!(store.events(before.revision, u32::MAX).await?, [], "the events");
    Ok(())
}

async fn a_late_renewal_cannot_touch_a_successor(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let stores = four_handles(harness, &store).await;
    let mut token = take(&*store, "a", grant(1), LONG).await?;
    for round in 1..=30_u128 {
        // Some renew for the one that holds while one takes over, under the same resource.
        let (old, new) = (grant(round), grant(round + 1));
        let task = |store: Arc<dyn Store>, index: usize| async move {
            if index > 0 {
                store.renew(&[renewal(&["a"], old, token, OTHER)]).await?;
                return Ok(None);
            }
            let rule = move |seen: &Snapshot| {
                let token = seen.next_token();
                let mut change = dropping("a", old);
                change.writes.push(Write::Hold(hold("a", new, token)));
                (Decision::Write(change), Some(token))
            };
            apply(&*store, None, at(&["a"]), rule).await
        };
        let tokens = at_once(&stores, 4, task).await?;
        token = tokens.into_iter().flatten().next().unwrap_or(token);
        let held = hold_of(&*store, "a").await?.hold;
        ensure_eq!((held.grant, held.token, held.ttl), (new, token, LONG), "round {round}");
    }
    Ok(())
}
