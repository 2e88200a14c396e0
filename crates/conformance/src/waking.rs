//! No waiter misses a wake, and no watcher misses a change.
//!
//! Patience here is far longer than a case may take: a waiter that is not woken fails the case.

use crate::Harness;
use crate::kit::*;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::{Change, GrantId, Revision, Waiter, Write};
use tenure::store::Store;

cases!("waking":
    a_wake_that_came_before_counts,
    a_wake_is_heard_on_every_handle,
    a_request_is_woken_where_it_last_gave_a_sign_of_life,
    it_is_known_since_when_one_was_woken_and_did_not_come,
    every_one_of_many_is_woken,
    tidying_up_leaves_those_who_wait,
    patience_ends,
    a_change_that_is_already_there_is_told_at_once,
    a_change_is_heard_on_every_handle,
    of_changes_at_once_the_newest_is_told,
    whoever_follows_misses_no_change,
);

const ENDLESS: Duration = Duration::MAX;

/// Records one event; returns its revision.
async fn note(store: &dyn Store) -> Result<Revision, Failure> {
    let revision = write(store, |_| noting("a")).await?;
    revision.ok_or_else(|| Failure("a change with an event has no revision".to_owned()))
}

/// A change that only wakes, as the release that made room would.
fn waking(grants: &[GrantId]) -> Change {
    Change { wake: grants.to_vec(), ..noting("room was made") }
}

async fn a_wake_that_came_before_counts(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    for number in 1..=3 {
        queue(&*store, &["a"], grant(number), LONG).await?;
    }
    write(&*store, |_| waking(&[grant(1)])).await?;
    store.turn(grant(1), ENDLESS).await?;
    // The same from another handle, and for two at once.
    let other = harness.another(&store).await;
    write(&*other, |_| waking(&[grant(2), grant(3)])).await?;
    store.turn(grant(2), ENDLESS).await?;
    store.turn(grant(3), ENDLESS).await?;
    Ok(())
}

async fn it_is_known_since_when_one_was_woken_and_did_not_come(harness: &dyn Harness) -> Verdict {
    let short = harness.short_lease();
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    queue(&*store, &["a", "path:b"], grant(1), LONG).await?;
    let place = place_of(&*store, grant(1)).await?;
    ensure_eq!(place.woken_for, None, "before it was woken");
    let woken = Change { writes: vec![Write::Woken(place.waiter.clone())], ..waking(&[grant(1)]) };
    write(&*other, move |_| woken.clone()).await?;
    harness.pass(short).await;
    for handle in [&store, &other] {
        let woken_for = place_of(&**handle, grant(1)).await?.woken_for;
        ensure!(woken_for.is_some_and(|woken_for| woken_for >= short), "{woken_for:?} since then");
    }
    let keep = Change { writes: vec![Write::KeepPlace(place.waiter)], ..Change::default() };
    write(&*store, move |_| keep.clone()).await?;
    ensure_eq!(place_of(&*other, grant(1)).await?.woken_for, None, "after a sign of life");
    Ok(())
}

async fn a_wake_is_heard_on_every_handle(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let stores = four_handles(harness, &store).await;
    for round in 0..8_usize {
        let (sleeper, waker) = (stores[round % 4].clone(), &stores[(round / 4 + round + 1) % 4]);
        let grant = grant(round as u128 + 1);
        queue(&*sleeper, &["a", "path:b"], grant, LONG).await?;
        let asleep = tokio::spawn(async move { sleeper.turn(grant, ENDLESS).await });
        tokio::task::yield_now().await;
        write(&**waker, move |_| waking(&[grant])).await?;
        asleep.await.map_err(|error| Failure(error.to_string()))??;
    }
    Ok(())
}

async fn a_request_is_woken_where_it_last_gave_a_sign_of_life(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    queue(&*store, &["a"], grant(1), LONG).await?;
    // Its process went away, and another one goes on asking under the same grant.
    let place: Waiter = place_of(&*store, grant(1)).await?.waiter;
    let keep = Change { writes: vec![Write::KeepPlace(place)], ..Change::default() };
    write(&*other, move |_| keep.clone()).await?;
    write(&*store, |_| waking(&[grant(1)])).await?;
    other.turn(grant(1), ENDLESS).await?;
    Ok(())
}

