//! Short ways to ask a store by the rules.

use std::time::Duration;
use tenure::core::rules::{self, tasks};
use tenure::core::{
    Ask, BreakAsk, GrantId, Holder, NoWitness, Outcome, Proof, ReleaseAsk, Resource, Scope,
    Snapshot, Token, Want,
};
use tenure::store::{Store, StoreError, transact_with};

/// A lease that does not lapse while a test runs.
pub const LONG: Duration = Duration::from_secs(600);

pub fn resource(name: &str) -> Resource {
    name.parse().unwrap()
}

pub fn at(name: &str) -> Scope {
    Scope::Queues(vec![resource(name)])
}

pub fn ask(name: &str, grant: GrantId) -> Ask {
    Ask {
        grant,
        wants: vec![Want::exclusive(resource(name))],
        holder: Holder::anonymous("somebody".to_owned()),
        presence: None,
        operation: None,
        ttl: LONG,
        keeps: vec![],
        owner: Default::default(),
        queue: None,
    }
}

/// Asks for something, as clients do.
pub async fn request(store: &dyn Store, ask: Ask) -> Result<Outcome, StoreError> {
    let resources = ask.wants.iter().map(|want| want.resource.clone()).collect();
    let scope = Scope::At { resources, ticket: None };
    let rule = move |seen: &Snapshot| rules::acquire(seen, &ask, &NoWitness);
    Ok(transact_with(store, scope, None, rule).await?.1)
}

/// Takes a lock that is free; returns its token.
pub async fn take(store: &dyn Store, name: &str, grant: GrantId) -> Token {
    match request(store, ask(name, grant)).await.unwrap() {
        Outcome::Granted(granted) => granted.token,
        other => panic!("{name} was free, and the answer was {other:?}"),
    }
}

/// Takes a place in a queue.
pub async fn queue(store: &dyn Store, name: &str, grant: GrantId) {
    let ask = Ask { queue: Some(LONG), ..ask(name, grant) };
    let outcome = request(store, ask).await.unwrap();
    assert!(matches!(outcome, Outcome::Waiting { .. }), "{outcome:?}");
}

pub async fn release(store: &dyn Store, name: &str, grant: GrantId) {
    let ask = ReleaseAsk { proof: Proof::Grant(grant), resources: None, lost: false };
    let rule = move |seen: &Snapshot| rules::release(seen, &ask, &NoWitness);
    transact_with(store, at(name), None, rule).await.unwrap();
}

pub async fn leave(store: &dyn Store, name: &str, grant: GrantId) {
    let rule = move |seen: &Snapshot| rules::leave(seen, grant, &NoWitness);
    let (_, left) = transact_with(store, at(name), None, rule).await.unwrap();
    assert!(left, "it waited");
}

pub async fn break_hold(store: &dyn Store, name: &str, token: Token) {
    let (by, reason) = ("operator".to_owned(), "a test".to_owned());
    let ask = BreakAsk { resource: resource(name), token, by, reason };
    let rule = move |seen: &Snapshot| rules::break_hold(seen, &ask, &NoWitness);
    let (_, broken) = transact_with(store, at(name), None, rule).await.unwrap();
    assert!(broken.is_some(), "it was held");
}

pub fn tasks(count: usize) -> Vec<tasks::NewTask> {
    let new = |number| tasks::NewTask::new(format!("t{number:05}").parse().unwrap(), "a task");
    (0..count).map(new).collect()
}
