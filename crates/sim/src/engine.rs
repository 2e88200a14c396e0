//! The store of a simulation: the memory store with the real rules, and the deliberate faults of stores.

use crate::mutant::Mutant;
use async_trait::async_trait;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::{
    Change, Claim, Decision, GrantId, Hold, HoldSnapshot, Kind, Mode, Scope, Snapshot, Status,
    StoredReply, WallTime, Want, Write,
};
use tenure::store::{
    Answer, Committed, Decide, Maintained, Maintenance, MemoryStore, Query, Renewal, Renewed,
    Signal, Store, StoreError, StoreExt, StoreInfo, Transaction, Waited,
};

/// How long a store that looks first and writes later takes in between.
const LOOK_TO_WRITE: Duration = Duration::from_millis(25);

/// A memory store, perhaps with a deliberate fault.
pub struct Engine {
    inner: MemoryStore,
    mutant: Option<Mutant>,
    notes: Arc<Mutex<Notes>>,
}

/// What a faulty store remembers beside its records.
#[derive(Default)]
struct Notes {
    changes: u64,
    /// By how much its numbers went back.
    numbers_back: u64,
    /// The token with which each task was last claimed.
    task_tokens: BTreeMap<String, u64>,
    /// The last claim of each task, with the hold of the task.
    last_claims: BTreeMap<String, (Claim, Hold)>,
    /// Tokens of what was held at the last restart: lower than this.
    forgotten_below: u64,
    highest_token: u64,
    /// The reply that was stored last, to whatever request.
    last_reply: Option<StoredReply>,
}

impl Engine {
    /// A store over this memory store.
    pub fn new(inner: MemoryStore, mutant: Option<Mutant>) -> Engine {
        Engine { inner, mutant, notes: Arc::default() }
    }

    /// The store was restarted.
    pub fn restarted(&self) {
        let mut notes = self.notes.lock();
        match self.mutant {
            Some(Mutant::TokensRestart) => notes.numbers_back += 60,
            Some(Mutant::RestartForgetsHolds) => notes.forgotten_below = notes.highest_token + 1,
            _ => {}
        }
    }

    /// Looks, decides, and writes later what it decided: as programs do that check and then write.
    async fn look_then_write(
        &self,
        transaction: Transaction,
        mutant: Mutant,
    ) -> Result<Committed, StoreError> {
        let Transaction { mut scope, request, mut decide } = transaction;
        for _ in 0..4 {
            let seen = self.inner.read(&scope).await?;
            let change = match decide(&seen) {
                Decision::Need(wider) => {
                    scope = wider;
                    continue;
                }
                Decision::NeedAll => {
                    scope = Scope::Everything;
                    continue;
                }
                Decision::Nothing => return Ok(Committed { revision: None }),
                Decision::Write(change) => change,
            };
            let is_task = change.writes.iter().any(|write| matches!(write, Write::Task(_)));
            let is_lock = change.writes.iter().any(|write| matches!(write, Write::Hold(_)));
            if if mutant == Mutant::TaskListLastWriter { is_task } else { is_lock } {
                tokio::time::sleep(LOOK_TO_WRITE).await;
            }
            // The store checks that a change stays within what was shown, and what was picked before may
            // not be picked again: so the tasks are named.
            if let Scope::Tasks(tasks) = &mut scope {
                tasks.ids.extend(change.writes.iter().filter_map(|write| match write {
                    Write::Task(task) => Some(task.id.clone()),
                    _ => None,
                }));
            }
            let decide: Decide = Box::new(move |_| Decision::Write(change.clone()));
            return self.inner.transact(Transaction { scope, request, decide }).await;
        }
        Ok(Committed { revision: None })
    }
}

#[async_trait]
impl Store for Engine {
    fn info(&self) -> StoreInfo {
        self.inner.info()
    }

