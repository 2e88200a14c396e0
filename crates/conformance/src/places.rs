//! Places in a queue: they last while there are signs of life, and end when a rule says so.

use crate::Harness;
use crate::kit::*;
use tenure::core::{Change, Hold, Outcome, Waiter, Write};

cases!("places":
    a_place_lapses_without_a_sign_of_life,
    a_sign_of_life_keeps_the_place,
    an_ended_place_is_gone_from_all_its_queues,
    a_place_becomes_a_hold_in_one_change,
    places_are_served_in_the_order_of_their_tickets,
);

async fn a_place_lapses_without_a_sign_of_life(harness: &dyn Harness) -> Verdict {
    let short = harness.short_lease();
    let store = harness.fresh().await;
    queue(&*store, &["a", "b"], grant(1), short).await?;
    queue(&*store, &["a"], grant(2), LONG).await?;
    harness.pass(short).await;
    ensure!(place_of(&*store, grant(1)).await?.left.is_zero(), "a silent place should lapse");
    let other = place_of(&*store, grant(2)).await?;
    ensure!(!other.left.is_zero() && other.left < LONG, "{:?} is left of {LONG:?}", other.left);
    Ok(())
}

async fn a_sign_of_life_keeps_the_place(harness: &dyn Harness) -> Verdict {
    let short = harness.short_lease();
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    let ticket = queue(&*store, &["a", "path:b"], grant(1), LONG / 2).await?;
    queue(&*store, &["a", "path:b"], grant(2), short).await?;
    let before = place_of(&*store, grant(1)).await?;
    harness.pass(short).await;
    let keep = Write::KeepPlace(Waiter { ttl: LONG, ..before.waiter.clone() });
    write(&*other, move |_| Change { writes: vec![keep.clone()], ..Change::default() }).await?;
    for name in ["a", "path:b"] {
        let seen = store.read(&at(&[name])).await?;
        ensure_eq!(seen.waiters.len(), 2, "how many wait for {name}");
        let (kept, silent) = (&seen.waiters[0], &seen.waiters[1]);
        ensure_eq!(kept.waiter.ticket, ticket, "the ticket in the queue of {name}");
        ensure_eq!(kept.waiting_since, before.waiting_since, "since when it waits for {name}");
        ensure_eq!(kept.waiter.ttl, LONG, "how long the place for {name} lasts");
        ensure!(kept.left > LONG / 2, "{:?} is left for {name}", kept.left);
        ensure!(silent.left.is_zero(), "the other one gave no sign: {:?}", silent.left);
    }
    Ok(())
}

async fn an_ended_place_is_gone_from_all_its_queues(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    let names = ["a", "task:b", "path:c/**"];
    queue(&*store, &names, grant(1), LONG).await?;
    let stays = queue(&*store, &names, grant(2), LONG).await?;
    let leaving = place_of(&*store, grant(1)).await?.waiter;
    let left = Change { writes: vec![Write::DropWait(leaving)], ..noting("left") };
    write(&*other, move |_| left.clone()).await?;
    for name in names {
        let seen = store.read(&queues(&[name])).await?;
        ensure_eq!(tickets(&seen.waiters), [stays], "who still waits for {name}");
    }
    ensure_eq!(tickets(&everything(&*store).await?.waiters), [stays], "who still waits");
    Ok(())
}

async fn a_place_becomes_a_hold_in_one_change(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    queue(&*store, &["a", "b"], grant(1), LONG).await?;
    let waiting = place_of(&*store, grant(1)).await?.waiter;
    write(&*store, move |seen| {
        let token = seen.next_token();
        let mut writes = vec![Write::DropWait(waiting.clone())];
        writes.extend(
            waiting
                .wants
                .iter()
                .map(|want| Write::Hold(Hold { want: want.clone(), ..hold("a", grant(1), token) })),
        );
        Change { writes, ..noting("granted") }
    })
    .await?;
    let seen = everything(&*store).await?;
    ensure_eq!(grants(&seen.holds), [grant(1), grant(1)], "who holds");
    ensure!(seen.waiters.is_empty(), "who holds waits no longer: {:?}", seen.waiters);
    Ok(())
}

async fn places_are_served_in_the_order_of_their_tickets(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let mut expected = Vec::new();
    for number in (1..=30).rev() {
        queue(&*store, &["a"], grant(number), LONG).await?;
        expected.push(grant(number));
    }
    let mut served = Vec::new();
    for _ in 0..30 {
        let first = store.read(&at(&["a"])).await?.waiters.into_iter().next();
        let Some(first) = first else { return Err(Failure("the queue ended early".to_owned())) };
        let Outcome::Granted(_) = acquire(&*store, &["a"], first.waiter.grant).await? else {
            return Err(Failure(format!("{} is first and was not served", first.waiter.grant)));
        };
        write(&*store, move |_| dropping("a", first.waiter.grant)).await?;
        served.push(first.waiter.grant);
    }
    ensure_eq!(served, expected, "the order of service");
    Ok(())
}
