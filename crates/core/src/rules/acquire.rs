//! Taking what is free, and queueing for what is not.

use crate::decision::{Decision, Write};
use crate::event::EventKind;
use crate::hold::{Hold, Waiter, Want, compatible, may_exclude, must_exclude};
use crate::millis;
use crate::rules::cycle::{self, Cycle};
use crate::rules::draft::Draft;
use crate::rules::reap::TakeoverReason;
use crate::{
    Evidence, GrantId, HoldSnapshot, Holder, Owner, Resource, Scope, Snapshot, Token,
    WaiterSnapshot, Witness,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A request for one or more resources, all or nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ask {
    /// The id of this request, which becomes the grant. Asking again with it is safe: what it
    /// already holds is extended, the place that it already has is kept.
    pub grant: GrantId,
    /// What is wanted.
    pub wants: Vec<Want>,
    /// Who asks, tied to what the hold is to be tied to.
    pub holder: Holder,
    /// The process that waits, where it is another than the one that the hold is to be tied to:
    /// a place in the queue ends with the process that waits there.
    pub presence: Option<Evidence>,
    /// What for, in the caller's words.
    pub operation: Option<String>,
    /// How long the lease is to last from each renewal.
    #[serde(rename = "ttl_ms", with = "millis")]
    pub ttl: Duration,
    /// Grants that the caller keeps while it waits.
    pub keeps: Vec<GrantId>,
    /// On whose behalf: what this owner holds already may cover what is wanted.
    #[serde(default, skip_serializing_if = "Owner::is_nobody")]
    pub owner: Owner,
    /// Whether to queue if it is not free, and how long the place lasts without a sign of life.
    #[serde(rename = "queue_ms", with = "millis::optional", default)]
    pub queue: Option<Duration>,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is held now.
    Granted(Grant),
    /// It is not free, and the caller did not want to queue.
    Busy {
        /// Who is in the way.
        blockers: Vec<Blocker>,
    },
    /// It is not free; the caller has a place in the queue.
    Waiting {
        /// Who is in the way, as far as was looked.
        blockers: Vec<Blocker>,
        /// How many wait before the caller, where that is known.
        ahead: Option<usize>,
        /// The caller's place; to be shown by [`Scope::At`](crate::Scope) on the next look.
        ticket: u64,
    },
    /// Waiting would never end.
    Deadlock(Cycle),
}

/// What was granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The fencing token.
    pub token: Token,
    /// How it came about.
    pub reason: Reason,
    /// Whose holds ended for it.
    pub takeovers: Vec<Takeover>,
    /// Which slot of each resource it is, in the order in which they were asked for; none where
    /// they are not held by slots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<u32>,
    /// The hold that it goes under, where the owner had it already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owned: Option<Box<Owned>>,
}

/// What an owner holds already, and goes on holding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owned {
    /// Under which grant; the owner has shown that it is its own.
    pub grant: GrantId,
    /// Under which label.
    pub holder: Holder,
    /// What of it covers the request.
    pub resources: Vec<Resource>,
    /// How long the lease lasts from each renewal.
    #[serde(rename = "ttl_ms", with = "millis")]
    pub ttl: Duration,
}

/// How a grant came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It was free.
    #[default]
    AcquiredNew,
    /// The same grant or owner held it already; its lease starts anew.
    AlreadyOwned,
    /// The former holder's lease had lapsed.
    ClaimedExpired,
    /// The former holder was proved dead.
    ClaimedDead,
}

impl Reason {
    /// The reason of what was granted after holds ended in this way. A death says more than a lapse.
    pub(super) fn of_takeovers(reasons: impl Iterator<Item = TakeoverReason>) -> Reason {
        reasons.fold(Reason::AcquiredNew, |reason, ended| match (reason, ended) {
            (_, TakeoverReason::Died) | (Reason::ClaimedDead, _) => Reason::ClaimedDead,
            (_, TakeoverReason::Lapsed) => Reason::ClaimedExpired,
        })
    }

