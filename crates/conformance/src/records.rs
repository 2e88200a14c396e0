//! What was written is what is read, field by field, on every handle and after opening again.

use crate::Harness;
use crate::kit::*;
use std::time::Duration;
use tenure::core::holder::LABEL_MAX_BYTES;
use tenure::core::resource::NAME_MAX_BYTES;
use tenure::core::{
    Decision, Evidence, Hold, Holder, Kind, Mode, Resource, Scope, Snapshot, Token, Waiter, Want,
    Write,
};

cases!("records":
    a_fresh_store_is_empty_and_in_order,
    a_hold_comes_back_as_it_was,
    a_place_comes_back_as_it_was,
    any_name_comes_back_as_it_was,
    records_outlive_every_handle,
    ending_a_hold_leaves_all_others,
);

async fn a_fresh_store_is_empty_and_in_order(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let seen = everything(&*store).await?;
    ensure!(seen.holds.is_empty() && seen.waiters.is_empty(), "a fresh store shows {seen:?}");
    ensure!(!store.info().url.is_empty(), "a store must say where it is");
    for finding in store.check().await? {
        ensure!(finding.ok, "{}: {}", finding.subject, finding.message);
    }
    Ok(())
}

fn holders() -> Vec<Holder> {
    let chosen = |label: &str| Holder::chosen(label).expect("the suite's labels are well made");
    let bare = Evidence { process: None, group: None, ..full_evidence() };
    vec![
        Holder::anonymous("made up:1-00ff".to_owned()),
        chosen("a'; DROP TABLE holds; --\"\\"),
        chosen(&"🦀".repeat(LABEL_MAX_BYTES / 4)),
        chosen("with a process").with_evidence(full_evidence()),
        chosen("detached").with_evidence(bare),
        Holder { agent: true, ..chosen("agent/part").with_evidence(full_evidence()) },
        Holder::anonymous("grandchild".to_owned())
            .with_evidence(Evidence { group: None, ..full_evidence() }),
    ]
}

fn operations() -> Vec<Option<String>> {
    let some = |text: &str| Some(text.to_owned());
    vec![
        None,
        some(""),
        some("deploy 2024 \"blue\""),
        some("two\nlines\tand ünïcödé 🚀"),
        Some("x".repeat(10_000)),
    ]
}

const MODES: [Mode; 4] =
    [Mode::Exclusive, Mode::Shared, Mode::Slot { of: 3 }, Mode::Slot { of: u32::MAX }];

async fn a_hold_comes_back_as_it_was(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    let (holders, operations) = (holders(), operations());
    for index in 0..holders.len() * operations.len() {
        let name = format!("held-{index}");
        let plain = Hold {
            want: Want { resource: resource(&name), mode: MODES[index % MODES.len()] },
            holder: holders[index % holders.len()].clone(),
            operation: operations[index % operations.len()].clone(),
            ttl: harness.short_lease() + Duration::from_millis(86_400_000 * index as u64),
            slot: (index % 2 == 1).then_some(index as u32),
            ..hold(&name, grant(u128::MAX - index as u128), Token(0))
        };
        let rule = move |seen: &Snapshot| {
            let hold = Hold { token: seen.next_token(), ..plain.clone() };
            (Decision::Write(holding(hold.clone())), hold)
        };
        let written = apply(&*store, None, Scope::Everything, rule).await?;
        for handle in [&store, &other] {
            let read = hold_of(&**handle, &name).await?.hold;
            ensure_eq!(read, written, "the hold of {name}");
        }
    }
    Ok(())
}

async fn a_place_comes_back_as_it_was(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let other = harness.another(&store).await;
    let (holders, operations) = (holders(), operations());
    for index in 0..holders.len() * operations.len() {
        let wants = (0..=index % 3).map(|part| Want {
            resource: resource(&format!("section:wanted {index}, part {part}")),
            mode: MODES[(index + part) % MODES.len()],
        });
        let wants: Vec<Want> = wants.collect();
        let plain = Waiter {
            wants: wants.clone(),
            holder: holders[index % holders.len()].clone(),
            operation: operations[index % operations.len()].clone(),
            keeps: (0..index as u128 % 4).map(grant).collect(),
            ttl: harness.short_lease() + Duration::from_millis(1_000 * index as u64),
            ..waiter(&[], grant(1_000 + index as u128), 0)
        };
        let rule = move |seen: &Snapshot| {
            let waiter = Waiter { ticket: seen.next, ..plain.clone() };
            (Decision::Write(queueing(waiter.clone())), waiter)
        };
        let written = apply(&*store, None, Scope::Everything, rule).await?;
        let scope = Scope::Queues(vec![wants[index % wants.len()].resource.clone()]);
        for handle in [&store, &other] {
            let seen = handle.read(&scope).await?.waiters;
            let read: Vec<Waiter> = seen.into_iter().map(|seen| seen.waiter).collect();
            ensure_eq!(read, std::slice::from_ref(&written), "place {index}");
        }
    }
    Ok(())
}

