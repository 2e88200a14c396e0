//! The history: every event once, whole, in the order in which events become visible. Revisions rise
//! and may have gaps.

use crate::Harness;
use crate::kit::*;
use std::sync::Arc;
use tenure::core::{
    Change, Decision, Event, EventKind, GrantId, NewEvent, Outcome, Revision, Snapshot, Token,
    WallTime, WhyLeft,
};
use tenure::store::{NewestEvents, Store, Transaction};

cases!("events":
    events_come_back_as_they_were,
    an_event_may_be_older_than_the_change_that_records_it,
    events_come_in_order_after_a_revision_and_up_to_a_limit,
    there_are_no_events_beyond_the_newest,
    events_need_no_records_and_records_of_the_same_change_are_there,
    a_follower_misses_no_event,
    the_newest_events_are_shown_oldest_first,
);

fn all_kinds() -> Vec<EventKind> {
    let text = |text: &str| text.to_owned();
    vec![
        EventKind::Acquired { operation: None },
        EventKind::Acquired { operation: Some(text("a \"quoted\" one\nin two lines 🚀")) },
        EventKind::Acquired { operation: Some(String::new()) },
        EventKind::Released,
        EventKind::LAPSED,
        EventKind::Lapsed { ended_at: Some(WallTime(1_700_000_000_000)), reason: None },
        EventKind::Lapsed { ended_at: None, reason: Some(text("lock is 45.2s old (>30s)")) },
        EventKind::DIED,
        EventKind::Died { reason: Some(text("process 7 on büro is dead")) },
        EventKind::Broken { by: text("ops"), reason: text("'stuck' since Monday — ünlöckt") },
        EventKind::Waiting,
        EventKind::Left { why: WhyLeft::GaveUp },
        EventKind::Left { why: WhyLeft::Silent },
        EventKind::Left { why: WhyLeft::Died },
        EventKind::Deadlock,
        EventKind::Rebooted,
        EventKind::Added,
        EventKind::Updated,
        EventKind::Deleted,
        EventKind::Noted { text: text("two\nlines of 'text'") },
        EventKind::Completed,
        EventKind::Failed { reason: text("no 'disk'"), retry: true },
        EventKind::SentToReview,
        EventKind::Approved,
        EventKind::Rejected { feedback: text("again, please") },
        EventKind::Snoozed,
        EventKind::HandedBack,
        EventKind::Cancelled,
        EventKind::Skipped,
        EventKind::Retried,
        EventKind::Recovered,
        EventKind::SetAside,
        EventKind::Paused,
        EventKind::Resumed,
    ]
}

async fn events_come_back_as_they_were(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    let names = ["a", "task:b c", "section:🚀", "path:src/**"];
    let written: Vec<NewEvent> = all_kinds()
        .into_iter()
        .enumerate()
        .map(|(index, kind)| {
            let resource = (index % 5 != 4).then(|| resource(names[index % 5]));
            let label = ["", "alice", "büro:7", "o'brien"][index % 4];
            let token = (index % 3 != 0).then_some(Token(index as u64 * 1_000_000_007));
            NewEvent::new(resource, label, token, kind)
        })
        .collect();
    let before = everything(&*store).await?.revision;
    let change = Change { events: written.clone(), ..Change::default() };
    write(&*store, move |_| change.clone()).await?;
    for store in [&store, &other] {
        let read: Vec<NewEvent> =
            store.events(before, u32::MAX).await?.into_iter().map(|event| event.event).collect();
        ensure_eq!(read, written, "the events");
    }
    Ok(())
}

/// History that comes from another store keeps its times, which need not rise.
async fn an_event_may_be_older_than_the_change_that_records_it(harness: &dyn Harness) -> Verdict {
    let mut store = harness.fresh().await;
    let other = harness.another(&store).await;
    let times = [Some(1_700_000_000_123), None, Some(1), Some(1_600_000_000_000)];
    let note = |at: &Option<i64>| {
        let event = event(&resource("a"), None, EventKind::Released);
        at.map_or(event.clone(), |at| event.happened_at(WallTime(at)))
    };
    let change = Change { events: times.iter().map(note).collect(), ..Change::default() };
    write(&*store, move |_| change.clone()).await?;
    let plain = event(&resource("a"), None, EventKind::Released);
    let check = |events: Vec<Event>| {
        ensure_eq!(events.len(), times.len(), "the number of events");
        for (event, at) in events.iter().zip(times) {
            ensure_eq!(event.event, plain, "the event, whose time is beside it");
            match at {
                Some(at) => ensure_eq!(event.at, WallTime(at), "the time of an older event"),
                None => ensure!(
                    event.at > WallTime(1_700_000_000_123),
                    "{:?} is no store's time",
                    event.at
                ),
            }
        }
        Ok(())
    };
    check(store.events(Revision(0), 9).await?)?;
    check(other.events(Revision(0), 9).await?)?;
    check(store.read(NewestEvents { limit: 9 }).await?)?;
    drop(other);
    store = harness.reopen(store).await;
    check(store.events(Revision(0), 9).await?)
}

