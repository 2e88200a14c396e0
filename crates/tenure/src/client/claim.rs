//! Claiming tasks, and waiting for one to be ready.

use super::Client;
use super::claimed_work::Work;
use super::keeper::BackgroundCleanup;
use super::obtain::PLACE_LEASE;
use super::request::{Wait, default_margin, wait_while_withheld};
use super::revocable::Revocable;
use super::tasks::{ClaimRequest, Claims, Kept, Tasks};
use crate::error::Error;
use std::time::Duration;
use tenure_core::act::CallOff;
use tenure_core::rules::tasks::NoClaim;
use tenure_core::{GrantId, Revision, TaskId};

/// How long a claim that waits sleeps at most before it looks again: deaths and lapses of others
/// change nothing in the store.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// After so many events a worker does not read which they are before it looks for a task.
const NEWS_MAX: u32 = 64;

/// A claim in the making: for which tasks, and how patiently.
///
/// Unless told otherwise it does not wait. While it waits, it takes back the tasks of dead workers. A claim
/// for a section waits no longer than anything is left to do there.
///
/// A claim for a named task takes a place in a queue, which is served first come, first served. It has none
/// as long as another runner holds the section of the task: that one goes on with the tasks of the section.
///
/// If the future of [`take`](ClaimBuilder::take) is dropped, nothing stays claimed: what the store may have
/// granted by then is handed back in the background.
pub struct ClaimBuilder {
    tasks: Tasks,
    request: ClaimRequest,
    wait: Wait,
    look_every: Duration,
    margin: Duration,
    leaves_idle_sections: bool,
    ends_with_section: bool,
    keeps_place: bool,
}

/// What a claim that waits knows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClaimWaiting {
    /// Why there is no task.
    pub none: NoClaim,
    /// How long it has waited.
    pub waited: Duration,
    /// How long it goes on waiting; zero if this was its last look.
    pub left: Duration,
}

impl Tasks {
    /// Begins a claim; see [`ClaimBuilder`].
    pub fn request(&self, request: ClaimRequest) -> ClaimBuilder {
        ClaimBuilder {
            tasks: self.clone(),
            margin: default_margin(request.ttl),
            request,
            wait: Wait::No,
            look_every: LOOK_EVERY,
            leaves_idle_sections: false,
            ends_with_section: true,
            keeps_place: false,
        }
    }

    /// Sleeps until something happened after `seen` that may make a task ready, or until patience ends.
    /// Returns up to which revision it has looked. To look at events costs the store much less than a
    /// claim that finds nothing, and most changes of a busy store do not concern an idle worker.
    pub async fn wait_for_news(
        &self,
        mut seen: Revision,
        patience: Duration,
    ) -> Result<Revision, Error> {
        let client = &self.client;
        let begun = client.inner.clock.now();
        loop {
            let passed = client.inner.clock.now().saturating_sub(begun);
            let left = patience.saturating_sub(passed);
            if left.is_zero() {
                return Ok(seen);
            }
            let newest = client.changed(seen, left).await?;
            if newest <= seen {
                return Ok(seen);
            }
            let news = client.events(seen, NEWS_MAX).await?;
            let is_concerned = news.iter().any(|event| event.event.concerns_idle_workers());
            match news.last() {
                Some(last) if !is_concerned && news.len() < NEWS_MAX as usize => {
                    seen = last.revision;
                }
                _ => return Ok(newest),
            }
        }
    }
}

impl ClaimBuilder {
    /// How long to wait for a task.
    pub fn wait(mut self, wait: Wait) -> ClaimBuilder {
        self.wait = wait;
        self
    }

    /// How often to look again at least while waiting; every second unless told otherwise.
    pub fn look_every(mut self, pause: Duration) -> ClaimBuilder {
        self.look_every = pause;
        self
    }

    /// Waits for new tasks of its section also when nothing is left to do there.
    pub fn wait_for_new_tasks(mut self) -> ClaimBuilder {
        self.ends_with_section = false;
        self
    }

