//! The verbs that need no waiting loop of their own: release, renew, break, verify, look, clean up.

use super::obtain::Busy;
use super::request::{IntoResource, Wait};
use super::{Client, Inner};
use crate::error::Error;
use crate::store::{Finding, Renewal, Renewed};
use std::time::Duration;
use tenure_core::{
    Blocker, BreakAsk, Decision, Event, Kind, Look, Proof, ReleaseAsk, Released, Resource,
    Revision, Seen, SeenHold, Token, VerifyAnswer, Witness, rules,
};

/// What came of breaking a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It ended.
    Ended(Box<SeenHold>),
    /// That exact hold is not there any more; this is who holds now. Nothing was changed.
    Gone(Vec<SeenHold>),
}

/// What cleaning up removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cleanup {
    /// Holds that had lapsed or whose holder was dead.
    pub holds: Vec<SeenHold>,
    /// Things that crashed processes had left beside the records.
    pub leftovers: usize,
}

/// What came of waiting for a resource to be free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Free {
    /// Nobody holds it now.
    Free,
    /// It did not become free in time.
    Busy(Busy),
}

impl Inner {
    /// Runs a rule in the store, and returns what it answered.
    pub(super) async fn decide<T: Send>(
        &self,
        look: &Look,
        mut rule: impl FnMut(&Seen, &dyn Witness) -> (Decision, T) + Send,
    ) -> Result<T, Error> {
        let mut answer = None;
        let witness = &*self.witness;
        let mut decide = |seen: &Seen| {
            let (decision, answered) = rule(seen, witness);
            answer = Some(answered);
            decision
        };
        self.store.transact(look, &mut decide).await?;
        Ok(answer.expect("a store always asks the rule"))
    }
}

fn look_at(resources: Option<&[Resource]>) -> Look {
    match resources {
        Some(resources) => Look::At { resources: resources.to_vec(), ticket: None },
        None => Look::Everything,
    }
}

pub(super) async fn release(
    client: &Client,
    proof: Proof,
    resources: Option<&[Resource]>,
) -> Result<Released, Error> {
    let ask = ReleaseAsk { proof, resources: resources.map(<[Resource]>::to_vec) };
    client
        .inner
        .decide(&look_at(resources), |seen, witness| rules::release(seen, &ask, witness))
        .await
}

impl Client {
    /// Gives back what the proof covers: on these resources, or everywhere.
    pub async fn release(
        &self,
        proof: Proof,
        resources: Option<&[Resource]>,
    ) -> Result<Released, Error> {
        release(self, proof, resources).await
    }

    /// Starts the leases anew that the proof covers, with this length or the one they had. What
    /// has lapsed or is not there stays so.
    pub async fn renew(
        &self,
        proof: &Proof,
        resources: Option<&[Resource]>,
        ttl: Option<Duration>,
    ) -> Result<Vec<(SeenHold, Renewed)>, Error> {
        let seen = self.inner.store.read(&look_at(resources)).await?;
        let named =
            |seen: &&SeenHold| resources.is_none_or(|some| some.contains(&seen.hold.want.resource));
        let mine: Vec<SeenHold> =
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
        let answers = self.inner.store.renew(&renewals).await?;
        Ok(mine.into_iter().zip(answers).collect())
    }

    /// Ends the hold of this resource that has this token, whoever holds it. A successor has
    /// another token and is left alone.
    pub async fn break_hold(
        &self,
        resource: impl IntoResource,
        token: Token,
        reason: &str,
    ) -> Result<Broken, Error> {
        let resource = resource.into_resource()?;
        let by = self.inner.holder.label.clone();
        let ask = BreakAsk { resource: resource.clone(), token, by, reason: reason.to_owned() };
        let look = look_at(Some(std::slice::from_ref(&resource)));
        self.inner
            .decide(&look, |seen, witness| {
                let (decision, ended) = rules::break_hold(seen, &ask, witness);
                let answer = match ended {
                    Some(hold) => Broken::Ended(Box::new(hold)),
                    None => Broken::Gone(holds_of(seen, &resource)),
                };
                (decision, answer)
            })
            .await
    }

