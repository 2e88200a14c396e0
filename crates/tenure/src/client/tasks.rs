//! The verbs of tasks.

use super::claim::Waits;
use super::claimed_work::Work;
use super::keeper::{BackgroundCleanup, TrackedLease};
use super::lease::Lease;
use super::obtain::LATE_TRIES;
use super::request::{Binding, default_margin};
use super::revocable::Revocable;
use super::{Client, GUARD_LEASE, verbs};
use crate::error::Error;
use crate::store::{Tally, TaskCounts, TaskFilter};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::act::{
    CallOffClaim, ChangeSections, ClaimTasks, DeleteTasks, FinishTask, FinishTasks,
    LeaveIdleSections, PutSection, StartTask,
};
use tenure_core::rules::tasks::{
    AddAsk, AddNote, Added, ClaimAsk, Claimed, DescribeTry, EditAsk, Finish, FinishAsk, Finished,
    Heartbeat, HeartbeatAsk, ImportAsk, Imported, ManualChange, NewTask, NoClaim, SectionChange,
};
use tenure_core::{
    GrantId, HoldSnapshot, Holder, Owner, Proof, Reason, Resource, Scope, Section, SectionSnapshot,
    Snapshot, Status, Task, TaskId, TaskScope, Token, WallTime, Workspace, rules,
};

/// The verbs of tasks; see [`Client::tasks`].
#[derive(Clone)]
pub struct Tasks {
    pub(super) client: Client,
}

impl Client {
    /// The verbs of tasks.
    pub fn tasks(&self) -> Tasks {
        Tasks { client: self.clone() }
    }
}

/// What a worker asks for.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Only this task.
    pub task: Option<TaskId>,
    /// Only of this section.
    pub section: Option<String>,
    /// Only with all of these labels.
    pub labels: Vec<String>,
    /// At most so many.
    pub count: usize,
    /// Under which grant, for the first of them; a random one if not set.
    pub grant: Option<GrantId>,
    /// Lease of a task.
    pub ttl: Duration,
    /// Lease of a section.
    pub section_ttl: Duration,
    /// Under which grant the worker keeps its section from task to task.
    pub runner: Option<GrantId>,
    /// What the claim is tied to besides its lease.
    pub tie: Binding,
    /// Which of the client's workers asks; its label is the client's and this.
    pub worker: Option<String>,
    /// Grants of the session or of the commands around the claim: what they hold is not in its way.
    pub under: Vec<GrantId>,
    /// Where the worker works: it is kept with the try, so that unfinished work is found.
    pub workspace: Workspace,
}

impl Default for ClaimRequest {
    fn default() -> ClaimRequest {
        ClaimRequest {
            task: None,
            section: None,
            labels: vec![],
            count: 1,
            grant: None,
            ttl: GUARD_LEASE,
            section_ttl: GUARD_LEASE,
            runner: None,
            tie: Binding::ThisProcess,
            worker: None,
            under: vec![],
            workspace: Workspace::default(),
        }
    }
}

/// What came of a claim.
#[derive(Clone, Debug)]
pub enum Claims {
    /// These are the worker's now.
    Claimed {
        /// The tasks, each with its grant and token.
        tasks: Vec<Claimed>,
        /// When, on the client's clock, the claim was asked for: trust counts from then.
        asked_at: Duration,
    },
    /// None was to be had.
    None(NoClaim),
}

impl Tasks {
    /// Adds tasks, all or none. A task whose key is known already is not added again.
    pub async fn add(&self, tasks: Vec<NewTask>) -> Result<Vec<Added>, Error> {
        let ask = AddAsk { tasks, by: self.client.holder().label.clone() };
        Ok(self.client.inner.backend.perform(&ask).await??)
    }

    /// Adds the tasks and sections of a file, all or nothing; what is there already stays as it is.
    pub async fn import(
        &self,
        tasks: Vec<NewTask>,
        sections: Vec<Section>,
    ) -> Result<Imported, Error> {
        let ask = self.import_ask(tasks, sections);
        Ok(self.client.inner.backend.perform(&ask).await??)
    }

