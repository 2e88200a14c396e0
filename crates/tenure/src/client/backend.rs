//! What a client asks through: a store that it opened itself, or a server that has one.

use super::actor::Actor;
use super::collect::{Collected, Collector, Extent};
#[cfg(feature = "http")]
use crate::remote::Remote;
use crate::store::query::typed;
use crate::store::{
    Answer, Finding, Maintained, Maintenance, Query, Read, Renewal, Renewed, RequestId, Signal,
    Store, StoreError, StoreExt, StoreInfo, Waited, transact_with,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tenure_core::act::Act;
use tenure_core::{
    Change, Decision, GrantId, HoldSnapshot, Proof, Resource, Revision, Scope, Snapshot,
    StoredReply, Witness, Write,
};

/// Where acts are decided: here, over a store, or by a server. Cheap to clone.
///
/// For servers, which pass on what their clients ask; everybody else uses the methods of
/// [`Client`](crate::Client).
#[derive(Clone)]
pub enum Backend {
    /// Decided here.
    Local(Local),
    /// Decided by a server.
    #[cfg(feature = "http")]
    Remote(Arc<Remote>),
}

/// How a request came to where it is decided.
#[derive(Clone, Default)]
pub struct Sent {
    /// Its name, under which it is carried out once.
    pub once: Option<RequestId>,
    /// Whether it was sent before and no answer came. Then its answer is remembered even where nothing
    /// was written, so that the one that was sent first is not carried out when it arrives later.
    pub is_again: bool,
    /// Whether its sender has given it up by now; then nothing is done. Asked in the step in which the
    /// request changes something.
    pub given_up: Option<GivenUp>,
}

/// Whether the sender of a request has given it up by now.
pub type GivenUp = Arc<dyn Fn() -> bool + Send + Sync>;

/// A store, and a judge of who lives.
#[derive(Clone)]
pub struct Local {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) witness: Arc<dyn Witness + Send + Sync>,
    /// The boot of the machine that the store is on; empty where its id cannot be read.
    boot: String,
    /// Through which token of a server changes come; none for changes of this program's own.
    actor: Option<Arc<Actor>>,
    pub(super) collector: Option<Arc<Collector>>,
}

impl Backend {
    /// Decides an act.
    pub async fn perform<A: Act>(&self, act: &A) -> Result<A::Answer, StoreError> {
        match self {
            Backend::Local(local) => local.perform(Sent::default(), act).await,
            #[cfg(feature = "http")]
            Backend::Remote(remote) => remote.perform(act).await,
        }
    }

    /// Decides an act unless this very request was decided before; then its answer is given again.
    pub async fn perform_once<A: Act>(
        &self,
        once: &RequestId,
        act: &A,
    ) -> Result<A::Answer, StoreError> {
        self.perform_sent(Sent { once: Some(once.clone()), ..Sent::default() }, act).await
    }

    /// Decides an act that a client sent.
    pub async fn perform_sent<A: Act>(&self, sent: Sent, act: &A) -> Result<A::Answer, StoreError> {
        match self {
            Backend::Local(local) => local.perform(sent, act).await,
            #[cfg(feature = "http")]
            Backend::Remote(remote) => match &sent.once {
                Some(once) => remote.perform_once(once, act).await,
                None => remote.perform(act).await,
            },
        }
    }

    /// This backend for changes that come through a token of a server: their events name it, and only
    /// labels that it may use are accepted. A server that passes changes on to another server leaves
    /// it to the other to name the token.
    pub fn through(&self, actor: &Actor) -> Backend {
        let actor = Some(Arc::new(actor.clone()));
        match self {
            Backend::Local(local) => Backend::Local(Local { actor, ..local.clone() }),
            #[cfg(feature = "http")]
            Backend::Remote(remote) => Backend::Remote(Arc::new(remote.through(actor))),
        }
    }

    /// What the store is.
    pub fn info(&self) -> StoreInfo {
        match self {
            Backend::Local(local) => local.store.info(),
            #[cfg(feature = "http")]
            Backend::Remote(remote) => remote.info(),
        }
    }

    /// See [`Store::renew`].
    pub async fn renew(&self, renewals: &[Renewal]) -> Result<Vec<Renewed>, StoreError> {
        match self {
            Backend::Local(local) => local.store.renew(renewals).await,
            #[cfg(feature = "http")]
            Backend::Remote(remote) => remote.renew(renewals).await,
        }
    }

    /// Starts the leases anew that a proof covers: see [`Client::renew`](crate::Client::renew).
    pub async fn renew_covered(
        &self,
        proof: &Proof,
        resources: Option<&[Resource]>,
        ttl: Option<Duration>,
    ) -> Result<Vec<(HoldSnapshot, Renewed)>, StoreError> {
        match self {
            Backend::Local(local) => local.renew_covered(proof, resources, ttl).await,
            #[cfg(feature = "http")]
            Backend::Remote(remote) => remote.renew_covered(proof, resources, ttl).await,
        }
    }

