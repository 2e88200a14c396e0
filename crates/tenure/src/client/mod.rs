//! The client: one method per verb, over any store. It waits, renews and tries again.

mod actor;
mod backend;
mod claim;
mod claimed_work;
mod collect;
mod guard;
mod keeper;
mod lease;
mod left;
mod obtain;
mod registration;
mod request;
mod resolve;
mod revocable;
mod swarm;
mod tasks;
mod trust;
mod verbs;
mod work;

pub use crate::store::RequestId;
pub use actor::Actor;
pub use backend::{Backend, GivenUp, Local, Sent};
pub use claim::{ClaimBuilder, ClaimWaiting};
pub use claimed_work::{TaskOutput, Work};
pub use collect::Collected;
pub use guard::{Guard, ReleaseOutcome};
pub use lease::Lease;
pub use left::Left;
pub use obtain::{Busy, PLACE_LEASE, Waiting};
pub use request::{Attempt, Binding, IntoResource, LeaseAttempt, Request, Wait};
pub use swarm::{Stop, Stopper, Swarm, SwarmReport, WorkEvent};
pub use tasks::{ClaimRequest, Claims, Tasks};
pub use tenure_core::act::Broken;
pub use trust::Trust;
pub use verbs::{Cleanup, Free};
pub use work::{Next, Runner};

use crate::agent::{Agent, AgentSource};
use crate::error::Error;
#[cfg(feature = "file-store")]
use crate::store::file::Dialect;
use crate::store::{Store, StoreInfo};
use crate::url::{self, OpenOptions, RemoteOptions, StoreUrl};
use crate::world::{Clock, SuspendClock, SystemWorld, World};
use collect::Collector;
use keeper::Keeper;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::act::Recover;
use tenure_core::{GrantId, Holder, Owner, RECOVERIES_MAX, Retention, Witness};

/// Lease of a guard, renewed from a third of it: a dead machine is replaced within it, and three
/// renewals may fail before it is lost.
pub const GUARD_LEASE: Duration = Duration::from_secs(30);

/// A client of a store. Cheap to clone; clones share renewals and the label.
///
/// It can be used from several runtimes, and by a process that was forked from the one that opened
/// it. Such a process opens the store or its connections anew, and holds under evidence of its own;
/// what its parent holds is the parent's, and guards that it inherited count as lost. Fork while no
/// other thread is inside a call of the client.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    backend: Backend,
    world: Arc<dyn World>,
    clock: Arc<dyn Clock>,
    witness: Arc<dyn Witness + Send + Sync>,
    holder: Holder,
    /// The agent for which leases are taken that are tied to no process of their own.
    agent: Option<Agent>,
    keeper: Keeper,
    warn: Warn,
    recoveries_max: u32,
    /// Grants of the commands around this process, which they keep until it ends.
    around: Vec<GrantId>,
    /// When dead workers were last looked for.
    recovered_at: Arc<Mutex<Option<Duration>>>,
}

/// How often a client that claims looks for tasks of dead workers while there is other work. What
/// that costs depends on how many tasks are being worked on, not on how many there are.
const RECOVER_EVERY: Duration = Duration::from_secs(2);

impl Inner {
    /// The act that takes back the tasks whose claim no longer stands.
    fn recover(&self) -> Recover {
        Recover { recoveries_max: self.recoveries_max, broken: None }
    }

    /// Who holds what is asked for with this binding.
    fn holder(&self, tie: Binding) -> Result<Holder, Error> {
        Ok(match &self.agent {
            Some(agent) if tie == Binding::Nothing => {
                Holder::agent(&agent.label)?.with_evidence(agent.evidence())
            }
            Some(agent) if tie == Binding::Elsewhere => Holder::agent(&agent.label)?,
            // No other has the label of an agent that was found, so it may come back with that alone. Of
            // a chosen label there can be several jobs, which exclude each other.
            Some(agent)
                if agent.source != AgentSource::Chosen && matches!(tie, Binding::Process(_)) =>
            {
                Holder { evidence: tie.evidence(&*self.world)?, ..Holder::agent(&agent.label)? }
            }
            _ => Holder { evidence: tie.evidence(&*self.world)?, ..self.holder.clone() },
        })
    }

    /// On whose behalf this client asks, as far as its label or agent says.
    fn owner(&self) -> Owner {
        match &self.agent {
            Some(agent) => Owner { parent: agent.parent.clone(), ..Owner::of_label(&agent.label) },
            None if self.holder.chosen => Owner::of_label(&self.holder.label),
            None => Owner::default(),
        }
    }

