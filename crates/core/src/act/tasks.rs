//! Acts about tasks and sections.

use super::{Act, holder_labels, proof_labels};
use crate::decision::Decision;
use crate::rules::BreakAsk;
use crate::rules::tasks::{
    self, AddAsk, AddError, AddNote, Added, ClaimAsk, Claimed, DescribeTry, EditAsk, EditError,
    FinishAsk, Finished, Heartbeat, HeartbeatAsk, ImportAsk, Imported, ManualChange, NoClaim,
    RetireAsk, SectionChange, SectionError,
};
use crate::snapshot::{Scope, Snapshot, TaskScope};
use crate::task::{Section, Task, TaskId};
use crate::text::{LIST_MAX, TITLE_MAX, TextError, check_count, check_text};
use crate::{GrantId, Resource, Role, Witness, output};
use serde::{Deserialize, Serialize};

/// Undoes a [`ClaimTasks`] whose answer is of no use any more: the tasks that it got are handed back
/// untouched.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallOffClaim {
    /// The grants of the claim.
    pub grants: Vec<GrantId>,
    /// Under which grant the worker keeps its section.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<GrantId>,
}

impl Act for CallOffClaim {
    const VERB: &'static str = "call_off_claim";
    const ROLE: Role = Role::Work;
    const CALLS_OFF: bool = true;
    /// The tasks that were handed back.
    type Answer = Vec<TaskId>;

    fn scope(&self) -> Scope {
        let grants = self.grants.iter().copied().chain(self.runner).collect();
        // A section that the runner keeps may belong to a later claim by now.
        let in_progress = self.runner.is_some();
        Scope::Tasks(TaskScope { grants, in_progress, ..TaskScope::default() })
    }

    fn labels(&self) -> Vec<&str> {
        vec![]
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Vec<TaskId>) {
        tasks::call_off_claim(seen, &self.grants, self.runner, witness)
    }
}

impl Act for AddAsk {
    const VERB: &'static str = "add";
    const ROLE: Role = Role::Work;
    type Answer = Result<Vec<Added>, AddError>;

    fn scope(&self) -> Scope {
        AddAsk::scope(self)
    }

    fn labels(&self) -> Vec<&str> {
        // A task can be added with a history, whose authors are labels too.
        let authors = self.tasks.iter().flat_map(|task| {
            let notes = task.notes.iter().map(|note| note.by.as_str());
            notes.chain(task.finished_by.as_deref())
        });
        authors.chain([self.by.as_str()]).collect()
    }

    fn decide(&self, seen: &Snapshot, _: &dyn Witness) -> (Decision, Self::Answer) {
        tasks::add(seen, self)
    }
}

impl Act for ImportAsk {
    const VERB: &'static str = "import";
    const ROLE: Role = Role::Work;
    type Answer = Result<Imported, AddError>;

    fn scope(&self) -> Scope {
        ImportAsk::scope(self)
    }

    fn role(&self) -> Role {
        // Who pauses a section stops the work of others.
        let pauses = self.sections.iter().any(|section| section.paused);
        if pauses { Role::Admin } else { Role::Work }
    }

    fn labels(&self) -> Vec<&str> {
        self.add.labels()
    }

    fn decide(&self, seen: &Snapshot, _: &dyn Witness) -> (Decision, Self::Answer) {
        tasks::import(seen, self)
    }
}

/// Takes the next tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClaimTasks {
    /// What is asked.
    pub ask: ClaimAsk,
    /// How often all that was seen was taken: the more often, the further back it looks.
    #[serde(default)]
    pub wider: usize,
}

impl Act for ClaimTasks {
    const VERB: &'static str = "claim";
    const ROLE: Role = Role::Work;
    type Answer = Result<Vec<Claimed>, NoClaim>;

    fn scope(&self) -> Scope {
        self.ask.look_wide(self.wider)
    }

    fn check(&self) -> Result<(), TextError> {
        let Some(wait) = &self.ask.place_for else { return Ok(()) };
        // A task and its files.
        check_count("resources", wait.wants.len(), LIST_MAX + 1)?;
        check_text("operation", &wait.operation, TITLE_MAX)
    }

    fn labels(&self) -> Vec<&str> {
        holder_labels(&self.ask.holder, &self.ask.owner)
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Self::Answer) {
        tasks::claim(seen, &self.ask, witness)
    }
}

