//! Changes of plain tasks: those without a section and files, for which no other task waits.
//!
//! Most tasks are plain. What a rule must see of them takes two small statements instead of five large ones:
//! to begin a large statement costs the server more than to carry out a small one. Whether the tasks of a
//! change are plain is known only once they are read, so these statements are used in that hope; if there
//! is more to see, the change begins again with the large ones.

use super::Inner;
use super::error::PgError;
use super::pick::{self, Way};
use super::read::{Gathered, MORE, hold_columns, number_columns, wait_columns};
use super::row::Row;
use super::session::{Ask, Value};
use super::tasks::{TaskLook, columns, read_task};
use tenure_core::{Task, TaskScope};

/// The tasks with these ids, and those that were picked.
macro_rules! ids {
    () => {
        "($1::text[] || string_to_array(current_setting('tenure.shown', true), E'\\n'))"
    };
}

/// Draws a number; reads what is held and waited for on the tasks; and says whether other tasks wait for
/// them, or whether there is a section that stands for all.
const NUMBERED: &str = concat!(
    number_columns!(),
    " UNION ALL ",
    hold_columns!("h."),
    "FROM unnest",
    ids!(),
    " AS k CROSS JOIN LATERAL
        (SELECT * FROM @holds WHERE resource = 'task:' || k OFFSET 0) AS h UNION ALL ",
    wait_columns!("w."),
    "FROM unnest",
    ids!(),
    " AS k CROSS JOIN LATERAL
        (SELECT * FROM @waits WHERE resource = 'task:' || k OFFSET 0) AS w
     UNION ALL SELECT 4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        NULL, NULL, NULL, NULL, NULL
     WHERE EXISTS (SELECT 1 FROM @dependencies WHERE $2 AND task = ANY($1))
        OR EXISTS (SELECT 1 FROM @sections WHERE name = '*')"
);

const TASKS: &str =
    concat!("SELECT ", columns!(), ", tries, notes FROM @tasks WHERE id = ANY", ids!());

/// Whether a claim of this task holds nothing but the task.
pub(super) fn is_plain(task: &Task) -> bool {
    task.section.is_none() && task.files.is_empty()
}

/// Whether the tasks of this scope are likely to be plain. `expected` are the locks of those that it names,
/// as far as they are known.
pub(super) fn are_likely(inner: &Inner, scope: &TaskScope, expected: Option<&[String]>) -> bool {
    let are_plain = match (&scope.pick, expected) {
        (Some(_), _) => inner.picks.expects_plain(),
        // Each has a lock of its own, and those with a section or files have more.
        (None, Some(expected)) => expected.len() == scope.ids.len(),
        (None, None) => false,
    };
    are_plain && can_show(scope, inner.picks.way())
}

/// Whether these statements show all that this scope asks for, if the tasks are plain.
fn can_show(scope: &TaskScope, way: Way) -> bool {
    let names_more = !scope.keys.is_empty()
        || !scope.grants.is_empty()
        || scope.dependencies
        || scope.beside
        || scope.in_progress
        || scope.all_sections
        || scope.adds;
    let names_tasks = match &scope.pick {
        Some(pick) => {
            let from_one_section = way == Way::OneSection && pick.section.is_none();
            from_one_section && pick::locks(pick, way) && scope.ids.is_empty()
        }
        None => !scope.ids.is_empty(),
    };
    names_tasks && !names_more
}

/// The statements of a look.
pub(super) fn look(scope: &TaskScope, way: Way) -> TaskLook {
    let ids = Value::Texts(scope.ids.iter().map(|id| id.as_str().to_owned()).collect());
    let numbered = vec![ids.clone(), Value::Boolean(scope.dependents)];
    TaskLook {
        pick: scope.pick.as_ref().map(|pick| pick::ask(pick, way)),
        numbered: Some(Ask::Query(NUMBERED, numbered)),
        asks: vec![Ask::Query(TASKS, vec![ids])],
        shows: 0,
        all_sections: false,
    }
}

/// Puts the answers into a snapshot, or notes that there is more to see.
pub(super) fn gather(entries: &[Row], tasks: &[Row], into: &mut Gathered) -> Result<(), PgError> {
    let tasks: Vec<Task> = tasks.iter().map(read_task).collect::<Result<_, _>>()?;
    into.has_more =
        entries.iter().any(|row| row.get::<_, i32>(0) == MORE) || !tasks.iter().all(is_plain);
    if into.has_more {
        return Ok(());
    }
    into.snapshot.tasks = tasks;
    into.snapshot.tasks.sort_by_key(|task| task.age);
    into.entries(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::Pick;

    #[test]
    fn only_scopes_that_these_statements_show_whole() {
        let id = || vec!["a".parse().unwrap()];
        let pick = |section: Option<&str>| {
            let section = section.map(str::to_owned);
            Some(Pick { section, depth: 1, may_skip: true, ..Pick::default() })
        };
        let ids = TaskScope { ids: id(), ..TaskScope::default() };
        let picked = TaskScope { pick: pick(None), ..TaskScope::default() };
        for (scope, way, expected) in [
            (ids.clone(), Way::OneSection, true),
            (TaskScope { dependents: true, ..ids.clone() }, Way::OneSection, true),
            (picked.clone(), Way::OneSection, true),
            (picked.clone(), Way::Sections, false),
            (TaskScope::default(), Way::OneSection, false),
            (TaskScope { ids: id(), ..picked.clone() }, Way::OneSection, false),
            (TaskScope { pick: pick(Some("a")), ..TaskScope::default() }, Way::OneSection, false),
            (TaskScope { dependencies: true, ..ids.clone() }, Way::OneSection, false),
            (TaskScope { beside: true, ..ids.clone() }, Way::OneSection, false),
            (TaskScope { keys: vec!["k".into()], ..ids.clone() }, Way::OneSection, false),
            (TaskScope { in_progress: true, ..ids.clone() }, Way::OneSection, false),
            (TaskScope { all_sections: true, ..ids.clone() }, Way::OneSection, false),
            (TaskScope { adds: true, ..ids }, Way::OneSection, false),
        ] {
            assert_eq!(can_show(&scope, way), expected, "{scope:?} {way:?}");
        }
    }
}
