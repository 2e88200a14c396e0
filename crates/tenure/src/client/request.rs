//! Asking for one or more resources.

use super::guard::Guard;
use super::lease::Lease;
use super::obtain::{self, Busy, Obtained, Patience, Tell, Waiting};
use super::{Client, GUARD_LEASE};
use crate::error::{Error, LEASE_MAX, LEASE_MIN, RequestError};
use crate::store::StoreError;
use crate::world::World;
use std::time::Duration;
use tenure_core::{Ask, Evidence, GrantId, Mode, Owner, Resource, ResourceError, Want};

/// How long to wait for what is not free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    No,
    /// Up to a limit.
    UpTo(Duration),
    /// For as long as it takes.
    Forever,
}

impl Wait {
    /// How long to go on waiting after so long.
    pub(super) fn left(self, waited: Duration) -> Duration {
        match self {
            Wait::No => Duration::ZERO,
            Wait::UpTo(limit) => limit.saturating_sub(waited),
            Wait::Forever => Duration::MAX,
        }
    }
}

/// Sleeps while the store grants nothing, as after a failover. Fails with any other error, and where no time is
/// left to wait.
pub(super) async fn wait_while_withheld(
    world: &dyn World,
    error: Error,
    left: Duration,
) -> Result<(), Error> {
    match &error {
        Error::Store(StoreError::Withheld { left: withheld, .. }) if !left.is_zero() => {
            world.sleep(left.min((*withheld).max(WITHHELD_MIN))).await;
            Ok(())
        }
        _ => Err(error),
    }
}

/// How long to sleep at least before a store that granted nothing is asked again: what is left of its time may be
/// rounded down.
const WITHHELD_MIN: Duration = Duration::from_millis(50);

/// What came of a request for a guard.
#[derive(Debug)]
#[must_use = "dropping a guard releases what it holds"]
pub enum Attempt {
    /// It is held as long as the guard lives.
    Held(Guard),
    /// It was not free, or did not become free in time.
    Busy(Busy),
}

impl Attempt {
    /// The guard, or what was in the way as an error.
    pub fn into_result(self) -> Result<Guard, Busy> {
        match self {
            Attempt::Held(guard) => Ok(guard),
            Attempt::Busy(busy) => Err(busy),
        }
    }
}

/// What came of a request for a lease.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a lease is the usual answer, and is not kept in bulk"
)]
pub enum LeaseAttempt {
    /// It is held until the lease is released or lapses.
    Held(Lease),
    /// It was not free, or did not become free in time.
    Busy(Busy),
}

impl LeaseAttempt {
    /// The lease, or what was in the way as an error.
    pub fn into_result(self) -> Result<Lease, Busy> {
        match self {
            LeaseAttempt::Held(lease) => Ok(lease),
            LeaseAttempt::Busy(busy) => Err(busy),
        }
    }
}

/// Names a resource: a [`Resource`], or its written form.
///
/// A text without a kind that looks like a path, such as `src/main.rs`, is refused
/// ([`Resource::requested`]): it would be a lock beside the path. A [`Resource`] is taken as it is. A
/// path is relative to the root of the repository; the library does not look at the file system.
pub trait IntoResource {
    /// The resource, if the text names one.
    fn into_resource(self) -> Result<Resource, ResourceError>;
}

impl IntoResource for Resource {
    fn into_resource(self) -> Result<Resource, ResourceError> {
        Ok(self)
    }
}

impl IntoResource for &Resource {
    fn into_resource(self) -> Result<Resource, ResourceError> {
        Ok(self.clone())
    }
}

impl IntoResource for &str {
    fn into_resource(self) -> Result<Resource, ResourceError> {
        Resource::requested(self)
    }
}

impl IntoResource for String {
    fn into_resource(self) -> Result<Resource, ResourceError> {
        Resource::requested(&self)
    }
}

/// A request in the making: what, how, for how long, and how patiently.
///
/// Unless told otherwise it asks for the resource alone, waits for ever, and takes a lease of
/// [`GUARD_LEASE`] tied to this process.
///
/// If the future of [`hold`](Request::hold) or [`lease`](Request::lease) is dropped, nothing stays
/// held or queued: the place in the queue, and what the store may have granted by then, is given
/// back in the background. The same is true over a server.
pub struct Request {
    client: Client,
    resources: Vec<Result<Resource, ResourceError>>,
    mode: Mode,
    wait: Wait,
    ttl: Duration,
    margin: Option<Duration>,
    operation: Option<String>,
    keeps: Vec<GrantId>,
    owner: Owner,
    tie: Binding,
    grant: Option<GrantId>,
    is_new: bool,
    keep_place: bool,
    on_wait: Option<Tell>,
}