    /// The word for it in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Reason::AcquiredNew => "acquired_new",
            Reason::AlreadyOwned => "already_owned",
            Reason::ClaimedExpired => "claimed_expired",
            Reason::ClaimedDead => "claimed_dead",
        }
    }
}

/// A hold that ended so that another could begin. Its grant is in its public form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Takeover {
    /// The hold as it was.
    pub from: HoldSnapshot,
    /// What allowed it.
    pub reason: TakeoverReason,
}

/// A hold or a place in the way of a request. Its grant is in its public form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// Who holds.
    Hold(HoldSnapshot),
    /// Who waits before the caller.
    Waiter(WaiterSnapshot),
}

/// Takes all that is wanted, or queues, or says who is in the way.
pub fn acquire(seen: &Snapshot, ask: &Ask, witness: &dyn Witness) -> (Decision, Outcome) {
    if let Some(answer) = already_owned(seen, ask, witness) {
        return answer;
    }
    let mut draft = Draft::new(seen, witness).looking_at(&ask.wants);
    draft.set_aside_covering(ask);
    for own in seen.holds_of(ask.grant).filter(|own| touches(ask, &own.hold.want)) {
        // Part of it was lost: what is left is worth nothing alone, and starts anew with the rest.
        let kind = if own.lapsed() { EventKind::LAPSED } else { EventKind::Released };
        draft.drop_hold(own, kind);
    }
    let place = seen.waiters.iter().find(|seen| seen.waiter.grant == ask.grant);
    let before = first(&draft, ask, place);
    let takeovers = clear_gone_holds(&mut draft, ask, &before);

    if !draft.fits(&ask.wants, &before) {
        return wait_or_refuse(seen, draft, ask, place);
    }
    let mine = place.map_or(u64::MAX, |seen| seen.waiter.ticket);
    let all_earlier_are_visible = seen.shown_until.is_none_or(|until| mine <= until);
    if !all_earlier_are_visible {
        return (Decision::NeedAll, Outcome::Busy { blockers: vec![] });
    }
    grant(seen, draft, ask, place, takeovers)
}

/// Goes under what the owner holds already, if one grant of it covers all that is wanted.
fn already_owned(seen: &Snapshot, ask: &Ask, witness: &dyn Witness) -> Option<(Decision, Outcome)> {
    let covers = |seen: &HoldSnapshot, want: &Want| {
        let own = seen.hold.grant == ask.grant && seen.hold.want == *want;
        let is_owners =
            ask.owner.has(&seen.hold, &ask.holder) && ask.is_covered_by(&seen.hold, want);
        !seen.lapsed() && (own || (is_owners && !seen.gone(witness)))
    };
    if ask.is_in_the_way_of_a_subagent(seen, witness) {
        return None;
    }
    let first = ask.wants.first()?;
    let candidates = seen.holds.iter().filter(|seen| covers(seen, first));
    let grant = candidates.map(|seen| seen.hold.grant).find(|grant| {
        ask.wants.iter().all(|want| seen.holds_of(*grant).any(|seen| covers(seen, want)))
    })?;
    let mut holds: Vec<&Hold> = Vec::new();
    for want in &ask.wants {
        let covering = seen.holds_of(grant).filter(|seen| covers(seen, want));
        // The very same first: a glob around it may cover it as well.
        let found = covering.min_by_key(|seen| seen.hold.want.resource != want.resource)?;
        if !holds.contains(&&found.hold) {
            holds.push(&found.hold);
        }
    }
    let writes = holds.iter().map(|hold| {
        let (ttl, operation) = match ask.may_change(hold) {
            true => (ask.ttl, ask.operation.clone()),
            false => (hold.ttl, None),
        };
        Write::Extend { resource: hold.want.resource.clone(), grant, ttl, operation }
    });
    let change = crate::Change { writes: writes.collect(), ..Default::default() };
    let slots = holds.iter().filter_map(|hold| hold.slot).collect();
    let (token, holder) = (holds[0].token, holds[0].holder.clone());
    let ttls = holds.iter().map(|hold| if ask.may_change(hold) { ask.ttl } else { hold.ttl });
    let owned = Owned {
        grant,
        holder,
        ttl: ttls.min().unwrap_or(ask.ttl),
        resources: holds.iter().map(|hold| hold.want.resource.clone()).collect(),
    };
    let (reason, owned) = (Reason::AlreadyOwned, Some(Box::new(owned)));
    let grant = Grant { token, reason, takeovers: vec![], slots, owned };
    Some((change.decide(), Outcome::Granted(grant)))
}