    /// What [`Tasks::import`] would do now.
    pub async fn try_import(
        &self,
        tasks: Vec<NewTask>,
        sections: Vec<Section>,
    ) -> Result<Imported, Error> {
        let ask = self.import_ask(tasks, sections);
        let seen = self.client.inner.backend.read(&ask.scope()).await?;
        Ok(rules::tasks::import(&seen, &ask).1?)
    }

    fn import_ask(&self, tasks: Vec<NewTask>, sections: Vec<Section>) -> ImportAsk {
        let by = self.client.holder().label.clone();
        ImportAsk { add: AddAsk { tasks, by }, sections }
    }

    /// Takes the next tasks, or the named one, if any is ready now; [`Tasks::request`] waits for
    /// one. Takes back the tasks of dead workers first, if this client has not looked for them for
    /// a while.
    ///
    /// If this future is dropped, nothing stays claimed: what the store may have granted by then is
    /// handed back in the background.
    pub async fn claim(&self, request: &ClaimRequest) -> Result<Claims, Error> {
        self.claim_or_queue(request, Waits::default(), default_margin(request.ttl)).await
    }

    /// The same; a named task that is held is queued for, if a place is to last this long. The place is
    /// that of the request's grant.
    pub(super) async fn claim_or_queue(
        &self,
        request: &ClaimRequest,
        Waits { queue, is_kept }: Waits,
        margin: Duration,
    ) -> Result<Claims, Error> {
        let waits_here = queue.is_some() && !is_kept;
        let presence = waits_here.then(|| self.client.inner.world.this_process());
        let ask = ClaimAsk { queue, presence, ..self.ask(request)? };
        let mut act = ClaimTasks { ask, wider: 0 };
        self.recover_now_and_then().await?;
        for _ in 0..LATE_TRIES {
            let asked_at = self.client.inner.clock.now();
            let mut open = OpenClaim::new(&self.client, &act.ask);
            let mut answer = open.perform(&act).await?;
            while matches!(answer, Err(NoClaim::AllTaken { look_wider: true, .. })) && act.wider < 2
            {
                act.wider += 1;
                answer = open.perform(&act).await?;
            }
            if let Err(NoClaim::Queue(wait)) = answer {
                let ask = ClaimAsk { place_for: Some(wait), ..act.ask.clone() };
                let queued = open.perform(&ClaimTasks { ask, wider: 0 }).await?;
                if let Err(NoClaim::Deadlock(cycle)) = queued {
                    return Err(Error::Deadlock(cycle));
                }
                // It may have become free meanwhile.
                answer = open.perform(&act).await?;
            }
            let tasks = match answer {
                Ok(tasks) => tasks,
                Err(none) => return Ok(Claims::None(none)),
            };
            if self.is_trusted_with(request.ttl, margin, asked_at) {
                return Ok(Claims::Claimed { tasks, asked_at });
            }
            // The answer came late, or this process was stopped: another may have the task by now.
            self.call_off(&tasks, act.ask.runner).await?;
        }
        Err(Error::TooLate)
    }

    /// Hands back tasks that were claimed and cannot be worked on, as if they had never been handed
    /// out. What the worker had before stays.
    pub async fn call_off(
        &self,
        claimed: &[Claimed],
        runner: Option<GrantId>,
    ) -> Result<(), Error> {
        let new = claimed.iter().filter(|one| one.reason != Reason::AlreadyOwned);
        let grants = new.map(|one| one.grant).collect();
        self.client.inner.backend.perform(&CallOffClaim { grants, runner }).await?;
        Ok(())
    }

    /// Whether a claim that was asked for at this time, on the client's clock, may be trusted now: the
    /// moment to ask is right before it is handed on.
    pub fn is_trusted(&self, ttl: Duration, asked_at: Duration) -> bool {
        self.is_trusted_with(ttl, default_margin(ttl), asked_at)
    }

    pub(super) fn is_trusted_with(
        &self,
        ttl: Duration,
        margin: Duration,
        asked_at: Duration,
    ) -> bool {
        self.client.inner.clock.now() < (asked_at + ttl).saturating_sub(margin)
    }

