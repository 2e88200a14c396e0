//! Taking over a list of tasks that was written elsewhere.

use super::add::{AddAsk, AddError, Added, NewTask, add};
use super::sections::put_all;
use crate::decision::{Change, Decision};
use crate::snapshot::{Scope, Snapshot, TaskScope};
use crate::task::{Section, Task, TaskId};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A list to take over, all or nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportAsk {
    /// Its tasks, in order, and who takes them over.
    pub add: AddAsk,
    /// The sections that it describes.
    pub sections: Vec<Section>,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Imported {
    /// The tasks that are there now.
    pub added: Vec<TaskId>,
    /// Those that were there already, and stay as they are.
    pub existing: Vec<TaskId>,
    /// The sections that are described now.
    pub sections: Vec<String>,
    /// The sections that were there already and stay as they are, though the list describes them otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_sections: Vec<String>,
}

impl ImportAsk {
    /// What must be seen to decide.
    pub fn scope(&self) -> Scope {
        match self.add.scope() {
            Scope::Tasks(scope) if !self.sections.is_empty() => {
                Scope::Tasks(TaskScope { all_sections: true, ..scope })
            }
            scope => scope,
        }
    }
}

/// Adds what is not there yet, or says why nothing.
///
/// A task exists already if one has its key, or both its id and its title; with the id alone it is
/// another task, and refused. A section that is there, with a record or with open tasks, stays as it is: a list
/// of tasks does not change how many others may work there, or when.
pub fn import(seen: &Snapshot, ask: &ImportAsk) -> (Decision, Result<Imported, AddError>) {
    let there: HashMap<&TaskId, &Task> = seen.tasks.iter().map(|task| (&task.id, task)).collect();
    let is_there =
        |task: &NewTask| there.get(&task.id).is_some_and(|known| known.title == task.title);
    let (known, fresh): (Vec<NewTask>, Vec<NewTask>) =
        ask.add.tasks.iter().cloned().partition(is_there);
    let (decision, added) = add(seen, &AddAsk { tasks: fresh, by: ask.add.by.clone() });
    let added = match added {
        Ok(added) => added,
        Err(error) => return (Decision::Nothing, Err(error)),
    };
    let mut imported = Imported {
        existing: known.into_iter().map(|task| task.id).collect(),
        ..Imported::default()
    };
    for added in added {
        match added {
            Added::New(id) => imported.added.push(id),
            Added::Existing(id) => imported.existing.push(id),
        }
    }
    let mut change = match decision {
        Decision::Write(change) => change,
        _ => Change::default(),
    };
    let (there, new): (Vec<&Section>, Vec<&Section>) =
        ask.sections.iter().partition(|section| is_known(seen, section));
    let differs = |section: &&Section| seen.section(&section.name) != **section;
    let names = |sections: Vec<&Section>| -> Vec<String> {
        sections.into_iter().filter(differs).map(|section| section.name.clone()).collect()
    };
    let sections: Vec<Section> = new.iter().copied().filter(differs).cloned().collect();
    (imported.sections, imported.kept_sections) = (names(new), names(there));
    if !sections.is_empty() {
        match put_all(seen, sections, &ask.add.by) {
            Err(error) => return (Decision::Nothing, Err(error.into())),
            Ok(Decision::Write(described)) => {
                change.writes.extend(described.writes);
                change.events.extend(described.events);
                change.durable = true;
            }
            Ok(_) => {}
        }
    }
    (change.decide(), Ok(imported))
}

fn is_known(seen: &Snapshot, section: &Section) -> bool {
    seen.sections.iter().any(|known| known.section.name == section.name)
}