impl Ask {
    /// Whether the owner's hold includes this want, and lets this request go under it.
    pub(super) fn is_covered_by(&self, hold: &Hold, want: &Want) -> bool {
        hold.want.includes(want)
            && (self.owner.covers(hold, &self.holder) || self.is_for_same_process(hold))
    }

    /// Whether another process asks on behalf of the one to which the hold is tied, under the same chosen
    /// label: a shell that comes back for what it took. A process that asks for itself has guards, which
    /// exclude each other.
    fn is_for_same_process(&self, hold: &Hold) -> bool {
        let process = |evidence: Option<&Evidence>| {
            evidence.and_then(|some| Some((some.boot.clone(), some.pid_namespace, some.process?)))
        };
        let own = process(self.holder.evidence.as_ref());
        own.is_some()
            && own == process(hold.holder.evidence.as_ref())
            && own != process(self.presence.as_ref())
            && self.presence.is_some()
            && self.holder.chosen
            && hold.holder.chosen
            && self.holder.label == hold.holder.label
    }

    /// Whether a subagent of the asker holds some of what is wanted. Then what the asker holds around
    /// it does not cover the request: the subagent's hold excludes its parent.
    fn is_in_the_way_of_a_subagent(&self, seen: &Snapshot, witness: &dyn Witness) -> bool {
        let is_below = |hold: &Hold| {
            self.holder.agent && !self.owner.owns(hold) && self.owner.is_of_one_family(&hold.holder)
        };
        seen.holds.iter().any(|seen| {
            is_below(&seen.hold)
                && may_exclude(&self.wants, std::slice::from_ref(&seen.hold.want))
                && !self.owner.owns_or_inherits(&seen.hold)
                && !seen.gone(witness)
        })
    }

    /// Whether this request goes before a waiter that has to wait for a hold of the asker's or its
    /// parent's anyway: that hold is around what both want. Other subagents of that hold's agent do
    /// not wait for it.
    pub(super) fn passes(&self, hold: &Hold, waiter: &Waiter) -> bool {
        let hold_want = std::slice::from_ref(&hold.want);
        let mut shared = self.wants.iter().filter(|want| {
            waiter.wants.iter().any(|other| other.resource.overlaps(&want.resource))
        });
        hold.holder.agent
            && self.owner.covers(hold, &self.holder)
            && must_exclude(&waiter.wants, hold_want)
            && shared.all(|want| hold.want.includes(want))
            && !Owner::of_label(&hold.holder.label).is_of_one_family(&waiter.holder)
    }

    /// Whether the hold is a lease of the very agent that asks for another one: then it is not in the
    /// way, also where the agent asks for more than it holds. An agent never waits for itself.
    pub(super) fn is_same_agents(&self, hold: &Hold) -> bool {
        self.holder.agent && hold.holder.agent && self.owner.owns(hold)
    }

    /// Whether this request asks for the same as the hold, for the same agent or tied to the same: then
    /// the lease's length and operation are those of the latest request. A command that goes under a
    /// wider hold, or under that of its parent or of a command around it, leaves them as they are.
    fn may_change(&self, hold: &Hold) -> bool {
        let process = |holder: &Holder| holder.evidence.as_ref().and_then(|some| some.process);
        let (asker, holder) = (&self.holder, &hold.holder);
        let is_same_agent =
            asker.is_owned_by_label() && holder.is_owned_by_label() && asker.label == holder.label;
        let is_inherited = asker.agent && !is_same_agent;
        let is_same_process = !is_inherited && process(asker) == process(holder);
        self.wants.contains(&hold.want)
            && (hold.grant == self.grant || is_same_agent || is_same_process)
    }
}

