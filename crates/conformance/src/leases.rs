//! Time is judged by the store's clock: a lease lapses when its time has run out, not earlier, and
//! a store never ends one by itself.

use crate::Harness;
use crate::kit::*;
use std::time::Duration;
use tenure::core::{Change, Decision, Hold, HoldSnapshot, Write};
use tokio::time::Instant;

cases!("leases":
    a_lease_lapses_at_its_end_and_not_before,
    a_lease_is_never_cut_short_by_rounding,
    a_lapsed_hold_stays_until_a_rule_ends_it,
    every_handle_and_every_operation_judge_alike,
    extending_starts_the_lease_anew,
    a_lease_may_be_long,
    opening_again_neither_ends_nor_prolongs,
    the_time_held_is_counted,
);

/// What can be said from outside about how much time a store may have seen pass.
struct Watch {
    begun: Instant,
    passed: Duration,
}

impl Watch {
    /// To be started before the lease is.
    fn start() -> Watch {
        Watch { begun: Instant::now(), passed: Duration::ZERO }
    }

    async fn pass(&mut self, harness: &dyn Harness, time: Duration) {
        harness.pass(time).await;
        self.passed += time;
    }

    /// Lapsed only if so much time has passed, on the clock made for tests or on the real one: on
    /// a busy machine that can be more than was asked for.
    fn ensure_not_early(&self, seen: &HoldSnapshot, ttl: Duration) -> Verdict {
        let longest = self.passed.max(self.begun.elapsed());
        ensure!(!seen.lapsed() || longest >= ttl, "a lease of {ttl:?} lapsed within {longest:?}");
        ensure!(seen.left <= ttl, "{:?} is left of a lease of {ttl:?}", seen.left);
        Ok(())
    }
}

async fn a_lease_lapses_at_its_end_and_not_before(harness: &dyn Harness) -> Verdict {
    let short = harness.short_lease();
    let store = harness.fresh().await;
    let mut watch = Watch::start();
    take(&*store, "a", grant(1), short).await?;
    take(&*store, "b", grant(2), LONG).await?;
    watch.ensure_not_early(&hold_of(&*store, "a").await?, short)?;
    let nearly = short - Duration::from_millis(1);
    watch.pass(harness, nearly).await;
    watch.ensure_not_early(&hold_of(&*store, "a").await?, short)?;
    watch.pass(harness, short - nearly).await;
    let (a, b) = (hold_of(&*store, "a").await?, hold_of(&*store, "b").await?);
    ensure!(a.lapsed(), "{:?} is left at the end of the lease", a.left);
    ensure!(!b.lapsed(), "a lease of an hour lapsed with a short one");
    Ok(())
}

async fn a_lease_is_never_cut_short_by_rounding(harness: &dyn Harness) -> Verdict {
    let short = harness.short_lease();
    for microseconds in [300, 700, 999] {
        let store = harness.fresh().await;
        harness.pass(Duration::from_micros(microseconds)).await;
        let mut watch = Watch::start();
        take(&*store, "a", grant(1), short).await?;
        watch.pass(harness, short - Duration::from_micros(1)).await;
        watch.ensure_not_early(&hold_of(&*store, "a").await?, short)?;
        // Other cases move the clock to exact ends.
        harness.pass(Duration::from_micros(1_001 - microseconds)).await;
    }
    Ok(())
}

async fn a_lapsed_hold_stays_until_a_rule_ends_it(harness: &dyn Harness) -> Verdict {
    let short = harness.short_lease();
    let store = harness.fresh().await;
    take(&*store, "a", grant(1), short).await?;
    queue(&*store, &["a"], grant(2), short).await?;
    let before = everything(&*store).await?.revision;
    harness.pass(short * 2).await;
    store.tidy().await?;
    let seen = everything(&*store).await?;
    ensure_eq!(grants(&seen.holds), [grant(1)], "the lapsed hold");
    ensure!(seen.holds[0].lapsed(), "{:?} is left", seen.holds[0].left);
    ensure_eq!(seen.waiters.len(), 1, "the lapsed place");
    ensure!(seen.waiters[0].left.is_zero(), "{:?} is left", seen.waiters[0].left);
    ensure_eq!(store.events(before, 9).await?, [], "the events, though nothing changed");
    Ok(())
}