    fn ask(&self, request: &ClaimRequest) -> Result<ClaimAsk, Error> {
        let world = &self.client.inner.world;
        let holder = self.holder(request)?;
        let mut owner = match holder.is_owned_by_label() {
            true => Owner { label: Some(holder.label.clone()), ..self.client.inner.owner() },
            false => Owner::default(),
        };
        owner.grants.clone_from(&request.under);
        Ok(ClaimAsk {
            owner,
            grants: std::iter::once(request.grant.unwrap_or_else(|| world.new_grant()))
                .chain((1..request.count).map(|_| world.new_grant()))
                .collect(),
            runner: request.runner,
            holder,
            ttl: request.ttl,
            section_ttl: request.section_ttl,
            task: request.task.clone(),
            section: request.section.clone(),
            labels: request.labels.clone(),
            workspace: request.workspace.clone(),
            queue: None,
            presence: None,
            place_for: None,
        })
    }

    fn holder(&self, request: &ClaimRequest) -> Result<Holder, Error> {
        let holder = self.client.inner.holder(request.tie)?;
        Ok(match &request.worker {
            Some(worker) => Holder { label: format!("{}/{worker}", holder.label), ..holder },
            None => holder,
        })
    }

    /// Takes back the tasks whose worker died or fell silent; says which.
    pub async fn recover(&self) -> Result<Vec<Task>, Error> {
        Ok(self.client.inner.backend.perform(&self.client.inner.recover()).await?)
    }

    /// Takes back the tasks of dead workers now and then, however much else there is to do: they
    /// may be the more urgent ones, and others may wait for them.
    async fn recover_now_and_then(&self) -> Result<(), Error> {
        let now = self.client.inner.clock.now();
        if self.client.inner.is_time_to_recover(now) {
            self.recover().await?;
        }
        Ok(())
    }

    /// Gives up the sections that a runner keeps although there is nothing left to do in them;
    /// says which. A finish does so by itself; this is for when others ended the last tasks.
    pub async fn leave_idle_sections(&self, runner: GrantId) -> Result<Vec<Resource>, Error> {
        Ok(self.client.inner.backend.perform(&LeaveIdleSections { runner }).await?)
    }

    /// Ends a worker's work on a task. `token`, where it is known, must be the claim's.
    pub async fn finish(
        &self,
        task: &TaskId,
        proof: Proof,
        token: Option<Token>,
        runner: Option<GrantId>,
        finish: Finish,
    ) -> Result<Finished, Error> {
        let ask = FinishAsk { task: task.clone(), proof, token, runner, finish };
        Ok(self.client.inner.backend.perform(&FinishTask { ask, output: None }).await?)
    }

    /// Ends a worker's work on many tasks in one change, which costs one sync; says of each, in
    /// order, what came of it. One that is not the worker's any more does not stop the others.
    pub async fn finish_all(&self, asks: &[FinishAsk]) -> Result<Vec<Finished>, Error> {
        let act = FinishTasks { asks: asks.to_vec() };
        Ok(self.client.inner.backend.perform(&act).await?)
    }

    /// Starts the leases of all parts of a claim anew, if all of it is held: the task, its files and
    /// its section. `ttl` is the length from now on; as before without it. An answer that came after the
    /// renewed lease had ended is [`Heartbeat::NotYours`]: another may have the task.
    pub async fn heartbeat(
        &self,
        task: &TaskId,
        proof: Proof,
        token: Option<Token>,
        ttl: Option<Duration>,
    ) -> Result<Heartbeat, Error> {
        let ask = HeartbeatAsk { task: task.clone(), proof, token, ttl };
        let asked_at = self.client.now();
        let answer = self.client.inner.backend.perform(&ask).await?;
        let passed = self.client.now().saturating_sub(asked_at);
        Ok(match answer {
            Heartbeat::Renewed { task, ttl, .. } if passed >= ttl => Heartbeat::NotYours(task),
            answer => answer,
        })
    }

