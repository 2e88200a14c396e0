//! The history: every event once, whole, in order.

use super::Harness;
use super::kit::*;
use tenure_core::{
    Change, Decision, EventKind, GrantId, NewEvent, Revision, Scope, Token, WallTime, WhyLeft,
};

cases!("events":
    events_come_back_as_they_were,
    events_come_in_order_after_a_revision_and_up_to_a_limit,
    there_are_no_events_beyond_the_newest,
    events_need_no_records_and_records_of_the_same_change_are_there,
);

fn all_kinds() -> Vec<EventKind> {
    let text = |text: &str| text.to_owned();
    vec![
        EventKind::Acquired { operation: None },
        EventKind::Acquired { operation: Some(text("a \"quoted\" one\nin two lines 🚀")) },
        EventKind::Acquired { operation: Some(String::new()) },
        EventKind::Released,
        EventKind::LAPSED,
        EventKind::Lapsed { ended_at: Some(WallTime(1_700_000_000_000)) },
        EventKind::Died,
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
        .map(|(index, kind)| NewEvent {
            resource: (index % 5 != 4).then(|| resource(names[index % 5])),
            label: ["", "alice", "büro:7", "o'brien"][index % 4].to_owned(),
            token: (index % 3 != 0).then_some(Token(index as u64 * 1_000_000_007)),
            kind,
        })
        .collect();
    let before = everything(&*store).await?.revision;
    write(&*store, |_| Change { events: written.clone(), ..Change::default() }).await?;
    for store in [&store, &other] {
        let read: Vec<NewEvent> =
            store.events(before, u32::MAX).await?.into_iter().map(|event| event.event).collect();
        ensure_eq!(read, written, "the events");
    }
    Ok(())
}

async fn events_come_in_order_after_a_revision_and_up_to_a_limit(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    for number in 0..25 {
        write(&*store, |_| noting(&format!("event {number}"))).await?;
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
    let newest = write(&*store, |_| noting("a")).await?;
    for beyond in [newest.0, newest.0 + 1, u64::from(u32::MAX), i64::MAX as u64, u64::MAX] {
        ensure_eq!(store.events(Revision(beyond), 9).await?, [], "the events after {beyond}");
    }
    Ok(())
}

async fn events_need_no_records_and_records_of_the_same_change_are_there(
    harness: &dyn Harness,
) -> Verdict {
    let store = harness.fresh().await;
    let note = |_: &tenure_core::Snapshot| Decision::Write(noting("only noted"));
    let revision = store.transact(&at(&["only noted"]), &mut { note }).await?;
    let seen = everything(&*store).await?;
    ensure!(seen.holds.is_empty() && seen.revision == revision, "only an event: {seen:?}");
    let mut made = None;
    let mut decide = |seen: &tenure_core::Snapshot| {
        let grant: GrantId = grant(1);
        made = Some(seen.next);
        Decision::Write(holding(hold("a", grant, seen.next_token())))
    };
    store.transact(&Scope::Everything, &mut decide).await?;
    let events = store.events(revision, 9).await?;
    ensure_eq!(events.len(), 1, "the events of the second change");
    ensure_eq!(events[0].event.token.map(|token| token.0), made, "the token in the event");
    ensure_eq!(hold_of(&*store, "a").await?.hold.token.0, events[0].revision.0, "the token held");
    Ok(())
}
