//! A client's side of a server: says what is to be done, and tries again until it is answered.
//!
//! Rules run at the server. An act that was sent and not answered is sent again under the same
//! name; the server recognises it, even after a restart, and answers what it answered before.

mod call;
mod connections;
mod dial;
mod link;
mod observer;
mod slots;
mod witness;

use crate::client::Actor;
use crate::client::Collected;
use crate::store::query::typed;
use crate::store::{
    Answer, EventSearch, EventsAfter, Limits, Maintained, Maintenance, Prefer, Query, Read,
    RecordSearch, Renewal, Renewed, RequestId, Signal, StoreError, StoreInfo, TaskFilter, Waited,
};
use crate::url::{Address, RemoteOptions};
use crate::wire;
use crate::world::World;
use call::{Caller, Kind, Patience};
pub use observer::{ObservedRequest, Observer, RequestObserver};
pub(crate) use slots::Slot;
use slots::Slots;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::act::Act;
use tenure_core::{Event, HoldSnapshot, Proof, RecordSnapshot, Resource, Witness};
use witness::{RemoteWitness, ToldDead};

/// A server that has a store.
pub struct Remote {
    caller: Arc<Caller>,
    slots: Arc<Slots>,
    told_dead: Arc<ToldDead>,
    /// The caller for which this program, a server itself, asks.
    actor: Option<Arc<Actor>>,
}

impl Remote {
    /// The server there; it is not asked anything yet.
    pub(crate) fn new(
        address: &Address,
        options: &RemoteOptions,
        world: Arc<dyn World>,
    ) -> Result<Remote, StoreError> {
        Ok(Remote {
            slots: Arc::new(Slots::new(world.clone())),
            caller: Arc::new(Caller::new(address, options, world)?),
            told_dead: Arc::default(),
            actor: None,
        })
    }

    /// The same server, asked for this token of a server that passes requests on.
    pub(crate) fn through(&self, actor: Option<Arc<Actor>>) -> Remote {
        let (caller, slots) = (self.caller.clone(), self.slots.clone());
        Remote { caller, slots, told_dead: self.told_dead.clone(), actor }
    }

    /// A witness that also knows which holders the server proved dead.
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
            is_new: false,
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
        if let Some(actor) = &self.actor {
            actor.check(act)?;
        }
        let path = format!("{}{}", wire::ACT, A::VERB);
        self.caller.call(&path, act, Kind::Act(once), Patience::Long(Duration::ZERO)).await
    }

    pub(crate) async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        let shortest = renewals.iter().map(|renewal| renewal.ttl).min().unwrap_or_default();
        let body = wire::Renew { renewals: renewals.to_vec() };
        // The keeper tries again by itself while the lease may be trusted.
        self.caller.call(wire::RENEW, &body, Kind::Renewal, Patience::Once(shortest / 4)).await
    }

    pub(crate) async fn renew_covered(
        &self,
        proof: &Proof,
        resources: Option<&[Resource]>,
        ttl: Option<Duration>,
    ) -> Result<Vec<(HoldSnapshot, Renewed)>, StoreError> {
        if let Some(actor) = &self.actor {
            actor.check_proof(proof)?;
        }
        let body = wire::RenewCovered {
            proof: proof.clone(),
            resources: resources.map(<[Resource]>::to_vec),
            ttl_ms: ttl.map(milliseconds),
        };
        let patience = Patience::Long(Duration::ZERO);
        self.caller.call(wire::RENEW_COVERED, &body, Kind::Renewal, patience).await
    }

    pub(crate) async fn query(&self, query: Query) -> Result<Answer, StoreError> {
        match query {
            Query::Events(EventsAfter { after, limit }) => {
                let page = |after, limit| Query::Events(EventsAfter { after, limit });
                let pages =
                    self.pages::<EventsAfter, _, _>(after, (limit, wire::PAGE), page, |e| {
                        e.revision
                    });
                pages.await.map(Answer::Events)
            }
            Query::Tasks(filter) => {
                let page = |after_age, limit| {
                    Query::Tasks(TaskFilter { after_age, limit, ..filter.clone() })
                };
                let (after, limit) = (filter.after_age, filter.limit);
                let pages =
                    self.pages::<&TaskFilter, _, _>(after, (limit, wire::PAGE), page, |task| {
                        task.age
                    });
                pages.await.map(Answer::Tasks)
            }
            Query::SearchEvents(search) => self.search_events(search).await.map(Answer::Events),
            Query::Records(search) => {
                let page =
                    |after, limit| Query::Records(RecordSearch { after, limit, ..search.clone() });
                let (after, limit) = (search.after.clone(), search.limit);
                let at_once = wire::records_at_once(search.range.kind);
                let key = |record: &RecordSnapshot| record.key.clone();
                let pages = self.pages::<RecordSearch, _, _>(after, (limit, at_once), page, key);
                pages.await.map(Answer::Records)
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

    /// Searches page by page, from the end that counts.
    async fn search_events(&self, mut search: EventSearch) -> Result<Vec<Event>, StoreError> {
        let mut all: Vec<Event> = Vec::new();
        let limit = search.limit;
        loop {
            search.limit = wire::PAGE.min(limit - all.len() as u32);
            let answer = self.ask(wire::QUERY, &Query::SearchEvents(search.clone())).await?;
            let found = EventSearch::answer(answer);
            let mut found = typed(found, || self.caller.name().to_owned())?;
            let is_last = found.len() < wire::PAGE as usize;
            match search.prefer {
                Prefer::Oldest => {
                    search.after = found.last().map_or(search.after, |event| event.revision);
                    all.append(&mut found);
                }
                Prefer::Newest => {
                    search.before = found.first().map(|event| event.revision).or(search.before);
                    found.append(&mut all);
                    all = found;
                }
            }
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Asks for a long list page by page: a server gives at most so many at once.
    async fn pages<R: Read<Answer = Vec<T>>, T, K: Clone>(
        &self,
        mut after: K,
        (limit, at_once): (u32, u32),
        page: impl Fn(K, u32) -> Query,
        key: impl Fn(&T) -> K,
    ) -> Result<Vec<T>, StoreError> {
        let mut all = Vec::new();
        loop {
            let query = page(after.clone(), at_once.min(limit - all.len() as u32));
            let answer = self.ask(wire::QUERY, &query).await?;
            let found = typed(R::answer(answer), || self.caller.name().to_owned())?;
            let is_last = found.len() < at_once as usize;
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
                self.caller.call(wire::WAIT, &body, Kind::Look, Patience::Long(patience)).await
            }
            Signal::Turn { .. } => {
                let turn =
                    self.caller.call(wire::WAIT, &body, Kind::Look, Patience::Wait(patience));
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

    pub(crate) async fn collect(&self, dry_run: bool) -> Result<Collected, StoreError> {
        self.ask(wire::COLLECT, &wire::Collect { dry_run }).await
    }

    async fn ask<R: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        body: &impl serde::Serialize,
    ) -> Result<R, StoreError> {
        self.caller.call(path, body, Kind::Look, Patience::Long(Duration::ZERO)).await
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
