//! Removing finished tasks that are beyond what is kept.

use crate::Witness;
use crate::decision::{Decision, Write};
use crate::event::EventKind;
use crate::retention::EndedTask;
use crate::rules::draft::Draft;
use crate::snapshot::{Scope, Snapshot, TaskScope};
use crate::task::{Status, Task, TaskId};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// Asks to remove tasks that were found to be beyond what is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RetireAsk {
    /// Which, and when they ended: a task that was retried and ended again since then stays.
    pub tasks: Vec<EndedTask>,
    /// Who does it.
    pub by: String,
}

impl RetireAsk {
    /// What must be seen to decide.
    pub fn scope(&self) -> Scope {
        let ids = self.tasks.iter().map(|ended| ended.id.clone()).collect();
        Scope::Tasks(TaskScope { ids, dependents: true, ..TaskScope::default() })
    }
}

/// Removes those of the tasks that are still as they were found and that no task may need; returns
/// which. A task is needed while another one depends on it that is not completed: it waits for it, or
/// would when it is retried. A completed dependent needs nothing any more. So what a needed task
/// itself depends on stays exactly as long as that task may be retried.
pub fn retire(seen: &Snapshot, ask: &RetireAsk, witness: &dyn Witness) -> (Decision, Vec<TaskId>) {
    let shown: HashMap<&TaskId, &Task> = seen.tasks.iter().map(|task| (&task.id, task)).collect();
    let unfinished = seen.tasks.iter().filter(|task| task.status != Status::Completed);
    let needed: HashSet<&TaskId> = unfinished.flat_map(|task| &task.depends_on).collect();
    let may_go = |ended: &&EndedTask| {
        shown.get(&ended.id).is_some_and(|task| {
            task.ended_at() == Some(ended.at) && task.claim.is_none() && !needed.contains(&task.id)
        })
    };
    let mut draft = Draft::new(seen, witness);
    let mut removed = Vec::new();
    for ended in ask.tasks.iter().filter(may_go) {
        draft.note(&ended.id.resource(), &ask.by, EventKind::Deleted);
        draft.write(Write::DropTask(ended.id.clone()));
        removed.push(ended.id.clone());
    }
    (draft.decide(None), removed)
}