/// What a lease is tied to besides its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Binding {
    /// It ends with this process.
    #[default]
    ThisProcess,
    /// It ends with that process of this machine. It belongs to the client's agent, if it has one; under
    /// a chosen label, to those who bind a request to the same process.
    Process(u32),
    /// Only a reboot of this machine ends it early, and the end of the agent's program, if the client
    /// has an agent.
    Nothing,
    /// The holder runs on a machine that nothing is known of.
    Elsewhere,
}

impl Request {
    pub(super) fn new(client: Client, resource: impl IntoResource) -> Request {
        Request {
            client,
            resources: vec![resource.into_resource()],
            mode: Mode::Exclusive,
            wait: Wait::Forever,
            ttl: GUARD_LEASE,
            margin: None,
            operation: None,
            keeps: Vec::new(),
            owner: Owner::default(),
            tie: Binding::ThisProcess,
            grant: None,
            is_new: true,
            keep_place: false,
            on_wait: None,
        }
    }

    /// Asks for this resource too: all or nothing, in any order.
    pub fn also(mut self, resource: impl IntoResource) -> Request {
        self.resources.push(resource.into_resource());
        self
    }

    /// Holds beside other shared holders.
    pub fn shared(self) -> Request {
        self.mode(Mode::Shared)
    }

    /// Holds one of so many slots.
    pub fn slots(self, of: u32) -> Request {
        self.mode(Mode::Slot { of })
    }

    /// Holds in this mode.
    pub fn mode(mut self, mode: Mode) -> Request {
        self.mode = mode;
        self
    }

    /// How long to wait for what is not free.
    pub fn wait(mut self, wait: Wait) -> Request {
        self.wait = wait;
        self
    }

    /// How long the lease lasts from each renewal.
    pub fn ttl(mut self, ttl: Duration) -> Request {
        self.ttl = ttl;
        self
    }

    /// How long before its end the lease is no longer trusted.
    pub fn margin(mut self, margin: Duration) -> Request {
        self.margin = Some(margin);
        self
    }

    /// What for, in words for people who look or wait.
    pub fn operation(mut self, operation: impl Into<String>) -> Request {
        self.operation = Some(operation.into());
        self
    }

    /// Says that the caller keeps this grant while it waits, so that a wait which would close a
    /// cycle is refused at the start.
    pub fn while_holding(mut self, grant: GrantId) -> Request {
        self.keeps.push(grant);
        self
    }

    /// Presents a grant of the command or session around this request. What it holds covers what is
    /// asked for: the answer is then [`Reason::AlreadyOwned`](tenure_core::Reason), under that grant.
    /// What it holds and does not cover the request is refused at once, if it is in the way: nothing
    /// could end that wait.
    pub fn under(mut self, grant: GrantId) -> Request {
        self.owner.grants.push(grant);
        self
    }

    /// Says that the caller keeps the leases of its chosen label or its agent while it waits, and what
    /// that label tied to a process around this one, so that a wait for one of them is refused at the
    /// start. Requests for detached leases go under leases of their label without this.
    pub fn while_holding_own_leases(mut self) -> Request {
        let Owner { label, parent, .. } = self.client.inner.owner();
        let around = self.client.inner.world.processes_around();
        self.owner = Owner { label, parent, grants: self.owner.grants, around };
        self
    }

    /// Ties the lease to another process of this machine: when that dies, it ends.
    pub fn for_process(mut self, pid: u32) -> Request {
        self.tie = Binding::Process(pid);
        self
    }

    /// Ties the lease to no process of its own; only its time, or a reboot, ends it, and the end of the
    /// agent's program where the client has an agent.
    pub fn detached(mut self) -> Request {
        self.tie = Binding::Nothing;
        self
    }

    /// Says that the holder runs on another machine, like a client of a server: only the lease's time
    /// ends the hold, not even a reboot of this machine.
    pub fn elsewhere(mut self) -> Request {
        self.tie = Binding::Elsewhere;
        self
    }

