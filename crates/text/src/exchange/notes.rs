//! Collects what could not be imported, so that a hundred thousand tasks make a few sentences.

use std::collections::{BTreeMap, HashSet};

/// How many examples are named.
const NAMED_MAX: usize = 5;

/// Why something was not imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Loss {
    /// A task that is in progress elsewhere.
    Claimed,
    /// A field that a task does not have.
    Field,
    /// A file that is not a valid glob.
    File,
    /// A priority outside of its scale.
    Priority,
    /// Times, attempts and review comments.
    History,
    /// A finished task of which only the id is known.
    OnlyId,
    /// A field of the file outside of the tasks.
    Around,
}

#[derive(Debug, Default)]
pub(super) struct Notes {
    losses: BTreeMap<Loss, Names>,
}

#[derive(Debug, Default)]
struct Names {
    all: HashSet<String>,
    first: Vec<String>,
}

impl Notes {
    /// Records one case; `name` is a task, or a field.
    pub(super) fn add(&mut self, loss: Loss, name: &str) {
        let names = self.losses.entry(loss).or_default();
        if names.all.insert(name.to_owned()) && names.first.len() < NAMED_MAX {
            names.first.push(name.chars().take(40).collect());
        }
    }

    /// One sentence for each kind of loss.
    pub(super) fn sentences(&self) -> Vec<String> {
        self.losses.iter().map(|(loss, names)| sentence(*loss, names)).collect()
    }
}

fn sentence(loss: Loss, names: &Names) -> String {
    let (what, noun) = match loss {
        Loss::Claimed => ("In progress elsewhere, pending here:", "task"),
        Loss::Field => ("Kept in the payload, because a task has no such field:", "field"),
        Loss::File => ("Kept in the payload, because they are not globs: files of", "task"),
        Loss::Priority => ("Set to the nearest priority of the scale:", "task"),
        Loss::History => ("Not imported: attempts, times and reviews of", "task"),
        Loss::OnlyId => ("Added as ended, with the id as title:", "task"),
        Loss::Around => ("Not imported, because they are outside of the tasks:", "field"),
    };
    let count = names.all.len();
    let plural = if count == 1 { "" } else { "s" };
    let more = if count > names.first.len() { ", …" } else { "" };
    format!("{what} {count} {noun}{plural} ({}{more}).", names.first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_cases_make_one_sentence() {
        let mut notes = Notes::default();
        for index in 0..7 {
            notes.add(Loss::Claimed, &format!("t{index}"));
            notes.add(Loss::Field, "owner");
        }
        assert_eq!(
            notes.sentences(),
            [
                "In progress elsewhere, pending here: 7 tasks (t0, t1, t2, t3, t4, …).",
                "Kept in the payload, because a task has no such field: 1 field (owner).",
            ]
        );
    }
}
