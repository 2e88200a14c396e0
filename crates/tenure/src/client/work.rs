//! A runner: a worker that takes one task after another.

use super::Client;
use super::claim::{ClaimBuilder, ClaimWaiting};
use super::claimed_work::Work;
use super::guard;
use super::keeper::TrackedLease;
use super::lease::Lease;
use super::registration::Registration;
use super::request::{Wait, default_margin};
use super::tasks::{ClaimRequest, Claims, Kept, Tasks, release_runner};
use crate::error::Error;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::rules::tasks::{Finish, Finished, NoClaim};
use tenure_core::{GrantId, Reason, Task, TaskId, WallTime};

/// What a worker got when it asked for its next task.
#[must_use = "dropping the work hands the task back"]
#[allow(clippy::large_enum_variant, reason = "work is the usual answer, and is not kept in bulk")]
pub enum Next {
    /// This task, which is the worker's now.
    Work(Work),
    /// None, for this reason.
    None(NoClaim),
}

/// A worker's identity from task to task: it keeps its section while there is work in it.
pub struct Runner {
    tasks: Tasks,
    id: GrantId,
    request: ClaimRequest,
    margin: Duration,
    ends_with_section: bool,
    section: Mutex<Option<Arc<TrackedLease>>>,
    registration: Registration,
}

impl Runner {
    /// A runner that takes tasks as the request says.
    pub fn new(client: &Client, request: ClaimRequest) -> Runner {
        let id = client.inner.world.new_grant();
        let margin = default_margin(request.ttl);
        let request = ClaimRequest { runner: Some(id), count: 1, ..request };
        let registration = Registration::new(client, &request);
        let (tasks, section) = (client.tasks(), Mutex::new(None));
        Runner { tasks, id, request, margin, ends_with_section: false, section, registration }
    }

    /// How long before its end a claim is no longer trusted.
    pub fn margin(mut self, margin: Duration) -> Runner {
        self.margin = margin;
        self
    }

    /// Waits no longer than anything is left to do in the section that it asks for.
    pub fn end_with_section(mut self) -> Runner {
        self.ends_with_section = true;
        self
    }

    /// Takes the next task, waiting for one if told to.
    pub async fn next(&self, wait: Wait) -> Result<Next, Error> {
        self.next_while(self.claim().wait(wait), |_| std::future::ready(Ok(true))).await
    }

    /// The claim for the next task.
    pub(super) fn claim(&self) -> ClaimBuilder {
        let claim = self.tasks.request(self.request.clone()).margin(self.margin);
        if self.ends_with_section { claim } else { claim.wait_for_new_tasks() }
    }

    /// Takes the next task by this claim; see [`ClaimBuilder::take_while`].
    pub(super) async fn next_while<F>(
        &self,
        claim: ClaimBuilder,
        go_on: impl FnMut(ClaimWaiting) -> F,
    ) -> Result<Next, Error>
    where
        F: Future<Output = Result<bool, Error>>,
    {
        self.registration.begin();
        let (claimed, asked_at) = match claim.take_while(go_on).await? {
            Claims::None(none) => return Ok(Next::None(none)),
            Claims::Claimed { mut tasks, asked_at } => (tasks.remove(0), asked_at),
        };
        self.registration.took(&claimed.task.id);
        let section = self.keep_section(&claimed.task, asked_at);
        let kept = Kept { runner: Some(self.id), section };
        let work = self.tasks.keep(claimed, self.request.ttl, self.margin, asked_at, kept);
        Ok(Next::Work(work))
    }

    fn section(&self) -> parking_lot::MutexGuard<'_, Option<Arc<TrackedLease>>> {
        self.section.lock()
    }

    /// The hold of the section that belongs to the claim, renewed from now on if it is a new one.
    fn keep_section(&self, task: &Task, asked_at: Duration) -> Option<Arc<TrackedLease>> {
        let part = task.claimed_section()?;
        let mut section = self.section();
        // Where trust in it has ended meanwhile, the claim that was just accepted is a new reason to trust it.
        let is_it = |held: &&Arc<TrackedLease>| {
            held.lease.resources == [part.resource.clone()]
                && held.lease.token == part.token
                && guard::is_held(&self.tasks.client, held)
        };
        if let Some(held) = section.as_ref().filter(is_it) {
            return Some(held.clone());
        }
        // The claim made it last at least as long as the task.
        let ttl = self.request.section_ttl.max(self.request.ttl);
        let lease = Lease {
            resources: vec![part.resource.clone()],
            grant: self.id,
            holder: self.tasks.client.holder().clone(),
            token: part.token,
            ttl,
            reason: Reason::AcquiredNew,
            takeovers: vec![],
            slots: vec![],
            waited: Duration::ZERO,
            acquired_at: WallTime::default(),
            expires_at: WallTime::default(),
            trusted_until: (asked_at + ttl).saturating_sub(self.margin),
            margin: self.margin,
            is_covered: false,
            is_shared: false,
        };
        let held = self.tasks.client.inner.keeper.keep(lease);
        if let Some(before) = section.replace(held.clone()) {
            self.tasks.client.inner.keeper.forget(&before);
        }
        Some(held)
    }

    fn forget_section(&self) {
        if let Some(held) = self.section().take() {
            self.tasks.client.inner.keeper.forget(&held);
        }
    }

    /// Says how the work ended. If the store fails, the task is handed back.
    pub async fn finish(&self, work: Work, finish: Finish) -> Result<Finished, Error> {
        self.try_finish(&work, &finish).await
    }

    /// The same, to be tried again if the store fails.
    pub(super) async fn try_finish(&self, work: &Work, finish: &Finish) -> Result<Finished, Error> {
        let finished = work.try_finish(finish).await?;
        let done = match (&finished, finish) {
            (Finished::Done { .. }, Finish::Complete { .. } | Finish::Review { .. }) => Some(true),
            (Finished::Done { .. }, Finish::Fail { .. }) => Some(false),
            _ => None,
        };
        self.registration.ended(&work.task().id, done);
        if matches!(finished, Finished::Done { gave_up_section: true, .. }) {
            self.forget_section();
        }
        Ok(finished)
    }

    /// Notes that the runner no longer has this task, whatever became of it.
    pub(super) fn lost(&self, task: &TaskId) {
        self.registration.ended(task, None);
    }

    /// Leaves the registry of workers, until the next task is asked for. A runner that is dropped
    /// leaves it too, a moment later.
    pub async fn end(&self) {
        self.registration.end().await;
    }

    /// Gives up the section that the runner keeps.
    pub async fn leave(&self) -> Result<(), Error> {
        let keeps = self.section().is_some();
        self.forget_section();
        if keeps {
            release_runner(&self.tasks.client, self.id).await?;
        }
        Ok(())
    }
}