    /// Notes that the worker began.
    pub async fn start(&self, task: &TaskId, proof: Proof) -> Result<Finished, Error> {
        let ask = FinishAsk {
            task: task.clone(),
            proof,
            token: None,
            runner: None,
            finish: Finish::Release,
        };
        Ok(self.client.inner.backend.perform(&StartTask { ask }).await?)
    }

    /// Changes a task by hand.
    pub async fn edit(&self, task: &TaskId, verb: ManualChange) -> Result<Task, Error> {
        let ask = EditAsk { task: task.clone(), verb, by: self.client.holder().label.clone() };
        Ok(self.client.inner.backend.perform(&ask).await??)
    }

    /// Adds a note to a task for its next worker, whatever the task's status; says what the task is
    /// now. The author is the client's label.
    pub async fn add_note(&self, task: &TaskId, text: &str) -> Result<Task, Error> {
        let by = self.client.holder().label.clone();
        let act = AddNote { task: task.clone(), by, text: text.to_owned() };
        Ok(self.client.inner.backend.perform(&act).await??)
    }

    /// Says more of a try of a task: where its worker works, or where its unfinished work is kept.
    /// What was said before is not said twice.
    pub async fn describe_try(&self, act: &DescribeTry) -> Result<Task, Error> {
        Ok(self.client.inner.backend.perform(act).await??)
    }

    /// Removes a task that is not in progress and that no task depends on.
    pub async fn delete(&self, task: &TaskId) -> Result<Task, Error> {
        let by = self.client.holder().label.clone();
        Ok(self.client.inner.backend.perform(&DeleteTasks { task: task.clone(), by }).await??)
    }

    /// Tasks, oldest first.
    pub async fn list(&self, filter: &TaskFilter) -> Result<Vec<Task>, Error> {
        let tasks = self.client.inner.backend.read(filter).await?;
        Ok(tasks.into_iter().map(Task::redacted).collect())
    }

    /// The task with this id.
    pub async fn get(&self, id: &TaskId) -> Result<Option<Task>, Error> {
        let look = Scope::Tasks(TaskScope { ids: vec![id.clone()], ..TaskScope::default() });
        Ok(self.client.inner.backend.read(&look).await?.task(id).cloned().map(Task::redacted))
    }

    /// Those of these tasks that are there, seen at one moment, in no particular order.
    pub async fn get_all(&self, ids: Vec<TaskId>) -> Result<Vec<Task>, Error> {
        let look = Scope::Tasks(TaskScope { ids, ..TaskScope::default() });
        Ok(self.client.inner.backend.read(&look).await?.redacted().tasks)
    }

    /// Those of these tasks that have a claim, as they are now, with all that is held for the claims, seen
    /// at one moment. [`JudgedClaims`](tenure_core::rules::tasks::JudgedClaims) tells how each claim stands.
    pub async fn claims_of(&self, tasks: &[Task]) -> Result<Snapshot, Error> {
        let claimed = |task: &&Task| task.claim.is_some() || task.status == Status::InProgress;
        let ids: Vec<TaskId> = tasks.iter().filter(claimed).map(|task| task.id.clone()).collect();
        if ids.is_empty() {
            return Ok(Snapshot::empty());
        }
        let look = Scope::Tasks(TaskScope { ids, ..TaskScope::default() });
        // A server may show some grants veiled and others not.
        Ok(self.client.inner.backend.read(&look).await?.redacted())
    }

    /// All tasks in progress, with all that is held for their claims, as [`claims_of`](Tasks::claims_of).
    pub async fn in_progress(&self) -> Result<Snapshot, Error> {
        let look = Scope::Tasks(TaskScope { in_progress: true, ..TaskScope::default() });
        Ok(self.client.inner.backend.read(&look).await?.redacted())
    }

    /// The task that a person means: by id, by a unique beginning of it, or by its exact title.
    pub async fn find(&self, text: &str) -> Result<Task, Error> {
        if let Ok(id) = text.parse::<TaskId>()
            && let Some(task) = self.get(&id).await?
        {
            return Ok(task);
        }
        self.find_unlike_id(text).await
    }

