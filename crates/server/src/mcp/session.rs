//! An agent's session: its label, and what it holds. Each session has its own grants, so that two
//! sessions with the same name never share a hold, unless both are known to be the same agent.

use super::Options;
use super::agent_holds::AgentHolds;
use super::answer::Refused;
use super::session_grants::SessionGrants;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tenure::agent::{Agent, runner_grant};
use tenure::core::rules::tasks::{Claimed, Finish, Finished};
use tenure::core::{
    Claim, GrantId, HoldSnapshot, Kind, Part, Proof, Reason, Resource, Scope, Task, TaskId,
    TaskScope, Token,
};
use tenure::store::{Renewal, Renewed};
use tenure::{Binding, Client, Error, Lease};
use tenure_frontend::refusal::Refusal;
use tenure_frontend::view;
use tokio::sync::{Mutex, MutexGuard, watch};

/// The most characters of a name, so that the rest of the label fits.
const NAME_MAX_CHARS: usize = 48;

/// How many finished tasks are remembered to recognise a repeated finish.
const FINISHED_MAX: usize = 64;

/// A hold of the session.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) grant: GrantId,
    token: Token,
    pub(super) resources: Vec<Resource>,
    /// Length of its lease from each renewal.
    ttl: Duration,
    /// The task, if it is a claim.
    task: Option<TaskId>,
    /// The section that belongs to its claim and is kept from task to task.
    section: Option<Resource>,
}

impl Held {
    fn renewal(&self) -> Renewal {
        let Held { grant, token, resources, ttl, .. } = self.clone();
        Renewal { grant, token, resources, ttl, bind: None }
    }
}

/// A section that the session keeps from task to task.
struct KeptSection {
    resource: Resource,
    token: Token,
    /// Length of its lease from each renewal.
    ttl: Duration,
}

#[derive(Default)]
struct Holds {
    held: Vec<Held>,
    /// Tasks whose lease lapsed. Until another worker claims one, it can still be finished.
    late: Vec<Held>,
    /// The tasks that were finished last, to recognise a repeated finish.
    finished: VecDeque<Held>,
    /// The sections that are kept from task to task.
    sections: Vec<KeptSection>,
    /// What was lost and not yet reported.
    lost: Vec<String>,
    /// What was held before the server restarted and not yet reported: the agent may have asked for
    /// it and never received the result.
    found: Vec<String>,
    /// Whether the session has ended.
    ended: bool,
}

impl Holds {
    fn keeps(&self, section: &Resource) -> bool {
        self.sections.iter().any(|kept| kept.resource == *section)
    }
}

/// The name of a session.
#[derive(Default)]
struct Named {
    /// The name that the agent gave itself last.
    chosen: Option<String>,
    /// The label in use, and the client with that label.
    shown: Option<(String, Client)>,
}

/// One agent's session.
pub(super) struct Session {
    /// The client of the store, for the agent if it is known who that is.
    client: Client,
    pub(super) options: Options,
    pub(super) tie: Binding,
    grants: SessionGrants,
    /// The name of the token that opened it, if there are tokens.
    pub(super) owner: Option<String>,
    named: parking_lot::Mutex<Named>,
    /// Locked while the store changes what is held, so that a hold that another call of this
    /// session just released does not seem lost. It is not locked while a call waits.
    holds: Mutex<Holds>,
    over: watch::Sender<bool>,
}

impl Session {
    /// A session with this key, which only its agent and the server know.
    pub(super) fn new(
        client: Client,
        options: Options,
        tie: Binding,
        key: &str,
        owner: Option<String>,
    ) -> Session {
        let grants = SessionGrants::of(key, owner.as_deref());
        Session {
            client,
            options,
            tie,
            grants,
            owner,
            named: parking_lot::Mutex::default(),
            holds: Mutex::default(),
            over: watch::Sender::new(false),
        }
    }

