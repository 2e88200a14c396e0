//! Retention: what is beyond a limit is found and removed, the rest stays, and numbers go on rising.

use crate::Harness;
use crate::kit::*;
use crate::tasks::{add, claim, complete, id, look_for, new, put};
use std::time::Duration;
use tenure::core::rules::tasks::{self, NewTask, RetireAsk};
use tenure::core::{EndedTask, Keep, NoWitness, Revision, Status, Task, TaskId, WallTime};
use tenure::store::{Store, SurplusTasks, TaskCounts, TaskFilter, Trim};

cases!("retention":
    tasks_beyond_a_number_are_found_oldest_first,
    tasks_beyond_an_age_are_found,
    a_retired_task_is_gone_and_its_name_and_key_are_free,
    what_is_needed_stays,
    a_task_that_is_named_twice_goes_once,
    events_are_trimmed_from_the_oldest_and_numbers_rise,
);

/// So many tasks that were completed one millisecond after the other, the first at this time.
async fn completed(store: &dyn Store, names: &[&str], first_ms: i64) -> Verdict {
    for (index, name) in names.iter().enumerate() {
        let mut task = Task::new(id(name), *name, WallTime(first_ms));
        task.status = Status::Completed;
        task.age = index as u64 + 1;
        task.finished_at = Some(WallTime(first_ms + index as i64));
        put(store, task).await?;
    }
    Ok(())
}

fn surplus(keep: Keep, skip: u32, limit: u32) -> SurplusTasks {
    SurplusTasks { status: Status::Completed, keep, skip, limit }
}

fn names(found: &[EndedTask]) -> Vec<&str> {
    found.iter().map(|ended| ended.id.as_str()).collect()
}

async fn found(store: &dyn Store, asked: SurplusTasks) -> Result<Vec<EndedTask>, Failure> {
    Ok(store.read(asked).await?)
}

async fn retire(store: &dyn Store, tasks: Vec<EndedTask>) -> Result<Vec<TaskId>, Failure> {
    let ask = RetireAsk { tasks, by: "suite".to_owned() };
    let scope = ask.scope();
    apply(store, None, scope, move |seen| tasks::retire(seen, &ask, &NoWitness)).await
}

async fn tasks_beyond_a_number_are_found_oldest_first(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    ensure!(found(&*store, surplus(Keep::newest(0), 0, 9)).await?.is_empty(), "nothing is there");
    completed(&*store, &["c", "a", "b", "d"], 1_000).await?;
    // Neither one that is not at its end nor one with another end counts.
    add(&*store, vec![new("open")]).await?;
    let mut called_off = Task::new(id("called off"), "called off", WallTime(5));
    (called_off.status, called_off.age) = (Status::Cancelled, 1_000);
    put(&*store, called_off).await?;
    for (newest, skip, limit, expected) in [
        (0, 0, 9, &["c", "a", "b", "d"][..]),
        (1, 0, 9, &["c", "a", "b"]),
        (1, 0, 2, &["c", "a"]),
        (1, 2, 9, &["b"]),
        (1, 3, 9, &[]),
        (4, 0, 9, &[]),
        (9, 0, 9, &[]),
    ] {
        let asked = surplus(Keep::newest(newest), skip, limit);
        ensure_eq!(names(&found(&*store, asked).await?), expected, "beyond {newest}, from {skip}");
    }
    let all = found(&*store, surplus(Keep::ALL, 0, 9)).await?;
    ensure!(all.is_empty(), "everything is kept, and {all:?} is beyond it");
    let cancelled = SurplusTasks { status: Status::Cancelled, ..surplus(Keep::newest(0), 0, 9) };
    ensure_eq!(names(&found(&*store, cancelled).await?), ["called off"], "cancelled tasks");
    let open = SurplusTasks { status: Status::Pending, ..surplus(Keep::newest(0), 0, 9) };
    ensure!(found(&*store, open).await?.is_empty(), "a pending task never ends by itself");
    Ok(())
}

async fn tasks_beyond_an_age_are_found(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let day = Duration::from_secs(24 * 60 * 60);
    let now = everything(&*store).await?.wall;
    let ago = |days: i64| now.0 - days * day.as_millis() as i64;
    completed(&*store, &["old", "older"], ago(10)).await?;
    let mut imported = Task::new(id("imported"), "without an end", WallTime(ago(20)));
    (imported.status, imported.age) = (Status::Completed, 7);
    put(&*store, imported).await?;
    let mut young = Task::new(id("young"), "young", WallTime(ago(30)));
    (young.status, young.age, young.finished_at) = (Status::Completed, 8, Some(WallTime(ago(1))));
    put(&*store, young).await?;
    let keep = Keep { newest: None, age: Some(5 * day) };
    let old = found(&*store, surplus(keep, 0, 9)).await?;
    ensure_eq!(names(&old), ["imported", "old", "older"], "older than five days");
    ensure_eq!(old[0].at, WallTime(ago(20)), "the end of a task without one");
    let keep = Keep { newest: None, age: Some(50 * day) };
    ensure!(found(&*store, surplus(keep, 0, 9)).await?.is_empty(), "none is older than 50 days");
    Ok(())
}

/// Adds, claims and completes a task; returns the token.
async fn work(store: &dyn Store, task: NewTask) -> Result<u64, Failure> {
    add(store, vec![task]).await?;
    let claimed = claim(store, "w", LONG).await?;
    let claimed = claimed.ok_or_else(|| Failure("a task should be ready".to_owned()))?;
    let token = claimed.token.0;
    ensure!(complete(store, &claimed).await?, "its worker should finish it");
    Ok(token)
}