    /// Keeps the place in the queue for a named task when the wait is over: a later claim with the same
    /// [`ClaimRequest::grant`] goes on from there. Without another claim it ends by itself after a while.
    pub fn keep_place(mut self) -> ClaimBuilder {
        self.keeps_place = true;
        self
    }

    /// How long before its end a claim is no longer trusted.
    pub(super) fn margin(mut self, margin: Duration) -> ClaimBuilder {
        self.margin = margin;
        self
    }

    /// Gives up the sections that its runner keeps and in which others ended the last tasks, whether
    /// or not a task is claimed.
    pub fn leave_idle_sections(mut self) -> ClaimBuilder {
        self.leaves_idle_sections = true;
        self
    }

    /// Takes the next tasks, or the named one, waiting for them if told to.
    pub async fn take(self) -> Result<Claims, Error> {
        self.take_while(|_| std::future::ready(Ok(true))).await
    }

    /// Takes the next tasks and renews each claim in the background until its work is finished or
    /// dropped, which hands the task back. A section is held with its task and ends with it: the
    /// request's runner is not used. A [`Runner`](super::Runner) takes one at a time and keeps its
    /// section.
    pub async fn take_work(mut self) -> Result<Result<Vec<Work>, NoClaim>, Error> {
        self.request.runner = None;
        let (tasks, ttl, margin) = (self.tasks.clone(), self.request.ttl, self.margin);
        Ok(match self.take().await? {
            Claims::None(none) => Err(none),
            Claims::Claimed { tasks: claimed, asked_at } => {
                let keep = |claimed| {
                    let kept = Kept { runner: None, section: None };
                    tasks.keep(claimed, ttl, margin, asked_at, kept)
                };
                Ok(claimed.into_iter().map(keep).collect())
            }
        })
    }

    /// Takes the next tasks, or the named one. Whenever there is none, `go_on` is told why, and says
    /// whether to go on waiting. A named task that does not exist is not waited for.
    pub async fn take_while<E, F, G>(self, go_on: G) -> Result<Claims, E>
    where
        E: From<Error>,
        F: Future<Output = Result<bool, E>>,
        G: FnMut(ClaimWaiting) -> F,
    {
        let claims = self.claim_and_wait(go_on).await?;
        let Some(runner) = self.request.runner.filter(|_| self.leaves_idle_sections) else {
            return Ok(claims);
        };
        let left = self.tasks.leave_idle_sections(runner).await;
        match &claims {
            // What was claimed is not lost with the answer to another question: a section that cannot be
            // left now is left by the next claim, or lapses.
            Claims::Claimed { tasks, asked_at } => {
                if !self.tasks.is_trusted_with(self.request.ttl, self.margin, *asked_at) {
                    self.tasks.call_off(tasks, Some(runner)).await?;
                    return Err(Error::TooLate.into());
                }
            }
            Claims::None(_) => drop(left?),
        }
        Ok(claims)
    }