async fn every_one_of_many_is_woken(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let stores = four_handles(harness, &store).await;
    // Each sleeps and, once woken, wakes the next: one lost wake stops them all.
    let task = |store: Arc<dyn Store>, index: usize| async move {
        let own = grant(index as u128 + 1);
        queue(&*store, &["a"], own, LONG).await?;
        while everything(&*store).await?.waiters.len() < 32 {
            tokio::task::yield_now().await;
        }
        if index > 0 {
            store.turn(own, ENDLESS).await?;
        }
        write(&*store, move |_| waking(&[grant(index as u128 + 2)])).await?;
        Ok(())
    };
    at_once(&stores, 32, task).await?;
    Ok(())
}

async fn tidying_up_leaves_those_who_wait(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    queue(&*store, &["a"], grant(1), LONG).await?;
    take(&*store, "a", grant(2), LONG).await?;
    let before = everything(&*other).await?;
    other.tidy().await?;
    let after = everything(&*other).await?;
    ensure_eq!(after.waiters[0].waiter, before.waiters[0].waiter, "who waits");
    ensure_eq!(after.holds[0].hold, before.holds[0].hold, "who holds");
    write(&*other, |_| waking(&[grant(1)])).await?;
    store.turn(grant(1), ENDLESS).await?;
    Ok(())
}

async fn patience_ends(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    queue(&*store, &["a"], grant(1), LONG).await?;
    let newest = everything(&*store).await?.revision;
    for patience in [Duration::ZERO, Duration::from_millis(10)] {
        store.turn(grant(1), patience).await?;
        store.turn(grant(2), patience).await?;
        for since in [newest, Revision(newest.0 + 100)] {
            let found = store.changed(since, patience).await?;
            ensure!(found >= newest, "{found} when patience ends, though {newest} was shown");
        }
    }
    Ok(())
}

async fn a_change_that_is_already_there_is_told_at_once(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    let newest = note(&*store).await?;
    for store in [&store, &other] {
        let found = store.changed(Revision(0), ENDLESS).await?;
        ensure!(found >= newest, "{found} is shown, though {newest} was reported");
    }
    Ok(())
}

async fn a_change_is_heard_on_every_handle(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let stores = four_handles(harness, &store).await;
    for round in 0..8_usize {
        let since = everything(&*store).await?.revision;
        let mut listeners = Vec::new();
        for store in stores.clone() {
            listeners.push(tokio::spawn(async move { store.changed(since, ENDLESS).await }));
        }
        tokio::task::yield_now().await;
        note(&*stores[round % 4]).await?;
        for listener in listeners {
            let heard = listener.await.map_err(|error| Failure(error.to_string()))??;
            ensure!(heard > since, "{heard} was heard after {since} in round {round}");
        }
    }
    Ok(())
}

async fn of_changes_at_once_the_newest_is_told(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let stores = four_handles(harness, &store).await;
    for _ in 0..50 {
        let task = |store: Arc<dyn Store>, _| async move { note(&*store).await };
        let newest = at_once(&stores, 4, task).await?.into_iter().max().unwrap_or_default();
        for store in &stores {
            let told = store.changed(Revision(newest.0 - 1), ENDLESS).await?;
            ensure!(told >= newest, "{told} was told, and {newest} is the newest of four");
        }
    }
    Ok(())
}

async fn whoever_follows_misses_no_change(harness: &dyn Harness) -> Verdict {
    const WRITERS: usize = 4;
    const CHANGES: usize = 100;
    let store = harness.fresh().await;
    let stores = four_handles(harness, &store).await;
    let task = |store: Arc<dyn Store>, index: usize| async move {
        if index < WRITERS {
            for _ in 0..CHANGES {
                note(&*store).await?;
            }
            return Ok(());
        }
        // Reads the events, and sleeps until the revision passes the newest that it read.
        let mut seen = Revision(0);
        let mut followed = 0;
        while followed < WRITERS * CHANGES {
            let reached = store.changed(seen, ENDLESS).await?;
            let events = store.events(seen, u32::MAX).await?;
            followed += events.len();
            // All up to the revision that was reached have been read.
            seen = events.last().map_or(reached, |event| event.revision.max(reached));
        }
        ensure_eq!(followed, WRITERS * CHANGES, "the number of changes");
        Ok(())
    };
    at_once(&stores, WRITERS + 4, task).await?;
    Ok(())
}
