//! Nothing that a stranger is told lets it release what it does not own.
//!
//! A stranger collects every kind of answer, as Debug output and as JSON, and tries every part of
//! them that could be a grant.

use crate::{Stores, lease, on_every_store, resource, until};
use serde::Serialize;
use std::fmt::Debug;
use std::time::Duration;
use tenure::core::rules::tasks::{Finish, Finished, NewTask};
use tenure::core::{GrantId, Proof, Released, Revision, TaskId, Token};
use tenure::store::TaskFilter;
use tenure::{Attempt, Broken, ClaimRequest, Claims, Waiting};

on_every_store!(a_stranger_learns_no_grant_that_releases_anything);

/// All that the stranger was told.
#[derive(Default)]
struct Told(Vec<String>);

impl Told {
    fn shown(&mut self, value: &impl Debug) {
        self.0.push(format!("{value:?}"));
    }

    fn sent(&mut self, value: &(impl Debug + Serialize)) {
        self.shown(value);
        self.0.push(serde_json::to_string(value).unwrap());
    }

    /// Every part that reads as a grant, in any of the forms that are accepted.
    fn grants(&self) -> Vec<GrantId> {
        let mut grants = Vec::new();
        for text in &self.0 {
            let characters: Vec<char> = text.chars().collect();
            for length in [32, 36] {
                for part in characters.windows(length) {
                    let part: String = part.iter().collect();
                    grants.extend(uuid::Uuid::try_parse(&part).ok());
                }
            }
        }
        grants.into_iter().map(|id| GrantId::from_bits(id.as_u128())).collect()
    }
}

async fn a_stranger_learns_no_grant_that_releases_anything(stores: &Stores) {
    let (alice, bob, eve) = (stores.anonymous(), stores.anonymous(), stores.anonymous());
    let mut told = Told::default();

    let guard = alice.acquire("deploy").await.unwrap();
    told.shown(&guard);
    told.shown(guard.lease());
    lease(alice.request("lapsing").ttl(Duration::from_millis(100)).detached()).await;
    let (tell, mut waits) = tokio::sync::mpsc::unbounded_channel();
    let telling = move |waiting: &Waiting| tell.send(waiting.clone()).unwrap();
    let waiting = tokio::spawn(bob.request("deploy").on_wait(telling).hold());
    told.shown(&waits.recv().await.unwrap());

    let tasks = alice.tasks();
    let new = NewTask::new("secret-task".parse::<TaskId>().unwrap(), "secret");
    tasks.add(vec![new]).await.unwrap();
    let claims = tasks.claim(&ClaimRequest::default()).await.unwrap();
    let Claims::Claimed { tasks: mine, .. } = claims else { panic!("it is free") };
    let (task, claim) = (mine[0].task.id.clone(), mine[0].grant);

    let deploy = resource("deploy");
    let Attempt::Busy(busy) = eve.try_acquire("deploy").await.unwrap() else { panic!("held") };
    assert_eq!(busy.blockers.len(), 2, "one holds and one waits");
    told.shown(&busy);
    told.sent(&busy.blockers);
    told.sent(&eve.look(std::slice::from_ref(&deploy)).await.unwrap());
    told.sent(&eve.look_everywhere().await.unwrap());
    let wrong = Proof::Label("eve".to_owned());
    let not_held = eve.release(wrong, Some(std::slice::from_ref(&deploy))).await.unwrap();
    assert!(matches!(&not_held, Released::NotHeld(others) if !others.is_empty()));
    told.sent(&not_held);
    let gone = eve.break_hold("deploy", Token(999_999), "curious").await.unwrap();
    assert!(matches!(&gone, Broken::Gone(others) if !others.is_empty()));
    told.sent(&gone);
    told.sent(&eve.tasks().list(&TaskFilter::default()).await.unwrap());
    told.sent(&eve.tasks().get(&task).await.unwrap());
    told.sent(&eve.tasks().get_all(vec![task.clone()]).await.unwrap());
    told.sent(&eve.tasks().find("secret").await.unwrap());
    let named = ClaimRequest { task: Some(task.clone()), ..Default::default() };
    told.shown(&eve.tasks().claim(&named).await.unwrap());
    let (eves, wrong) = (eve.tasks(), Proof::Label("eve".to_owned()));
    let late = eves.finish(&task, wrong, None, None, Finish::Release).await.unwrap();
    assert!(matches!(late, Finished::NotYours(_)));
    told.sent(&late);
    told.sent(&eve.events(Revision(0), 1000).await.unwrap());
    // A lock that lapsed can be taken over, and its former grant is not told either.
    until(&eve, |seen| seen.holds.iter().any(|seen| seen.lapsed())).await;
    let taken = lease(eve.request("lapsing").detached()).await;
    assert_eq!(taken.takeovers.len(), 1);
    told.sent(&taken.takeovers);

    assert!(told.0.len() > 20 && told.0.iter().all(|text| text.len() > 2));
    for grant in told.grants() {
        let released = eve.release(Proof::Grant(grant), None).await.unwrap();
        assert!(matches!(released, Released::NotHeld(_)), "{grant:?}: {released:?}");
    }
    assert!(!told.grants().contains(&guard.grant()) && !told.grants().contains(&claim));
    assert!(guard.confirm().await.unwrap(), "it is still held");
    waiting.abort();
}