    async fn transact(&self, transaction: Transaction) -> Result<Committed, StoreError> {
        let Some(mutant) = self.mutant else { return self.inner.transact(transaction).await };
        if matches!(mutant, Mutant::CheckThenWrite | Mutant::TaskListLastWriter)
            && transaction.request.is_none()
        {
            return self.look_then_write(transaction, mutant).await;
        }
        let Transaction { scope, request, mut decide } = transaction;
        let (notes, asked) = (self.notes.clone(), scope.clone());
        let decide: Decide = Box::new(move |seen| {
            let mut notes = notes.lock();
            let mut shown = seen.clone();
            distort(mutant, &mut shown, &asked, &notes);
            match decide(&shown) {
                Decision::Write(change) => spoil(mutant, change, &mut notes),
                decision => decision,
            }
        });
        self.inner.transact(Transaction { scope, request, decide }).await
    }

    async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        match self.mutant {
            Some(Mutant::RenewForgets) => return Ok(vec![Renewed::Renewed; renewals.len()]),
            Some(Mutant::RenewAlways) => {
                self.inner.renew(renewals).await?;
                return Ok(vec![Renewed::Renewed; renewals.len()]);
            }
            Some(Mutant::RenewHalf) => {
                let mut half = renewals.to_vec();
                half.iter_mut().for_each(|renewal| renewal.ttl /= 2);
                return self.inner.renew(&half).await;
            }
            Some(Mutant::RenewSkipsSections) => {
                let skipped =
                    |one: &Renewal| one.resources.iter().all(|one| one.kind() == Kind::Section);
                let mut answers = Vec::new();
                for renewal in renewals {
                    match skipped(renewal) {
                        true => answers.push(Renewed::Renewed),
                        false => {
                            answers.extend(self.inner.renew(std::slice::from_ref(renewal)).await?)
                        }
                    }
                }
                return Ok(answers);
            }
            Some(Mutant::RenewSkipsFiles) => {
                let mut rest = renewals.to_vec();
                for renewal in rest.iter_mut().filter(|renewal| renewal.resources.len() > 1) {
                    renewal.resources.retain(|resource| resource.kind() != Kind::Path);
                }
                return self.inner.renew(&rest).await;
            }
            Some(Mutant::RenewFirstPart) => {
                let mut first = renewals.to_vec();
                first.iter_mut().for_each(|renewal| renewal.resources.truncate(1));
                return self.inner.renew(&first).await;
            }
            _ => {}
        }
        self.inner.renew(renewals).await
    }

    async fn query(&self, query: Query) -> Result<Answer, StoreError> {
        // A holder that looks would notice that its renewals are worth nothing.
        let is_look = matches!(query, Query::Snapshot(Scope::At { .. }));
        if is_look && self.mutant == Some(Mutant::RenewAlways) {
            let reason = "looks fail".to_owned();
            return Err(StoreError::Unavailable {
                store: self.inner.info().url,
                reason,
                hint: None,
            });
        }
        let scope = match &query {
            Query::Snapshot(scope) => Some(scope.clone()),
            _ => None,
        };
        let mut answer = self.inner.query(query).await?;
        // Claims look first, and change something only if that says so.
        if let (Some(mutant @ Mutant::OldClaimIsFree), Some(scope), Answer::Snapshot(shown)) =
            (self.mutant, scope, &mut answer)
        {
            distort(mutant, shown, &scope, &self.notes.lock());
        }
        Ok(answer)
    }

    async fn wait(&self, signal: Signal, patience: Duration) -> Result<Waited, StoreError> {
        self.inner.wait(signal, patience).await
    }

    async fn maintain(&self, work: Maintenance) -> Result<Maintained, StoreError> {
        self.inner.maintain(work).await
    }
}

