//! The verbs that need no waiting loop of their own: release, renew, break, verify, look, clean up.

use super::Client;
use super::collect::Collected;
use super::obtain::Busy;
use super::request::{IntoResource, Wait};
use crate::error::Error;
use crate::store::{
    EventSearch, EventsAfter, Finding, NewestEvents, Prefer, RecordSearch, Renewed,
};
use std::time::Duration;
use tenure_core::act::{Broken, Reap, Recover, Release};
use tenure_core::{
    Blocker, BreakAsk, Event, HoldSnapshot, Kind, Proof, RecordKind, RecordRange, RecordSnapshot,
    RegisteredWorker, ReleaseAsk, Released, Resource, Revision, Scope, Snapshot, Token,
    VerifyAnswer, rules,
};

/// What cleaning up removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleanup {
    /// Holds that had lapsed or whose holder was dead.
    pub holds: Vec<HoldSnapshot>,
    /// Things that crashed processes had left beside the records.
    pub leftovers: usize,
}

/// What came of waiting for a resource to be free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Free {
    /// It is free now.
    Free,
    /// It did not become free in time.
    Busy(Busy),
}

fn look_at(resource: &Resource) -> Scope {
    Scope::At { resources: vec![resource.clone()], ticket: None }
}

pub(super) async fn release(
    client: &Client,
    proof: Proof,
    resources: Option<&[Resource]>,
) -> Result<Released, Error> {
    let resources = resources.map(<[Resource]>::to_vec);
    let act = Release { at: resources.clone(), ask: ReleaseAsk { proof, resources, lost: false } };
    Ok(client.inner.backend.perform(&act).await?)
}

impl Client {
    /// Gives back what the proof covers: on these resources, or everywhere.
    pub async fn release(
        &self,
        proof: Proof,
        resources: Option<&[Resource]>,
    ) -> Result<Released, Error> {
        let released = release(self, proof, resources).await?;
        if let Released::Ended(holds) = &released {
            self.end_lost_claims(holds.iter().map(|seen| &seen.hold.want.resource)).await?;
        }
        Ok(released)
    }

    /// Starts the leases anew that the proof covers, with this length or the one they had. What
    /// has lapsed or is not there stays so. A lease is lost too if the answer comes when it is over.
    pub async fn renew(
        &self,
        proof: &Proof,
        resources: Option<&[Resource]>,
        ttl: Option<Duration>,
    ) -> Result<Vec<(HoldSnapshot, Renewed)>, Error> {
        let asked_at = self.now();
        let mut renewed = self.inner.backend.renew_covered(proof, resources, ttl).await?;
        let passed = self.now().saturating_sub(asked_at);
        for (seen, answer) in &mut renewed {
            if passed >= ttl.unwrap_or(seen.hold.ttl) {
                *answer = Renewed::Lost;
            }
        }
        Ok(renewed)
    }

    /// Breaks the hold of this resource that has this token. A successor has another token and is
    /// left alone.
    pub async fn break_hold(
        &self,
        resource: impl IntoResource,
        token: Token,
        reason: &str,
    ) -> Result<Broken, Error> {
        let resource = resource.into_resource()?;
        let by = self.inner.holder.label.clone();
        let ask = BreakAsk { resource, token, by, reason: reason.to_owned() };
        let broken = self.inner.backend.perform(&ask).await?;
        if matches!(broken, Broken::Ended(_)) && ask.resource.kind() != Kind::Lock {
            let recover = Recover { broken: Some(ask), ..self.inner.recover() };
            self.inner.backend.perform(&recover).await?;
        }
        Ok(broken)
    }

    /// Takes back the tasks whose claim lost a part with what just ended: what is left of such a
    /// claim is worth nothing, and must not be in the way of others.
    pub(super) async fn end_lost_claims(
        &self,
        ended: impl IntoIterator<Item = &Resource>,
    ) -> Result<(), Error> {
        if ended.into_iter().any(|resource| resource.kind() != Kind::Lock) {
            self.tasks().recover().await?;
        }
        Ok(())
    }

