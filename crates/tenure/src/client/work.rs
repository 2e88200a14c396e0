//! A runner: a worker that takes one task after another.

use super::Client;
use super::keeper::Held;
use super::lease::Lease;
use super::request::Wait;
use super::tasks::{ClaimRequest, Claims, Tasks, Work, release_runner};
use crate::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::rules::tasks::{Finish, Finished, NoClaim};
use tenure_core::{GrantId, Kind, Reason, Resource, Task, WallTime};

/// A worker's identity from task to task: it keeps its section while there is work in it.
pub struct Runner {
    tasks: Tasks,
    id: GrantId,
    request: ClaimRequest,
    margin: Duration,
    section: Mutex<Option<Arc<Held>>>,
}

impl Runner {
    /// A runner that takes tasks as the request says.
    pub fn new(client: &Client, request: ClaimRequest) -> Runner {
        let id = GrantId::random();
        let margin = (request.ttl / 10).min(Duration::from_secs(1));
        let request = ClaimRequest { runner: Some(id), count: 1, ..request };
        Runner { tasks: client.tasks(), id, request, margin, section: Mutex::new(None) }
    }

    /// How long before its end a claim is no longer trusted.
    pub fn margin(mut self, margin: Duration) -> Runner {
        self.margin = margin;
        self
    }

    /// Takes the next task, waiting for one if told to.
    pub async fn next(&self, wait: Wait) -> Result<Result<Work, NoClaim>, Error> {
        let claims = self.tasks.claim_within(&self.request, wait).await?;
        let (claimed, asked_at) = match claims {
            Claims::None(none) => return Ok(Err(none)),
            Claims::Claimed { mut tasks, asked_at } => (tasks.remove(0), asked_at),
        };
        self.keep_section(&claimed.task, claimed.token, asked_at);
        Ok(Ok(self.tasks.keep(claimed, self.request.ttl, self.margin, asked_at, Some(self.id))))
    }

    fn section(&self) -> std::sync::MutexGuard<'_, Option<Arc<Held>>> {
        self.section.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn keep_section(&self, task: &Task, token: tenure_core::Token, asked_at: Duration) {
        let name = task.section.as_deref();
        let resource = name.and_then(|name| Resource::new(Kind::Section, name).ok());
        let Some(resource) = resource else { return };
        let mut section = self.section();
        let already = section
            .as_ref()
            .is_some_and(|held| held.lease.resources == [resource.clone()] && !held.is_lost());
        if already {
            return;
        }
        let ttl = self.request.section_ttl;
        let lease = Lease {
            resources: vec![resource],
            grant: self.id,
            token,
            ttl,
            reason: Reason::AcquiredNew,
            takeovers: vec![],
            slots: vec![],
            waited: Duration::ZERO,
            acquired_at: WallTime::default(),
            expires_at: WallTime::default(),
            trusted_until: asked_at + ttl,
            margin: Duration::ZERO,
        };
        let held = Arc::new(Held::new(lease));
        self.tasks.client.inner.keeper.keep(held.clone());
        *section = Some(held);
    }

    fn forget_section(&self) {
        if let Some(held) = self.section().take() {
            self.tasks.client.inner.keeper.forget(&held);
        }
    }

    /// Says how the work ended. If the store fails, the task is handed back.
    pub async fn finish(&self, mut work: Work, finish: Finish) -> Result<Finished, Error> {
        self.try_finish(&mut work, &finish).await
    }

    /// The same, to be tried again if the store fails.
    pub(super) async fn try_finish(
        &self,
        work: &mut Work,
        finish: &Finish,
    ) -> Result<Finished, Error> {
        let finished = work.try_finish(finish).await?;
        if matches!(finished, Finished::Done { gave_up_section: true, .. }) {
            self.forget_section();
        }
        Ok(finished)
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