/// Shows a rule something else than there is.
fn distort(mutant: Mutant, shown: &mut Snapshot, scope: &Scope, notes: &Notes) {
    let is_tasks = matches!(scope, Scope::Tasks(_));
    match mutant {
        Mutant::RepeatRuns => shown.answered = None,
        Mutant::ReplyOfAnotherSlot => shown.answered = notes.last_reply.clone(),
        Mutant::FinishIgnoresParts => {
            for claim in shown.tasks.iter_mut().filter_map(|task| task.claim.as_mut()) {
                claim.parts.clear();
            }
        }
        Mutant::CyclesIgnored if shown.shows_waits => {
            shown.waiters.iter_mut().for_each(|seen| seen.waiter.keeps.clear());
        }
        Mutant::SelfDeadlock if shown.shows_waits => {
            // Nothing that is held looks like something that the caller keeps.
            for seen in &mut shown.holds {
                seen.hold.grant = GrantId::from_bits(seen.hold.grant.to_bits() ^ 1);
            }
        }
        // Only a finish looks at one task and at those that wait for it, and picks none.
        Mutant::FinishAfterLoss if matches!(scope, Scope::Tasks(asked) if asked.dependents && asked.pick.is_none()) => {
            for task in shown.tasks.iter_mut().filter(|task| task.status == Status::Pending) {
                let Some((claim, hold)) = notes.last_claims.get(task.id.as_str()) else { continue };
                task.status = Status::InProgress;
                let mut claim = claim.clone();
                claim.parts.clear();
                task.claim = Some(claim);
                shown.holds.push(HoldSnapshot {
                    left: hold.ttl,
                    hold: hold.clone(),
                    held_for: Duration::ZERO,
                    acquired_at: WallTime::default(),
                    renewed_at: WallTime::default(),
                    expires_at: WallTime::default(),
                    stale: None,
                });
            }
        }
        Mutant::Barging => shown.waiters.clear(),
        Mutant::BargingReaders => hide_waits(shown, |want| want.mode == Mode::Shared),
        Mutant::BargingSlots => hide_waits(shown, |want| matches!(want.mode, Mode::Slot { .. })),
        Mutant::BargingPaths => hide_waits(shown, |want| want.resource.kind() == Kind::Path),
        Mutant::YoungIsFree => shown.holds.retain(|seen| seen.held_for > Duration::from_millis(60)),
        Mutant::OldLockIsFree | Mutant::OldClaimIsFree => {
            let meant = if mutant == Mutant::OldLockIsFree { Kind::Lock } else { Kind::Task };
            for seen in
                shown.holds.iter_mut().filter(|seen| seen.hold.want.resource.kind() == meant)
            {
                if seen.held_for > Duration::from_secs(5) {
                    seen.left = Duration::ZERO;
                }
            }
        }
        Mutant::ReadersIgnoreWriter => {
            for seen in &mut shown.holds {
                if seen.hold.want.resource.name() == "s" {
                    seen.hold.want.mode = Mode::Shared;
                }
            }
        }
        Mutant::OneSlotMore => {
            for seen in &mut shown.holds {
                if let Mode::Slot { of } = &mut seen.hold.want.mode {
                    *of += 1;
                }
            }
            let slots = |seen: &tenure::core::HoldSnapshot| {
                matches!(seen.hold.want.mode, Mode::Slot { .. })
            };
            if shown.holds.iter().filter(|seen| slots(seen)).count() == 2
                && let Some(index) = shown.holds.iter().position(slots)
            {
                shown.holds.remove(index);
            }
        }
        Mutant::PathsAsText => {
            if let Scope::At { resources, .. } | Scope::Queues(resources) = scope {
                shown.holds.retain(|seen| {
                    let resource = &seen.hold.want.resource;
                    resource.kind() != Kind::Path || resources.contains(resource)
                });
            }
        }
        Mutant::SectionIgnored if is_tasks => {
            shown.holds.retain(|seen| seen.hold.want.resource.kind() != Kind::Section);
        }
        Mutant::FilesIgnored if is_tasks => {
            shown.holds.retain(|seen| seen.hold.want.resource.kind() != Kind::Path);
        }
        Mutant::RestartForgetsHolds => {
            shown.holds.retain(|seen| seen.hold.token.0 >= notes.forgotten_below);
        }
        Mutant::TokensRestart => {
            let back = notes.numbers_back.min(shown.next - 1);
            shown.next -= back;
        }
        Mutant::TaskKeepsToken if is_tasks => {
            let pending = shown.tasks.iter().find(|task| task.status == Status::Pending);
            if let Some(before) = pending.and_then(|task| notes.task_tokens.get(task.id.as_str())) {
                shown.next = *before;
            }
        }
        _ => {}
    }
}