fn touches(ask: &Ask, other: &Want) -> bool {
    ask.wants.iter().any(|want| want.resource.overlaps(&other.resource))
}

/// Earlier waiters than this place, except those that were woken and did not take their turn.
pub(super) fn earlier<'a>(
    draft: &Draft<'a>,
    place: Option<&WaiterSnapshot>,
) -> Vec<&'a WaiterSnapshot> {
    let mine = place.map_or(u64::MAX, |seen| seen.waiter.ticket);
    let counts = |seen: &&WaiterSnapshot| !seen.missed_its_turn() || seen.gone(draft.witness());
    draft.waiters().filter(|seen| seen.waiter.ticket < mine).filter(counts).collect()
}

/// Earlier waiters that this request has to let go first: not those that wait behind a hold that the
/// asker goes under.
fn first<'a>(
    draft: &Draft<'a>,
    ask: &Ask,
    place: Option<&WaiterSnapshot>,
) -> Vec<&'a WaiterSnapshot> {
    let mut waiters = earlier(draft, place);
    waiters.retain(|seen| !draft.covering().any(|hold| ask.passes(hold, &seen.waiter)));
    waiters
}

/// Removes holds in the way that no longer count. Only holders in the way are judged: looking at a
/// process costs more than all the rest.
fn clear_gone_holds(draft: &mut Draft<'_>, ask: &Ask, before: &[&WaiterSnapshot]) -> Vec<Takeover> {
    let holds = draft.holds().map(|seen| &seen.hold.want);
    let waits = before.iter().flat_map(|seen| &seen.waiter.wants);
    if compatible(&ask.wants, holds.chain(waits)) {
        return vec![];
    }
    let touching: Vec<&HoldSnapshot> = draft
        .holds()
        .filter(|seen| may_exclude(&ask.wants, std::slice::from_ref(&seen.hold.want)))
        .collect();
    touching
        .into_iter()
        .filter_map(|seen| {
            let reason = draft.drop_if_gone(seen)?;
            Some(Takeover { from: seen.redacted(), reason })
        })
        .collect()
}

fn grant(
    seen: &Snapshot,
    mut draft: Draft<'_>,
    ask: &Ask,
    place: Option<&WaiterSnapshot>,
    takeovers: Vec<Takeover>,
) -> (Decision, Outcome) {
    if let Some(place) = place {
        draft.end_wait(&place.waiter);
    }
    let token = seen.next_token();
    let mut slots = Vec::new();
    for want in &ask.wants {
        slots.extend(draft.add_hold(Hold {
            want: want.clone(),
            grant: ask.grant,
            token,
            holder: ask.holder.clone(),
            operation: ask.operation.clone(),
            ttl: ask.ttl,
            slot: None,
        }));
    }
    let reason = Reason::of_takeovers(takeovers.iter().map(|takeover| takeover.reason));
    let outcome = Outcome::Granted(Grant { token, reason, takeovers, slots, owned: None });
    (draft.decide(Some(ask.grant)), outcome)
}

