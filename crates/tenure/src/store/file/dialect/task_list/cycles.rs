//! Finds tasks that wait for themselves.

use super::reconcile::{Entry, EntryState};
use std::collections::{HashMap, VecDeque};
use tenure_core::TaskId;

/// The tasks that wait for themselves, each with a sentence that names the cycle.
pub(super) fn cycles(entries: &[Entry]) -> HashMap<TaskId, String> {
    let waits =
        |entry: &&Entry| !matches!(entry.state, EntryState::Status(status) if status.satisfies());
    let waiting: HashMap<&TaskId, &[TaskId]> = entries
        .iter()
        .filter(waits)
        .map(|entry| (&entry.new.id, entry.new.depends_on.as_slice()))
        .collect();
    // A task that waits for nothing, or only for such tasks, is in no cycle.
    let mut left: HashMap<&TaskId, usize> = waiting
        .iter()
        .map(|(id, before)| (*id, before.iter().filter(|id| waiting.contains_key(id)).count()))
        .collect();
    let mut dependents: HashMap<&TaskId, Vec<&TaskId>> = HashMap::new();
    for (id, before) in &waiting {
        for before in before.iter() {
            dependents.entry(before).or_default().push(id);
        }
    }
    let mut free: Vec<&TaskId> =
        left.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
    while let Some(id) = free.pop() {
        left.remove(id);
        for dependent in dependents.get(id).into_iter().flatten() {
            if let Some(count) = left.get_mut(dependent) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    free.push(dependent);
                }
            }
        }
    }
    let mut found = HashMap::new();
    for start in left.keys() {
        if let Some(cycle) = cycle_through(start, &waiting, &left) {
            let names: Vec<&str> = cycle.iter().map(|id| id.as_str()).collect();
            let text = format!("it waits for itself: {}", names.join(" → "));
            found.insert((*start).clone(), text);
        }
    }
    found
}

/// The shortest cycle of dependencies through a task.
fn cycle_through<'a>(
    start: &'a TaskId,
    waiting: &HashMap<&'a TaskId, &'a [TaskId]>,
    among: &HashMap<&'a TaskId, usize>,
) -> Option<Vec<&'a TaskId>> {
    let mut came_from: HashMap<&TaskId, &TaskId> = HashMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(id) = queue.pop_front() {
        for before in waiting.get(id).into_iter().flat_map(|before| before.iter()) {
            if before == start {
                let mut way = vec![start];
                let mut at = id;
                while at != start {
                    way.push(at);
                    at = came_from[at];
                }
                way.push(start);
                way.reverse();
                return Some(way);
            }
            if among.contains_key(before) && !came_from.contains_key(before) {
                came_from.insert(before, id);
                queue.push_back(before);
            }
        }
    }
    None
}
