//! A look shows what it must, in order, and says what it left out.

use crate::Harness;
use crate::kit::*;
use tenure::core::{Scope, Snapshot};
use tenure::store::Store;

cases!("looks":
    a_look_shows_its_resources_only,
    a_resource_named_twice_is_shown_once,
    a_look_at_a_path_shows_what_overlaps_it,
    the_front_of_a_long_queue_is_shown_in_order,
    a_place_far_back_is_shown_to_its_owner,
    the_one_just_before_is_shown_however_far_back,
    the_fronts_of_several_queues_are_shown_honestly,
    of_two_long_queues_the_shorter_front_counts,
    a_place_in_several_queues_is_shown_once,
    the_queue_of_a_path_is_that_of_all_that_overlap,
    all_of_a_queue_can_be_seen,
);

async fn a_look_shows_its_resources_only(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    for (index, name) in ["a", "b", "ab", "task:a", "section:a", "path:a"].iter().enumerate() {
        take(&*store, name, grant(index as u128 + 1), LONG).await?;
        queue(&*store, &[name], grant(index as u128 + 101), LONG).await?;
    }
    for scope in [at(&["a", "task:a"]), queues(&["a", "task:a"])] {
        let seen = store.read(&scope).await?;
        ensure_eq!(grants(&seen.holds), [grant(1), grant(4)], "who holds, for {scope:?}");
        let waiting: Vec<_> = seen.waiters.iter().map(|seen| seen.waiter.grant).collect();
        ensure_eq!(waiting, [grant(101), grant(104)], "who waits, for {scope:?}");
        ensure!(!seen.whole, "{scope:?} does not show everything, but says so");
    }
    let seen = everything(&*store).await?;
    ensure_eq!((seen.holds.len(), seen.waiters.len()), (6, 6), "the size of everything");
    ensure!(seen.whole && seen.shown_until.is_none(), "everything must be shown whole");
    let nobody = store.read(&at(&["c"])).await?;
    ensure!(nobody.holds.is_empty() && nobody.waiters.is_empty(), "nobody has c: {nobody:?}");
    Ok(())
}

async fn a_resource_named_twice_is_shown_once(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    for (index, name) in ["a", "path:a/b"].into_iter().enumerate() {
        take(&*store, name, grant(index as u128 + 1), LONG).await?;
        queue(&*store, &[name], grant(index as u128 + 11), LONG).await?;
    }
    let seen = store.read(&at(&["a", "path:a/*", "a", "path:*/b"])).await?;
    ensure_eq!(grants(&seen.holds), [grant(1), grant(2)], "who holds");
    ensure_eq!(seen.waiters.len(), 2, "how many wait");
    Ok(())
}

async fn a_look_at_a_path_shows_what_overlaps_it(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let paths = ["path:src/**", "path:src/lib.rs", "path:docs/*", "path:**/*.rs", "path:src"];
    for (index, name) in paths.iter().enumerate() {
        take(&*store, name, grant(index as u128 + 1), LONG).await?;
        queue(&*store, &[name], grant(index as u128 + 101), LONG).await?;
    }
    take(&*store, "src/lib.rs", grant(9), LONG).await?;
    let looks: [(&str, &[u128]); 3] =
        [("path:src/*.rs", &[1, 2, 4]), ("path:docs/a.md", &[3]), ("path:tests/x", &[])];
    for (name, expected) in looks {
        let seen = store.read(&at(&[name])).await?;
        let holding: Vec<_> = expected.iter().copied().map(grant).collect();
        ensure_eq!(grants(&seen.holds), holding, "who holds what overlaps {name}");
        let waiting: Vec<_> = seen.waiters.iter().map(|seen| seen.waiter.grant).collect();
        let expected: Vec<_> = expected.iter().map(|number| grant(number + 100)).collect();
        ensure_eq!(waiting, expected, "who waits for what overlaps {name}");
    }
    Ok(())
}

/// More than any store shows at first.
const MANY: usize = 60;

async fn fill(store: &dyn Store, names: &[&str]) -> Result<Vec<u64>, Failure> {
    let mut places = Vec::new();
    for index in 0..MANY {
        // Grants fall while tickets rise, so that an order by grant shows.
        let number = 1_000_000 - 1_000 * index as u128 - places.len() as u128;
        places.push(queue(store, names, grant(number), LONG).await?);
    }
    Ok(places)
}

/// Whether all places up to the one that the store names are shown, in order, and at least one.
pub(super) fn ensure_honest(seen: &Snapshot, all: &[u64], own: Option<u64>) -> Verdict {
    let shown = tickets(&seen.waiters);
    ensure!(shown.is_sorted_by(|one, next| one < next), "{shown:?} should be in order, each once");
    ensure!(shown.iter().all(|ticket| all.contains(ticket)), "{shown:?} should be of {all:?}");
    let until = seen.shown_until.unwrap_or(u64::MAX);
    for ticket in all.iter().filter(|ticket| **ticket <= until || own == Some(**ticket)) {
        ensure!(
            shown.contains(ticket),
            "{ticket} is not shown, though all up to {until} should be"
        );
    }
    ensure!(all.is_empty() || all[0] <= until, "of {all:?} at least the first must be shown");
    Ok(())
}

