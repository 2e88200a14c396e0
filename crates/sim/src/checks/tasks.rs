//! A claim has one winner, each finish is accepted once, and dependencies come first.

use super::exclusion::Held;
use super::names::{DEPENDENCIES, FINISH};
use super::observer::Observer;
use std::collections::{BTreeMap, BTreeSet};

/// What was observed of tasks.
#[derive(Default)]
pub struct TaskChecks {
    /// What each task that was sent to the store depends on.
    pub(super) dependencies: BTreeMap<String, Vec<String>>,
    /// Tasks of which the store said that they are added.
    pub(super) added: BTreeSet<String>,
    /// Tasks that a program asked to be completed.
    complete_sent: BTreeSet<String>,
    /// The token with which each task was completed.
    pub(super) completed: BTreeMap<String, u64>,
    /// Finishes that were accepted, whatever they said.
    accepted: BTreeSet<(String, u64)>,
    /// Parts of claims that an operator broke, by token.
    broken: BTreeSet<(String, u64)>,
    /// Claims that were observed.
    pub(super) claimed: BTreeSet<(String, u64)>,
}

impl Observer {
    /// A task is about to be added.
    pub fn adds(&self, task: &str, depends_on: Vec<String>) {
        self.state().tasks.dependencies.insert(task.to_owned(), depends_on);
    }

    /// The store said that these tasks are added.
    pub fn added(&self, tasks: &[String]) {
        self.state().tasks.added.extend(tasks.iter().cloned());
    }

    /// A worker was told that the task is its own.
    pub fn claimed(&self, who: &str, task: &str, token: u64) {
        let (missing, completed) = {
            let mut state = self.state();
            let tasks = &mut state.tasks;
            tasks.claimed.insert((task.to_owned(), token));
            let needs = tasks.dependencies.get(task).cloned().unwrap_or_default();
            let sent = &tasks.complete_sent;
            let missing: Vec<String> =
                needs.into_iter().filter(|one| !sent.contains(one)).collect();
            (missing, tasks.completed.get(task).copied())
        };
        if !missing.is_empty() {
            let text =
                format!("{who} got {task}, and no program has completed {}", missing.join(", "));
            self.violation(DEPENDENCIES, text);
        }
        if let Some(before) = completed.filter(|before| *before < token) {
            let text =
                format!("{who} got {task} token={token}, which was completed with token {before}");
            self.violation(FINISH, text);
        }
    }

    /// A worker is about to say how its task ended.
    pub fn finishes(&self, who: &str, task: &str, token: u64, completes: bool) {
        self.say(who, format_args!("finishes {task} token={token} complete={completes}"));
        if completes {
            self.state().tasks.complete_sent.insert(task.to_owned());
        }
    }

    /// A reviewer is about to approve a task.
    pub fn may_complete(&self, task: &str) {
        self.state().tasks.complete_sent.insert(task.to_owned());
    }

    /// The store said that a part of a claim is broken.
    pub fn broke_part(&self, resource: &str, token: u64) {
        self.state().tasks.broken.insert((resource.to_owned(), token));
    }

    /// Whether a part of a claim is known to be broken: a finish that is sent now must be refused.
    pub fn is_broken_part(&self, resource: &str, token: u64) -> bool {
        self.state().tasks.broken.contains(&(resource.to_owned(), token))
    }

    /// The store accepted how a task ended. `broken` is the part of its claim that was known to be
    /// broken when the finish was sent.
    pub fn finished_after(
        &self,
        who: &str,
        task: &str,
        repeated: bool,
        broken: Option<(String, u64)>,
    ) {
        if let Some((part, token)) = broken.filter(|_| !repeated) {
            let text = format!("{who} finished {task} after its {part} token={token} was broken");
            self.violation(FINISH, text);
        }
    }

    /// The store accepted how a task ended. `others` trusted, when that was asked, that they use a part
    /// of its claim alone: if they do so still, the claim was lost before.
    pub fn finished_beside(
        &self,
        who: &str,
        task: &str,
        parts: &[Held],
        repeated: bool,
        others: &BTreeMap<u64, String>,
    ) {
        let now = self.rivals(parts);
        let both = others.iter().find(|(number, _)| now.contains_key(*number));
        if let Some((_, other)) = both.filter(|_| !repeated) {
            let text = format!("{who} finished {task} while {other} has a part of its claim");
            self.violation(FINISH, text);
        }
    }

    /// The store accepted how a task ended. `repeated` says that it had accepted it before.
    pub fn finish_accepted(
        &self,
        who: &str,
        task: &str,
        token: u64,
        completes: bool,
        repeated: bool,
    ) {
        self.say(who, format_args!("finished {task} token={token} complete={completes}"));
        let (is_new, before) = {
            let mut state = self.state();
            let is_new = state.tasks.accepted.insert((task.to_owned(), token));
            let before = state.tasks.completed.get(task).copied();
            if completes {
                state.tasks.completed.insert(task.to_owned(), token);
            }
            (is_new, before)
        };
        if !is_new && !repeated {
            self.violation(FINISH, format!("the end of {task} token={token} was accepted twice"));
        }
        // The answer to an earlier worker may be the later one to arrive.
        let contradicts = |before: &u64| *before < token || (completes && *before != token);
        if let Some(before) = before.filter(contradicts) {
            let text = format!(
                "{who} finished {task} token={token}, which was completed with token {before}"
            );
            self.violation(FINISH, text);
        }
    }
}
