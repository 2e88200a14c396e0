//! Taking, or queueing and sleeping until the turn comes.

use super::Inner;
use super::keeper::BackgroundCleanup;
use super::lease::Lease;
use super::request::{Wait, wait_while_withheld};
use super::revocable::Revocable;
use crate::error::Error;
use crate::store::{Renewed, StoreError};
use crate::world::Task;
use std::fmt;
use std::time::Duration;
use tenure_core::act::{Acquire, CallOff, Leave, Release};
use tenure_core::{
    Ask, Blocker, Evidence, Grant, GrantId, Hold, HoldSnapshot, Kind, Liveness, Outcome, Owned,
    Proof, Reason, ReleaseAsk, Resource, TURN_TIMEOUT, WallTime, format_duration,
};

/// How long a place in a queue lasts without a sign of life: so long can a stopped process keep
/// those behind it waiting.
pub const PLACE_LEASE: Duration = Duration::from_secs(15);

/// How often a waiter gives a sign of life and looks for itself: three times per [`PLACE_LEASE`].
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// How often the one at the head looks for itself, in case the wake was lost with its sender.
const LOOK_AGAIN_AT_HEAD: Duration = Duration::from_secs(2);

/// How often a request is repeated whose outcome is not known. It carries its grant, so that
/// repeating is safe.
const UNKNOWN_TRIES: u32 = 3;

/// How often a request is repeated whose lease was over when its answer came.
pub(super) const LATE_TRIES: u32 = 3;

/// How many of those in the way are watched for their end.
const WATCHED_MAX: usize = 8;

#[expect(
    clippy::large_enum_variant,
    reason = "a lease is the usual answer, and is not kept in bulk"
)]
pub(super) enum Obtained {
    Held(Lease),
    Busy(Busy),
}

/// It was not free, or not in time: who was in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Busy {
    /// The holders and earlier waiters in the way.
    pub blockers: Vec<Blocker>,
    /// How long it was waited for.
    pub waited: Duration,
}

impl Busy {
    /// These were in the way, all the time that was waited.
    pub fn new(blockers: Vec<Blocker>, waited: Duration) -> Busy {
        Busy { blockers, waited }
    }
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holds = self.blockers.iter().filter_map(|blocker| match blocker {
            Blocker::Hold(seen) => Some(seen),
            Blocker::Waiter(_) => None,
        });
        let holds: Vec<_> = holds.collect();
        match holds.as_slice() {
            [] => f.write_str("free, but other requests came first")?,
            [first, more @ ..] => {
                let Hold { want, holder, .. } = &first.hold;
                let held_for = format_duration(first.held_for);
                write!(f, "{} is held by {} for {held_for}", want.resource, holder.label)?;
                if !more.is_empty() {
                    write!(f, ", and {} more holds are in the way", more.len())?;
                }
            }
        }
        match self.waited.is_zero() {
            true => Ok(()),
            false => write!(f, "; waited {}", format_duration(self.waited)),
        }
    }
}

impl std::error::Error for Busy {}

/// What a request that waits knows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waiting {
    /// The holders and earlier waiters in the way, as far as they were looked at.
    pub blockers: Vec<Blocker>,
    /// How many wait before this request, where that is known.
    pub ahead: Option<usize>,
    /// How long it has waited.
    pub waited: Duration,
}

/// Is told whenever a request looked and has to go on waiting.
pub(super) type Tell = Box<dyn FnMut(&Waiting) + Send>;

/// How patiently a request waits.
pub(super) struct Patience {
    pub(super) wait: Wait,
    /// Whether its place in the queue is kept for a later request with the same grant.
    pub(super) keep_place: bool,
    /// Whether the request's grant is used for the first time.
    pub(super) is_new: bool,
}