    /// Answers a query: see [`Store::query`].
    pub async fn query(&self, query: Query) -> Result<Answer, StoreError> {
        match self {
            Backend::Local(local) => local.store.query(query).await,
            #[cfg(feature = "http")]
            Backend::Remote(remote) => remote.query(query).await,
        }
    }

    /// Waits for a signal: see [`Store::wait`].
    pub async fn wait(&self, signal: Signal, patience: Duration) -> Result<Waited, StoreError> {
        match self {
            Backend::Local(local) => local.store.wait(signal, patience).await,
            #[cfg(feature = "http")]
            Backend::Remote(remote) => remote.wait(signal, patience).await,
        }
    }

    /// Does maintenance: see [`Store::maintain`].
    pub async fn maintain(&self, work: Maintenance) -> Result<Maintained, StoreError> {
        match self {
            Backend::Local(local) => local.store.maintain(work).await,
            #[cfg(feature = "http")]
            Backend::Remote(remote) => remote.maintain(work).await,
        }
    }

    /// Answers a typed query.
    pub async fn read<R: Read>(&self, read: R) -> Result<R::Answer, StoreError> {
        typed(R::answer(self.query(read.query()).await?), || self.info().url)
    }

    /// Waits until the store's revision is beyond `since`, or patience ends; returns it.
    pub async fn changed(
        &self,
        since: Revision,
        patience: Duration,
    ) -> Result<Revision, StoreError> {
        let waited = self.wait(Signal::Change { since }, patience).await?;
        typed(waited.revision(), || self.info().url)
    }

    /// Waits until this queued request is woken, or patience ends.
    pub async fn turn(&self, grant: GrantId, patience: Duration) -> Result<(), StoreError> {
        self.wait(Signal::Turn { grant }, patience).await.map(drop)
    }

    /// Removes what crashed processes left behind; returns how many things.
    pub async fn tidy(&self) -> Result<usize, StoreError> {
        typed(self.maintain(Maintenance::Tidy).await?.tidied(), || self.info().url)
    }

    /// Counts what [`Backend::tidy`] would remove.
    pub async fn leftovers(&self) -> Result<usize, StoreError> {
        typed(self.maintain(Maintenance::Leftovers).await?.left(), || self.info().url)
    }

    /// Removes history beyond what is kept: see [`Client::collect`](crate::Client::collect).
    pub async fn collect(&self, dry_run: bool) -> Result<Collected, StoreError> {
        match self {
            Backend::Local(local) => {
                local.collect(if dry_run { Extent::DryRun } else { Extent::All }).await
            }
            #[cfg(feature = "http")]
            Backend::Remote(remote) => remote.collect(dry_run).await,
        }
    }

    /// Notes that an older state of the store was put back; returns for how long nothing is granted.
    pub async fn moved(&self) -> Result<Duration, StoreError> {
        typed(self.maintain(Maintenance::Moved).await?.moved(), || self.info().url)
    }

    /// Checks that the store is in order.
    pub async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        typed(self.maintain(Maintenance::Check).await?.checked(), || self.info().url)
    }
}