async fn the_front_of_a_long_queue_is_shown_in_order(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let all = fill(&*store, &["popular"]).await?;
    fill(&*store, &["other"]).await?;
    ensure_honest(&store.read(&at(&["popular"])).await?, &all, None)?;
    // The same inside a transaction, where it matters.
    let rule =
        move |seen: &Snapshot| (tenure::core::Decision::Nothing, ensure_honest(seen, &all, None));
    apply(&*store, None, at(&["popular"]), rule).await?
}

async fn a_place_far_back_is_shown_to_its_owner(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let all = fill(&*store, &["popular", "path:p/**"]).await?;
    for own in [all[0], all[MANY / 2], all[MANY - 1]] {
        for name in ["popular", "path:p/q"] {
            let scope = Scope::At { resources: vec![resource(name)], ticket: Some(own) };
            ensure_honest(&store.read(&scope).await?, &all, Some(own))?;
        }
    }
    Ok(())
}

async fn the_one_just_before_is_shown_however_far_back(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let all = fill(&*store, &["popular", "path:p/**"]).await?;
    for name in ["popular", "path:p/**"] {
        let before = all.windows(2).map(|pair| (Some(pair[1]), pair[0]));
        // One that has no place yet will have the last before it.
        for (own, before) in before.chain([(None, all[MANY - 1])]) {
            let scope = Scope::At { resources: vec![resource(name)], ticket: own };
            let shown = tickets(&store.read(&scope).await?.waiters);
            ensure!(shown.contains(&before), "{before} is not shown to {own:?}, only {shown:?}");
        }
    }
    Ok(())
}

async fn the_fronts_of_several_queues_are_shown_honestly(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let short = [queue(&*store, &["a"], grant(1), LONG).await?];
    let long = fill(&*store, &["b"]).await?;
    let last = queue(&*store, &["a", "b", "path:x"], grant(2), LONG).await?;
    let all: Vec<u64> = short.iter().chain(&long).copied().chain([last]).collect();
    for names in [["a", "b"], ["b", "a"], ["b", "path:*"]] {
        let visible: &[u64] = if names.contains(&"a") { &all } else { &all[1..] };
        ensure_honest(&store.read(&at(&names)).await?, visible, None)?;
        let resources = names.iter().map(|name| resource(name)).collect();
        let scope = Scope::At { resources, ticket: Some(last) };
        ensure_honest(&store.read(&scope).await?, visible, Some(last))?;
    }
    Ok(())
}

async fn of_two_long_queues_the_shorter_front_counts(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    // All of one waited before all of the other, so that their fronts end far apart.
    let mut all = fill(&*store, &["a"]).await?;
    all.extend(fill(&*store, &["b"]).await?);
    for names in [["a", "b"], ["b", "a"]] {
        ensure_honest(&store.read(&at(&names)).await?, &all, None)?;
    }
    Ok(())
}

async fn a_place_in_several_queues_is_shown_once(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let names = ["a", "b", "path:c", "path:*"];
    let ticket = queue(&*store, &names, grant(1), LONG).await?;
    let looks = [at(&names), queues(&names), at(&["b"]), at(&["path:c"]), Scope::Everything];
    for scope in looks {
        let seen = store.read(&scope).await?;
        ensure_eq!(tickets(&seen.waiters), [ticket], "who waits, for {scope:?}");
        ensure_eq!(seen.waiters[0].waiter.wants.len(), 4, "what is waited for, for {scope:?}");
    }
    Ok(())
}

async fn the_queue_of_a_path_is_that_of_all_that_overlap(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let mut mine = Vec::new();
    for index in 0..MANY {
        let number = index as u128;
        queue(&*store, &["path:docs/**"], grant(1_000 + number), LONG).await?;
        let name = format!("path:src/{index}.rs");
        mine.push(queue(&*store, &[&name], grant(2_000 + number), LONG).await?);
    }
    let last = mine[MANY - 1];
    for own in [None, Some(last)] {
        let scope = Scope::At { resources: vec![resource("path:src/*.rs")], ticket: own };
        let seen = store.read(&scope).await?;
        let shown = tickets(&seen.waiters);
        let until = seen.shown_until.unwrap_or(u64::MAX);
        for ticket in mine.iter().filter(|ticket| **ticket <= until || own == Some(**ticket)) {
            ensure!(shown.contains(ticket), "{ticket} overlaps and is not shown up to {until}");
        }
        ensure!(shown.iter().all(|shown| mine.contains(shown)), "{shown:?} should all overlap");
    }
    let seen = store.read(&queues(&["path:src/*.rs"])).await?;
    ensure_eq!(tickets(&seen.waiters), mine, "the whole queue of what overlaps");
    Ok(())
}

async fn all_of_a_queue_can_be_seen(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let all = fill(&*store, &["popular", "path:p/**"]).await?;
    for scope in [queues(&["popular"]), queues(&["path:p/q"]), Scope::Everything] {
        let seen = store.read(&scope).await?;
        ensure_eq!(tickets(&seen.waiters), all, "who waits, for {scope:?}");
        ensure_eq!(seen.shown_until, None, "where {scope:?} ends");
    }
    Ok(())
}