    /// The same, with the hold by which its worker has it. Where the full id was given, both are seen
    /// at one moment, in one call to the store.
    pub async fn find_with_hold(&self, text: &str) -> Result<(Task, Option<HoldSnapshot>), Error> {
        if let Ok(id) = text.parse::<TaskId>()
            && let Some(found) = self.get_with_hold(&id).await?
        {
            return Ok(found);
        }
        let id = self.find_unlike_id(text).await?.id;
        let found = self.get_with_hold(&id).await?;
        found.ok_or_else(|| Error::NoSuchTask { text: text.to_owned() })
    }

    async fn get_with_hold(
        &self,
        id: &TaskId,
    ) -> Result<Option<(Task, Option<HoldSnapshot>)>, Error> {
        let look = Scope::Tasks(TaskScope { ids: vec![id.clone()], ..TaskScope::default() });
        let seen = self.client.inner.backend.read(&look).await?.redacted();
        let Some(task) = seen.task(id) else { return Ok(None) };
        Ok(Some((task.clone(), rules::tasks::hold_of(task, &seen.holds).cloned())))
    }

    /// The same, for a text that is no task's full id.
    pub(super) async fn find_unlike_id(&self, text: &str) -> Result<Task, Error> {
        let by_title = TaskFilter { title: Some(text.to_owned()), limit: 10, ..Default::default() };
        let mut found = self.list(&by_title).await?;
        if found.is_empty() {
            let id_prefix = Some(text.to_owned());
            found = self.list(&TaskFilter { id_prefix, limit: 10, ..Default::default() }).await?;
        }
        match found.as_slice() {
            [_] => Ok(found.remove(0)),
            [] => Err(Error::NoSuchTask { text: text.to_owned() }),
            many => Err(Error::Ambiguous {
                text: text.to_owned(),
                ids: many.iter().map(|task| format!("{} ({})", task.id, task.title)).collect(),
            }),
        }
    }

    /// What a task waits for, one sentence each; nothing if it could be taken now.
    pub async fn why(&self, id: &TaskId) -> Result<Vec<String>, Error> {
        let ids = vec![id.clone()];
        let look = Scope::Tasks(TaskScope { ids, dependencies: true, ..TaskScope::default() });
        // A server may show some grants veiled and others not.
        let seen = self.client.inner.backend.read(&look).await?.redacted();
        let Some(task) = seen.task(id) else {
            return Err(Error::NoSuchTask { text: id.to_string() });
        };
        Ok(rules::tasks::why_not(&seen, task, &*self.client.inner.witness))
    }

    /// The tasks that these tasks wait for, in no particular order.
    pub async fn dependencies_of(&self, ids: &[TaskId]) -> Result<Vec<Task>, Error> {
        let scope = TaskScope { ids: ids.to_vec(), dependencies: true, ..TaskScope::default() };
        let seen = self.client.inner.backend.read(&Scope::Tasks(scope)).await?.redacted();
        let named = |task: &Task| ids.contains(&task.id);
        let wanted: BTreeSet<&TaskId> = seen
            .tasks
            .iter()
            .filter(|task| named(task))
            .flat_map(|task| &task.depends_on)
            .collect();
        Ok(seen.tasks.iter().filter(|task| wanted.contains(&task.id)).cloned().collect())
    }

    /// The tasks that wait for these tasks, in no particular order.
    pub async fn dependents_of(&self, ids: &[TaskId]) -> Result<Vec<Task>, Error> {
        let scope = TaskScope { ids: ids.to_vec(), dependents: true, ..TaskScope::default() };
        let seen = self.client.inner.backend.read(&Scope::Tasks(scope)).await?.redacted();
        let waits = |task: &Task| task.depends_on.iter().any(|before| ids.contains(before));
        Ok(seen.tasks.into_iter().filter(waits).collect())
    }

    /// How many tasks there are of each section and status.
    pub async fn tallies(&self) -> Result<Vec<Tally>, Error> {
        Ok(self.client.inner.backend.read(TaskCounts).await?)
    }

    /// All sections, with how much is left to do in each.
    pub async fn sections(&self) -> Result<Vec<SectionSnapshot>, Error> {
        let look = Scope::Tasks(TaskScope { all_sections: true, ..TaskScope::default() });
        Ok(self.client.inner.backend.read(&look).await?.sections)
    }