impl Local {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        witness: Arc<dyn Witness + Send + Sync>,
        boot: String,
    ) -> Local {
        Local { store, witness, boot, actor: None, collector: None }
    }

    /// The same, which also removes history beyond what is kept.
    pub(crate) fn with_collector(self, collector: Collector) -> Local {
        Local { collector: Some(Arc::new(collector)), ..self }
    }

    /// The same for this program's own changes: what follows a change is not made by the token through
    /// which that change came.
    pub(super) fn without_actor(&self) -> Local {
        Local { actor: None, ..self.clone() }
    }

    /// Decides an act, unless it was called off by then.
    pub(super) async fn perform_unless<A: Act>(
        &self,
        called_off: &Arc<AtomicBool>,
        act: &A,
    ) -> Result<A::Answer, StoreError> {
        let called_off = called_off.clone();
        let given_up: GivenUp = Arc::new(move || called_off.load(Ordering::SeqCst));
        self.perform(Sent { given_up: Some(given_up), ..Sent::default() }, act).await
    }

    pub(super) async fn perform<A: Act>(
        &self,
        sent: Sent,
        act: &A,
    ) -> Result<A::Answer, StoreError> {
        if let Some(actor) = &self.actor {
            actor.check(act)?;
        }
        tenure_core::act::check(act).map_err(StoreError::from)?;
        let mut scope = act.scope();
        if A::LOOKS_FIRST {
            let (decision, answer) = act.decide(&self.store.read(&scope).await?, &*self.witness);
            if decision == Decision::Nothing {
                return Ok(answer);
            }
            scope = act.scope_after_look(&answer);
        }
        let once = sent.once.clone();
        let mut rule = rule(act.clone(), sent, self.clone());
        let recorded = Arc::new(AtomicU64::new(0));
        let count = recorded.clone();
        let counted = move |seen: &Snapshot| {
            let (decision, reply) = rule(seen);
            if let Decision::Write(change) = &decision {
                count.store(change.events.len() as u64, Ordering::Relaxed);
            }
            (decision, reply)
        };
        let (committed, reply) = transact_with(&*self.store, scope, once, counted).await?;
        if let (Some(collector), Some(newest)) = (&self.collector, committed.revision) {
            collector.after::<A>(self, newest, recorded.load(Ordering::Relaxed)).await;
        }
        match reply {
            Reply::Now(answer) => Ok(answer),
            Reply::Before { asked, answered } => self.again(&asked, &answered),
            Reply::GivenUp => Err(StoreError::Unavailable {
                store: self.store.info().url,
                reason: "the request was given up before it could be carried out".to_owned(),
                hint: None,
            }),
        }
    }

    /// The answer that was given before.
    fn again<T: serde::de::DeserializeOwned>(
        &self,
        once: &RequestId,
        before: &StoredReply,
    ) -> Result<T, StoreError> {
        let store = self.store.info().url;
        if before.number > once.number {
            // The caller has gone on and does not wait for this any more.
            let reason = "a request came again after it had been followed by others".to_owned();
            return Err(StoreError::Unavailable { store, reason, hint: None });
        }
        serde_json::from_str(&before.text).map_err(|error| StoreError::Unknown {
            store,
            reason: format!("the answer that was given cannot be read: {error}"),
        })
    }

    async fn renew_covered(
        &self,
        proof: &Proof,
        resources: Option<&[Resource]>,
        ttl: Option<Duration>,
    ) -> Result<Vec<(HoldSnapshot, Renewed)>, StoreError> {
        if let Some(actor) = &self.actor {
            actor.check_proof(proof)?;
        }
        let scope = match resources {
            Some(resources) => Scope::At { resources: resources.to_vec(), ticket: None },
            None => Scope::Everything,
        };
        let seen = self.store.read(&scope).await?;
        let named = |seen: &&HoldSnapshot| {
            resources.is_none_or(|some| some.contains(&seen.hold.want.resource))
        };
        let mine: Vec<HoldSnapshot> =
            seen.holds.iter().filter(named).filter(|seen| proof.covers(seen)).cloned().collect();
        let renewals: Vec<Renewal> = mine
            .iter()
            .map(|seen| Renewal {
                grant: seen.hold.grant,
                token: seen.hold.token,
                resources: vec![seen.hold.want.resource.clone()],
                ttl: ttl.unwrap_or(seen.hold.ttl),
                bind: None,
            })
            .collect();
        if renewals.is_empty() {
            return Ok(vec![]);
        }
        let answers = self.store.renew(&renewals).await?;
        Ok(mine.into_iter().zip(answers).collect())
    }
}

/// What is said about a request.
enum Reply<T> {
    Now(T),
    /// It was decided before.
    Before {
        asked: RequestId,
        answered: StoredReply,
    },
    /// The caller gave it up.
    GivenUp,
}

/// Decides an act, unless this very request was decided before.
fn rule<A: Act>(
    act: A,
    sent: Sent,
    local: Local,
) -> impl FnMut(&Snapshot) -> (Decision, Reply<A::Answer>) + Send + 'static {
    move |seen| {
        let Sent { once, is_again, given_up } = &sent;
        if given_up.as_ref().is_some_and(|given_up| given_up()) {
            return (Decision::Nothing, Reply::GivenUp);
        }
        if let (Some(asked), Some(answered)) = (once, &seen.answered)
            && answered.number >= asked.number
        {
            let told = Reply::Before { asked: asked.clone(), answered: answered.clone() };
            return (Decision::Nothing, told);
        }
        let (mut decision, answer) = act.decide(seen, &*local.witness);
        if (A::CALLS_OFF || *is_again) && once.is_some() && decision == Decision::Nothing {
            decision = Decision::Write(Change::default());
        }
        if let Decision::Write(change) = &mut decision {
            change.durable |= is_trusted_after_power_loss(change, seen, &local.boot);
            change.drop_outputs(seen);
            for event in change.events.iter_mut().filter(|event| event.actor.is_none()) {
                event.actor = local.actor.as_ref().map(|actor| actor.name.clone());
            }
            change.writes.extend(once.as_ref().and_then(|once| remember(once, &answer)));
        }
        (decision, Reply::Now(answer))
    }
}

/// Whether a change grants something, or for longer, to a holder that may work on when this
/// machine loses its power. Such a holder would trust a grant that the disk does not have.
fn is_trusted_after_power_loss(change: &Change, seen: &Snapshot, boot: &str) -> bool {
    change.writes.iter().any(|write| match write {
        Write::Hold(hold) => hold.holder.may_outlive(boot),
        Write::Extend { resource, grant, ttl, .. } => seen.holds_of(*grant).any(|seen| {
            let hold = &seen.hold;
            hold.want.resource == *resource && *ttl > hold.ttl && hold.holder.may_outlive(boot)
        }),
        _ => false,
    })
}

/// An answer to be kept with the change that it is about. One that cannot be written down is not
/// kept: then the request can only be repeated by asking anew.
fn remember<T: serde::Serialize>(once: &RequestId, answer: &T) -> Option<Write> {
    let text = serde_json::to_string(answer).ok()?;
    Some(Write::Answer(StoredReply { slot: once.slot.clone(), number: once.number, text }))
}