    /// Whether this token holds this resource now.
    pub async fn verify(
        &self,
        resource: impl IntoResource,
        token: Token,
    ) -> Result<VerifyAnswer, Error> {
        let resource = resource.into_resource()?;
        let look = look_at(Some(std::slice::from_ref(&resource)));
        let seen = self.inner.store.read(&look).await?;
        Ok(rules::verify(&seen, &resource, token, &*self.inner.witness))
    }

    /// Who holds and who waits for what overlaps these resources.
    pub async fn look(&self, resources: &[Resource]) -> Result<Seen, Error> {
        let mut seen = self.inner.store.read(&Look::Queues(resources.to_vec())).await?;
        // A store may show more than was asked: of paths, all that are held.
        let asked = |resource: &Resource| resources.iter().any(|wanted| wanted.overlaps(resource));
        seen.holds.retain(|seen| asked(&seen.hold.want.resource));
        seen.waiters.retain(|seen| seen.waiter.wants.iter().any(|want| asked(&want.resource)));
        Ok(seen)
    }

    /// Who holds and who waits for anything.
    pub async fn look_everywhere(&self) -> Result<Seen, Error> {
        Ok(self.inner.store.read(&Look::Everything).await?)
    }

    /// Waits until nobody holds the resource, without taking it.
    pub async fn wait_until_free(
        &self,
        resource: impl IntoResource,
        wait: Wait,
    ) -> Result<Free, Error> {
        let resources = [resource.into_resource()?];
        let begun = self.inner.clock.now();
        loop {
            let seen = self.look(&resources).await?;
            let live: Vec<&SeenHold> =
                seen.holds.iter().filter(|seen| !seen.gone(&*self.inner.witness)).collect();
            if live.is_empty() {
                return Ok(Free::Free);
            }
            let waited = self.inner.clock.now().saturating_sub(begun);
            let left = match wait {
                Wait::No => Duration::ZERO,
                Wait::UpTo(limit) => limit.saturating_sub(waited),
                Wait::Forever => Duration::MAX,
            };
            if left.is_zero() {
                let blockers = live.into_iter().cloned().map(Blocker::Hold).collect();
                return Ok(Free::Busy(Busy { blockers, waited }));
            }
            // A death or a lapse changes nothing in the store: so this looks again by itself.
            let patience = left.min(WATCH_INTERVAL);
            self.inner.store.changed(seen.revision, patience).await?;
        }
    }

    /// Removes holds that lapsed or whose holder is dead, and what crashed processes left behind.
    pub async fn clean_up(&self, kind: Option<Kind>) -> Result<Cleanup, Error> {
        let rule = |seen: &Seen, witness: &dyn Witness| rules::reap(seen, kind, witness);
        let holds = self.inner.decide(&Look::Everything, rule).await?;
        Ok(Cleanup { holds, leftovers: self.inner.store.tidy().await? })
    }

    /// Events after a revision, oldest first.
    pub async fn events(&self, after: Revision, limit: u32) -> Result<Vec<Event>, Error> {
        Ok(self.inner.store.events(after, limit).await?)
    }

    /// Returns the newest revision as soon as it is beyond `since`, or when patience ends.
    pub async fn changed(&self, since: Revision, patience: Duration) -> Result<Revision, Error> {
        Ok(self.inner.store.changed(since, patience).await?)
    }

    /// Checks that the store is in order.
    pub async fn check(&self) -> Result<Vec<Finding>, Error> {
        Ok(self.inner.store.check().await?)
    }
}

/// How often one who only watches looks for deaths and lapses.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

fn holds_of(seen: &Seen, resource: &Resource) -> Vec<SeenHold> {
    seen.holds.iter().filter(|seen| seen.hold.want.resource == *resource).cloned().collect()
}
