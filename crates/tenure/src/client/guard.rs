//! A hold that lasts as long as a value.

use super::keeper::{BackgroundCleanup, TrackedLease};
use super::lease::Lease;
use super::{Client, verbs};
use crate::error::Error;
use crate::store::{Renewal, Renewed, StoreError};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::act::Release;
use tenure_core::{Evidence, GrantId, Proof, ReleaseAsk, Released, Token};

/// Holds what was asked for until it is released or dropped, renewing in the background.
///
/// The guard cannot promise that the lease is still held: a process that was stopped for longer
/// than the lease, or a store that could not be reached in time, loses it. [`lost`](Guard::lost)
/// tells, [`is_held`](Guard::is_held) answers; and the guardian of the real data can refuse a
/// [`token`](Guard::token) lower than one already seen.
///
/// A guard belongs to the process that made it. In a process forked from that one its copy counts as
/// lost, and neither renews nor releases anything.
#[must_use = "dropping a guard releases what it holds"]
pub struct Guard {
    client: Client,
    held: Arc<TrackedLease>,
    /// Whether another guard or lease of the same grant was there first: it then releases.
    shares: bool,
    ended: bool,
}

/// How a hold ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseOutcome {
    /// The holder gave it back in time.
    Released,
    /// It had been lost before.
    Lost,
}

impl Guard {
    pub(super) fn new(client: Client, lease: Lease) -> Guard {
        let shares = lease.is_shared;
        let held = client.inner.keeper.keep(lease);
        Guard { client, held, shares, ended: false }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn held(&self) -> &Arc<TrackedLease> {
        &self.held
    }

    /// What was obtained.
    pub fn lease(&self) -> &Lease {
        &self.held.lease
    }

    /// The fencing token.
    pub fn token(&self) -> Token {
        self.held.lease.token
    }

    /// The grant, which proves ownership.
    pub fn grant(&self) -> GrantId {
        self.held.lease.grant
    }

    /// Whether the lease may be trusted now.
    pub fn is_held(&self) -> bool {
        is_held(&self.client, &self.held)
    }

    /// Time left in which the lease may be trusted without a further renewal.
    pub fn trusted_for(&self) -> Duration {
        trusted_for(&self.client, &self.held)
    }

    /// Returns when the lease is lost; never, while it is held.
    pub async fn lost(&self) {
        lost(&self.client, &self.held).await;
    }

    /// Says that this process group works under the hold too: while any of it lives, the holder is
    /// not dead, whatever happens to this process. Says no if the lease is already lost.
    pub async fn bind_group(&self, leader: u32) -> Result<bool, Error> {
        match self.held.lease.is_covered {
            // The hold goes on being tied to the one that took it, and ends with that.
            true => self.confirm().await,
            false => bind_group(&self.client, &self.held, leader).await,
        }
    }

    /// Renews now and says whether it is still held, by the store's word. After a yes the lease may
    /// be trusted for its whole length: the moment for a last, short act that must not be done
    /// beside another holder.
    pub async fn confirm(&self) -> Result<bool, Error> {
        // Once trust has ended it does not come back, whatever the store says.
        let trusted = self.is_held();
        Ok(trusted && renew(&self.client, &self.held, self.held.lease.renewal()).await?)
    }

    /// Gives it back now, and says whether it was held until now. A guard made from a grant that
    /// held already ([`Request::with_grant`](super::Request::with_grant)) gives it back for all. One
    /// that goes under a hold of its owner leaves it to that hold's taker. If the future is dropped, it is
    /// given back in the background.
    pub async fn release(mut self) -> Result<ReleaseOutcome, Error> {
        // Dropped before its end, it still gives it back.
        self.shares = self.held.lease.is_covered;
        let released = self.give_back().await;
        self.ended = true;
        released
    }

    async fn give_back(&self) -> Result<ReleaseOutcome, Error> {
        if self.held.is_inherited(&*self.client.inner.world) {
            return Ok(ReleaseOutcome::Lost);
        }
        let lease = &self.held.lease;
        self.client.inner.keeper.forget(&self.held);
        if lease.is_covered {
            let is_held = self.is_held() && !self.client.inner.keeper.was_ended(&self.held).await;
            return Ok(if is_held { ReleaseOutcome::Released } else { ReleaseOutcome::Lost });
        }
        let released =
            verbs::release(&self.client, Proof::Grant(lease.grant), Some(&lease.resources)).await;
        let released = match released {
            // Whatever was held in a store that is gone was lost with it.
            Err(Error::Store(StoreError::Gone { .. })) => return Ok(ReleaseOutcome::Lost),
            released => released?,
        };
        Ok(match released {
            Released::Ended(holds) if holds.iter().all(|seen| !seen.lapsed()) => {
                ReleaseOutcome::Released
            }
            Released::Ended(_) | Released::NotHeld(_) => ReleaseOutcome::Lost,
        })
    }
}

pub(super) fn is_held(client: &Client, held: &TrackedLease) -> bool {
    !trusted_for(client, held).is_zero()
}

pub(super) fn trusted_for(client: &Client, held: &TrackedLease) -> Duration {
    if held.is_lost() || held.is_inherited(&*client.inner.world) {
        return Duration::ZERO;
    }
    held.trusted_until().saturating_sub(client.inner.clock.now())
}

pub(super) async fn lost(client: &Client, held: &TrackedLease) {
    let world = &client.inner.world;
    loop {
        let left = trusted_for(client, held);
        if left.is_zero() {
            // The keeper may be stuck in a store that does not answer: time alone decides.
            held.lose();
            return;
        }
        // The keeper notices what ends it before its time.
        world.timeout(left, held.noticed_loss()).await;
    }
}

pub(super) async fn bind_group(
    client: &Client,
    held: &TrackedLease,
    leader: u32,
) -> Result<bool, Error> {
    let world = &client.inner.world;
    let evidence = Evidence { group: Some(world.process_group(leader)), ..world.this_process() };
    renew(client, held, Renewal { bind: Some(evidence), ..held.lease.renewal() }).await
}

async fn renew(client: &Client, held: &TrackedLease, renewal: Renewal) -> Result<bool, Error> {
    if held.is_inherited(&*client.inner.world) {
        return Ok(false);
    }
    let asked_at = client.inner.clock.now();
    let answers = client.inner.backend.renew(&[renewal]).await;
    if answers.as_ref().is_err_and(|error| !error.is_passing()) {
        held.lose();
    }
    if answers? == [Renewed::Renewed] {
        held.renewed(asked_at);
    } else {
        held.lose();
    }
    // The answer may have come so late that even the renewed lease is over.
    Ok(is_held(client, held))
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.ended || self.held.is_inherited(&*self.client.inner.world) {
            return;
        }
        let lease = &self.held.lease;
        self.client.inner.keeper.forget(&self.held);
        if self.shares {
            return;
        }
        let lost = self.held.is_lost();
        let ask = ReleaseAsk { proof: Proof::Grant(lease.grant), resources: None, lost };
        let cleanup =
            BackgroundCleanup::Release(Release { at: Some(lease.resources.clone()), ask });
        self.client.inner.keeper.send(cleanup);
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("resources", &self.held.lease.resources)
            .field("token", &self.held.lease.token)
            .finish_non_exhaustive()
    }
}
