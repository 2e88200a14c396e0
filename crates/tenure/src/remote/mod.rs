//! A client's side of a server: says what is to be done, and tries again until it is answered.
//!
//! Rules run at the server. An act that was sent and not answered is sent again under the same
//! name; the server recognises it, even after a restart, and answers what it answered before.

mod call;
mod connections;
mod dial;
mod link;
mod slots;
mod witness;

use crate::client::RequestId;
use crate::store::{Finding, Renewal, Renewed, StoreError, StoreInfo, Tally, TaskFilter};
use crate::url::{Address, RemoteOptions};
use crate::wire;
use call::{Caller, Patience};
pub(crate) use slots::Slot;
use slots::Slots;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::act::Act;
use tenure_core::{
    Event, GrantId, HoldSnapshot, Proof, Resource, Revision, Scope, Snapshot, Task, Witness,
};
use witness::{RemoteWitness, ToldDead};

/// A server that has a store.
pub struct Remote {
    caller: Caller,
    slots: Slots,
    told_dead: Arc<ToldDead>,
}

impl Remote {
    /// The server there; it is not asked anything yet.
    pub fn new(address: &Address, options: &RemoteOptions) -> Result<Remote, StoreError> {
        Ok(Remote {
            caller: Caller::new(address, options)?,
            slots: Slots::default(),
            told_dead: Arc::default(),
        })
    }

    /// A witness that also knows whom the server proved dead.
    pub(crate) fn witness(&self, local: Arc<dyn Witness + Send + Sync>) -> RemoteWitness {
        RemoteWitness { told: self.told_dead.clone(), local }
    }

    pub(crate) fn info(&self) -> StoreInfo {
        let url = self.caller.name().to_owned();
        StoreInfo { url, engine: "a tenure server".to_owned(), local: false, ended_boots: vec![] }
    }

    pub(crate) async fn perform<A: Act>(&self, act: &A) -> Result<A::Answer, StoreError> {
        let slot = self.slots.take();
        self.perform_once(slot.once(), act).await
    }

    /// A slot for requests that follow each other, the last of which may call off the one before.
    pub(crate) fn slot(&self) -> Slot {
        self.slots.take()
    }

    /// Decides an act as the next request of this slot.
    pub(crate) async fn perform_in<A: Act>(
        &self,
        slot: &mut Slot,
        act: &A,
    ) -> Result<A::Answer, StoreError> {
        slot.advance();
        self.perform_once(slot.once(), act).await
    }

    pub(crate) async fn perform_once<A: Act>(
        &self,
        once: &RequestId,
        act: &A,
    ) -> Result<A::Answer, StoreError> {
        let path = format!("{}{}", wire::ACT, A::VERB);
        self.caller.call(&path, act, Some(once), Patience::Long(Duration::ZERO)).await
    }

    pub(crate) async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        let shortest = renewals.iter().map(|renewal| renewal.ttl).min().unwrap_or_default();
        let body = wire::Renew { renewals: renewals.to_vec() };
        // Whoever renews tries again by itself, as long as the lease may be trusted.
        self.caller.call(wire::RENEW, &body, None, Patience::Once(shortest / 4)).await
    }

    pub(crate) async fn renew_covered(
        &self,
        proof: &Proof,
        resources: Option<&[Resource]>,
        ttl: Option<Duration>,
    ) -> Result<Vec<(HoldSnapshot, Renewed)>, StoreError> {
        let body = wire::RenewCovered {
            proof: proof.clone(),
            resources: resources.map(<[Resource]>::to_vec),
            ttl_ms: ttl.map(milliseconds),
        };
        self.scope(wire::RENEW_COVERED, &body).await
    }

    pub(crate) async fn read(&self, scope: &Scope) -> Result<Snapshot, StoreError> {
        let seen: Snapshot = self.scope(wire::READ, &wire::Read { scope: scope.clone() }).await?;
        self.told_dead.learn(&seen.dead);
        Ok(seen)
    }

    pub(crate) async fn changed(
        &self,
        since: Revision,
        patience: Duration,
    ) -> Result<Revision, StoreError> {
        let patience = patience.min(Duration::from_millis(wire::PATIENCE_MAX_MS));
        let body = wire::Changed { since, patience_ms: milliseconds(patience) };
        self.caller.call(wire::CHANGED, &body, None, Patience::Long(patience)).await
    }

    pub(crate) async fn turn(&self, grant: GrantId, patience: Duration) -> Result<(), StoreError> {
        let patience = patience.min(Duration::from_millis(wire::PATIENCE_MAX_MS));
        let body = wire::Turn { grant, patience_ms: milliseconds(patience) };
        let turn = self.caller.call(wire::TURN, &body, None, Patience::Wait(patience)).await;
        match turn {
            // The server went away: whoever waits asks for its place, and finds out more.
            Err(error) if error.is_passing() => Ok(()),
            turn => turn,
        }
    }

    pub(crate) async fn events(
        &self,
        after: Revision,
        limit: u32,
    ) -> Result<Vec<Event>, StoreError> {
        let (mut after, mut all) = (after, Vec::new());
        loop {
            let limit = wire::PAGE.min(limit - all.len() as u32);
            let page: Vec<Event> = self.scope(wire::EVENTS, &wire::Events { after, limit }).await?;
            let is_last = page.len() < wire::PAGE as usize;
            after = page.last().map_or(after, |event| event.revision);
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    pub(crate) async fn tasks(&self, filter: &TaskFilter) -> Result<Vec<Task>, StoreError> {
        let (mut filter, limit, mut all) = (filter.clone(), filter.limit, Vec::new());
        loop {
            filter.limit = wire::PAGE.min(limit - all.len() as u32);
            let page: Vec<Task> = self.scope(wire::TASKS, &filter).await?;
            let is_last = page.len() < wire::PAGE as usize;
            filter.after_age = page.last().map_or(filter.after_age, |task| task.age);
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    pub(crate) async fn tallies(&self) -> Result<Vec<Tally>, StoreError> {
        self.scope(wire::TALLIES, &()).await
    }

    pub(crate) async fn tidy(&self) -> Result<usize, StoreError> {
        self.scope(wire::TIDY, &()).await
    }

    pub(crate) async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        self.scope(wire::CHECK, &()).await
    }

    async fn scope<R: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        body: &impl serde::Serialize,
    ) -> Result<R, StoreError> {
        self.caller.call(path, body, None, Patience::Long(Duration::ZERO)).await
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