    async fn claim_and_wait<E, F, G>(&self, mut go_on: G) -> Result<Claims, E>
    where
        E: From<Error>,
        F: Future<Output = Result<bool, E>>,
        G: FnMut(ClaimWaiting) -> F,
    {
        let (tasks, client) = (&self.tasks, &self.tasks.client);
        let begun = client.inner.clock.now();
        let mut request = self.request.clone();
        let mut place = ClaimPlace::new(client, &mut request, self.wait, self.keeps_place);
        let queue = place.as_ref().map(|_| PLACE_LEASE);
        let how = Waits { queue, is_kept: self.keeps_place };
        let mut seen = None;
        loop {
            let claims = match tasks.claim_or_queue(&request, how, self.margin).await {
                Ok(claims) => claims,
                Err(error) => {
                    let waited = client.inner.clock.now().saturating_sub(begun);
                    let left = self.wait.left(waited);
                    wait_while_withheld(&*client.inner.world, error, left).await?;
                    continue;
                }
            };
            let none = match claims {
                Claims::None(none) if none != NoClaim::NotFound => none,
                claims => {
                    if let (Claims::Claimed { tasks, .. }, Some(place)) = (&claims, &mut place) {
                        place.is_over = tasks.iter().any(|claimed| claimed.grant == place.grant);
                    }
                    return Ok(claims);
                }
            };
            if !tasks.recover().await?.is_empty() {
                continue;
            }
            let waited = client.inner.clock.now().saturating_sub(begun);
            let mut left = self.wait.left(waited);
            if !left.is_zero() && self.is_section_done(&request, &none).await? {
                left = Duration::ZERO;
            }
            if seen.is_none() && !left.is_zero() {
                // Only a worker that has to wait needs to know since when. It must be read before a
                // look, so that no change after the look is missed; most claims find a task at once.
                seen = Some(client.changed(Revision::default(), Duration::ZERO).await?);
                continue;
            }
            let goes_on = go_on(ClaimWaiting { none: none.clone(), waited, left }).await?;
            let Some(before) = seen.filter(|_| goes_on && !left.is_zero()) else {
                if let Some(place) = place.filter(|place| !place.is_over) {
                    place.leave().await?;
                }
                return Ok(Claims::None(none));
            };
            let patience = left.min(self.look_every);
            seen = Some(match &place {
                None => tasks.wait_for_news(before, patience).await?,
                Some(place) => tokio::select! {
                    biased;
                    turn = client.inner.backend.turn(place.grant, patience) => {
                        turn.map_err(Error::from)?;
                        before
                    }
                    news = tasks.wait_for_news(before, patience) => news?,
                },
            });
        }
    }
}

impl ClaimBuilder {
    /// Whether nothing is left to do in the section that is asked for.
    async fn is_section_done(&self, request: &ClaimRequest, none: &NoClaim) -> Result<bool, Error> {
        let asks = self.ends_with_section && request.section.is_some() && request.task.is_none();
        Ok(asks && *none == NoClaim::NothingReady && self.tasks.left(request).await?.is_empty())
    }
}

/// How a claim waits.
#[derive(Clone, Copy, Default)]
pub(super) struct Waits {
    /// How long its place in the queue lasts without a sign of life, if it takes one.
    pub(super) queue: Option<Duration>,
    /// Whether the place is for a later claim too, and so is not tied to this process.
    pub(super) is_kept: bool,
}

/// The place of a claim in the queue for a named task, which is given up when the claim is over.
struct ClaimPlace<'a> {
    client: &'a Client,
    grant: GrantId,
    task: TaskId,
    /// Whether the place became a claim, or is left to a later one.
    is_over: bool,
}

impl<'a> ClaimPlace<'a> {
    /// Lets a request that waits for a named task take a place; `None` if it takes none.
    fn new(
        client: &'a Client,
        request: &mut ClaimRequest,
        wait: Wait,
        is_kept: bool,
    ) -> Option<ClaimPlace<'a>> {
        let task = request.task.clone().filter(|_| !wait.left(Duration::ZERO).is_zero())?;
        let grant = *request.grant.get_or_insert_with(|| client.inner.world.new_grant());
        Some(ClaimPlace { client, grant, task, is_over: is_kept })
    }

    fn call_off(&self) -> CallOff {
        CallOff { grant: self.grant, resources: vec![self.task.resource()], is_new: false }
    }

    async fn leave(mut self) -> Result<(), Error> {
        self.client.inner.backend.perform(&self.call_off()).await?;
        self.is_over = true;
        Ok(())
    }
}

impl Drop for ClaimPlace<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let line = Revocable::new(&self.client.inner.backend);
            let cleanup = BackgroundCleanup::CallOff(Box::new((line, self.call_off())));
            self.client.inner.keeper.send(cleanup);
        }
    }
}
