//! Carries out the steps of a program on one store, with the tokens and tickets of that store.

use crate::program::Step;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use tenure::Client;
use tenure::core::act::{
    Acquire, Act, CallOff, CallOffClaim, ClaimTasks, FinishTask, FinishTasks, Leave,
    LeaveIdleSections, Reap, Recover, Release, StartTask,
};
use tenure::core::rules::tasks::{DescribeTry, Finish, FinishAsk, HeartbeatAsk};
use tenure::core::{Ask, BreakAsk, GrantId, Outcome, Proof, ReleaseAsk, Resource, TaskId, Token};
use tenure::store::{Renewal, RequestId};
use tenure::world::ManualClock;

/// A store, and what a program knows of it.
pub struct Subject {
    /// Its name in messages.
    pub name: &'static str,
    client: Client,
    clock: Option<Arc<ManualClock>>,
    asks: HashMap<GrantId, Ask>,
    tokens: HashMap<GrantId, Token>,
    tickets: HashMap<GrantId, u64>,
    claims: HashMap<GrantId, (TaskId, Token)>,
    /// The highest token that each resource has had.
    highest: HashMap<String, u64>,
    requests: u64,
}

/// What was answered: once, or twice where the same request was sent again.
type Answers = Vec<Value>;

impl Subject {
    /// A program's view of a store that is empty.
    pub fn new(name: &'static str, client: Client, clock: Option<Arc<ManualClock>>) -> Subject {
        Subject {
            name,
            client,
            clock,
            asks: HashMap::new(),
            tokens: HashMap::new(),
            tickets: HashMap::new(),
            claims: HashMap::new(),
            highest: HashMap::new(),
            requests: 0,
        }
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Carries out a step; twice, as the same request, if that is asked for.
    pub async fn apply(&mut self, step: &Step, twice: bool) -> Answers {
        match step {
            Step::Acquire(ask) => {
                self.asks.insert(ask.grant, ask.clone());
                self.acquire(ask.clone(), None, twice).await
            }
            Step::AskAgain(grant) => {
                let ticket = self.tickets.get(grant).copied();
                self.acquire(self.asks[grant].clone(), ticket, twice).await
            }
            Step::Leave(grant) => {
                let Some(ticket) = self.tickets.remove(grant) else { return vec![] };
                let act = Leave { grant: *grant, resources: self.resources(grant), ticket };
                self.act(&act, twice).await.0
            }
            Step::CallOff(grant) => {
                let resources = self.resources(grant);
                self.act(&CallOff { grant: *grant, resources, is_new: true }, twice).await.0
            }
            Step::Release(grant) => {
                let at = Some(self.resources(grant));
                let proof = Proof::Grant(*grant);
                let ask = ReleaseAsk { proof, resources: None, lost: false };
                self.act(&Release { at, ask }, twice).await.0
            }
            Step::ReleaseByLabel(label) => {
                let proof = Proof::Label(label.clone());
                let ask = ReleaseAsk { proof, resources: None, lost: false };
                self.act(&Release { at: None, ask }, twice).await.0
            }
            Step::Renew(grant) => {
                let Some(token) = self.tokens.get(grant).copied() else { return vec![] };
                let ttl = self.asks[grant].ttl;
                let resources = self.resources(grant);
                let renewal = Renewal { grant: *grant, token, resources, ttl, bind: None };
                let renewed = self.client.backend().renew(&[renewal]).await;
                vec![json!(renewed.expect("stores answer"))]
            }
            Step::Break(grant) => {
                let Some(token) = self.tokens.get(grant).copied() else { return vec![] };
                let resource = self.resources(grant)[0].clone();
                let (by, reason) = ("operator".to_owned(), "to see what happens".to_owned());
                self.act(&BreakAsk { resource, token, by, reason }, twice).await.0
            }
            Step::Verify(grant) => {
                let Some(token) = self.tokens.get(grant).copied() else { return vec![] };
                let resource = self.resources(grant)[0].to_string();
                let answer = self.client.verify(resource.as_str(), token).await;
                // The token that holds now is a number that may differ.
                vec![json!(format!("{:?}", answer.expect("stores answer")).starts_with("Valid"))]
            }
            Step::Query(query) => {
                let answer = self.client.backend().query(query.clone()).await;
                vec![json!(answer.expect("stores answer"))]
            }
            Step::Pass(time) => {
                self.clock.iter().for_each(|clock| clock.advance(*time));
                vec![]
            }
            _ => self.apply_to_tasks(step, twice).await,
        }
    }

    async fn apply_to_tasks(&mut self, step: &Step, twice: bool) -> Answers {
        match step {
            Step::Add(ask) => self.act(ask, twice).await.0,
            Step::Claim { ask, wider } => {
                let act = ClaimTasks { ask: ask.clone(), wider: *wider };
                let (answers, claimed) = self.act(&act, twice).await;
                for claimed in claimed.into_iter().flatten() {
                    self.note_token(&claimed.task.id.resource(), claimed.token);
                    let claim = (claimed.task.id, claimed.token);
                    self.claims.insert(claimed.grant, claim);
                }
                answers
            }
            Step::CallOffClaim(grant) => {
                let act = CallOffClaim { grants: vec![*grant], runner: None };
                self.act(&act, twice).await.0
            }
            Step::Start(grant) => match self.finish_ask(*grant, &Finish::Release) {
                Some(ask) => self.act(&StartTask { ask }, twice).await.0,
                None => vec![],
            },
            Step::Heartbeat(grant) => {
                let Some((task, token)) = self.claims.get(grant).cloned() else { return vec![] };
                let (proof, token) = (Proof::Grant(*grant), Some(token));
                self.act(&HeartbeatAsk { task, proof, token, ttl: None }, twice).await.0
            }
            Step::Describe(grant) => {
                let Some((task, token)) = self.claims.get(grant).cloned() else { return vec![] };
                let branch = Some("work/on-it".to_owned());
                let (worktree, rescue, note, by) = (None, None, None, "ann".to_owned());
                let act = DescribeTry {
                    task,
                    token,
                    grant: Some(*grant),
                    worktree,
                    branch,
                    rescue,
                    note,
                    by,
                };
                self.act(&act, twice).await.0
            }
            Step::Finish(grant, finish) => match self.finish_ask(*grant, finish) {
                Some(ask) => self.act(&FinishTask { ask, output: None }, twice).await.0,
                None => vec![],
            },
            Step::FinishAll(some) => {
                let asks =
                    some.iter().filter_map(|(grant, finish)| self.finish_ask(*grant, finish));
                let act = FinishTasks { asks: asks.collect() };
                self.act(&act, twice).await.0
            }
            Step::Edit(ask) => self.act(ask, twice).await.0,
            Step::Note(act) => self.act(act, twice).await.0,
            Step::Delete(act) => self.act(act, twice).await.0,
            Step::PutSection(act) => self.act(act, twice).await.0,
            Step::Recover => self.act(&Recover { recoveries_max: 3, broken: None }, twice).await.0,
            Step::Reap => self.act(&Reap { kind: None }, twice).await.0,
            Step::LeaveIdleSections(runner) => {
                self.act(&LeaveIdleSections { runner: *runner }, twice).await.0
            }
            other => panic!("{other:?} is not about tasks"),
        }
    }

    async fn acquire(&mut self, ask: Ask, ticket: Option<u64>, twice: bool) -> Answers {
        let grant = ask.grant;
        let (answers, outcome) =
            self.act(&Acquire { ask, ticket, whole_queues: ticket.is_none() }, twice).await;
        match outcome {
            Outcome::Granted(granted) => {
                self.tickets.remove(&grant);
                for resource in self.resources(&grant) {
                    // What an owner holds already keeps its token.
                    if granted.owned.is_none() && !self.tokens.contains_key(&grant) {
                        self.note_token(&resource, granted.token);
                    }
                }
                self.tokens.insert(grant, granted.token);
            }
            Outcome::Waiting { ticket, .. } => drop(self.tickets.insert(grant, ticket)),
            Outcome::Busy { .. } | Outcome::Deadlock(_) => {}
        }
        answers
    }

    /// Tokens of a resource rise, whatever their values are.
    fn note_token(&mut self, resource: &Resource, token: Token) {
        let highest = self.highest.entry(resource.to_string()).or_default();
        assert!(token.0 >= *highest, "{}: {resource} got {token} after {highest}", self.name);
        *highest = token.0;
    }

    fn resources(&self, grant: &GrantId) -> Vec<Resource> {
        self.asks[grant].wants.iter().map(|want| want.resource.clone()).collect()
    }

    fn finish_ask(&self, grant: GrantId, finish: &Finish) -> Option<FinishAsk> {
        let (task, token) = self.claims.get(&grant).cloned()?;
        let (proof, token) = (Proof::Grant(grant), Some(token));
        Some(FinishAsk { task, proof, token, runner: None, finish: finish.clone() })
    }

    /// Performs an act: once, or twice as one request.
    async fn act<A: Act>(&mut self, act: &A, twice: bool) -> (Answers, A::Answer) {
        let backend = self.client.backend();
        if !twice {
            let answer = backend.perform(act).await.expect("stores answer");
            return (vec![json!(answer)], answer);
        }
        self.requests += 1;
        let request =
            RequestId { slot: format!("a-line-of-requests-{}", self.requests), number: 1 };
        let first = backend.perform_once(&request, act).await.expect("stores answer");
        let again = backend.perform_once(&request, act).await.expect("stores answer again");
        (vec![json!(first), json!(again)], first)
    }
}