async fn a_retired_task_is_gone_and_its_name_and_key_are_free(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let task = || NewTask { key: Some("nightly".to_owned()), ..new("a") };
    let token = work(&*store, task()).await?;
    work(&*store, new("b")).await?;
    let oldest = found(&*store, surplus(Keep::newest(1), 0, 9)).await?;
    ensure_eq!(names(&oldest), ["a"], "the oldest");
    let gone = retire(&*store, oldest).await?;
    ensure_eq!(gone, [id("a")], "what was retired");
    for handle in [&store, &harness.another(&store).await] {
        let seen = handle.read(&look_for(&["a"])).await?;
        ensure!(seen.tasks.is_empty(), "a retired task is not found: {:?}", seen.tasks);
        let listed = handle.read(&TaskFilter::default()).await?;
        ensure_eq!(listed.len(), 1, "the list");
        let counts = handle.read(TaskCounts).await?;
        let counts: Vec<(Status, u64)> = counts.iter().map(|t| (t.status, t.count)).collect();
        ensure_eq!(counts, [(Status::Completed, 1)], "the counts");
    }
    // Name and key are free again, and its token rises all the same.
    let store = harness.reopen(store).await;
    let again = work(&*store, task()).await?;
    ensure!(again > token, "the token {again} follows {token}");
    Ok(())
}

async fn what_is_needed_stays(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    work(&*store, new("a")).await?;
    work(&*store, NewTask { depends_on: vec![id("a")], ..new("b") }).await?;
    add(&*store, vec![NewTask { depends_on: vec![id("b")], ..new("c") }]).await?;
    let all = found(&*store, surplus(Keep::newest(0), 0, 9)).await?;
    ensure_eq!(names(&all), ["a", "b"], "what is completed");
    let gone = retire(&*store, all.clone()).await?;
    ensure_eq!(gone, [id("a")], "`c` waits for `b`, and `b` for nothing any more");
    let rest = found(&*store, surplus(Keep::newest(0), 1, 9)).await?;
    ensure!(rest.is_empty(), "what had to stay is left out: {rest:?}");
    let claimed = claim(&*store, "w", LONG).await?;
    let claimed = claimed.ok_or_else(|| Failure("`c` should still be ready".to_owned()))?;
    ensure!(complete(&*store, &claimed).await?, "its worker should finish it");
    let gone = retire(&*store, found(&*store, surplus(Keep::newest(0), 0, 9)).await?).await?;
    ensure_eq!(gone, [id("b"), id("c")], "nothing is needed any more");
    ensure!(store.read(TaskCounts).await?.is_empty(), "no task is counted");
    Ok(())
}

async fn a_task_that_is_named_twice_goes_once(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    completed(&*store, &["a", "b", "c", "d"], 1_000).await?;
    let oldest = found(&*store, surplus(Keep::newest(2), 0, 9)).await?;
    // Four processes found the same at the same moment.
    let handles = four_handles(harness, &store).await;
    let gone = at_once(&handles, 4, |store, _| {
        let oldest = oldest.clone();
        async move { retire(&*store, oldest).await }
    });
    let mut gone: Vec<TaskId> = gone.await?.into_iter().flatten().collect();
    gone.sort();
    ensure_eq!(gone, [id("a"), id("b")], "each goes once");
    let listed = store.read(&TaskFilter::default()).await?;
    ensure_eq!(listed.len(), 2, "the newest two stay");
    Ok(())
}

async fn events_are_trimmed_from_the_oldest_and_numbers_rise(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let trim = |keep: Keep| Trim { keep, limit: u32::MAX, dry_run: false };
    store.trim(trim(Keep::newest(0))).await?;
    let mut token = take(&*store, "a", grant(1), LONG).await?;
    for number in 0..40 {
        write(&*store, move |_| noting(&format!("noise {number}"))).await?;
    }
    let before = store.events(Revision(0), u32::MAX).await?;
    let dry = Trim { dry_run: true, ..trim(Keep::newest(0)) };
    let counted = store.trim(dry).await?;
    ensure_eq!(store.events(Revision(0), u32::MAX).await?, before, "a dry run removes nothing");
    let removed = store.trim(trim(Keep::newest(10))).await?;
    let after = store.events(Revision(0), u32::MAX).await?;
    ensure!(after.len() >= 10, "ten are kept, and {} are there", after.len());
    ensure_eq!(after[..], before[before.len() - after.len()..], "the newest stay");
    ensure_eq!(removed, (before.len() - after.len()) as u64, "how many were removed");
    ensure!(counted >= removed, "{counted} were counted, and {removed} removed");
    ensure_eq!(store.trim(trim(Keep::ALL)).await?, 0, "without a limit nothing goes");
    // All that may go goes, by age, by number and by both; but the newest stays, and all numbers rise.
    harness.pass(Duration::from_millis(5)).await;
    let by_age = Keep { newest: None, age: Some(Duration::ZERO) };
    let some = Trim { limit: 3, ..trim(by_age) };
    let by_both = Keep { newest: Some(0), ..by_age };
    for trim in [some, trim(by_age), trim(Keep::newest(0)), trim(by_both)] {
        store.trim(trim).await?;
        let left = store.events(Revision(0), u32::MAX).await?;
        ensure!(!left.is_empty(), "{trim:?} removed the newest event");
        ensure_eq!(left[..], before[before.len() - left.len()..], "what {trim:?} left");
    }
    let store = harness.reopen(store).await;
    for number in 2..5 {
        let next = take(&*store, "b", grant(number), LONG).await?;
        ensure!(next > token, "the token {next} follows {token}");
        token = next;
        write(&*store, move |_| dropping("b", grant(number))).await?;
    }
    let later = store.events(before[before.len() - 1].revision, u32::MAX).await?;
    ensure_eq!(later.len(), 6, "what came since");
    Ok(())
}