async fn every_handle_and_every_operation_judge_alike(harness: &dyn Harness) -> Verdict {
    let short = harness.short_lease();
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    take(&*store, "a", grant(1), short).await?;
    take(&*other, "b", grant(2), LONG).await?;
    harness.pass(short).await;
    for store in [&store, &other] {
        let judge = |seen: &tenure::core::Snapshot| {
            let judged: Vec<bool> = seen.holds.iter().map(HoldSnapshot::lapsed).collect();
            (Decision::Nothing, judged)
        };
        let judged = apply(&**store, None, at(&["a", "b"]), judge).await?;
        ensure_eq!(judged, [true, false], "whether they lapsed, inside a transaction");
        let read = store.read(&at(&["a", "b"])).await?;
        let judged: Vec<bool> = read.holds.iter().map(HoldSnapshot::lapsed).collect();
        ensure_eq!(judged, [true, false], "whether they lapsed, when read");
    }
    Ok(())
}

async fn extending_starts_the_lease_anew(harness: &dyn Harness) -> Verdict {
    let short = harness.short_lease();
    let store = harness.fresh().await;
    for name in ["a", "b"] {
        take(&*store, name, grant(1), short).await?;
    }
    let before = hold_of(&*store, "a").await?;
    harness.pass(short / 2).await;
    let more = || Some("more".to_owned());
    let extend =
        Write::Extend { resource: resource("a"), grant: grant(1), ttl: LONG, operation: more() };
    let stranger =
        Write::Extend { resource: resource("b"), grant: grant(2), ttl: LONG, operation: None };
    let change = Change { writes: vec![extend, stranger], ..Change::default() };
    write(&*store, move |_| change.clone()).await?;
    harness.pass(short).await;
    let (a, b) = (hold_of(&*store, "a").await?, hold_of(&*store, "b").await?);
    ensure!(!a.lapsed(), "it lapsed though it was extended");
    ensure!(a.left > short && a.left <= LONG, "{:?} is left of {LONG:?}", a.left);
    let extended = Hold { ttl: LONG, operation: more(), ..before.hold };
    ensure_eq!(a.hold, extended, "the extended hold");
    ensure_eq!(a.acquired_at, before.acquired_at, "when it was acquired");
    ensure!(a.renewed_at != before.renewed_at, "an extended hold was renewed just now");
    ensure!(b.lapsed(), "the other one was not extended, but {:?} is left", b.left);
    Ok(())
}

async fn a_lease_may_be_long(harness: &dyn Harness) -> Verdict {
    let short = harness.short_lease();
    let store = harness.fresh().await;
    let year = Duration::from_secs(366 * 24 * 3600);
    take(&*store, "a", grant(1), year).await?;
    queue(&*store, &["a"], grant(2), year).await?;
    harness.pass(short).await;
    let seen = hold_of(&*store, "a").await?;
    ensure!(seen.left > year - LONG && seen.left < year, "{:?} is left of a year", seen.left);
    ensure!(place_of(&*store, grant(2)).await?.left > year - LONG, "a place may last as long");
    ensure!(seen.expires_at > seen.renewed_at, "it is shown as expired: {seen:?}");
    Ok(())
}

async fn opening_again_neither_ends_nor_prolongs(harness: &dyn Harness) -> Verdict {
    let short = harness.short_lease();
    let store = harness.fresh().await;
    take(&*store, "a", grant(1), short).await?;
    take(&*store, "b", grant(2), LONG).await?;
    harness.pass(short / 2).await;
    let store = harness.reopen(store).await;
    harness.pass(short / 2).await;
    ensure!(hold_of(&*store, "a").await?.lapsed(), "opening again prolonged a lease");
    ensure!(!hold_of(&*store, "b").await?.lapsed(), "opening again ended a lease");
    Ok(())
}

async fn the_time_held_is_counted(harness: &dyn Harness) -> Verdict {
    let short = harness.short_lease();
    let store = harness.fresh().await;
    let token = take(&*store, "a", grant(1), LONG).await?;
    queue(&*store, &["a"], grant(2), LONG).await?;
    harness.pass(short).await;
    store.renew(&[renewal(&["a"], grant(1), token, LONG)]).await?;
    let keep = place_of(&*store, grant(2)).await?.waiter;
    write(&*store, move |_| Change { writes: vec![Write::KeepPlace(keep.clone())], ..noting("a") })
        .await?;
    let held = hold_of(&*store, "a").await?.held_for;
    ensure!(held >= short, "held for {held:?}, though {short:?} passed");
    let waited = place_of(&*store, grant(2)).await?.waited_for;
    ensure!(waited >= short, "waited for {waited:?}, though {short:?} passed");
    Ok(())
}