pub(super) async fn obtain(
    inner: &Inner,
    mut ask: Ask,
    patience: Patience,
    margin: Duration,
    mut tell: Option<Tell>,
) -> Result<Obtained, Error> {
    let begun = inner.clock.now();
    let limit = match patience.wait {
        Wait::No => Some(Duration::ZERO),
        Wait::UpTo(limit) => Some(limit),
        Wait::Forever => None,
    };
    ask.queue = limit.is_none_or(|limit| !limit.is_zero()).then_some(PLACE_LEASE);
    let mut place = QueueTicket {
        inner,
        grant: ask.grant,
        is_new: patience.is_new,
        resources: resources(&ask),
        ticket: None,
        kept: patience.keep_place,
        line: Some(Revocable::new(&inner.backend)),
    };
    let wants_section = ask.wants.iter().any(|want| want.resource.kind() == Kind::Section);
    let mut warned = false;
    let mut too_late = 0;
    loop {
        if wants_section {
            // A worker that fell silent keeps its section no longer than its task.
            inner.backend.perform(&inner.recover()).await?;
        }
        let asked_at = inner.clock.now();
        let outcome = place.ask(&ask).await;
        let waited = inner.clock.now().saturating_sub(begun);
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                let left = patience.wait.left(waited);
                wait_while_withheld(&*inner.world, error, left).await?;
                continue;
            }
        };
        let (blockers, ahead) = match outcome {
            Outcome::Granted(grant) => {
                place.ticket = None;
                if grant.takeovers.iter().any(|takeover| may_be_claimed(&takeover.from)) {
                    // The rest of a claim that lost this is worth nothing.
                    inner.keeper.send(BackgroundCleanup::Recover(inner.recover()));
                }
                let mut lease = lease(&ask, grant, inner.clock.wall(), asked_at, waited, margin);
                // A grant that is used for the first time holds only what this request took.
                lease.is_shared &= lease.is_covered || !patience.is_new;
                let has_time_left = has_time_left(inner, &mut lease).await;
                if matches!(has_time_left, Ok(true)) {
                    return Ok(Obtained::Held(lease));
                }
                give_up(inner, &lease).await;
                has_time_left?;
                too_late += 1;
                if too_late == LATE_TRIES {
                    return Err(Error::TooLate);
                }
                continue;
            }
            Outcome::Deadlock(cycle) => return Err(Error::Deadlock(cycle)),
            Outcome::Busy { blockers } => {
                return Ok(Obtained::Busy(Busy { blockers, waited: Duration::ZERO }));
            }
            Outcome::Waiting { blockers, ahead, ticket } => {
                place.ticket = Some(ticket);
                (blockers, ahead)
            }
        };
        if limit.is_some_and(|limit| waited >= limit) {
            place.leave().await?;
            return Ok(Obtained::Busy(Busy { blockers, waited }));
        }
        let waiting = Waiting { blockers, ahead, waited };
        if let Some(tell) = &mut tell {
            tell(&waiting);
        }
        if limit.is_none() && !warned {
            warned = warn_of_own_guard(inner, &waiting);
        }
        let left = limit.map(|limit| limit.saturating_sub(waited));
        sleep_until_turn(&place, &waiting, left).await?;
    }
}

/// Whether the lease may be trusted when it is handed out. The answer may have come late, or this
/// process may have been stopped since it asked: then the lease is renewed, as far as that helps.
async fn has_time_left(inner: &Inner, lease: &mut Lease) -> Result<bool, StoreError> {
    for _ in 0..LATE_TRIES {
        let asked_at = inner.clock.now();
        if asked_at < lease.trusted_until {
            return Ok(true);
        }
        match inner.backend.renew(&[lease.renewal()]).await {
            Ok(renewed) if renewed == [Renewed::Renewed] => {}
            // It is asked for again.
            Ok(_) => return Ok(false),
            Err(error) if error.is_passing() => return Ok(false),
            Err(error) => return Err(error),
        }
        lease.start_anew(asked_at, inner.clock.wall());
    }
    Ok(false)
}

/// Gives back what the request took.
async fn give_up(inner: &Inner, lease: &Lease) {
    if !lease.is_shared {
        let ask = ReleaseAsk { proof: Proof::Grant(lease.grant), resources: None, lost: true };
        let act = Release { at: Some(lease.resources.clone()), ask };
        // What cannot be given back now lapses by itself.
        let _ = inner.backend.perform(&act).await;
    }
}

