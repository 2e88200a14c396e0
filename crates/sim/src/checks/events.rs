//! Events tell what was observed, once and in order, and in the end the store has what it acknowledged.

use super::names::{ACKNOWLEDGED, EVENTS, LIVENESS};
use super::observer::Observer;
use std::collections::BTreeMap;
use tenure::core::{Event, EventKind, Revision, Status, Task};

/// So many of the newest events every store keeps.
const KEPT_MIN: usize = 1000;

/// What the events told so far, as a follower sees them little by little.
#[derive(Default)]
pub struct EventChecks {
    revisions: Vec<Revision>,
    /// How often it was told that a resource was acquired with a token.
    acquired: BTreeMap<(String, u64), u32>,
    /// How often it was told that a task was completed.
    completed: BTreeMap<String, u32>,
    /// How often it was told that a note was written.
    noted: BTreeMap<String, u32>,
    /// Who has what is used alone, as the events tell it.
    holder: BTreeMap<String, u64>,
}

/// What a client reads after the simulation.
pub struct FinalState {
    /// The events that the store still has.
    pub kept: Vec<Event>,
    /// All tasks.
    pub tasks: Vec<Task>,
}

type Found = (&'static str, String);

impl EventChecks {
    fn add(&mut self, event: &Event) -> Vec<Found> {
        let mut found = Vec::new();
        if self.revisions.last().is_some_and(|last| *last >= event.revision) {
            found.push((EVENTS, "revisions do not rise".to_owned()));
        }
        self.revisions.push(event.revision);
        if let EventKind::Noted { text } = &event.event.kind {
            *self.noted.entry(text.clone()).or_default() += 1;
        }
        let Some(resource) = &event.event.resource else { return found };
        let name = resource.to_string();
        if event.event.kind == EventKind::Completed {
            *self.completed.entry(name.clone()).or_default() += 1;
        }
        let Some(token) = event.event.token else { return found };
        let is_used_alone = ["a", "b", "q", "x", "y"].contains(&name.as_str());
        match &event.event.kind {
            EventKind::Acquired { .. } => {
                if is_used_alone && let Some(before) = self.holder.insert(name.clone(), token.0) {
                    let text =
                        format!("{name} was acquired with token {} while {before} had it", token.0);
                    found.push((EVENTS, text));
                }
                *self.acquired.entry((name, token.0)).or_default() += 1;
            }
            EventKind::Released
            | EventKind::Lapsed { .. }
            | EventKind::Died { .. }
            | EventKind::Broken { .. }
                if is_used_alone && self.holder.get(&name) == Some(&token.0) =>
            {
                self.holder.remove(&name);
            }
            _ => {}
        }
        found
    }
}

impl Observer {
    /// A follower saw this event.
    pub fn follows(&self, event: &Event) {
        let found = self.state().events.add(event);
        found.into_iter().for_each(|(checker, text)| self.violation(checker, text));
    }

    /// Compares what the store tells in the end with what was observed.
    pub fn check_final_state(&self, last: &FinalState) {
        let seen = self.state().events.revisions.last().copied().unwrap_or_default();
        for event in last.kept.iter().filter(|event| event.revision > seen) {
            self.follows(event);
        }
        let mut found = Vec::new();
        found.extend(self.check_followed(last));
        found.extend(self.check_acquisitions());
        found.extend(self.check_tasks(last));
        found.extend(self.check_notes());
        found.into_iter().for_each(|(checker, text)| self.violation(checker, text));
    }

    /// A follower saw every event that the store still has, and the store has the newest.
    fn check_followed(&self, last: &FinalState) -> Option<Found> {
        let state = self.state();
        let followed = &state.events.revisions;
        let kept: Vec<Revision> = last.kept.iter().map(|event| event.revision).collect();
        let is_enough = kept.len() >= followed.len().min(KEPT_MIN);
        (!is_enough || !followed.ends_with(&kept)).then(|| {
            let text =
                format!("a follower saw {} events; the store has {}", followed.len(), kept.len());
            (EVENTS, text)
        })
    }

    fn check_acquisitions(&self) -> Vec<Found> {
        let state = self.state();
        let told = &state.events.acquired;
        let twice = told.iter().filter(|(_, count)| **count > 1);
        let mut found: Vec<Found> = twice
            .map(|((name, token), _)| {
                (EVENTS, format!("two events tell that {name} was acquired with token {token}"))
            })
            .collect();
        let missing = state.holders.observed().filter(|key| !told.contains_key(*key));
        found.extend(missing.map(|(name, token)| {
            (EVENTS, format!("no event tells that {name} was acquired with token {token}"))
        }));
        found
    }

    fn check_tasks(&self, last: &FinalState) -> Vec<Found> {
        let state = self.state();
        let tasks: BTreeMap<&str, &Task> =
            last.tasks.iter().map(|task| (task.id.as_str(), task)).collect();
        let mut found = Vec::new();
        for id in state.tasks.added.iter().filter(|id| !tasks.contains_key(id.as_str())) {
            found.push((ACKNOWLEDGED, format!("{id} was added, and is not there")));
        }
        for id in state.tasks.completed.keys() {
            let status = tasks.get(id.as_str()).map(|task| task.status);
            if status != Some(Status::Completed) {
                found.push((ACKNOWLEDGED, format!("{id} was completed, and is {status:?}")));
            }
            let told = state.events.completed.get(&format!("task:{id}")).copied().unwrap_or(0);
            if told != 1 {
                found.push((EVENTS, format!("{told} events tell that {id} was completed")));
            }
        }
        for task in last.tasks.iter().filter(|task| !is_ended(task, &tasks)) {
            found.push((LIVENESS, format!("{} is still {}", task.id, task.status.word())));
        }
        found
    }

    fn check_notes(&self) -> Vec<Found> {
        let mut found = Vec::new();
        let state = self.state();
        for (text, acknowledged) in &state.notes.sent {
            let times = state.events.noted.get(text).copied().unwrap_or(0);
            if times > 1 || (times == 0 && *acknowledged) {
                let text = format!(
                    "the note {text} (acknowledged: {acknowledged}) is there {times} times"
                );
                found.push((ACKNOWLEDGED, text));
            }
        }
        found
    }
}

/// A task has come to its end, or waits for one that failed.
fn is_ended(task: &Task, all: &BTreeMap<&str, &Task>) -> bool {
    match task.status {
        Status::InProgress | Status::Review => false,
        Status::Pending => {
            task.id.as_str().starts_with("journal")
                || task.depends_on.iter().any(|id| {
                    all.get(id.as_str())
                        .is_some_and(|one| one.status != Status::Completed && is_ended(one, all))
                })
        }
        _ => true,
    }
}