    /// Whether this token holds this resource now. A token of a claim that lost a part does not,
    /// whatever else the claim still holds.
    pub async fn verify(
        &self,
        resource: impl IntoResource,
        token: Token,
    ) -> Result<VerifyAnswer, Error> {
        let resource = resource.into_resource()?;
        let look = look_at(&resource);
        let seen = self.inner.backend.read(&look).await?;
        let answer = rules::verify(&seen, &resource, token, &*self.inner.witness);
        let claims = rules::tasks::claims_look(&resource).filter(|_| answer == VerifyAnswer::Valid);
        let Some(claims) = claims else { return Ok(answer) };
        // A server may show some grants veiled and others not.
        let seen = self.inner.backend.read(&claims).await?.redacted();
        let witness = &*self.inner.witness;
        Ok(match rules::tasks::belongs_to_lost_claim(&seen, &resource, token, witness) {
            true => VerifyAnswer::Refused { current: None },
            false => answer,
        })
    }

    /// Starts everything anew that is held under the same grant as this hold, if the proof covers
    /// it: a claim's task with its files, where only a label was given.
    pub async fn renew_with(
        &self,
        proof: &Proof,
        hold: &HoldSnapshot,
        ttl: Option<Duration>,
    ) -> Result<Vec<(HoldSnapshot, Renewed)>, Error> {
        let grant = match proof {
            Proof::Grant(grant) => Some(*grant),
            Proof::Label(_) => {
                let look = look_at(&hold.hold.want.resource);
                let seen = self.inner.backend.read(&look).await?;
                let same = |seen: &&HoldSnapshot| {
                    seen.hold.token == hold.hold.token
                        && seen.hold.want == hold.hold.want
                        && proof.covers(seen)
                };
                seen.holds.iter().find(same).map(|seen| seen.hold.grant)
            }
        };
        match grant {
            Some(grant) => self.renew(&Proof::Grant(grant), None, ttl).await,
            None => Ok(vec![]),
        }
    }

    /// Who holds and who waits for what overlaps these resources. Grants are in their public form:
    /// [`Proof::recognises`] tells one's own.
    pub async fn look(&self, resources: &[Resource]) -> Result<Snapshot, Error> {
        let mut seen = self.inner.backend.read(&Scope::Queues(resources.to_vec())).await?;
        // A store may show more than was asked: of paths, all that are held.
        let asked = |resource: &Resource| resources.iter().any(|wanted| wanted.overlaps(resource));
        seen.holds.retain(|seen| asked(&seen.hold.want.resource));
        seen.waiters.retain(|seen| seen.waiter.wants.iter().any(|want| asked(&want.resource)));
        Ok(seen.redacted())
    }

    /// Who holds and who waits for anything. Grants are in their public form, as with
    /// [`look`](Client::look).
    pub async fn look_everywhere(&self) -> Result<Snapshot, Error> {
        Ok(self.inner.backend.read(&Scope::Everything).await?.redacted())
    }

    /// The same with the workers that are registered, for those that count or show workers.
    pub async fn look_at_workers(&self) -> Result<Snapshot, Error> {
        let records = self.records(RecordRange::all(RecordKind::Worker)).await?;
        let workers = RegisteredWorker::of_records(&records);
        // Looked at later, so that what a worker holds is never older than the worker.
        Ok(Snapshot { workers, ..self.look_everywhere().await? })
    }

    /// Waits until the resource is free, without taking it.
    pub async fn wait_until_free(
        &self,
        resource: impl IntoResource,
        wait: Wait,
    ) -> Result<Free, Error> {
        let resources = [resource.into_resource()?];
        let begun = self.inner.clock.now();
        loop {
            let seen = self.look(&resources).await?;
            let live: Vec<&HoldSnapshot> =
                seen.holds.iter().filter(|seen| !seen.gone(&*self.inner.witness)).collect();
            if live.is_empty() {
                return Ok(Free::Free);
            }
            let waited = self.inner.clock.now().saturating_sub(begun);
            let left = wait.left(waited);
            if left.is_zero() {
                let blockers = live.into_iter().cloned().map(Blocker::Hold).collect();
                return Ok(Free::Busy(Busy { blockers, waited }));
            }
            // A death or a lapse changes nothing in the store: so this looks again by itself.
            let patience = left.min(WATCH_INTERVAL);
            self.inner.backend.changed(seen.revision, patience).await?;
        }
    }