    /// The client with this session's label: that of the agent, where it is known; else the name that
    /// the agent gave itself in this or an earlier call, else that of the options, else its program's,
    /// with the session's suffix. While the session holds something its label does not change, so that
    /// others see one holder.
    pub(super) async fn client(
        &self,
        agent: Option<&str>,
        program: Option<&str>,
    ) -> Result<Client, Refused> {
        if self.agent().is_some() {
            return Ok(self.store().clone());
        }
        let is_idle = self.is_idle().await;
        let mut named = self.named.lock();
        let name = match (agent.or(named.chosen.as_deref()), &self.options.label, program) {
            (Some(agent), _, _) => agent.to_owned(),
            (None, Some(label), _) => label.clone(),
            (None, None, Some(program)) => plain(program),
            (None, None, None) => "agent".to_owned(),
        };
        let client = match &named.shown {
            Some((shown, client)) if *shown == name => client.clone(),
            _ => self.with_display_label(&name)?,
        };
        if agent.is_some() {
            named.chosen = Some(name.clone());
        }
        match &named.shown {
            Some((_, shown)) if !is_idle => Ok(shown.clone()),
            _ => {
                named.shown = Some((name, client.clone()));
                Ok(client)
            }
        }
    }

    fn store(&self) -> &Client {
        &self.client
    }

    /// The agent of this session, where it is known.
    pub(super) fn agent(&self) -> Option<&Agent> {
        self.store().agent()
    }

    /// The label of the agent, where it is known.
    pub(super) fn agent_label(&self) -> Option<&String> {
        self.agent().map(|agent| &agent.label)
    }

    fn with_display_label(&self, name: &str) -> Result<Client, Error> {
        self.store().with_display_label(&format!("{name}/{}", self.grants.mark()))
    }

    /// Uses the label again under which the session holds this.
    fn go_by(&self, label: &str) -> Result<(), Error> {
        let name = label.rsplit_once('/').map_or(label, |(name, _)| name);
        let shown = Some((name.to_owned(), self.with_display_label(name)?));
        let mut named = self.named.lock();
        *named = Named { chosen: Some(name.to_owned()), shown };
        Ok(())
    }

    /// The grant under which sections are kept: of an agent, the one that its other commands use too.
    pub(super) fn runner(&self) -> GrantId {
        match self.agent() {
            Some(agent) => runner_grant(&agent.label),
            None => self.grants.runner(),
        }
    }

    /// Whether this was taken by a shell command or a hook of the agent: it does not end with the session.
    fn is_of_another_face(&self, grant: GrantId) -> bool {
        self.agent().is_some() && !self.grants.has(grant)
    }

    /// What the agent holds here and elsewhere, where it is known who the agent is.
    fn agent_holds(&self) -> Option<AgentHolds> {
        AgentHolds::of(self.store())
    }

    /// A grant for the next request of the session.
    pub(super) fn new_grant(&self) -> GrantId {
        self.grants.grant()
    }

    /// Restores what was held under the same key before the server restarted; returns whether there
    /// was anything.
    pub(super) async fn take_up(&self) -> Result<bool, Error> {
        let seen = self.store().backend().read(&Scope::Everything).await?;
        let own = seen.holds.iter().filter(|seen| self.grants.has(seen.hold.grant));
        let own: Vec<&HoldSnapshot> = own.collect();
        let claimed = self.claimed(&own).await?;
        if let Some(first) = own.first().filter(|_| self.agent().is_none()) {
            self.go_by(&first.hold.holder.label)?;
        }
        let mut holds = self.holds().await;
        for seen in own {
            let (grant, resource) = (seen.hold.grant, seen.hold.want.resource.clone());
            if grant == self.runner() {
                let (token, ttl) = (seen.hold.token, seen.hold.ttl);
                holds.sections.push(KeptSection { resource, token, ttl });
                continue;
            }
            let name = resource.to_string();
            let list = match seen.lapsed() {
                true => {
                    holds.lost.push(name);
                    &mut holds.late
                }
                false => {
                    holds.found.push(name);
                    &mut holds.held
                }
            };
            let claim = claimed.get(&grant);
            match list.iter_mut().find(|held| held.grant == grant) {
                Some(held) => held.resources.push(resource),
                None => {
                    list.push(Held {
                        grant,
                        token: seen.hold.token,
                        resources: vec![resource],
                        ttl: seen.hold.ttl,
                        task: claim.map(|(id, _)| id.clone()),
                        section: claim.and_then(|(_, section)| section.clone()),
                    });
                }
            }
        }
        // A lock whose lease lapsed is forgotten.
        holds.late.retain(|held| held.task.is_some());
        Ok(!(holds.held.is_empty() && holds.late.is_empty() && holds.sections.is_empty()))
    }

