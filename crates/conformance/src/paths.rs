//! Paths that overlap are found among many, whatever their globs, and others are not shown.

use crate::Harness;
use crate::kit::*;
use crate::looks::ensure_honest;
use crate::tasks::{add, look_for, new};
use tenure::core::rules::tasks::NewTask;
use tenure::core::{
    Change, Decision, GrantId, Hold, Resource, Scope, Snapshot, Waiter, Want, Write,
};
use tenure::store::Store;

cases!("paths":
    exactly_those_that_overlap_are_shown,
    the_files_of_tasks_are_seen,
);

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % end
    }

    fn glob(&mut self) -> String {
        // Names that begin alike, sort around `/`, differ in case or need an escape; few, so that
        // many overlap.
        const SEGMENTS: [&str; 20] = [
            "a", "b", "ab", "a-b", "a.b", "a0", "A", "ä", "a b", "a", "b", "a", "*", "**", "a*",
            "[ab]", "[a]", "{a,b}", "{a/b,a}", "\\*",
        ];
        let segments: Vec<&str> =
            (0..=self.below(4)).map(|_| SEGMENTS[self.below(SEGMENTS.len())]).collect();
        segments.join("/") + ["", "", "/"][self.below(3)]
    }

    /// In all worktrees, or in one.
    fn path(&mut self) -> Resource {
        let worktree = ["", "", "//one/", "//two/"][self.below(4)];
        resource(&format!("path:{worktree}{}", self.glob()))
    }

    fn paths(&mut self, most: usize) -> Vec<Resource> {
        (0..=self.below(most)).map(|_| self.path()).collect()
    }
}

/// What a store was told, and so must show.
#[derive(Default)]
struct Told {
    holds: Vec<(GrantId, Resource)>,
    waiters: Vec<Waiter>,
}

impl Told {
    fn holding(&self, wanted: &[Resource]) -> Vec<GrantId> {
        let touched = |held: &Resource| wanted.iter().any(|wanted| wanted.overlaps(held));
        let holds = self.holds.iter().filter(|(_, held)| touched(held));
        holds.map(|(grant, _)| *grant).collect()
    }

    fn waiting(&self, wanted: &[Resource]) -> Vec<u64> {
        let touched = |want: &Want| wanted.iter().any(|wanted| wanted.overlaps(&want.resource));
        let waiters = self.waiters.iter().filter(|waiter| waiter.wants.iter().any(touched));
        waiters.map(|waiter| waiter.ticket).collect()
    }

    /// One more hold and one more place, for paths, and for others that look like them.
    async fn one_more(&mut self, store: &dyn Store, dice: &mut Dice) -> Verdict {
        let number = self.holds.len() as u128 + 1;
        let held = match dice.below(8) {
            0 => resource(&format!("lock:{number}/a")),
            _ => dice.path(),
        };
        let mut wants: Vec<Want> = dice.paths(3).into_iter().map(Want::exclusive).collect();
        wants.dedup_by(|one, other| one.resource == other.resource);
        wants.truncate(2);
        self.holds.push((grant(number), held.clone()));
        let rule = move |seen: &Snapshot| {
            let token = seen.next_token();
            let want = Want::exclusive(held.clone());
            let mut change = holding(Hold { want, ..hold("x", grant(number), token) });
            let place = waiter(&[], grant(10_000 + number), seen.next);
            let place = Waiter { wants: wants.clone(), ..place };
            change.writes.push(Write::Wait(place.clone()));
            (Decision::Write(change), place)
        };
        self.waiters.push(apply(store, None, Scope::Everything, rule).await?);
        Ok(())
    }

    async fn forget_every_other(&mut self, store: &dyn Store) -> Verdict {
        let mut number = 0;
        let mut every_other = || {
            number += 1;
            number % 2 == 0
        };
        let (dropped, kept) = self.holds.drain(..).partition(|_| every_other());
        self.holds = kept;
        let dropped: Vec<(GrantId, Resource)> = dropped;
        let (left, kept) = self.waiters.drain(..).partition(|_| every_other());
        self.waiters = kept;
        let left: Vec<Waiter> = left;
        let holds =
            dropped.into_iter().map(|(grant, resource)| Write::DropHold { resource, grant });
        let writes: Vec<Write> = holds.chain(left.into_iter().map(Write::DropWait)).collect();
        write(store, move |_| Change { writes: writes.clone(), ..noting("forgotten") }).await?;
        Ok(())
    }

    async fn ensure_shown(&self, store: &dyn Store, wanted: Vec<Resource>) -> Verdict {
        let (holding, waiting) = (self.holding(&wanted), self.waiting(&wanted));
        let seen = store.read(&Scope::Queues(wanted.clone())).await?;
        ensure_eq!(grants(&seen.holds), holding, "who holds what overlaps {wanted:?}");
        ensure_eq!(tickets(&seen.waiters), waiting, "who waits for what overlaps {wanted:?}");
        let places = waiting.iter().map(|ticket| Some(*ticket)).step_by(5);
        for ticket in places.chain([None]) {
            let scope = Scope::At { resources: wanted.clone(), ticket };
            let seen = store.read(&scope).await?;
            ensure_eq!(grants(&seen.holds), holding, "who holds, for {scope:?}");
            ensure_honest(&seen, &waiting, ticket)?;
            let earlier = waiting.iter().filter(|other| ticket.is_none_or(|own| **other < own));
            if let Some(before) = earlier.max() {
                let shown = tickets(&seen.waiters);
                ensure!(shown.contains(before), "{before} is not in {shown:?}, for {scope:?}");
            }
        }
        Ok(())
    }
}

async fn exactly_those_that_overlap_are_shown(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let (mut told, mut dice) = (Told::default(), Dice(1));
    for _ in 0..120 {
        told.one_more(&*store, &mut dice).await?;
    }
    for _ in 0..60 {
        told.ensure_shown(&*store, dice.paths(2)).await?;
    }
    told.forget_every_other(&*store).await?;
    let store = harness.reopen(store).await;
    for _ in 0..60 {
        told.ensure_shown(&*store, dice.paths(2)).await?;
    }
    Ok(())
}

async fn the_files_of_tasks_are_seen(harness: &dyn Harness) -> Verdict {
    let store = harness.fresh().await;
    let (mut told, mut dice) = (Told::default(), Dice(2));
    for _ in 0..60 {
        told.one_more(&*store, &mut dice).await?;
    }
    for number in 0..40 {
        let name = format!("t{number}");
        let files: Vec<String> = (0..dice.below(3)).map(|_| dice.glob()).collect();
        let wanted: Vec<Resource> =
            files.iter().map(|glob| resource(&format!("path:{glob}"))).collect();
        add(&*store, vec![NewTask { files, ..new(&name) }]).await?;
        let seen = store.read(&look_for(&[&name])).await?;
        let holding = grants(&seen.holds);
        for holder in told.holding(&wanted) {
            let times = holding.iter().filter(|shown| **shown == holder).count();
            ensure_eq!(times, 1, "how often {holder} is shown, for {wanted:?}");
        }
        ensure_eq!(seen.shown_until, None, "where the queues end");
        let shown = tickets(&seen.waiters);
        for ticket in told.waiting(&wanted) {
            ensure!(shown.contains(&ticket), "{ticket} is not in {shown:?}, for {wanted:?}");
        }
    }
    Ok(())
}