    /// Describes a section, new or changed. Sections that would wait for each other are refused.
    pub async fn put_section(&self, section: &Section) -> Result<(), Error> {
        let by = self.client.holder().label.clone();
        let act = PutSection { section: section.clone(), by };
        Ok(self.client.inner.backend.perform(&act).await??)
    }

    /// Changes sections, all or none; says what they are now. What a change does not name stays
    /// as it is, also under concurrent changes.
    pub async fn change_sections(
        &self,
        changes: &[(String, SectionChange)],
    ) -> Result<Vec<Section>, Error> {
        let by = self.client.holder().label.clone();
        let act = ChangeSections { changes: changes.to_vec(), by };
        Ok(self.client.inner.backend.perform(&act).await??)
    }

    /// Keeps a claim alive in the background; see [`Work`].
    pub(super) fn keep(
        &self,
        claimed: Claimed,
        ttl: Duration,
        margin: Duration,
        asked_at: Duration,
        kept: Kept,
    ) -> Work {
        let claim = claimed.task.claim.as_ref();
        let label = claim.map_or_else(String::new, |claim| claim.by.clone());
        let holder = Holder { label, ..self.client.holder().clone() };
        let wall = self.client.inner.clock.wall();
        let lease = claim_lease(&claimed, holder, ttl, margin, asked_at, wall);
        let held = self.client.inner.keeper.keep(lease);
        let Kept { runner, section } = kept;
        let (client, task) = (self.client.clone(), claimed.task);
        Work::new(client, task, held, section, runner)
    }
}

/// What a runner keeps from task to task.
pub(super) struct Kept {
    /// Under which grant.
    pub(super) runner: Option<GrantId>,
    /// The section of the task that was just claimed, unless any number may work there.
    pub(super) section: Option<Arc<TrackedLease>>,
}

fn claim_lease(
    claimed: &Claimed,
    holder: Holder,
    ttl: Duration,
    margin: Duration,
    asked_at: Duration,
    wall: WallTime,
) -> Lease {
    Lease {
        resources: claimed.resources.clone(),
        grant: claimed.grant,
        holder,
        token: claimed.token,
        ttl,
        reason: Reason::AcquiredNew,
        takeovers: vec![],
        slots: vec![],
        waited: Duration::ZERO,
        acquired_at: wall,
        expires_at: WallTime(wall.0.saturating_add(ttl.as_millis() as i64)),
        trusted_until: (asked_at + ttl).saturating_sub(margin),
        margin,
        is_covered: false,
        is_shared: false,
    }
}

/// A claim whose answer may be on its way. If it is dropped then, what it got is handed back.
struct OpenClaim<'a> {
    client: &'a Client,
    line: Option<Revocable>,
    grants: Vec<GrantId>,
    runner: Option<GrantId>,
}

impl OpenClaim<'_> {
    fn new<'a>(client: &'a Client, ask: &ClaimAsk) -> OpenClaim<'a> {
        let line = Some(Revocable::new(&client.inner.backend));
        OpenClaim { client, line, grants: ask.grants.clone(), runner: ask.runner }
    }

    async fn perform(&mut self, act: &ClaimTasks) -> Result<Result<Vec<Claimed>, NoClaim>, Error> {
        let backend = &self.client.inner.backend;
        let line = self.line.get_or_insert_with(|| Revocable::new(backend));
        Ok(line.perform(backend, act).await?)
    }
}

impl Drop for OpenClaim<'_> {
    fn drop(&mut self) {
        let Some(line) = self.line.take().filter(Revocable::is_open) else { return };
        line.call_off();
        let act = CallOffClaim { grants: std::mem::take(&mut self.grants), runner: self.runner };
        self.client.inner.keeper.send(BackgroundCleanup::CallOffClaim(Box::new((line, act))));
    }
}

/// Gives back what a runner still holds: its section.
pub(super) async fn release_runner(client: &Client, runner: GrantId) -> Result<(), Error> {
    verbs::release(client, Proof::Grant(runner), None).await?;
    Ok(())
}