    /// Removes holds that lapsed or whose holder is dead, and what crashed processes left behind.
    pub async fn clean_up(&self, kind: Option<Kind>) -> Result<Cleanup, Error> {
        let holds = self.inner.backend.perform(&Reap { kind }).await?;
        self.end_lost_claims(holds.iter().map(|seen| &seen.hold.want.resource)).await?;
        Ok(Cleanup { holds, leftovers: self.inner.backend.tidy().await? })
    }

    /// How many things of crashed processes [`Client::clean_up`] would remove.
    pub async fn leftovers(&self) -> Result<usize, Error> {
        Ok(self.inner.backend.leftovers().await?)
    }

    /// Removes all history that is beyond what [`ClientBuilder::retention`](crate::ClientBuilder) keeps,
    /// or what a server keeps; in a dry run only counts it. Without this call it is done little by little,
    /// after some of the changes that clients make.
    pub async fn collect(&self, dry_run: bool) -> Result<Collected, Error> {
        Ok(self.inner.backend.collect(dry_run).await?)
    }

    /// Notes that an older state of a database was put back: new tokens are higher than all that were given
    /// out. Returns for how long nothing is granted. Stores on this machine refuse it.
    pub async fn note_moved(&self) -> Result<Duration, Error> {
        Ok(self.inner.backend.moved().await?)
    }

    /// Events after a revision, oldest first.
    pub async fn events(&self, after: Revision, limit: u32) -> Result<Vec<Event>, Error> {
        Ok(self.inner.backend.read(EventsAfter { after, limit }).await?)
    }

    /// Whether events that followed this one may be missing, because the store keeps none that are so old.
    /// To be asked after these were read, so that events that are removed meanwhile are noticed.
    pub async fn may_lack_events_after(&self, after: Revision) -> Result<bool, Error> {
        let oldest = self.events(Revision::default(), 1).await?;
        // Only who heard of an event can miss the ones after it.
        let is_later = |oldest: &Event| oldest.revision > after;
        Ok(after > Revision::default() && oldest.first().is_some_and(is_later))
    }

    /// The newest events, oldest first. A server gives at most a thousand.
    pub async fn newest_events(&self, limit: u32) -> Result<Vec<Event>, Error> {
        Ok(self.inner.backend.read(NewestEvents { limit }).await?)
    }

    /// The events that are asked for, oldest first. Those of a path are also those of all paths that
    /// overlap it.
    pub async fn search_events(&self, mut search: EventSearch) -> Result<Vec<Event>, Error> {
        let path = search.filter.resource.take_if(|resource| resource.kind() == Kind::Path);
        let Some(path) = path else { return Ok(self.inner.backend.read(search).await?) };
        let (wanted, mut found) = (search.limit as usize, Vec::new());
        search.limit = PATH_SEARCH_PAGE;
        loop {
            let mut page = self.inner.backend.read(search.clone()).await?;
            let is_last = page.len() < PATH_SEARCH_PAGE as usize;
            match search.prefer {
                Prefer::Oldest => {
                    search.after = page.last().map_or(search.after, |event| event.revision);
                }
                Prefer::Newest => {
                    search.before = page.first().map(|event| event.revision).or(search.before);
                    page.reverse();
                }
            }
            found.extend(page.into_iter().filter(|event| {
                event.event.resource.as_ref().is_some_and(|resource| resource.overlaps(&path))
            }));
            if is_last || found.len() >= wanted {
                found.truncate(wanted);
                if search.prefer == Prefer::Newest {
                    found.reverse();
                }
                return Ok(found);
            }
        }
    }

    /// Small records: see [`RecordSearch`].
    pub async fn records(&self, range: RecordRange) -> Result<Vec<RecordSnapshot>, Error> {
        Ok(self.inner.backend.read(RecordSearch::all(range)).await?)
    }

    /// Returns the newest revision as soon as it is beyond `since`, or when patience ends.
    pub async fn changed(&self, since: Revision, patience: Duration) -> Result<Revision, Error> {
        Ok(self.inner.backend.changed(since, patience).await?)
    }

    /// Checks that the store is in order.
    pub async fn check(&self) -> Result<Vec<Finding>, Error> {
        Ok(self.inner.backend.check().await?)
    }
}

/// How many events are read at once when those of overlapping paths are searched.
const PATH_SEARCH_PAGE: u32 = 1000;

/// How often one who only watches looks for deaths and lapses.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);