    /// Whether dead workers were not looked for since a while; if so, the caller does it now.
    fn is_time_to_recover(&self, now: Duration) -> bool {
        let mut last = self.recovered_at.lock();
        let is_time = last.is_none_or(|last| now.saturating_sub(last) >= RECOVER_EVERY);
        if is_time {
            *last = Some(now);
        }
        is_time
    }
}

/// Opens a [`Client`] with other than the usual settings.
pub struct ClientBuilder {
    label: Option<String>,
    agent: Option<Agent>,
    world: Arc<dyn World>,
    one_shot: bool,
    poll_interval: Duration,
    look_only: bool,
    recoveries_max: u32,
    around: Vec<GrantId>,
    retention: Retention,
    warn: Warn,
    remote: RemoteOptions,
    wrap: Option<Wrap>,
}

/// Is told what a person should know of, though nothing failed.
pub(crate) type Warn = Arc<dyn Fn(&str) + Send + Sync>;

/// Puts something between a client and its store.
type Wrap = Box<dyn FnOnce(Arc<dyn Store>) -> Arc<dyn Store> + Send>;

impl ClientBuilder {
    /// The name under which this client holds. Without one it gets a label that no other has.
    pub fn label(mut self, label: impl Into<String>) -> ClientBuilder {
        self.label = Some(label.into());
        self
    }

    /// The agent for which this client holds, instead of a label: its leases that are tied to no process
    /// of their own belong to the agent, and end with the agent's program. What is tied to this process,
    /// such as a guard, only shows the agent's label, unless the agent was chosen.
    pub fn agent(mut self, agent: Agent) -> ClientBuilder {
        self.agent = Some(agent);
        self
    }

    /// The name under which this client holds, unless one was given already.
    #[cfg(feature = "discover")]
    pub(crate) fn label_unless_given(mut self, label: &str) -> ClientBuilder {
        self.label.get_or_insert_with(|| label.to_owned());
        self
    }

    /// Another world than the machine itself, for tests: see [`crate::world`].
    pub fn world(mut self, world: impl World + 'static) -> ClientBuilder {
        self.world = Arc::new(world);
        self
    }

    /// Tunes the store for a process that ends soon.
    pub fn one_shot(mut self) -> ClientBuilder {
        self.one_shot = true;
        self
    }

    /// Opens also a read-only store; changes fail then.
    pub fn look_only(mut self) -> ClientBuilder {
        self.look_only = true;
        self
    }

    /// How often to look for changes where the system cannot tell of them.
    pub fn poll_interval(mut self, interval: Duration) -> ClientBuilder {
        self.poll_interval = interval;
        self
    }

    /// How often workers of a task may die or fall silent before it is set aside; at least once,
    /// [`RECOVERIES_MAX`](tenure_core::RECOVERIES_MAX) times unless told otherwise.
    pub fn recoveries_max(mut self, times: u32) -> ClientBuilder {
        self.recoveries_max = times;
        self
    }

    /// Grants that are kept until this process ends, as by a `tenure run` around it: a request that would
    /// wait for them without a limit is refused.
    pub fn around(mut self, grants: impl IntoIterator<Item = GrantId>) -> ClientBuilder {
        self.around.extend(grants);
        self
    }

    /// How much history is kept in a store that this client opens itself; a server decides that for its
    /// own store. Clients of one store should agree: what one of them removes is gone for all.
    pub fn retention(mut self, retention: Retention) -> ClientBuilder {
        self.retention = retention;
        self
    }

    /// What to do with warnings, each a sentence, such as one of a wait without a limit for what a
    /// guard of the same client holds, or one of a renewal that is late. They go nowhere unless this is
    /// set: the library prints nothing. Renewals wait for this function: it must not wait for anything.
    pub fn on_warning(mut self, warn: impl Fn(&str) + Send + Sync + 'static) -> ClientBuilder {
        self.warn = Arc::new(warn);
        self
    }

    /// How to reach a server, where the URL names one.
    pub fn remote(mut self, options: RemoteOptions) -> ClientBuilder {
        self.remote = options;
        self
    }

