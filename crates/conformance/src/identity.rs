//! A store that was removed or replaced is gone for all open handles, for ever.

use crate::Harness;
use crate::kit::*;
use std::time::Duration;
use tenure::core::{Decision, Revision, Scope, Snapshot};
use tenure::store::{Store, StoreError, TaskCounts, TaskFilter, Transaction};

cases!("identity":
    whoever_has_a_replaced_store_open_is_told_each_time,
    a_new_store_knows_nothing_of_the_one_before,
);

/// What every way to use a store answers.
async fn answers(store: &dyn Store) -> Vec<(&'static str, Option<StoreError>)> {
    let take = |seen: &Snapshot| {
        Decision::Write(holding(hold("a", grant(u128::from(seen.next)), seen.next_token())))
    };
    let changed = store.transact(Transaction::new(at(&["a"]), take)).await;
    let tasks = Scope::Tasks(tenure::core::TaskScope::default());
    let looked = store.transact(Transaction::new(tasks, |_| Decision::Nothing)).await;
    vec![
        ("a change", changed.err()),
        ("a look that might change tasks", looked.err()),
        ("a look", store.read(&Scope::Everything).await.err()),
        ("a renewal", store.renew(&[]).await.err()),
        ("the newest revision", store.changed(Revision(0), Duration::ZERO).await.err()),
        ("events", store.events(Revision(0), 1).await.err()),
        ("tasks", store.read(&TaskFilter::default()).await.err()),
        ("tallies", store.read(TaskCounts).await.err()),
        ("tidying", store.tidy().await.err()),
        ("a check", store.check().await.err()),
    ]
}

async fn whoever_has_a_replaced_store_open_is_told_each_time(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    let Some(_new) = harness.replace(&store).await else { return Ok(()) };
    for round in 1..=3 {
        for handle in [&store, &other] {
            for (what, error) in answers(&**handle).await {
                let gone = matches!(error, Some(StoreError::Gone { .. }));
                ensure!(gone, "{what}, in round {round}, was answered with {error:?}");
            }
        }
    }
    Ok(())
}

async fn a_new_store_knows_nothing_of_the_one_before(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    take(&*store, "a", grant(1), LONG).await?;
    let Some(new) = harness.replace(&store).await else { return Ok(()) };
    ensure_eq!(everything(&*new).await?.holds.len(), 0, "what is held in the new store");
    take(&*new, "a", grant(2), LONG).await?;
    ensure_eq!(everything(&*new).await?.holds.len(), 1, "what is held then");
    Ok(())
}