/// Names that a file name, a key or a pattern could mangle. No two are the same resource.
fn names() -> Vec<Resource> {
    let mut names = Vec::new();
    for kind in [Kind::Lock, Kind::Section, Kind::Task] {
        for name in [
            "a", "A", "a:b", "task:a", "a/b", "a//b", "a%2Fb", "a%", "a_", "..", "*", "a'b",
            "a\"b", "a\\b", "a b", "é", "e\u{301}", "🚀", "null", "0", "00",
        ] {
            names.push(Resource::new(kind, name).expect("the suite names its resources well"));
        }
        let long = "ü".repeat(NAME_MAX_BYTES / 2 - 1);
        names.push(Resource::new(kind, &format!("{long}x")).expect("it is not too long"));
        names.push(Resource::new(kind, &format!("{long}y")).expect("it is not too long"));
    }
    for glob in ["a", "b/*.rs", "c/**", "d/e f/🚀", "g/[0-9]?"] {
        names.push(Resource::new(Kind::Path, glob).expect("the suite's globs are well made"));
    }
    names
}

async fn any_name_comes_back_as_it_was(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let names = names();
    for (index, name) in names.iter().enumerate() {
        let name = name.clone();
        write(&*store, move |seen| {
            let want = Want::exclusive(name.clone());
            let plain = hold("any", grant(index as u128 + 1), seen.next_token());
            holding(Hold { want, ..plain })
        })
        .await?;
    }
    ensure_eq!(everything(&*store).await?.holds.len(), names.len(), "the number of holds");
    for (index, name) in names.iter().enumerate() {
        let scope = Scope::At { resources: vec![name.clone()], ticket: None };
        let held: Vec<Hold> =
            store.read(&scope).await?.holds.into_iter().map(|seen| seen.hold).collect();
        let expected = vec![(name, grant(index as u128 + 1))];
        let found: Vec<_> = held.iter().map(|hold| (&hold.want.resource, hold.grant)).collect();
        ensure_eq!(found, expected, "the holds of {name:?}");
    }
    Ok(())
}

async fn records_outlive_every_handle(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    take(&*store, "kept", grant(1), LONG).await?;
    queue(&*store, &["kept", "also"], grant(2), LONG).await?;
    let before = everything(&*store).await?;
    let events = store.events(Default::default(), u32::MAX).await?;
    let store = harness.reopen(store).await;
    let after = everything(&*store).await?;
    ensure_eq!(after.holds[0].hold, before.holds[0].hold, "the hold after opening again");
    ensure_eq!(after.waiters[0].waiter, before.waiters[0].waiter, "the place after opening again");
    ensure_eq!(
        store.events(Default::default(), u32::MAX).await?,
        events,
        "the events after opening again"
    );
    Ok(())
}

async fn ending_a_hold_leaves_all_others(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    for number in 1..=3 {
        write(&*store, move |seen| {
            let want = Want::shared(resource("book"));
            holding(Hold { want, ..hold("book", grant(number), seen.next_token()) })
        })
        .await?;
    }
    let token = take(&*store, "pen", grant(2), LONG).await?;
    write(&*store, |_| dropping("book", grant(2))).await?;
    let seen = store.read(&at(&["book"])).await?;
    ensure_eq!(grants(&seen.holds), [grant(1), grant(3)], "who still holds the book");
    ensure_eq!(hold_of(&*store, "pen").await?.hold.token, token, "what the grant holds elsewhere");
    // A grant that ended can be made again, which is how a lost part of it begins anew.
    write(&*store, |seen| {
        let mut change = dropping("pen", grant(2));
        change.writes.push(Write::Hold(hold("pen", grant(2), seen.next_token())));
        change
    })
    .await?;
    let again = hold_of(&*store, "pen").await?.hold.token;
    ensure!(again > token && token > Token(0), "{again} should be beyond {token}");
    Ok(())
}
