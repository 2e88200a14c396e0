//! What is remembered for the next worker: notes, and where the work of a try is found.

use crate::decision::{Decision, Write};
use crate::event::EventKind;
use crate::handover::{Note, Try, WORKSPACE_MAX_BYTES, newest_notes};
use crate::rescue_reference::is_rescue_reference;
use crate::rules::draft::Draft;
use crate::rules::release::Proof;
use crate::rules::tasks::edit::EditError;
use crate::rules::tasks::finish::own_hold;
use crate::snapshot::{Scope, Snapshot, TaskScope};
use crate::task::{Task, TaskId};
use crate::{GrantId, Token, Witness};
use serde::{Deserialize, Serialize};

/// Adds a note to a task, whatever its status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddNote {
    /// Which task.
    pub task: TaskId,
    /// The author.
    pub by: String,
    /// The text.
    pub text: String,
}

impl AddNote {
    /// What must be seen to decide.
    pub fn scope(&self) -> Scope {
        scope_of(&self.task)
    }
}

/// Says more of a try: where its worker works, or where its unfinished work is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescribeTry {
    /// Which task.
    pub task: TaskId,
    /// The token of the try.
    pub token: Token,
    /// The grant of the claim: while a worker has the task, only it says where it works and what it found
    /// of the try before. Who has no claim is an administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantId>,
    /// The root of the worker's git worktree; none leaves it as it is, here and below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// The git branch that was made for the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The git reference under which its unfinished work is kept, once the try has ended: see
    /// [`is_rescue_reference`]. The first that is said stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescue: Option<String>,
    /// A note that is added with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Who says so.
    pub by: String,
}

impl DescribeTry {
    /// What must be seen to decide.
    pub fn scope(&self) -> Scope {
        scope_of(&self.task)
    }

    fn values(&self) -> [(&'static str, &Option<String>); 3] {
        [("worktree", &self.worktree), ("branch", &self.branch), ("rescue", &self.rescue)]
    }
}

fn scope_of(task: &TaskId) -> Scope {
    Scope::Tasks(TaskScope { ids: vec![task.clone()], ..TaskScope::default() })
}

/// Adds a note; says what the task is now.
pub fn add_note(
    seen: &Snapshot,
    ask: &AddNote,
    witness: &dyn Witness,
) -> (Decision, Result<Task, EditError>) {
    let noted = find(seen, &ask.task).and_then(|task| {
        let mut task = task.clone();
        push_note(seen, &mut task, &ask.by, &ask.text)?;
        Ok(task)
    });
    match noted {
        Err(error) => (Decision::Nothing, Err(error)),
        Ok(task) => write(seen, task, Some((&ask.by, &ask.text)), witness),
    }
}

/// Says more of a try. What is said already is not written again, and its note is not added again:
/// two that take over the same work may both say so.
pub fn describe_try(
    seen: &Snapshot,
    ask: &DescribeTry,
    witness: &dyn Witness,
) -> (Decision, Result<Task, EditError>) {
    match described(seen, ask) {
        Err(error) => (Decision::Nothing, Err(error)),
        Ok(None) => {
            let task = find(seen, &ask.task).cloned().map(Task::redacted);
            (Decision::Nothing, task)
        }
        Ok(Some(task)) => write(seen, task, ask.note.as_ref().map(|text| (&ask.by, text)), witness),
    }
}

/// The task after this was said; none if it was said before.
fn described(seen: &Snapshot, ask: &DescribeTry) -> Result<Option<Task>, EditError> {
    let mut task = find(seen, &ask.task)?.clone();
    for (what, value) in ask.values() {
        if value.as_ref().is_some_and(|text| text.is_empty() || text.len() > WORKSPACE_MAX_BYTES) {
            return Err(EditError::Workspace { what: what.to_owned() });
        }
    }
    let of_token = |one: &&mut Try| one.token == ask.token;
    let (id, token) = (ask.task.clone(), ask.token);
    let is_own = owns(seen, &task, ask, Some(token));
    let (is_claimed, has_claim) = (task.claim.is_some(), owns(seen, &task, ask, None));
    let Some(one) = task.tries.iter_mut().find(of_token) else {
        return Err(EditError::NoSuchTry { id, token });
    };
    if (ask.worktree.is_some() || ask.branch.is_some()) && !is_own {
        return Err(EditError::NotYours { id });
    }
    if let Some(reference) = &ask.rescue {
        if one.outcome.is_none() {
            return Err(EditError::TryGoesOn { id, token });
        }
        // While another has the task, only that worker says what it found of the work before; nor does one
        // whose claim is over.
        if (is_claimed || ask.grant.is_some()) && !has_claim {
            return Err(EditError::NotYours { id });
        }
        if !is_rescue_reference(&id, one.number, reference) {
            return Err(EditError::NoRescueReference { id });
        }
        if one.rescue.is_some() {
            return Ok(None);
        }
    }
    let before = one.clone();
    let say = |place: &mut Option<String>, value: &Option<String>| {
        if value.is_some() {
            place.clone_from(value);
        }
    };
    say(&mut one.workspace.worktree, &ask.worktree);
    say(&mut one.workspace.branch, &ask.branch);
    say(&mut one.rescue, &ask.rescue);
    let says_something = ask.values().iter().any(|(_, value)| value.is_some());
    if says_something && *one == before {
        return Ok(None);
    }
    match &ask.note {
        Some(text) => push_note(seen, &mut task, &ask.by, text)?,
        None if !says_something => return Ok(None),
        None => {}
    }
    Ok(Some(task))
}

/// Whether the grant is that of the task's claim, and of this token if one is given.
fn owns(seen: &Snapshot, task: &Task, ask: &DescribeTry, token: Option<Token>) -> bool {
    let own = |grant| own_hold(seen, task, &Proof::Grant(grant), token);
    ask.grant.and_then(own).is_some()
}

fn find<'a>(seen: &'a Snapshot, id: &TaskId) -> Result<&'a Task, EditError> {
    seen.task(id).ok_or_else(|| EditError::NotFound { id: id.clone() })
}

fn push_note(seen: &Snapshot, task: &mut Task, by: &str, text: &str) -> Result<(), EditError> {
    Note::check(text)?;
    let note = Note { by: by.to_owned(), at: seen.wall, text: text.to_owned() };
    task.notes.push(note);
    task.notes = newest_notes(std::mem::take(&mut task.notes));
    Ok(())
}

fn write(
    seen: &Snapshot,
    task: Task,
    noted: Option<(&String, &String)>,
    witness: &dyn Witness,
) -> (Decision, Result<Task, EditError>) {
    let mut draft = Draft::new(seen, witness);
    if let Some((by, text)) = noted {
        draft.note(&task.id.resource(), by, EventKind::Noted { text: text.clone() });
    }
    draft.write(Write::Task(Box::new(task.clone())));
    draft.require_durable();
    (draft.decide(None), Ok(task.redacted()))
}
