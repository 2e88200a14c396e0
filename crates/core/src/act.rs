//! What can be asked of the rules, as values: so that it can be sent to where the store is, and
//! decided there.
//!
//! Each act says what must be seen to decide it, and decides. What it answers can be sent back.

mod records;
mod tasks;

pub use records::{DropWorker, PutOutput, PutWorker};
pub use tasks::{
    CallOffClaim, ChangeSections, ClaimTasks, DeleteTasks, FinishTask, FinishTasks,
    LeaveIdleSections, PutSection, Recover, StartTask,
};

use crate::decision::Decision;
use crate::rules::{self, Ask, BreakAsk, Outcome, Proof, ReleaseAsk, Released};
use crate::snapshot::{HoldSnapshot, Scope, Snapshot};
use crate::text::{AUTHOR_MAX, OPERATION_MAX, REASON_MAX, TextError, check_text};
use crate::{GrantId, Holder, Kind, Owner, Resource, Role, Witness};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Something that a caller asks the rules to decide.
pub trait Act: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The word for it, where it is sent.
    const VERB: &'static str;

    /// The lowest role that the caller of a server needs for any such act.
    const ROLE: Role;

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

    /// The role that the caller of a server needs for this. It is checked where acts are decided, whatever
    /// way the act came.
    fn role(&self) -> Role {
        Self::ROLE
    }

    /// Fails if a text is longer than a store keeps, labels aside. [`check`] is called where acts are decided,
    /// whatever way the act came.
    fn check(&self) -> Result<(), TextError> {
        Ok(())
    }

    /// The labels in whose name this is asked: of the holder, of the owner, of a proof by label, of the
    /// author. A server admits only those that the caller's token may use.
    fn labels(&self) -> Vec<&str>;

    /// Decides.
    fn decide(&self, seen: &Snapshot, witness: &dyn Witness) -> (Decision, Self::Answer);
}

/// Fails if a label or another text of an act is longer than a store keeps.
pub fn check(act: &impl Act) -> Result<(), TextError> {
    act.labels().into_iter().try_for_each(|label| check_text("label", label, AUTHOR_MAX))?;
    act.check()
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
    const ROLE: Role = Role::Work;
    type Answer = Outcome;

    fn scope(&self) -> Scope {
        match self.whole_queues {
            true => Scope::Queues(self.resources()),
            false => Scope::At { resources: self.resources(), ticket: self.ticket },
        }
    }

    fn check(&self) -> Result<(), TextError> {
        let operation = self.ask.operation.as_deref().unwrap_or_default();
        check_text("operation", operation, OPERATION_MAX)
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
    const ROLE: Role = Role::Work;
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
    const ROLE: Role = Role::Work;
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
    const ROLE: Role = Role::Work;
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
    const ROLE: Role = Role::Admin;
    type Answer = Broken;

    fn scope(&self) -> Scope {
        look_at(Some(std::slice::from_ref(&self.resource)))
    }

    fn check(&self) -> Result<(), TextError> {
        check_text("reason", &self.reason, REASON_MAX)
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
    const ROLE: Role = Role::Admin;
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