    /// Puts something between the client and the store that [`open`](ClientBuilder::open) opens,
    /// such as one that measures it. It must keep the store's promises.
    pub fn wrap(
        mut self,
        wrap: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store> + Send + 'static,
    ) -> ClientBuilder {
        self.wrap = Some(Box::new(wrap));
        self
    }

    /// Opens the store that the URL names.
    pub async fn open(self, url: &str) -> Result<Client, Error> {
        self.open_url(url.parse()?).await
    }

    /// Opens this store. A password that a written URL would not show is used.
    pub async fn open_url(mut self, url: StoreUrl) -> Result<Client, Error> {
        let options = OpenOptions {
            world: self.world.clone(),
            one_shot: self.one_shot,
            poll_interval: self.poll_interval,
            look_only: self.look_only,
            warn: self.warn.clone(),
            remote: RemoteOptions { label: self.own_label(), ..self.remote.clone() },
        };
        match url::open(url, options)? {
            url::Opened::Store(store) => {
                let wrap = self.wrap.take();
                self.with_store(wrap.map_or_else(|| store.clone(), |wrap| wrap(store.clone())))
            }
            #[cfg(feature = "http")]
            url::Opened::Remote(remote) => {
                let witness = Arc::new(remote.witness(self.world.witness(vec![])));
                self.through(Backend::Remote(remote), witness)
            }
        }
    }

    /// The label that proves what this client holds.
    fn own_label(&self) -> Option<String> {
        self.agent.as_ref().map(|agent| agent.label.clone()).or_else(|| self.label.clone())
    }

    /// A client of this store.
    pub fn with_store(self, store: Arc<dyn Store>) -> Result<Client, Error> {
        let witness = self.world.witness(store.info().ended_boots);
        let local = Local::new(store, witness.clone(), self.world.this_machine().boot);
        let collector = Collector::new(self.retention, self.world.clone(), self.one_shot);
        let local = local.with_collector(collector);
        self.through(Backend::Local(local), witness)
    }

    fn through(
        self,
        backend: Backend,
        witness: Arc<dyn Witness + Send + Sync>,
    ) -> Result<Client, Error> {
        let holder = match (&self.agent, self.label) {
            (Some(agent), _) => shown_holder(agent)?,
            (None, Some(label)) => Holder::chosen(&label)?,
            (None, None) => Holder::anonymous(unique_label(&*self.world)),
        };
        let clock = self.world.clock();
        // A lease that another machine judges runs on while this one sleeps.
        let clock = match backend.info().local {
            true => clock,
            false => Arc::new(SuspendClock(clock)),
        };
        let keeper =
            Keeper::new(backend.clone(), clock.clone(), self.world.clone(), self.warn.clone());
        let inner = Inner {
            backend,
            world: self.world,
            clock,
            witness,
            holder,
            agent: self.agent,
            keeper,
            warn: self.warn,
            recoveries_max: self.recoveries_max,
            around: self.around,
            recovered_at: Arc::default(),
        };
        Ok(Client { inner: Arc::new(inner) })
    }
}

/// Who holds what a client of this agent ties to a process: only a chosen label proves that it is the
/// client's.
fn shown_holder(agent: &Agent) -> Result<Holder, Error> {
    let chosen = Holder::chosen(&agent.label)?;
    Ok(Holder { chosen: agent.source == AgentSource::Chosen, ..chosen })
}

/// Host and process for people to recognise, and something random because both repeat.
fn unique_label(world: &dyn World) -> String {
    let host = world.this_machine().host;
    let random = world.random() as u16;
    format!("{host}:{}-{random:04x}", world.process_id())
}

impl Client {
    /// Opens the store that the URL names: `sqlite:PATH`, or `memory:` for this process alone.
    pub async fn open(url: &str) -> Result<Client, Error> {
        Client::builder().open(url).await
    }

    /// A client with other than the usual settings.
    pub fn builder() -> ClientBuilder {
        ClientBuilder {
            label: None,
            agent: None,
            world: Arc::new(SystemWorld::new()),
            one_shot: false,
            poll_interval: Duration::from_secs(5),
            look_only: false,
            recoveries_max: RECOVERIES_MAX,
            around: vec![],
            retention: Retention::default(),
            warn: Arc::new(|_| ()),
            remote: RemoteOptions::of_user(),
            wrap: None,
        }
    }

    /// What the store is.
    pub fn info(&self) -> StoreInfo {
        self.inner.backend.info()
    }

