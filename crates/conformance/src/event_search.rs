//! Events by resource, kind, label, token and time, from either end.

use crate::Harness;
use crate::kit::*;
use tenure::core::{Change, EventFilter, EventKind, NewEvent, Revision, WallTime};
use tenure::store::{EventSearch, Prefer};

cases!("event search":
    an_event_says_through_which_token_its_change_came,
    events_are_found_by_each_part_of_a_filter,
    a_search_begins_at_either_end_and_within_bounds,
    the_history_of_one_resource_is_found_among_many,
);

async fn an_event_says_through_which_token_its_change_came(harness: &dyn Harness) -> Verdict {
    let mut store = harness.fresh().await;
    let plain = event(&resource("a"), None, EventKind::Released);
    let through = plain.clone().through(Some("ci 'token' 🚀".to_owned()));
    let written = vec![through, plain];
    let before = everything(&*store).await?.revision;
    let change = Change { events: written.clone(), ..Change::default() };
    write(&*store, move |_| change.clone()).await?;
    for _ in 0..2 {
        let read = store.events(before, u32::MAX).await?.into_iter().map(|event| event.event);
        ensure_eq!(read.collect::<Vec<_>>(), written, "the events");
        store = harness.reopen(store).await;
    }
    Ok(())
}

/// Ten events at times of their own, a minute apart.
fn history() -> Vec<NewEvent> {
    let text = |text: &str| text.to_owned();
    let kinds = [
        ("a", "alice", None, EventKind::Acquired { operation: Some(text("x")) }),
        ("b", "bob", Some("ci"), EventKind::Acquired { operation: None }),
        ("a", "alice", Some("ci"), EventKind::Released),
        ("task:t", "bob", Some("ci"), EventKind::Failed { reason: text("no"), retry: true }),
        ("a", "carol", None, EventKind::Broken { by: text("ops"), reason: text("stuck") }),
        ("task:t", "alice", Some("local"), EventKind::Completed),
        ("path:src/**", "bob", None, EventKind::Waiting),
        ("a", "bob", Some("ci"), EventKind::DIED),
        ("section:a", "ops", None, EventKind::Paused),
        ("a", "alice", None, EventKind::Acquired { operation: None }),
    ];
    let one =
        |(index, (name, label, actor, kind)): (usize, (&str, &str, Option<&str>, EventKind))| {
            let event = NewEvent::new(Some(resource(name)), label, None, kind);
            let at = WallTime(1_700_000_000_000 + 60_000 * index as i64);
            event.through(actor.map(str::to_owned)).happened_at(at)
        };
    kinds.into_iter().enumerate().map(one).collect()
}

async fn events_are_found_by_each_part_of_a_filter(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    let before = everything(&*store).await?.revision;
    let change = Change { events: history(), ..Change::default() };
    write(&*store, move |_| change.clone()).await?;
    let at = |index: i64| Some(WallTime(1_700_000_000_000 + 60_000 * index));
    let text = |text: &str| Some(text.to_owned());
    let all = EventFilter::default();
    let kinds = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let of = |name: &str| EventFilter::of(resource(name));
    let cases: [(EventFilter, &[usize]); 11] = [
        (all.clone(), &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (of("a"), &[0, 2, 4, 7, 9]),
        (of("task:t"), &[3, 5]),
        (of("section:a"), &[8]),
        (EventFilter { kinds: kinds(&["acquired", "failed"]), ..all.clone() }, &[0, 1, 3, 9]),
        (EventFilter { label: text("alice"), ..all.clone() }, &[0, 2, 5, 9]),
        // Also what was broken by the label.
        (EventFilter { label: text("ops"), ..all.clone() }, &[4, 8]),
        (EventFilter { actor: text("ci"), ..all.clone() }, &[1, 2, 3, 7]),
        (EventFilter { since: at(2), until: at(5), ..all.clone() }, &[2, 3, 4]),
        (EventFilter { label: text("bob"), actor: text("ci"), ..of("a") }, &[7]),
        (of("nothing"), &[]),
    ];
    for store in [&store, &other] {
        let everything = store.events(before, u32::MAX).await?;
        for (filter, expected) in &cases {
            let wanted: Vec<_> = expected.iter().map(|index| everything[*index].clone()).collect();
            for prefer in [Prefer::Oldest, Prefer::Newest] {
                let search =
                    EventSearch { prefer, ..EventSearch::after(filter.clone(), before, u32::MAX) };
                let found = store.read(search).await?;
                ensure_eq!(found, wanted, "what {filter:?} admits, {prefer:?}");
            }
        }
    }
    Ok(())
}

async fn a_search_begins_at_either_end_and_within_bounds(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let first = everything(&*store).await?.revision;
    let change = Change { events: history(), ..Change::default() };
    write(&*store, move |_| change.clone()).await?;
    let all = store.events(first, u32::MAX).await?;
    let of_a: Vec<_> = [0, 2, 4, 7, 9].iter().map(|index: &usize| all[*index].clone()).collect();
    let filter = EventFilter::of(resource("a"));
    let newest = store.read(EventSearch::newest(filter.clone(), 2)).await?;
    ensure_eq!(newest, of_a[3..], "the newest two, oldest first");
    let oldest = store.read(EventSearch::after(filter.clone(), first, 2)).await?;
    ensure_eq!(oldest, of_a[..2], "the oldest two");
    let next = EventSearch::after(filter.clone(), of_a[1].revision, 2);
    ensure_eq!(store.read(next).await?, of_a[2..4], "the two after them");
    let earlier =
        EventSearch { before: Some(of_a[3].revision), ..EventSearch::newest(filter.clone(), 2) };
    ensure_eq!(store.read(earlier).await?, of_a[1..3], "the two before the newest two");
    let none = EventSearch { before: Some(Revision(1)), ..EventSearch::newest(filter, 2) };
    ensure_eq!(store.read(none).await?, [], "what lies before the first revision");
    Ok(())
}

/// More changes than a part of the history has, where a store keeps it in parts.
async fn the_history_of_one_resource_is_found_among_many(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let first = everything(&*store).await?.revision;
    let rare = event(&resource("rare"), None, EventKind::Released);
    let common = event(&resource("common"), None, EventKind::Released);
    for round in 0..3 {
        let mut events = vec![common.clone(); 400];
        events[round * 150] = rare.clone();
        let change = Change { events, ..Change::default() };
        write(&*store, move |_| change.clone()).await?;
    }
    let filter = EventFilter::of(resource("rare"));
    let all = store.read(EventSearch::after(filter.clone(), first, 10)).await?;
    ensure_eq!(all.len(), 3, "the events of the rare resource");
    let newest = store.read(EventSearch::newest(filter, 2)).await?;
    ensure_eq!(newest, all[1..], "its newest two");
    Ok(())
}