    /// The claimed tasks by grant, each with the section that is kept for it. A task can also be held
    /// like a lock.
    async fn claimed(
        &self,
        own: &[&HoldSnapshot],
    ) -> Result<HashMap<GrantId, (TaskId, Option<Resource>)>, Error> {
        let resources = own.iter().map(|seen| &seen.hold.want.resource);
        let tasks = resources.filter(|resource| resource.kind() == Kind::Task);
        let ids: Vec<TaskId> = tasks.filter_map(|task| task.name().parse().ok()).collect();
        let look = Scope::Tasks(TaskScope { ids, ..TaskScope::default() });
        let tasks = self.store().backend().read(&look).await?.tasks;
        let claims = tasks.into_iter().filter_map(|task| Some((task.claim?, task.id)));
        Ok(claims
            .map(|(claim, id)| {
                let section = self.kept_part(&claim).map(|part| part.resource.clone());
                (claim.grant, (id, section))
            })
            .collect())
    }

    /// The part of a claim that is a section kept from task to task.
    fn kept_part<'a>(&self, claim: &'a Claim) -> Option<&'a Part> {
        claim
            .parts
            .iter()
            .find(|part| part.resource.kind() == Kind::Section && part.grant == self.runner())
    }

    /// Resolves when the session has ended.
    pub(super) async fn ended(&self) {
        // The sender is part of this session, so the channel stays open.
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }

    /// Cancels all waits, because the agent is gone.
    pub(super) fn call_off(&self) {
        self.over.send_replace(true);
    }

    async fn holds(&self) -> MutexGuard<'_, Holds> {
        self.holds.lock().await
    }

    /// The holds that the session knows of.
    pub(super) async fn held(&self) -> Vec<Held> {
        self.holds().await.held.clone()
    }

    /// The tasks of the session, except this one.
    pub(super) async fn other_tasks(&self, task: &TaskId) -> Vec<String> {
        let held = self.held().await;
        let tasks = held.iter().filter_map(|held| held.task.as_ref());
        tasks.filter(|other| *other != task).map(TaskId::to_string).collect()
    }

    /// Whether nothing is held.
    pub(super) async fn is_idle(&self) -> bool {
        let holds = self.holds().await;
        holds.held.is_empty() && holds.sections.is_empty()
    }

    /// Whether nothing is held and no call changes that at this moment.
    pub(super) fn is_idle_now(&self) -> bool {
        self.holds.try_lock().is_ok_and(|holds| holds.held.is_empty() && holds.sections.is_empty())
    }

    /// Renews all leases in one call to the store: those of the session, and all others of its agent.
    /// What turns out to be lost is remembered until it is reported. A task is lost with the section
    /// that belongs to its claim.
    pub(super) async fn renew(&self) -> Result<(), Error> {
        let mut holds = self.holds().await;
        let is_kept = match self.agent_holds() {
            Some(agent) => {
                let renewed = agent.renew().await?;
                let sections =
                    holds.sections.iter().map(|kept| renewed.has(self.runner(), &kept.resource));
                let held = holds.held.iter().map(|held| {
                    held.resources.iter().all(|resource| renewed.has(held.grant, resource))
                });
                sections.chain(held).collect()
            }
            None => self.renew_own(&holds).await?,
        };
        let mut is_kept = is_kept.into_iter();
        holds.sections.retain(|_| is_kept.next().unwrap_or(false));
        for held in std::mem::take(&mut holds.held) {
            let has_section = held.section.as_ref().is_none_or(|section| holds.keeps(section));
            if is_kept.next().unwrap_or(false) && has_section {
                holds.held.push(held);
                continue;
            }
            holds.lost.extend(held.resources.iter().map(Resource::to_string));
            if held.task.is_some() {
                holds.late.push(held);
            }
        }
        Ok(())
    }

    /// Renews what the session took; says of each section and then of each hold whether it is kept.
    async fn renew_own(&self, holds: &Holds) -> Result<Vec<bool>, Error> {
        let sections = holds.sections.iter().map(|kept| Renewal {
            grant: self.runner(),
            token: kept.token,
            resources: vec![kept.resource.clone()],
            ttl: kept.ttl,
            bind: None,
        });
        let renewals: Vec<Renewal> = sections.chain(holds.held.iter().map(Held::renewal)).collect();
        if renewals.is_empty() {
            return Ok(vec![]);
        }
        let answers = self.store().backend().renew(&renewals).await?;
        Ok(answers.into_iter().map(|answer| answer == Renewed::Renewed).collect())
    }

    /// What was lost since the last call.
    pub(super) async fn take_lost(&self) -> Vec<String> {
        std::mem::take(&mut self.holds().await.lost)
    }

    /// What was restored and not yet reported.
    pub(super) async fn take_found(&self) -> Vec<String> {
        std::mem::take(&mut self.holds().await.found)
    }

    /// Remembers a claimed task; if the session has ended meanwhile, returns the task.
    pub(super) async fn keep_task(&self, claimed: &Claimed) -> Result<(), Refused> {
        let mut holds = self.holds().await;
        if holds.ended {
            self.finish_held(&self.held_task(claimed), Finish::Release).await?;
            return Err(Refused::cancelled());
        }
        let is_known = holds.held.iter().any(|held| held.grant == claimed.grant);
        if is_known || self.is_of_another_face(claimed.grant) {
            return Ok(());
        }
        let claim = claimed.task.claim.as_ref();
        if let Some(part) = claim.and_then(|claim| self.kept_part(claim)) {
            let (resource, token) = (part.resource.clone(), part.token);
            let ttl = self.options.section_ttl.max(self.options.task_ttl);
            holds.sections.retain(|kept| kept.resource != resource);
            holds.sections.push(KeptSection { resource, token, ttl });
        }
        holds.held.push(self.held_task(claimed));
        Ok(())
    }

    fn held_task(&self, claimed: &Claimed) -> Held {
        let claim = claimed.task.claim.as_ref();
        let section = claim.and_then(|claim| self.kept_part(claim));
        Held {
            grant: claimed.grant,
            token: claimed.token,
            resources: claimed.resources.clone(),
            ttl: self.options.task_ttl,
            task: Some(claimed.task.id.clone()),
            section: section.map(|part| part.resource.clone()),
        }
    }

    /// Returns a task whose claim is no longer wanted, as if it had never been handed out. A task that the
    /// session worked on before stays its own.
    pub(super) async fn hand_back(&self, claimed: &Claimed) -> Result<(), Refused> {
        let mut holds = self.holds().await;
        let runner = Some(self.runner());
        self.store().tasks().call_off(std::slice::from_ref(claimed), runner).await?;
        if claimed.reason != Reason::AlreadyOwned {
            holds.held.retain(|held| held.grant != claimed.grant);
        }
        Ok(())
    }

    /// Remembers a lock; if the session has ended meanwhile, releases it.
    pub(super) async fn keep_lock(&self, lease: &Lease) -> Result<(), Refused> {
        let mut holds = self.holds().await;
        if holds.ended {
            self.store().release(Proof::Grant(lease.grant), Some(&lease.resources)).await?;
            return Err(Refused::cancelled());
        }
        let Lease { grant, token, ttl, .. } = *lease;
        let is_known = holds.held.iter().any(|held| held.grant == grant);
        // What covers it may be held by a command around the agent's program, which gives it back.
        let is_around = self.options.around.contains(&grant);
        if !is_known && !is_around && !self.is_of_another_face(grant) {
            let resources = lease.resources.clone();
            holds.held.push(Held { grant, token, resources, ttl, task: None, section: None });
        }
        Ok(())
    }

    /// Finishes a task of the session.
    pub(super) async fn finish(&self, task: &Task, finish: Finish) -> Result<Task, Refused> {
        let mut holds = self.holds().await;
        let mine = |held: &&Held| held.task.as_ref() == Some(&task.id);
        let mut known = holds.held.iter().chain(&holds.late).chain(&holds.finished);
        let Some(held) = known.find(mine).cloned() else {
            return match self.agent_holds() {
                Some(agent) => agent.finish(self, task, finish).await,
                None => Err(Refused::not_yours(task)),
            };
        };
        let finished = self.finish_held(&held, finish).await?;
        holds.held.retain(|other| other.grant != held.grant);
        holds.late.retain(|other| other.grant != held.grant);
        match finished {
            Finished::Done { task, gave_up_section, repeated } => {
                if gave_up_section {
                    let section = task.section_resource();
                    holds.sections.retain(|kept| Some(&kept.resource) != section.as_ref());
                }
                // It was not lost after all.
                holds
                    .lost
                    .retain(|lost| !held.resources.iter().any(|one| one.to_string() == *lost));
                if !repeated {
                    holds.finished.push_front(held);
                    holds.finished.truncate(FINISHED_MAX);
                }
                Ok(task)
            }
            Finished::NotYours(task) => Err(Refused::not_yours(&task)),
            Finished::ClaimLost { task, part } => Err(Refusal::claim_lost(&task, &part).into()),
            Finished::NotFound => Err(Error::NoSuchTask { text: task.id.to_string() }.into()),
        }
    }

    /// What proves that the session's agent works on this task.
    pub(super) async fn proof_of(&self, task: &Task) -> Result<Proof, Refused> {
        let held = self.held().await;
        let own = held.iter().find(|held| held.task.as_ref() == Some(&task.id));
        match (own, self.agent_holds()) {
            (Some(held), _) => Ok(Proof::Grant(held.grant)),
            (None, Some(agent)) => Ok(agent.proof()),
            (None, None) => Err(Refused::not_yours(task)),
        }
    }

    async fn finish_held(&self, held: &Held, finish: Finish) -> Result<Finished, Error> {
        let Some(task) = &held.task else { return Ok(Finished::NotFound) };
        let (proof, token) = (Proof::Grant(held.grant), Some(held.token));
        self.store().tasks().finish(task, proof, token, Some(self.runner()), finish).await
    }

    /// Releases these locks, or all; returns which. Tasks are released by finishing them.
    pub(super) async fn release_locks(
        &self,
        resources: Option<&[Resource]>,
    ) -> Result<Vec<Resource>, Error> {
        let mut holds = self.holds().await;
        let concerned = |resource: &Resource| resources.is_none_or(|some| some.contains(resource));
        let mut released = Vec::new();
        for held in holds.held.clone().iter().filter(|held| held.task.is_none()) {
            let mine: Vec<Resource> =
                held.resources.iter().filter(|resource| concerned(resource)).cloned().collect();
            if mine.is_empty() {
                continue;
            }
            self.store().release(Proof::Grant(held.grant), Some(&mine)).await?;
            for other in holds.held.iter_mut().filter(|other| other.grant == held.grant) {
                other.resources.retain(|resource| !mine.contains(resource));
            }
            holds.held.retain(|held| !held.resources.is_empty());
            released.extend(mine);
        }
        if let Some(agent) = self.agent_holds() {
            let rest = |some: &[Resource]| {
                some.iter().filter(|one| !released.contains(one)).cloned().collect()
            };
            let others = agent.release(resources.map(rest)).await?;
            released.extend(others);
        }
        Ok(released)
    }

    /// Releases everything that is held, now and later.
    pub(super) async fn end(&self) -> Result<(), Error> {
        self.call_off();
        let mut holds = self.holds().await;
        holds.ended = true;
        let held = std::mem::take(&mut holds.held);
        let mut result = Ok(());
        for held in held {
            let ended = match &held.task {
                Some(_) => self.finish_held(&held, Finish::Release).await.map(drop),
                None => {
                    let proof = Proof::Grant(held.grant);
                    self.store().release(proof, Some(&held.resources)).await.map(drop)
                }
            };
            result = result.and(ended);
        }
        let sections = std::mem::take(&mut holds.sections);
        let sections: Vec<Resource> = sections.into_iter().map(|kept| kept.resource).collect();
        if self.agent().is_some() {
            // Another face of the agent may work in a section.
            let left = self.store().tasks().leave_idle_sections(self.runner()).await;
            result = result.and(left.map(drop));
        } else if !sections.is_empty() {
            let proof = Proof::Grant(self.runner());
            result = result.and(self.store().release(proof, Some(&sections)).await.map(drop));
        }
        result
    }

    /// What is held, with the time left.
    pub(super) async fn holding(&self) -> Result<Vec<Value>, Error> {
        if let Some(agent) = self.agent_holds() {
            return Ok(agent.list().await?.iter().map(hold_json).collect());
        }
        let held = self.held().await;
        let resources: Vec<Resource> =
            held.iter().flat_map(|held| held.resources.iter().cloned()).collect();
        if resources.is_empty() {
            return Ok(vec![]);
        }
        let seen = self.store().look(&resources).await?;
        let mine = seen.holds.iter().filter(|seen| {
            held.iter().any(|held| {
                held.resources.contains(&seen.hold.want.resource)
                    && Proof::Grant(held.grant).recognises(seen)
            })
        });
        Ok(mine.map(hold_json).collect())
    }
}

fn hold_json(seen: &HoldSnapshot) -> Value {
    json!({
        "resource": seen.hold.want.resource.to_string(),
        "token": seen.hold.token,
        "expires_at": view::time(seen.expires_at),
        "seconds_left": seen.left.as_secs(),
    })
}

/// A program's name as a part of a label.
fn plain(name: &str) -> String {
    let name: String = name.chars().filter(|c| !c.is_control()).take(NAME_MAX_CHARS).collect();
    if name.trim().is_empty() { "agent".to_owned() } else { name }
}
