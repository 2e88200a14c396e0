//! What an agent is told about a file that it must leave alone: who has it, what for, how long
//! still, and what to do meanwhile. Never how to force it.

use super::targets::Target;
use tenure::core::{Blocker, Resource};
use tenure_frontend::duration::format_duration;
use tenure_frontend::view::one_line;

/// The longest texts of others and longest paths that are shown: together with what is around them
/// a refusal stays below 400 characters.
const TEXT_MAX: usize = 40;
const PATH_MAX: usize = 100;

/// What is in the way of one target.
pub(super) struct Conflict {
    /// The path, as the agent would write it.
    pub(super) shown: String,
    /// What is held there by another owner, or who waits for it before.
    pub(super) blocker: Blocker,
}

/// The conflicts of these targets with what is in the way, each target once.
pub(super) fn conflicts<'a>(
    targets: impl IntoIterator<Item = &'a Target>,
    blockers: &[Blocker],
) -> Vec<Conflict> {
    let find = |target: &Target| {
        let blocker = blockers.iter().find(|blocker| concerns(blocker, &target.resource))?;
        Some(Conflict { shown: target.shown.clone(), blocker: blocker.clone() })
    };
    targets.into_iter().filter_map(find).collect()
}

fn concerns(blocker: &Blocker, resource: &Resource) -> bool {
    match blocker {
        Blocker::Hold(seen) => seen.hold.want.resource.overlaps(resource),
        Blocker::Waiter(seen) => {
            seen.waiter.wants.iter().any(|want| want.resource.overlaps(resource))
        }
    }
}

/// Refuses an edit.
pub(super) fn denial(conflicts: &[Conflict]) -> String {
    let Some(first) = conflicts.first() else { return String::new() };
    let others = match conflicts.len() {
        1 => String::new(),
        count => format!(" {} more of these files are held too.", count - 1),
    };
    let wait = match first.shown.chars().count() <= PATH_MAX {
        true => format!(", or wait: `tenure wait 'path:{}'`", first.shown),
        false => String::new(),
    };
    format!(
        "{}{others} Do not change it in another way. Meanwhile edit something else, take another \
         task (`tenure tasks claim`){wait}.",
        sentence(first)
    )
}

/// Tells of a conflict that does not stop the edit.
pub(super) fn warning(conflicts: &[Conflict]) -> String {
    let Some(first) = conflicts.first() else { return String::new() };
    let others = match conflicts.len() {
        1 => String::new(),
        count => format!(" {} more of these files are held too.", count - 1),
    };
    format!("{}{others} Your change may collide with theirs.", sentence(first))
}

/// Refuses a git command that would throw away the changes of another agent.
pub(super) fn discard_denial(conflicts: &[Conflict]) -> String {
    let Some(first) = conflicts.first() else { return String::new() };
    let more = match conflicts.len() {
        1 => String::new(),
        count => format!(" and in {} more files", count - 1),
    };
    format!(
        "This would throw away changes of {} in {}{more} that are not committed. Name only your \
         own files instead of the whole tree.",
        who(&first.blocker),
        shortened(&first.shown, PATH_MAX),
    )
}

fn sentence(conflict: &Conflict) -> String {
    let path = shortened(&conflict.shown, PATH_MAX);
    match &conflict.blocker {
        Blocker::Hold(seen) => {
            let purpose = seen
                .hold
                .operation
                .as_deref()
                .map(|text| format!(" for {:?}", shortened(&one_line(text), TEXT_MAX)));
            format!(
                "{path} is held by {}{}; its lease lasts {} more unless renewed.",
                who(&conflict.blocker),
                purpose.unwrap_or_default(),
                format_duration(seen.left),
            )
        }
        Blocker::Waiter(_) => {
            format!("{path} is free, but {} waits for it before you.", who(&conflict.blocker))
        }
    }
}

fn who(blocker: &Blocker) -> String {
    let label = match blocker {
        Blocker::Hold(seen) => &seen.hold.holder.label,
        Blocker::Waiter(seen) => &seen.waiter.holder.label,
    };
    shortened(label, TEXT_MAX)
}

/// A text of at most so many characters; of a longer one the end, which says most of a path.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let count = text.chars().count();
    match count <= most {
        true => text.to_owned(),
        false => format!("…{}", text.chars().skip(count + 1 - most).collect::<String>()),
    }
}