/// Hides requests that wait for something of this kind.
fn hide_waits(shown: &mut Snapshot, meant: impl Fn(&Want) -> bool) {
    shown.waiters.retain(|seen| !seen.waiter.wants.iter().any(&meant));
}

/// Writes something else than the rule chose.
fn spoil(mutant: Mutant, mut change: Change, notes: &mut Notes) -> Decision {
    notes.changes += 1;
    let is_one_of = |every: u64| notes.changes.is_multiple_of(every);
    let writes_task = change.writes.iter().any(|write| matches!(write, Write::Task(_)));
    let writes_hold = change.writes.iter().any(|write| matches!(write, Write::Hold(_)));
    let drops_hold = change.writes.iter().any(|write| matches!(write, Write::DropHold { .. }));
    match mutant {
        Mutant::LostWake => change.wake.clear(),
        Mutant::LockNotWritten if writes_hold && !writes_task && is_one_of(5) => {
            return Decision::Nothing;
        }
        Mutant::TaskNotWritten if writes_task && is_one_of(5) => return Decision::Nothing,
        Mutant::ReleaseNotWritten if drops_hold && !writes_hold && !writes_task && is_one_of(3) => {
            return Decision::Nothing;
        }
        // Without numbers of its own, so that only the events are wrong.
        Mutant::EventsMissing if change.last_number() == 0 && is_one_of(3) => change.events.clear(),
        Mutant::EventsReversed => change.events.reverse(),
        Mutant::ShorterLease => crate::mutant::shorten(&mut change, Duration::from_millis(1500)),
        Mutant::CompletionLost if is_one_of(3) => {
            for write in &mut change.writes {
                if let Write::Task(task) = write
                    && task.status == Status::Completed
                {
                    task.status = Status::Pending;
                }
            }
        }
        Mutant::RestartForgetsHolds => {
            notes.highest_token = notes.highest_token.max(change.last_number())
        }
        Mutant::ReplyApart if is_one_of(2) => {
            change.writes.retain(|write| !matches!(write, Write::Answer(_)));
        }
        Mutant::ReplyOfAnotherSlot => {
            for write in &change.writes {
                if let Write::Answer(reply) = write {
                    notes.last_reply = Some(reply.clone());
                }
            }
        }
        Mutant::EventsTwice if is_one_of(7) => change.events.extend(change.events.clone()),
        Mutant::DependenciesIgnored => {
            for write in &mut change.writes {
                if let Write::Task(task) = write {
                    task.unmet = 0;
                }
            }
        }
        Mutant::HalfOfMany if !writes_task => {
            let mut first = true;
            change
                .writes
                .retain(|write| !matches!(write, Write::Hold(_)) || std::mem::take(&mut first));
        }
        Mutant::FinishAfterLoss => {
            let holds = |write: &Write| match write {
                Write::Hold(hold) if hold.want.resource.kind() == Kind::Task => Some(hold.clone()),
                _ => None,
            };
            let holds: Vec<Hold> = change.writes.iter().filter_map(holds).collect();
            for write in &change.writes {
                let Write::Task(task) = write else { continue };
                let Some(claim) = &task.claim else { continue };
                let hold = holds.iter().find(|hold| hold.grant == claim.grant);
                if let Some(hold) = hold {
                    let noted = (claim.clone(), hold.clone());
                    notes.last_claims.insert(task.id.to_string(), noted);
                }
            }
        }
        Mutant::TaskKeepsToken => {
            for write in &change.writes {
                if let Write::Hold(hold) = write
                    && hold.want.resource.kind() == Kind::Task
                {
                    notes.task_tokens.insert(hold.want.resource.name().to_owned(), hold.token.0);
                }
            }
        }
        _ => {}
    }
    Decision::Write(change)
}
