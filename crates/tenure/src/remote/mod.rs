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

use crate::store::query::typed;
use crate::store::{
    Answer, EventsAfter, Limits, Maintained, Maintenance, Query, Read, Renewal, Renewed, RequestId,
    Signal, StoreError, StoreInfo, TaskFilter, Waited,
};
use crate::url::{Address, RemoteOptions};
use crate::wire;
use crate::world::World;
use call::{Caller, Patience};
pub(crate) use slots::Slot;
use slots::Slots;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::act::Act;
use tenure_core::{HoldSnapshot, Proof, Resource, Witness};
use witness::{RemoteWitness, ToldDead};

/// A server that has a store.
pub struct Remote {
    caller: Caller,
    slots: Slots,
    told_dead: Arc<ToldDead>,
}

impl Remote {
    /// The server there; it is not asked anything yet.
    pub(crate) fn new(
        address: &Address,
        options: &RemoteOptions,
        world: Arc<dyn World>,
    ) -> Result<Remote, StoreError> {
        Ok(Remote {
            slots: Slots::new(world.clone()),
            caller: Caller::new(address, options, world)?,
            told_dead: Arc::default(),
        })
    }

    /// A witness that also knows whom the server proved dead.
    pub(crate) fn witness(&self, local: Arc<dyn Witness + Send + Sync>) -> RemoteWitness {
        RemoteWitness { told: self.told_dead.clone(), local }
    }

    pub(crate) fn info(&self) -> StoreInfo {
        let url = self.caller.name().to_owned();
        StoreInfo {
            url,
            engine: "a tenure server".to_owned(),
            local: false,
            limits: Limits::LOCAL,
            ended_boots: vec![],
        }
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
        // The keeper tries again by itself while the lease may be trusted.
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
        self.ask(wire::RENEW_COVERED, &body).await
    }

    pub(crate) async fn query(&self, query: Query) -> Result<Answer, StoreError> {
        match query {
            Query::Events(EventsAfter { after, limit }) => {
                let page = |after, limit| Query::Events(EventsAfter { after, limit });
                let pages = self.pages::<EventsAfter, _, _>(after, limit, page, |e| e.revision);
                pages.await.map(Answer::Events)
            }
            Query::Tasks(filter) => {
                let page = |after_age, limit| {
                    Query::Tasks(TaskFilter { after_age, limit, ..filter.clone() })
                };
                let (after, limit) = (filter.after_age, filter.limit);
                let pages = self.pages::<&TaskFilter, _, _>(after, limit, page, |task| task.age);
                pages.await.map(Answer::Tasks)
            }
            query => {
                let answer = self.ask(wire::QUERY, &query).await?;
                if let Answer::Snapshot(snapshot) = &answer {
                    self.told_dead.learn(&snapshot.dead);
                }
                Ok(answer)
            }
        }
    }

    /// Asks for a long list page by page: a server gives at most [`wire::PAGE`] at once.
    async fn pages<R: Read<Answer = Vec<T>>, T, K: Copy>(
        &self,
        mut after: K,
        limit: u32,
        page: impl Fn(K, u32) -> Query,
        key: impl Fn(&T) -> K,
    ) -> Result<Vec<T>, StoreError> {
        let mut all = Vec::new();
        loop {
            let query = page(after, wire::PAGE.min(limit - all.len() as u32));
            let answer = self.ask(wire::QUERY, &query).await?;
            let found = typed(R::answer(answer), || self.caller.name().to_owned())?;
            let is_last = found.len() < wire::PAGE as usize;
            after = found.last().map_or(after, &key);
            all.extend(found);
            if is_last {
                return Ok(all);
            }
        }
    }

    pub(crate) async fn wait(
        &self,
        signal: Signal,
        patience: Duration,
    ) -> Result<Waited, StoreError> {
        let patience = patience.min(Duration::from_millis(wire::PATIENCE_MAX_MS));
        let body = wire::Wait { signal, patience_ms: milliseconds(patience) };
        match signal {
            Signal::Change { .. } => {
                self.caller.call(wire::WAIT, &body, None, Patience::Long(patience)).await
            }
            Signal::Turn { .. } => {
                let turn = self.caller.call(wire::WAIT, &body, None, Patience::Wait(patience));
                match turn.await {
                    // The server went away: the waiter asks for its place, and finds out more.
                    Err(error) if error.is_passing() => Ok(Waited::Turn),
                    turn => turn,
                }
            }
        }
    }

    pub(crate) async fn maintain(&self, work: Maintenance) -> Result<Maintained, StoreError> {
        self.ask(wire::MAINTAIN, &work).await
    }

    async fn ask<R: serde::de::DeserializeOwned>(
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
