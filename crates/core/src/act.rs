//! What can be asked of the rules, as values: so that it can be sent to where the store is, and
//! decided there.
//!
//! Each act says what must be seen to decide it, and decides. What it answers can be sent back.

mod records;

pub use records::{DropWorker, PutOutput, PutWorker};

use crate::decision::Decision;
use crate::rules::tasks::{
    self, AddAsk, AddError, AddNote, Added, ClaimAsk, Claimed, DescribeTry, EditAsk, EditError,
    FinishAsk, Finished, Heartbeat, HeartbeatAsk, ImportAsk, Imported, NoClaim, RetireAsk,
    SectionChange, SectionError,
};
use crate::rules::{self, Ask, BreakAsk, Outcome, Proof, ReleaseAsk, Released};
use crate::snapshot::{HoldSnapshot, Scope, Snapshot, TaskScope};
use crate::task::{Section, Task, TaskId};
use crate::{GrantId, Holder, Kind, Owner, Resource, Witness, output};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Something that a caller asks the rules to decide.
pub trait Act: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The word for it, where it is sent.
    const VERB: &'static str;

    /// Whether most of the time there is nothing to be done: then it is looked first, which needs
    /// no turn to write.
    const LOOKS_FIRST: bool = false;

    /// Whether this undoes an earlier request of the same caller. It is remembered even where there
    /// was nothing to undo, so that the earlier request is refused if it arrives later.
    const CALLS_OFF: bool = false;

    /// What the caller learns.
    type Answer: Serialize + DeserializeOwned + Send + 'static;

    /// What must be seen to decide.
    fn scope(&self) -> Scope;

    /// What must be seen to decide, once a first look has found something to do: mostly less than
    /// what had to be searched.
    fn scope_after_look(&self, found: &Self::Answer) -> Scope {
        let _ = found;
        self.scope()
    }

    /// The labels in whose name this is asked: of the holder, of the owner, of a proof by label, of the
    /// author. A server admits only those that the caller's token may use.
    fn labels(&self) -> Vec<&str>;

    /// Decides.
    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Self::Answer);
}

/// The labels of a holder and of the owner for which it asks.
fn holder_labels<'a>(holder: &'a Holder, owner: &'a Owner) -> Vec<&'a str> {
    let owners = owner.label.iter().chain(&owner.parent).map(String::as_str);
    [holder.label.as_str()].into_iter().chain(owners).collect()
}

/// The label that a proof relies on, if it is one by label.
fn proof_labels(proof: &Proof) -> Vec<&str> {
    match proof {
        Proof::Label(label) => vec![label],
        Proof::Grant(_) => vec![],
    }
}

/// Takes what is free, or queues for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Acquire {
    /// What is asked.
    pub ask: Ask,
    /// The place that the request has already, if it knows of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<u64>,
    /// Whether the request may have a place that it does not know of: all of each queue is looked
    /// at then.
    #[serde(default)]
    pub whole_queues: bool,
}

impl Acquire {
    fn resources(&self) -> Vec<Resource> {
        self.ask.wants.iter().map(|want| want.resource.clone()).collect()
    }
}

impl Act for Acquire {
    const VERB: &'static str = "acquire";
    type Answer = Outcome;

    fn scope(&self) -> Scope {
        match self.whole_queues {
            true => Scope::Queues(self.resources()),
            false => Scope::At { resources: self.resources(), ticket: self.ticket },
        }
    }

    fn labels(&self) -> Vec<&str> {
        holder_labels(&self.ask.holder, &self.ask.owner)
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Outcome) {
        rules::acquire(seen, &self.ask, witness)
    }
}

/// Gives up a place in the queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Leave {
    /// Whose.
    pub grant: GrantId,
    /// For what it waits.
    pub resources: Vec<Resource>,
    /// The place.
    pub ticket: u64,
}

impl Act for Leave {
    const VERB: &'static str = "leave";
    type Answer = bool;

    fn scope(&self) -> Scope {
        Scope::At { resources: self.resources.clone(), ticket: Some(self.ticket) }
    }

    fn labels(&self) -> Vec<&str> {
        vec![]
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, bool) {
        rules::leave(seen, self.grant, witness)
    }
}

