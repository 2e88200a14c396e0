//! Taking over a list of tasks that was written elsewhere.

use super::add::{AddAsk, AddError, Added, NewTask, add};
use super::sections::put_all;
use crate::decision::{Change, Decision};
use crate::snapshot::{Scope, Snapshot};
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
pub struct Imported {
    /// The tasks that are there now.
    pub added: Vec<TaskId>,
    /// Those that were there already, and stay as they are.
    pub existing: Vec<TaskId>,
    /// The sections that are described now.
    pub sections: Vec<String>,
}

impl ImportAsk {
    /// What must be seen to decide.
    pub fn scope(&self) -> Scope {
        self.add.scope()
    }
}

/// Adds what is not there yet, or says why nothing.
///
/// A task exists already if one has its key, or both its id and its title; with the id alone it is
/// another task, and refused. An existing section record is never overwritten.
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
        Decision::Nothing | Decision::NeedAll => Change::default(),
    };
    let sections: Vec<Section> =
        ask.sections.iter().filter(|section| is_new(seen, section)).cloned().collect();
    imported.sections = sections.iter().map(|section| section.name.clone()).collect();
    if !sections.is_empty() {
        match put_all(seen, sections, &ask.add.by) {
            Err(error) => return (Decision::Nothing, Err(error.into())),
            Ok(Decision::Write(described)) => {
                change.writes.extend(described.writes);
                // Behind those of the tasks, whose age is the number of their event.
                change.events.extend(described.events);
                change.durable = true;
            }
            Ok(Decision::Nothing | Decision::NeedAll) => {}
        }
    }
    (change.decide(), Ok(imported))
}

/// Whether the section has no record yet and this one differs from the default.
fn is_new(seen: &Snapshot, section: &Section) -> bool {
    let usual = Section::named(&section.name);
    let known = seen.sections.iter().find(|seen| seen.section.name == section.name);
    *section != usual && known.is_none_or(|seen| seen.section == usual)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Write;
    use crate::snapshot::SectionSnapshot;

    fn task(id: &str, title: &str) -> NewTask {
        NewTask::new(id.parse().unwrap(), title)
    }

    fn ask(tasks: Vec<NewTask>, sections: Vec<Section>) -> ImportAsk {
        ImportAsk { add: AddAsk { tasks, by: "me".into() }, sections }
    }

    /// The store after a decision.
    fn after(decision: &Decision) -> Snapshot {
        let mut seen = Snapshot::empty();
        for write in decision.writes() {
            match write {
                Write::Task(task) => seen.tasks.push((**task).clone()),
                Write::Section(section) => {
                    seen.sections.push(SectionSnapshot { section: section.clone(), open: 0 });
                }
                other => panic!("{other:?}"),
            }
        }
        seen
    }

    #[test]
    fn a_second_import_changes_nothing() {
        let mut keyed = task("b", "B");
        keyed.key = Some("k".into());
        keyed.depends_on = vec!["a".parse().unwrap()];
        let paused = Section { paused: true, ..Section::named("s") };
        let ask = ask(vec![task("a", "A"), keyed], vec![paused, Section::named("usual")]);
        let (first, imported) = import(&Snapshot::empty(), &ask);
        let imported = imported.unwrap();
        assert_eq!((imported.added.len(), imported.sections.len()), (2, 1));
        assert_eq!(first.writes().len(), 3);
        let (second, imported) = import(&after(&first), &ask);
        assert_eq!(second, Decision::Nothing);
        let imported = imported.unwrap();
        assert_eq!((imported.added.len(), imported.existing.len()), (0, 2));
    }

    #[test]
    fn another_task_of_the_same_id_stops_all_of_it() {
        let (first, _) = import(&Snapshot::empty(), &ask(vec![task("a", "A")], vec![]));
        let other = ask(vec![task("new", "New"), task("a", "Other")], vec![]);
        let (decision, imported) = import(&after(&first), &other);
        assert_eq!(decision, Decision::Nothing);
        assert_eq!(imported, Err(AddError::Exists { id: "a".parse().unwrap() }));
    }

    #[test]
    fn what_was_said_about_a_section_stays() {
        let mut seen = Snapshot::empty();
        let section = Section { max_runners: Some(4), ..Section::named("s") };
        seen.sections.push(SectionSnapshot { section, open: 0 });
        let paused = Section { paused: true, ..Section::named("s") };
        let (decision, _) = import(&seen, &ask(vec![], vec![paused]));
        assert_eq!(decision, Decision::Nothing);
    }
}