/// Takes back the tasks whose worker died or fell silent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recover {
    /// How often that may happen to a task before it is set aside.
    pub recoveries_max: u32,
    /// What an operator has just broken, if that is why: the task's try says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<BreakAsk>,
}

impl Act for Recover {
    const VERB: &'static str = "recover";
    const ROLE: Role = Role::Work;
    const LOOKS_FIRST: bool = true;
    type Answer = Vec<Task>;

    fn scope(&self) -> Scope {
        Scope::Tasks(TaskScope { in_progress: true, ..TaskScope::default() })
    }

    fn scope_after_look(&self, found: &Vec<Task>) -> Scope {
        // What else is in progress in their sections tells whether their workers need those.
        let ids = found.iter().map(|task| task.id.clone()).collect();
        Scope::Tasks(TaskScope { ids, beside: true, ..TaskScope::default() })
    }

    fn role(&self) -> Role {
        if self.broken.is_some() { Role::Admin } else { Role::Work }
    }

    fn labels(&self) -> Vec<&str> {
        self.broken.iter().map(|broken| broken.by.as_str()).collect()
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Vec<Task>) {
        tasks::recover(seen, self.recoveries_max, self.broken.as_ref(), witness)
    }
}

/// Gives up the sections that a runner keeps although there is nothing left to do in them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LeaveIdleSections {
    /// The runner's grant.
    pub runner: GrantId,
}

impl Act for LeaveIdleSections {
    const VERB: &'static str = "leave_idle_sections";
    const ROLE: Role = Role::Work;
    const LOOKS_FIRST: bool = true;
    type Answer = Vec<Resource>;

    fn scope(&self) -> Scope {
        tasks::idle_look(self.runner)
    }

    fn labels(&self) -> Vec<&str> {
        vec![]
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Vec<Resource>) {
        tasks::leave_idle_sections(seen, self.runner, witness)
    }
}

/// Ends a worker's work on a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FinishTask {
    /// What is asked.
    pub ask: FinishAsk,
    /// The last lines that the command of the task printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

impl Act for FinishTask {
    const VERB: &'static str = "finish";
    const ROLE: Role = Role::Work;
    type Answer = Finished;

    fn scope(&self) -> Scope {
        self.ask.scope()
    }

    fn check(&self) -> Result<(), TextError> {
        self.ask.check()
    }

    fn labels(&self) -> Vec<&str> {
        proof_labels(&self.ask.proof)
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Finished) {
        let (mut decision, finished) = tasks::finish(seen, &self.ask, witness);
        if let (Decision::Write(change), Finished::Done { task, .. }, Some(text)) =
            (&mut decision, &finished, &self.output)
        {
            let attempt = task.tries.last().map(|last| last.number);
            change.writes.extend(attempt.map(|attempt| output::output(&task.id, attempt, text)));
        }
        (decision, finished)
    }
}

/// Ends a worker's work on many tasks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FinishTasks {
    /// What is asked of each.
    pub asks: Vec<FinishAsk>,
}

impl Act for FinishTasks {
    const VERB: &'static str = "finish_all";
    const ROLE: Role = Role::Work;
    type Answer = Vec<Finished>;

    fn scope(&self) -> Scope {
        tasks::finish_all_look(&self.asks)
    }

    fn check(&self) -> Result<(), TextError> {
        self.asks.iter().try_for_each(FinishAsk::check)
    }

    fn labels(&self) -> Vec<&str> {
        self.asks.iter().flat_map(|ask| proof_labels(&ask.proof)).collect()
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Vec<Finished>) {
        tasks::finish_all(seen, &self.asks, witness)
    }
}

impl Act for HeartbeatAsk {
    const VERB: &'static str = "heartbeat";
    const ROLE: Role = Role::Work;
    type Answer = Heartbeat;

    fn scope(&self) -> Scope {
        HeartbeatAsk::scope(self)
    }

    fn labels(&self) -> Vec<&str> {
        proof_labels(&self.proof)
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Heartbeat) {
        tasks::heartbeat(seen, self, witness)
    }
}

/// Notes that a worker began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StartTask {
    /// Which task, and whose; how it ends does not matter.
    pub ask: FinishAsk,
}

impl Act for StartTask {
    const VERB: &'static str = "start";
    const ROLE: Role = Role::Work;
    type Answer = Finished;

    fn scope(&self) -> Scope {
        self.ask.scope()
    }

    fn labels(&self) -> Vec<&str> {
        proof_labels(&self.ask.proof)
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Finished) {
        tasks::start(seen, &self.ask, witness)
    }
}