/// Undoes an [`Acquire`] whose answer is of no use any more: its place in the queue is given up, and
/// what it got is given back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CallOff {
    /// The request.
    pub grant: GrantId,
    /// What it asked for.
    pub resources: Vec<Resource>,
    /// Whether the grant was made for that request, so that all it holds comes from it.
    pub is_new: bool,
}

impl Act for CallOff {
    const VERB: &'static str = "call_off";
    const CALLS_OFF: bool = true;
    /// Whether there was anything to undo.
    type Answer = bool;

    fn scope(&self) -> Scope {
        Scope::Queues(self.resources.clone())
    }

    fn labels(&self) -> Vec<&str> {
        vec![]
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, bool) {
        rules::call_off(seen, self.grant, self.is_new, witness)
    }
}

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

fn look_at(resources: Option<&[Resource]>) -> Scope {
    match resources {
        Some(resources) => Scope::At { resources: resources.to_vec(), ticket: None },
        None => Scope::Everything,
    }
}

/// Gives back what the proof covers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Release {
    /// Where to look; everywhere, if nothing is named. May be narrower than what is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Vec<Resource>>,
    /// What is asked.
    pub ask: ReleaseAsk,
}

impl Act for Release {
    const VERB: &'static str = "release";
    type Answer = Released;

    fn scope(&self) -> Scope {
        look_at(self.at.as_deref())
    }

    fn labels(&self) -> Vec<&str> {
        proof_labels(&self.ask.proof)
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Released) {
        rules::release(seen, &self.ask, witness)
    }
}

/// What came of breaking a hold. Grants are in their public form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Broken {
    /// It ended.
    Ended(Box<HoldSnapshot>),
    /// That exact hold is not there any more; this is who holds now. Nothing was changed.
    Gone(Vec<HoldSnapshot>),
}

impl Act for BreakAsk {
    const VERB: &'static str = "break";
    type Answer = Broken;

    fn scope(&self) -> Scope {
        look_at(Some(std::slice::from_ref(&self.resource)))
    }

    fn labels(&self) -> Vec<&str> {
        vec![&self.by]
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Broken) {
        let (decision, ended) = rules::break_hold(seen, self, witness);
        let answer = match ended {
            Some(hold) => Broken::Ended(Box::new(hold)),
            None => {
                let holds = seen.holds.iter();
                let here = holds.filter(|seen| seen.hold.want.resource == self.resource);
                Broken::Gone(here.map(HoldSnapshot::redacted).collect())
            }
        };
        (decision, answer)
    }
}

/// Removes holds and places that no longer count.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reap {
    /// Only holds of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
}

impl Act for Reap {
    const VERB: &'static str = "reap";
    type Answer = Vec<HoldSnapshot>;

    fn scope(&self) -> Scope {
        Scope::Everything
    }

    fn labels(&self) -> Vec<&str> {
        vec![]
    }

    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Vec<HoldSnapshot>) {
        rules::reap(seen, self.kind, witness)
    }
}

impl Act for AddAsk {
    const VERB: &'static str = "add";
    type Answer = Result<Vec<Added>, AddError>;

    fn scope(&self) -> Scope {
        AddAsk::scope(self)
    }

    fn labels(&self) -> Vec<&str> {
        vec![&self.by]
    }

    fn decide(&self, seen: &Snapshot, _: &dyn Witness) -> (Decision, Self::Answer) {
        tasks::add(seen, self)
    }
}

impl Act for ImportAsk {
    const VERB: &'static str = "import";
    type Answer = Result<Imported, AddError>;

    fn scope(&self) -> Scope {
        ImportAsk::scope(self)
    }

    fn labels(&self) -> Vec<&str> {
        vec![&self.add.by]
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
    type Answer = Result<Vec<Claimed>, NoClaim>;

    fn scope(&self) -> Scope {
        self.ask.look_wide(self.wider)
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
    type Answer = Finished;

    fn scope(&self) -> Scope {
        self.ask.scope()
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
    type Answer = Vec<Finished>;

    fn scope(&self) -> Scope {
        tasks::finish_all_look(&self.asks)
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
    type Answer = Result<Task, EditError>;

    fn scope(&self) -> Scope {
        EditAsk::scope(self)
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
    type Answer = Result<Task, EditError>;

    fn scope(&self) -> Scope {
        DescribeTry::scope(self)
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