fn wait_or_refuse(
    seen: &Snapshot,
    mut draft: Draft<'_>,
    ask: &Ask,
    place: Option<&WaiterSnapshot>,
) -> (Decision, Outcome) {
    if ask.queue.is_some()
        && clear_dead_neighbours(&mut draft, ask, place)
        && seen.shown_until.is_some()
    {
        return (Decision::NeedAll, Outcome::Busy { blockers: vec![] });
    }
    let before = first(&draft, ask, place);
    let blockers = blockers(&draft, ask, &before);
    let Some(ttl) = ask.queue else {
        return (draft.decide(None), Outcome::Busy { blockers });
    };
    let keeps_some = !ask.keeps.is_empty() || !ask.owner.is_nobody();
    if keeps_some && place.is_none() {
        if !seen.whole && !seen.shows_waits {
            return (Decision::Need(waits_scope(ask)), Outcome::Busy { blockers });
        }
        if let Some(cycle) = cycle::closed_by(seen, ask, draft.witness()) {
            draft.event(&ask.wants[0], &ask.holder.label, None, EventKind::Deadlock);
            return (draft.decide(None), Outcome::Deadlock(cycle));
        }
    }
    let waiter = Waiter {
        grant: ask.grant,
        ticket: place.map_or(seen.next, |place| place.waiter.ticket),
        wants: ask.wants.clone(),
        holder: match &ask.presence {
            Some(evidence) => ask.holder.clone().with_evidence(evidence.clone()),
            None => ask.holder.clone(),
        },
        operation: ask.operation.clone(),
        keeps: kept(seen, ask),
        ttl,
    };
    let ahead = seen
        .shown_until
        .is_none_or(|until| place.is_some() && waiter.ticket <= until)
        .then(|| before.iter().filter(|seen| waits_beside(ask, seen)).count());
    let ticket = waiter.ticket;
    match place {
        Some(_) => draft.write(Write::KeepPlace(waiter)),
        None => {
            for want in &ask.wants {
                draft.event(want, &ask.holder.label, None, EventKind::Waiting);
            }
            draft.write(Write::Wait(waiter));
        }
    }
    (draft.decide(Some(ask.grant)), Outcome::Waiting { blockers, ahead, ticket })
}

/// What shows whether waiting for this would close a cycle.
pub(super) fn waits_scope(ask: &Ask) -> Scope {
    let mut owner = ask.owner.clone();
    owner.grants.extend(&ask.keeps);
    let resources = ask.wants.iter().map(|want| want.resource.clone()).collect();
    Scope::Waits { resources, owner }
}

/// All that the asker keeps while it waits, as far as was looked.
pub(super) fn kept(seen: &Snapshot, ask: &Ask) -> Vec<GrantId> {
    let owned = seen.holds.iter().filter(|seen| ask.owner.owns(&seen.hold));
    let mut keeps = ask.keeps.clone();
    for grant in owned.map(|seen| seen.hold.grant) {
        if grant != ask.grant && !keeps.contains(&grant) {
            keeps.push(grant);
        }
    }
    keeps
}

/// Removes dead waiters directly before the caller's place, so that it waits at the head or behind a
/// process whose end it can notice. Returns whether there were any.
fn clear_dead_neighbours(draft: &mut Draft<'_>, ask: &Ask, place: Option<&WaiterSnapshot>) -> bool {
    let mut some_were_dead = false;
    for want in &ask.wants {
        let want = std::slice::from_ref(want);
        let neighbours = first(draft, ask, place).into_iter().rev();
        for seen in neighbours.filter(|seen| may_exclude(want, &seen.waiter.wants)) {
            if !draft.drop_wait_if_dead(seen) {
                break;
            }
            some_were_dead = true;
        }
    }
    some_were_dead
}

/// Whether the two wait in a queue together.
fn waits_beside(ask: &Ask, seen: &WaiterSnapshot) -> bool {
    seen.waiter.wants.iter().any(|want| touches(ask, want))
}

/// The most blockers that an answer names: the first ones, and the one directly before the caller. A
/// snapshot of the store has all of them.
const BLOCKERS_MAX: usize = 32;

fn blockers(draft: &Draft<'_>, ask: &Ask, before: &[&WaiterSnapshot]) -> Vec<Blocker> {
    let holds = draft
        .holds()
        .filter(|seen| may_exclude(&ask.wants, std::slice::from_ref(&seen.hold.want)))
        .map(|seen| Blocker::Hold(seen.redacted()));
    let waiters: Vec<&&WaiterSnapshot> =
        before.iter().filter(|seen| may_exclude(&ask.wants, &seen.waiter.wants)).collect();
    let waiter = |seen: &&&WaiterSnapshot| Blocker::Waiter(seen.redacted());
    let mut named: Vec<Blocker> =
        holds.chain(waiters.iter().map(waiter)).take(BLOCKERS_MAX + 1).collect();
    if named.len() > BLOCKERS_MAX {
        named.truncate(BLOCKERS_MAX - usize::from(!waiters.is_empty()));
        named.extend(waiters.last().map(waiter));
    }
    named
}
