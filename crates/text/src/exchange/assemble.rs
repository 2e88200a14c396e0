//! Turns parsed entries into a task list: assigns ids and resolves dependencies.

use std::collections::{HashMap, HashSet};
use tenure_core::TaskId;
use tenure_core::rules::tasks::NewTask;

/// A parsed task. Its id and dependencies are resolved when all tasks are known.
pub(super) struct Draft {
    /// The id in the file.
    pub(super) id: Option<TaskId>,
    /// The other fields; its id and dependencies are not set yet.
    pub(super) task: NewTask,
    /// The ids or titles of its dependencies.
    pub(super) after: Vec<TaskId>,
    /// Dependencies by their index in the list.
    pub(super) after_drafts: Vec<usize>,
}

/// A placeholder for an id that is assigned later.
pub(super) fn unnamed() -> TaskId {
    "t".parse().expect("a letter is an id")
}

/// Assigns ids and resolves dependencies.
///
/// A task without an id gets one derived from its section, its title, and how many earlier tasks
/// have the same ones: so the same file always gives the same ids, even if other tasks are
/// inserted. The id is also its key, so that importing the file again adds nothing.
pub(super) fn assemble(drafts: Vec<Draft>) -> Vec<NewTask> {
    let mut taken: HashSet<TaskId> = drafts.iter().filter_map(|draft| draft.id.clone()).collect();
    let mut twins: HashMap<(Option<&str>, &str), u64> = HashMap::new();
    let mut ids = Vec::with_capacity(drafts.len());
    for draft in &drafts {
        let twin = twins.entry((draft.task.section.as_deref(), &draft.task.title)).or_default();
        ids.push(draft.id.clone().unwrap_or_else(|| make_id(&draft.task, *twin, &mut taken)));
        *twin += 1;
    }
    let titles = unique_titles(&drafts, &ids);
    let settle = |id: TaskId| match taken.contains(&id) {
        true => id,
        false => titles.get(id.as_str()).copied().flatten().map_or(id, |index| ids[index].clone()),
    };
    let mut settled: Vec<Vec<TaskId>> = Vec::with_capacity(drafts.len());
    for draft in &drafts {
        let mut depends_on: Vec<TaskId> = draft.after.iter().cloned().map(settle).collect();
        depends_on.extend(draft.after_drafts.iter().map(|index| ids[*index].clone()));
        settled.push(depends_on);
    }
    let named = ids.into_iter().zip(settled);
    drafts
        .into_iter()
        .zip(named)
        .map(|(draft, (id, depends_on))| {
            let made_up = draft.id.is_none().then(|| id.to_string());
            NewTask { key: draft.task.key.or(made_up), id, depends_on, ..draft.task }
        })
        .collect()
}

/// The index of each title; `None` if it occurs more than once.
fn unique_titles<'a>(drafts: &'a [Draft], ids: &[TaskId]) -> HashMap<&'a str, Option<usize>> {
    let mut titles = HashMap::with_capacity(ids.len());
    for (index, draft) in drafts.iter().enumerate() {
        titles
            .entry(draft.task.title.as_str())
            .and_modify(|place| *place = None)
            .or_insert(Some(index));
    }
    titles
}

/// Twelve digits: short enough to type, and collisions among a hundred thousand are very rare.
fn make_id(task: &NewTask, twin: u64, taken: &mut HashSet<TaskId>) -> TaskId {
    let mut salt = 0_u64;
    loop {
        let parts: [&[u8]; 4] = [
            task.section.as_deref().unwrap_or_default().as_bytes(),
            task.title.as_bytes(),
            &twin.to_le_bytes(),
            &salt.to_le_bytes(),
        ];
        let id = format!("t-{:012x}", hash(&parts) >> 16);
        let id: TaskId = id.parse().expect("letters and digits are an id");
        if taken.insert(id.clone()) {
            return id;
        }
        salt += 1;
    }
}

/// FNV-1a with a final mix. The standard library's hash may change between versions; ids must not.
fn hash(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        // The length keeps "ab" + "c" apart from "a" + "bc".
        for byte in part.iter().chain(&(part.len() as u64).to_le_bytes()) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(id: Option<&str>, title: &str, after: &[&str]) -> Draft {
        Draft {
            id: id.map(|id| id.parse().unwrap()),
            task: NewTask::new(unnamed(), title),
            after: after.iter().map(|id| id.parse().unwrap()).collect(),
            after_drafts: vec![],
        }
    }

    /// These ids are in users' stores and must never change.
    #[test]
    fn made_up_ids_stay_the_same_for_ever() {
        let tasks = assemble(vec![draft(None, "Build", &[]), draft(None, "Build", &[])]);
        let ids: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
        assert_eq!(ids, ["t-770eb5bb18dc", "t-3ec396face45"]);
        assert_eq!(tasks[0].key.as_deref(), Some(ids[0]));
    }

    #[test]
    fn inserting_a_task_leaves_the_other_ids() {
        let before = assemble(vec![draft(None, "a", &[]), draft(None, "b", &[])]);
        let after =
            assemble(vec![draft(None, "a", &[]), draft(None, "new", &[]), draft(None, "b", &[])]);
        assert_eq!(before[1].id, after[2].id);
    }

    #[test]
    fn dependencies_name_ids_or_titles_that_stand_once() {
        let tasks = assemble(vec![
            draft(Some("x"), "Build", &[]),
            draft(None, "Twice", &[]),
            draft(None, "Twice", &[]),
            draft(None, "Last", &["Build", "x", "Twice", "elsewhere"]),
        ]);
        let names: Vec<&str> = tasks[3].depends_on.iter().map(TaskId::as_str).collect();
        assert_eq!(names, ["x", "x", "Twice", "elsewhere"]);
        assert_eq!(tasks[0].key, None);
    }
}