    /// Presents an earlier grant: if it still holds all this, its lease starts anew. A guard made
    /// this way renews while it lives, and leaves it to the first one to release it.
    pub fn with_grant(mut self, grant: GrantId) -> Request {
        self.grant = Some(grant);
        self.is_new = false;
        self
    }

    /// Asks under this grant, which is used for the first time.
    pub fn with_new_grant(mut self, grant: GrantId) -> Request {
        self.grant = Some(grant);
        self.is_new = true;
        self
    }

    /// Keeps the place in the queue when the limit passes or the request is dropped: a request for the
    /// same with the same grant within [`PLACE_LEASE`](super::PLACE_LEASE) goes on waiting there.
    /// Until then, later waiters stay behind that place.
    pub fn keep_place(mut self) -> Request {
        self.keep_place = true;
        self
    }

    /// Is told whenever the request looked and has to go on waiting.
    pub fn on_wait(mut self, tell: impl FnMut(&Waiting) + Send + 'static) -> Request {
        self.on_wait = Some(Box::new(tell));
        self
    }

    /// Takes it, and renews it in the background until the guard is released or dropped.
    pub async fn hold(self) -> Result<Attempt, Error> {
        let client = self.client.clone();
        Ok(match self.obtain().await? {
            Obtained::Held(lease) => Attempt::Held(Guard::new(client, lease)),
            Obtained::Busy(busy) => Attempt::Busy(busy),
        })
    }

    /// Takes it for one length of the lease; renewing and releasing are up to the caller.
    pub async fn lease(self) -> Result<LeaseAttempt, Error> {
        Ok(match self.obtain().await? {
            Obtained::Held(lease) => LeaseAttempt::Held(lease),
            Obtained::Busy(busy) => LeaseAttempt::Busy(busy),
        })
    }

    async fn obtain(mut self) -> Result<Obtained, Error> {
        let on_wait = self.on_wait.take();
        let (client, wait) = (self.client.clone(), self.wait);
        let margin = self.margin.unwrap_or_else(|| default_margin(self.ttl));
        let (keep_place, is_new) = (self.keep_place, self.is_new);
        let mut ask = self.into_ask()?;
        // A wait with a limit ends.
        if wait == Wait::Forever {
            ask.keeps.extend(&client.inner.around);
        }
        obtain::obtain(&client.inner, ask, Patience { wait, keep_place, is_new }, margin, on_wait)
            .await
    }

    fn into_ask(self) -> Result<Ask, Error> {
        if self.mode == (Mode::Slot { of: 0 }) {
            return Err(RequestError::NoSlots.into());
        }
        if !(LEASE_MIN..=LEASE_MAX).contains(&self.ttl) {
            return Err(RequestError::Lease { asked: self.ttl }.into());
        }
        let mut wants: Vec<Want> = Vec::new();
        for resource in self.resources {
            let want = Want { resource: resource?, mode: self.mode };
            if !wants.contains(&want) {
                wants.push(want);
            }
        }
        if wants.is_empty() {
            return Err(RequestError::Nothing.into());
        }
        let world = &*self.client.inner.world;
        let holder = self.client.inner.holder(self.tie)?;
        // Unless the place is kept for another request, it is worth nothing without this process: a
        // server that waits for a caller takes the caller's place with it.
        let waits_here = holder.evidence.is_some() || !self.keep_place;
        let presence = waits_here.then(|| world.this_process());
        let mut owner = self.owner;
        if holder.is_owned_by_label() {
            let own = self.client.inner.owner();
            (owner.label, owner.parent) = (own.label, own.parent);
        }
        Ok(Ask {
            grant: self.grant.unwrap_or_else(|| world.new_grant()),
            wants,
            holder,
            presence,
            operation: self.operation,
            ttl: self.ttl,
            keeps: self.keeps,
            owner,
            queue: None,
        })
    }
}

impl Binding {
    pub(super) fn evidence(self, world: &dyn World) -> Result<Option<Evidence>, RequestError> {
        Ok(Some(match self {
            Binding::Elsewhere => return Ok(None),
            Binding::Nothing => world.this_machine(),
            Binding::ThisProcess => world.this_process(),
            Binding::Process(pid) => world.process(pid).ok_or(RequestError::NoProcess { pid })?,
        }))
    }
}

/// A tenth of the lease, at most a second: enough for a last write to be on its way.
pub(super) fn default_margin(ttl: Duration) -> Duration {
    (ttl / 10).min(Duration::from_secs(1))
}