async fn events_come_in_order_after_a_revision_and_up_to_a_limit(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    for number in 0..25 {
        let reported = write(&*store, move |_| noting(&format!("event {number}"))).await?;
        let newest = store.events(Revision(0), u32::MAX).await?.last().map(|last| last.revision);
        ensure_eq!(reported, newest, "the revision that was reported");
    }
    let all = store.events(Revision(0), u32::MAX).await?;
    ensure_eq!(all.len(), 25, "the number of events");
    let names: Vec<String> =
        all.iter().filter_map(|event| Some(event.event.resource.as_ref()?.to_string())).collect();
    let expected: Vec<String> = (0..25).map(|number| format!("event {number}")).collect();
    ensure_eq!(names, expected, "the events, oldest first");
    ensure!(all.is_sorted_by(|one, next| one.revision < next.revision), "numbers must rise");
    for (after, limit) in [(0, 0), (0, 1), (0, 25), (0, 26), (7, 3), (24, 9), (25, 9)] {
        let revision = if after == 0 { Revision(0) } else { all[after - 1].revision };
        let found = store.events(revision, limit).await?;
        let end = all.len().min(after + limit as usize);
        ensure_eq!(found, all[after..end], "{limit} events after the first {after}");
    }
    Ok(())
}

async fn there_are_no_events_beyond_the_newest(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    ensure_eq!(store.events(Revision(0), 9).await?, [], "the events of a fresh store");
    let newest = write(&*store, |_| noting("a")).await?.unwrap_or_default();
    for beyond in [newest.0, newest.0 + 1, u64::from(u32::MAX), i64::MAX as u64, u64::MAX] {
        ensure_eq!(store.events(Revision(beyond), 9).await?, [], "the events after {beyond}");
    }
    Ok(())
}

async fn events_need_no_records_and_records_of_the_same_change_are_there(
    harness: &dyn Harness,
) -> Verdict {
    let store = harness.fresh().await;
    let note = |_: &Snapshot| Decision::Write(noting("only noted"));
    let committed = store.transact(Transaction::new(at(&["only noted"]), note)).await?;
    let seen = everything(&*store).await?;
    ensure!(seen.holds.is_empty(), "only an event was recorded: {seen:?}");
    ensure!(Some(seen.revision) >= committed.revision, "{committed:?} is not shown yet");
    let token = take(&*store, "a", grant(1), LONG).await?;
    let events = store.events(committed.revision.unwrap_or_default(), 9).await?;
    ensure_eq!(events.len(), 1, "the events of the second change");
    ensure_eq!(events[0].event.token, Some(token), "the token in the event");
    ensure_eq!(hold_of(&*store, "a").await?.hold.token, token, "the token held");
    Ok(())
}

/// A follower that asks for the events after the newest one it has read gets all events, in one order.
async fn a_follower_misses_no_event(harness: &dyn Harness) -> Verdict {
    const WRITERS: usize = 4;
    const CHANGES: usize = 40;
    let store = harness.fresh().await;
    let stores = four_handles(harness, &store).await;
    let task = |store: Arc<dyn Store>, index: usize| async move {
        let mut followed: Vec<Event> = Vec::new();
        if index < WRITERS {
            for number in 0..CHANGES {
                // Unrelated resources, which need not be written one after the other.
                let name = format!("lock {index} {number}");
                let outcome = acquire(&*store, &[&name], GrantId::random()).await?;
                ensure!(matches!(outcome, Outcome::Granted(_)), "{name} was free: {outcome:?}");
            }
            return Ok(followed);
        }
        while followed.len() < WRITERS * CHANGES {
            let last = followed.last().map_or(Revision(0), |event| event.revision);
            followed.extend(store.events(last, 7).await?);
            tokio::task::yield_now().await;
        }
        Ok(followed)
    };
    let followed = at_once(&stores, WRITERS + 3, task).await?;
    let all = store.events(Revision(0), u32::MAX).await?;
    ensure_eq!(all.len(), WRITERS * CHANGES, "the number of events");
    for followed in followed.iter().filter(|followed| !followed.is_empty()) {
        ensure!(*followed == all, "a follower read other events than there are");
    }
    Ok(())
}

async fn the_newest_events_are_shown_oldest_first(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    ensure_eq!(store.read(NewestEvents { limit: 9 }).await?, [], "the events of a fresh store");
    for number in 0..12 {
        write(&*store, move |_| noting(&format!("event {number}"))).await?;
    }
    let all = store.events(Revision(0), u32::MAX).await?;
    for limit in [0, 1, 5, 12, 13, u32::MAX] {
        let from = all.len().saturating_sub(limit as usize);
        let newest = store.read(NewestEvents { limit }).await?;
        ensure_eq!(newest, all[from..], "the newest {limit} events");
    }
    Ok(())
}