    /// Whose lock files the store shares. That of a store behind a server is unknown, and answered as
    /// [`Dialect::NATIVE`].
    #[cfg(feature = "file-store")]
    pub fn dialect(&self) -> Dialect {
        self.info().url.parse::<StoreUrl>().map_or(Dialect::NATIVE, |url| url.dialect())
    }

    /// What this client asks through; for servers, which pass on what their clients ask.
    #[doc(hidden)]
    pub fn backend(&self) -> &Backend {
        &self.inner.backend
    }

    /// The label under which this client holds, and whether it was chosen.
    pub fn holder(&self) -> &Holder {
        &self.inner.holder
    }

    /// A client of the same store under another label, which was chosen.
    pub fn with_label(&self, label: &str) -> Result<Client, Error> {
        Ok(self.held_by(Holder::chosen(label)?, None))
    }

    /// A client of the same store for this agent; see [`ClientBuilder::agent`].
    pub fn with_agent(&self, agent: Agent) -> Result<Client, Error> {
        Ok(self.held_by(shown_holder(&agent)?, Some(agent)))
    }

    /// The agent for which this client holds, if there is one.
    pub fn agent(&self) -> Option<&Agent> {
        self.inner.agent.as_ref()
    }

    /// A client of the same store under a label for people to read, which proves nothing: what it
    /// holds answers to its grants alone.
    pub fn with_display_label(&self, label: &str) -> Result<Client, Error> {
        let holder = Holder::chosen(label)?;
        Ok(self.held_by(Holder { chosen: false, ..holder }, None))
    }

    /// A client of the same store under a label that no other has. For a forked process, whose
    /// inherited label names its parent.
    pub fn with_made_up_label(&self) -> Client {
        self.held_by(Holder::anonymous(unique_label(&*self.inner.world)), None)
    }

    /// This client for changes that come through a token of a server: see [`Backend::through`].
    pub fn through(&self, actor: &Actor) -> Client {
        let (holder, agent) = (self.inner.holder.clone(), self.inner.agent.clone());
        self.with_backend(self.inner.backend.through(actor), holder, agent)
    }

    fn held_by(&self, holder: Holder, agent: Option<Agent>) -> Client {
        self.with_backend(self.inner.backend.clone(), holder, agent)
    }

    fn with_backend(&self, backend: Backend, holder: Holder, agent: Option<Agent>) -> Client {
        let inner = Inner {
            backend: backend.clone(),
            world: self.inner.world.clone(),
            clock: self.inner.clock.clone(),
            witness: self.inner.witness.clone(),
            holder,
            agent,
            keeper: Keeper::new(
                backend,
                self.inner.clock.clone(),
                self.inner.world.clone(),
                self.inner.warn.clone(),
            ),
            warn: self.inner.warn.clone(),
            recoveries_max: self.inner.recoveries_max,
            around: self.inner.around.clone(),
            recovered_at: self.inner.recovered_at.clone(),
        };
        Client { inner: Arc::new(inner) }
    }

    /// How often the workers of a task may die or fall silent before it is set aside.
    pub fn recoveries_max(&self) -> u32 {
        self.inner.recoveries_max
    }

    /// Judges who lives, from where this process runs.
    pub fn witness(&self) -> &dyn Witness {
        &*self.inner.witness
    }

    /// Begins a request; see [`Request`] for what can be asked.
    pub fn request(&self, resource: impl IntoResource) -> Request {
        Request::new(self.clone(), resource)
    }

    /// Holds the resource alone, waiting for as long as it takes. Guards of one client exclude each
    /// other as those of strangers do: a task that holds the resource already waits for itself. A
    /// warning says so, see [`ClientBuilder::on_warning`].
    pub async fn acquire(&self, resource: impl IntoResource) -> Result<Guard, Error> {
        match self.request(resource).hold().await? {
            Attempt::Held(guard) => Ok(guard),
            Attempt::Busy(_) => {
                unreachable!("a request without a limit ends with a grant or an error")
            }
        }
    }

    /// Holds the resource alone if it is free now.
    pub async fn try_acquire(&self, resource: impl IntoResource) -> Result<Attempt, Error> {
        self.request(resource).wait(Wait::No).hold().await
    }

    /// Holds the resource alone, waiting up to a limit.
    pub async fn acquire_within(
        &self,
        resource: impl IntoResource,
        limit: Duration,
    ) -> Result<Attempt, Error> {
        self.request(resource).wait(Wait::UpTo(limit)).hold().await
    }
}