/// Whether this may be a part of a claim.
fn may_be_claimed(seen: &HoldSnapshot) -> bool {
    seen.hold.want.resource.kind() != Kind::Lock
}

/// Warns of a wait without a limit for what a guard of the same client holds, and says whether it
/// did. Another task or thread may drop that guard, so it cannot be refused.
fn warn_of_own_guard(inner: &Inner, waiting: &Waiting) -> bool {
    let own = waiting.blockers.iter().find_map(|blocker| match blocker {
        Blocker::Hold(seen) if inner.keeper.keeps(seen.hold.grant) => Some(seen),
        _ => None,
    });
    if let Some(seen) = own {
        let resource = &seen.hold.want.resource;
        (inner.warn)(&format!(
            "waiting without a limit for {resource}, which a guard of this client holds: the wait \
             ends when another task or thread drops that guard"
        ));
    }
    own.is_some()
}

fn resources(ask: &Ask) -> Vec<Resource> {
    ask.wants.iter().map(|want| want.resource.clone()).collect()
}

fn lease(
    ask: &Ask,
    grant: Grant,
    wall: WallTime,
    asked_at: Duration,
    waited: Duration,
    margin: Duration,
) -> Lease {
    let new = || Owned {
        grant: ask.grant,
        holder: ask.holder.clone(),
        resources: resources(ask),
        ttl: ask.ttl,
    };
    let owned = grant.owned.map_or_else(new, |owned| *owned);
    let is_covered = owned.grant != ask.grant;
    // The hold that covers the request may be much shorter than what was asked for.
    let margin = if is_covered { margin.min(owned.ttl / 3) } else { margin };
    Lease {
        is_covered,
        is_shared: grant.reason == Reason::AlreadyOwned,
        resources: owned.resources,
        grant: owned.grant,
        holder: owned.holder,
        token: grant.token,
        ttl: owned.ttl,
        reason: grant.reason,
        takeovers: grant.takeovers,
        slots: grant.slots,
        waited,
        acquired_at: wall,
        expires_at: WallTime(wall.0.saturating_add(owned.ttl.as_millis() as i64)),
        trusted_until: (asked_at + owned.ttl).saturating_sub(margin),
        margin,
    }
}

/// A request's place in the queues, which is given up when the request is dropped. If its answer is
/// still on its way then, or was lost, the request is called off.
struct QueueTicket<'a> {
    inner: &'a Inner,
    grant: GrantId,
    resources: Vec<Resource>,
    /// Whether all that the grant holds comes from this request.
    is_new: bool,
    ticket: Option<u64>,
    /// Whether it stays in the queue until it lapses.
    kept: bool,
    line: Option<Revocable>,
}

impl QueueTicket<'_> {
    async fn ask(&mut self, ask: &Ask) -> Result<Outcome, Error> {
        // It may have a place far back, from an earlier request.
        let whole_queues = self.ticket.is_none() && self.kept;
        let mut act = Acquire { ask: ask.clone(), ticket: self.ticket, whole_queues };
        let mut tries = 1;
        let backend = &self.inner.backend;
        let line = self.line.get_or_insert_with(|| Revocable::new(backend));
        loop {
            match line.perform(backend, &act).await {
                Err(StoreError::Unknown { .. }) if tries < UNKNOWN_TRIES => {
                    tries += 1;
                    // It may have a place by now, far back, whose ticket it was not told.
                    act.whole_queues = true;
                }
                result => return Ok(result?),
            }
        }
    }

    async fn leave(&mut self) -> Result<(), Error> {
        if let Some(errand) = self.errand() {
            errand.run(&self.inner.backend).await?;
        }
        Ok(())
    }

    fn errand(&mut self) -> Option<BackgroundCleanup> {
        let is_open = self.line.as_ref().is_some_and(Revocable::is_open) && !self.kept;
        if let Some(line) = self.line.take_if(|_| is_open) {
            line.call_off();
            let (grant, resources) = (self.grant, self.resources.clone());
            let act = CallOff { grant, resources, is_new: self.is_new };
            return Some(BackgroundCleanup::CallOff(Box::new((line, act))));
        }
        let ticket = self.ticket.take().filter(|_| !self.kept)?;
        Some(BackgroundCleanup::Leave(Leave {
            grant: self.grant,
            resources: self.resources.clone(),
            ticket,
        }))
    }
}