impl Act for EditAsk {
    const VERB: &'static str = "edit";
    const ROLE: Role = Role::Work;
    type Answer = Result<Task, EditError>;

    fn scope(&self) -> Scope {
        EditAsk::scope(self)
    }

    fn role(&self) -> Role {
        match self.verb {
            ManualChange::Approve | ManualChange::Reject { .. } => Role::Work,
            ManualChange::Cancel
            | ManualChange::Retry
            | ManualChange::Skip
            | ManualChange::Update(_) => Role::Admin,
        }
    }

    fn labels(&self) -> Vec<&str> {
        vec![&self.by]
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Self::Answer) {
        tasks::edit(seen, self, witness)
    }
}

impl Act for AddNote {
    const VERB: &'static str = "note";
    const ROLE: Role = Role::Work;
    type Answer = Result<Task, EditError>;

    fn scope(&self) -> Scope {
        AddNote::scope(self)
    }

    fn labels(&self) -> Vec<&str> {
        vec![&self.by]
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Self::Answer) {
        tasks::add_note(seen, self, witness)
    }
}

impl Act for DescribeTry {
    const VERB: &'static str = "describe_try";
    const ROLE: Role = Role::Work;
    type Answer = Result<Task, EditError>;

    fn scope(&self) -> Scope {
        DescribeTry::scope(self)
    }

    fn role(&self) -> Role {
        // The reference is handed to the next worker: who says it without a claim decides for others.
        if self.rescue.is_some() && self.grant.is_none() { Role::Admin } else { Role::Work }
    }

    fn labels(&self) -> Vec<&str> {
        vec![&self.by]
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Self::Answer) {
        tasks::describe_try(seen, self, witness)
    }
}

/// Removes a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeleteTasks {
    /// Which.
    pub task: TaskId,
    /// Who does it.
    pub by: String,
}

impl Act for DeleteTasks {
    const VERB: &'static str = "delete";
    const ROLE: Role = Role::Admin;
    type Answer = Result<Task, EditError>;

    fn scope(&self) -> Scope {
        let ids = vec![self.task.clone()];
        Scope::Tasks(TaskScope { ids, dependents: true, ..TaskScope::default() })
    }

    fn labels(&self) -> Vec<&str> {
        vec![&self.by]
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Self::Answer) {
        tasks::delete(seen, &self.task, &self.by, witness)
    }
}

impl Act for RetireAsk {
    const VERB: &'static str = "retire";
    const ROLE: Role = Role::Admin;
    type Answer = Vec<TaskId>;

    fn labels(&self) -> Vec<&str> {
        vec![&self.by]
    }

    fn scope(&self) -> Scope {
        RetireAsk::scope(self)
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Vec<TaskId>) {
        tasks::retire(seen, self, witness)
    }
}

/// Describes a section.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PutSection {
    /// What it is from now on.
    pub section: Section,
    /// Who does it.
    pub by: String,
}

impl Act for PutSection {
    const VERB: &'static str = "put_section";
    const ROLE: Role = Role::Admin;
    type Answer = Result<(), SectionError>;

    fn scope(&self) -> Scope {
        Scope::Tasks(TaskScope { all_sections: true, ..TaskScope::default() })
    }

    fn labels(&self) -> Vec<&str> {
        vec![&self.by]
    }

    fn decide(&self, seen: &Snapshot, _: &dyn Witness) -> (Decision, Self::Answer) {
        match tasks::put_section(seen, &self.section, &self.by) {
            Ok(decision) => (decision, Ok(())),
            Err(error) => (Decision::Nothing, Err(error)),
        }
    }
}

/// Changes sections, all or none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeSections {
    /// What changes in which.
    pub changes: Vec<(String, SectionChange)>,
    /// Who does it.
    pub by: String,
}

impl Act for ChangeSections {
    const VERB: &'static str = "change_sections";
    const ROLE: Role = Role::Admin;
    type Answer = Result<Vec<Section>, SectionError>;

    fn scope(&self) -> Scope {
        Scope::Tasks(TaskScope { all_sections: true, ..TaskScope::default() })
    }

    fn labels(&self) -> Vec<&str> {
        vec![&self.by]
    }

    fn decide(&self, seen: &Snapshot, _: &dyn Witness) -> (Decision, Self::Answer) {
        tasks::change_sections(seen, &self.changes, &self.by)
    }
}