impl Drop for QueueTicket<'_> {
    fn drop(&mut self) {
        // A dropped request must not keep those behind it waiting until its place lapses.
        if let Some(errand) = self.errand() {
            self.inner.keeper.send(errand);
        }
    }
}

async fn sleep_until_turn(
    place: &QueueTicket<'_>,
    waiting: &Waiting,
    left: Option<Duration>,
) -> Result<(), Error> {
    let patience = match waiting.ahead {
        Some(0) => LOOK_AGAIN_AT_HEAD.min(next_lapse(&waiting.blockers)),
        // Whether the one before takes its turn can only be seen by looking.
        Some(1) => TURN_TIMEOUT,
        _ => LOOK_AGAIN,
    };
    let patience = patience.min(next_missed_turn(&waiting.blockers));
    let patience = left.map_or(patience, |left| patience.min(left));
    let mut watched = watched(place.inner, &place.resources, waiting);
    tokio::select! {
        biased;
        turn = place.inner.backend.turn(place.grant, patience) => Ok(turn?),
        () = any(&mut watched) => Ok(()),
    }
}

/// When the first of those that were woken has missed its turn, if it does not come.
fn next_missed_turn(blockers: &[Blocker]) -> Duration {
    let left = blockers.iter().filter_map(|blocker| match blocker {
        Blocker::Hold(_) => None,
        Blocker::Waiter(seen) => {
            seen.woken_for.map(|woken_for| TURN_TIMEOUT.saturating_sub(woken_for))
        }
    });
    left.min().map_or(LOOK_AGAIN, |left| left + Duration::from_millis(1))
}

/// When the first of the leases in the way lapses, if it is not renewed; just past it, so that the
/// next look finds it lapsed.
fn next_lapse(blockers: &[Blocker]) -> Duration {
    let left = blockers.iter().map(|blocker| match blocker {
        Blocker::Hold(seen) => seen.left,
        Blocker::Waiter(seen) => seen.left,
    });
    left.min().map_or(LOOK_AGAIN, |left| left + Duration::from_millis(1))
}

/// The processes to watch: for each resource the waiter directly before, or if there is none, its
/// holders. So the end of any process wakes one waiter, not all; and if one
/// dies that was about to wake the next, the next notices by itself.
fn watched(inner: &Inner, resources: &[Resource], waiting: &Waiting) -> Vec<Task> {
    let mut evidence: Vec<&Evidence> = Vec::new();
    for resource in resources {
        let before = waiting.blockers.iter().rev().find_map(|blocker| waits_for(blocker, resource));
        match before {
            Some(waiter) => evidence.push(waiter),
            None => evidence.extend(waiting.blockers.iter().filter_map(|b| holds(b, resource))),
        }
    }
    evidence.dedup();
    evidence.truncate(WATCHED_MAX);
    evidence.retain(|evidence| inner.witness.liveness(evidence) == Liveness::Alive);
    evidence.into_iter().map(|evidence| inner.world.process_ended(evidence.clone())).collect()
}

fn holds<'a>(blocker: &'a Blocker, resource: &Resource) -> Option<&'a Evidence> {
    let Blocker::Hold(seen) = blocker else { return None };
    let touches = seen.hold.want.resource.overlaps(resource);
    seen.hold.holder.evidence.as_ref().filter(|_| touches)
}

fn waits_for<'a>(blocker: &'a Blocker, resource: &Resource) -> Option<&'a Evidence> {
    let Blocker::Waiter(seen) = blocker else { return None };
    let touches = seen.waiter.wants.iter().any(|want| want.resource.overlaps(resource));
    seen.waiter.holder.evidence.as_ref().filter(|_| touches)
}

/// Returns when the first of these does; never, if there is none.
async fn any(futures: &mut [Task]) {
    std::future::poll_fn(|context| {
        let ready = futures.iter_mut().any(|future| future.as_mut().poll(context).is_ready());
        if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await
}
