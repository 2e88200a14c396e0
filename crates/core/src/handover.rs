//! What a task remembers for its next worker: notes, and how each try ended.
//!
//! Both are part of the task's record, which is read and written whole with every change of the
//! task. So both are bounded: what a claim costs does not grow with a task's history.

use crate::rescue_reference::is_rescue_reference;
use crate::task::{Claim, Task, TaskId};
use crate::{Holder, Token, WallTime};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The longest note, in bytes: a page or two. A longer text belongs into a file that a note names.
pub const NOTE_MAX_BYTES: usize = 8 * 1024;

/// How many notes a task keeps; the oldest are dropped beyond.
pub const NOTES_MAX: usize = 200;

/// How many bytes of text all notes of a task may have together; the oldest are dropped beyond.
/// A task's record is written again with every claim and finish, and shown to every claimer.
pub const NOTES_MAX_BYTES: usize = 64 * 1024;

/// How many tries a task remembers; the oldest are dropped beyond. By default a task is set aside
/// after a few.
pub const TRIES_MAX: usize = 20;

/// How much of a worker's error a try keeps, in bytes. The task itself has the last one whole.
pub const TRY_ERROR_MAX_BYTES: usize = 1024;

/// The longest name of a folder, a branch or a reference that is kept with a try, in bytes: longer
/// than the longest path that Linux accepts.
pub const WORKSPACE_MAX_BYTES: usize = 4096;

/// What a worker or a person wrote about a task, for the next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The author's label.
    pub by: String,
    /// When it was written.
    pub at: WallTime,
    /// The text; it may have several lines.
    pub text: String,
}

/// Why a note was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoteError {
    /// There is no text.
    #[error("the note is empty")]
    Empty,
    /// It is longer than [`NOTE_MAX_BYTES`].
    #[error("the note has {bytes} bytes; the longest allowed is {NOTE_MAX_BYTES}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

impl Note {
    /// Whether a note can have this text.
    pub fn check(text: &str) -> Result<(), NoteError> {
        if text.trim().is_empty() {
            return Err(NoteError::Empty);
        }
        if text.len() > NOTE_MAX_BYTES {
            return Err(NoteError::TooLong { bytes: text.len() });
        }
        Ok(())
    }
}

/// The newest of these notes that a task keeps.
pub fn newest_notes(mut notes: Vec<Note>) -> Vec<Note> {
    let mut bytes = 0;
    let fits = |note: &&Note| {
        bytes += note.text.len();
        bytes <= NOTES_MAX_BYTES
    };
    let kept = notes.iter().rev().take(NOTES_MAX).take_while(fits).count();
    notes.drain(..notes.len() - kept);
    notes
}

/// Where a worker works, as far as it said so: its unfinished work is found there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// The name of the host, for people: names change and repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The id of the machine, as in [`Evidence::machine`](crate::Evidence::machine).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The root of its git worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// The git branch that was made for the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

impl Workspace {
    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Workspace::default()
    }

    /// This workspace; host and machine come from the holder's evidence where they were not said,
    /// and what is too long to be kept is left out.
    pub(crate) fn of(&self, holder: &Holder) -> Workspace {
        let evidence = holder.evidence.as_ref();
        let known = |text: &String| !text.is_empty() && text.len() <= WORKSPACE_MAX_BYTES;
        let host = self.host.clone().or_else(|| Some(evidence?.host.clone()));
        let machine = self.machine.clone().or_else(|| Some(evidence?.machine.clone()));
        Workspace {
            host: host.filter(known),
            machine: machine.filter(known),
            worktree: self.worktree.clone().filter(known),
            branch: self.branch.clone().filter(known),
        }
    }
}

/// One claim of a task: who, when, where, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Try {
    /// Which try of the task this is, from 1. A retry by hand does not begin anew.
    pub number: u32,
    /// The token of the claim, by which the try is known.
    pub token: Token,
    /// The worker's label.
    pub by: String,
    /// When the task was claimed.
    pub claimed_at: WallTime,
    /// When that ended, as far as the store noticed; none while the task is worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<WallTime>,
    /// How it ended; none while the task is worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<TryOutcome>,
    /// Why, where there is more to say; see [`TRY_ERROR_MAX_BYTES`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Where the worker worked.
    #[serde(flatten)]
    pub workspace: Workspace,
    /// The git reference under which the unfinished work of the try was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescue: Option<String>,
}

/// How a try ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TryOutcome {
    /// Its worker completed the task.
    Completed,
    /// Its worker could not do it.
    Failed,
    /// Its worker sent the task to review.
    Review,
    /// Its worker gave the task back.
    Released,
    /// Its worker put the task off.
    Snoozed,
    /// Its worker's process died.
    Died,
    /// Its worker fell silent until the lease lapsed.
    Lapsed,
    /// The hold of the task was ended by hand.
    Broken,
    /// The worker lost a part of its claim, or another program changed the task.
    Lost,
    /// The task was cancelled meanwhile.
    Cancelled,
}

impl TryOutcome {
    /// All of them.
    pub const ALL: [TryOutcome; 10] = [
        TryOutcome::Completed,
        TryOutcome::Failed,
        TryOutcome::Review,
        TryOutcome::Released,
        TryOutcome::Snoozed,
        TryOutcome::Died,
        TryOutcome::Lapsed,
        TryOutcome::Broken,
        TryOutcome::Lost,
        TryOutcome::Cancelled,
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            TryOutcome::Completed => "completed",
            TryOutcome::Failed => "failed",
            TryOutcome::Review => "review",
            TryOutcome::Released => "released",
            TryOutcome::Snoozed => "snoozed",
            TryOutcome::Died => "died",
            TryOutcome::Lapsed => "lapsed",
            TryOutcome::Broken => "broken",
            TryOutcome::Lost => "lost",
            TryOutcome::Cancelled => "cancelled",
        }
    }

    /// Whether the try ended without its worker's word, so that unfinished work may be left.
    pub fn is_interrupted(self) -> bool {
        use TryOutcome::*;
        matches!(self, Died | Lapsed | Broken | Lost)
    }
}

impl fmt::Display for TryOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Try {
    /// The reference that keeps the unfinished work of this try of the task. What a store has of any
    /// other form is not handed out: commands and models run git with it.
    pub fn rescue_of(&self, task: &TaskId) -> Option<&str> {
        self.rescue.as_deref().filter(|text| is_rescue_reference(task, self.number, text))
    }
}

impl Task {
    /// The try that is under way: the last, while the task is worked on.
    pub fn open_try(&self) -> Option<&Try> {
        self.tries.last().filter(|last| last.ended_at.is_none())
    }

    /// The tries that have ended, oldest first.
    pub fn ended_tries(&self) -> impl Iterator<Item = &Try> {
        self.tries.iter().filter(|one| one.ended_at.is_some())
    }

    /// Begins a try with this claim.
    pub(crate) fn begin_try(&mut self, claim: &Claim, at: WallTime, workspace: Workspace) {
        let number = self.tries.last().map_or(0, |last| last.number).saturating_add(1);
        self.tries.push(Try {
            number,
            token: claim.token,
            by: claim.by.clone(),
            claimed_at: at,
            ended_at: None,
            outcome: None,
            error: None,
            workspace,
            rescue: None,
        });
        let beyond = self.tries.len().saturating_sub(TRIES_MAX);
        self.tries.drain(..beyond);
    }

    /// Ends the try of the task's claim. Call it before the claim is removed: a claim of an older
    /// version or of another program began no try, and gets one now.
    pub fn end_try(&mut self, outcome: TryOutcome, error: Option<&str>, at: WallTime) {
        if self.open_try().is_none() {
            let Some(claim) = self.claim.clone() else { return };
            let claimed_at = self.claimed_at.unwrap_or(at);
            self.begin_try(&claim, claimed_at, Workspace::default());
        }
        if let Some(open) = self.tries.last_mut() {
            open.ended_at = Some(at);
            open.outcome = Some(outcome);
            open.error = error.filter(|text| !text.is_empty()).map(beginning);
        }
    }

    /// Removes the try of a claim that was called off.
    pub(crate) fn forget_open_try(&mut self) {
        if self.open_try().is_some() {
            self.tries.pop();
        }
    }
}

/// The beginning of an error that a try keeps.
fn beginning(text: &str) -> String {
    if text.len() <= TRY_ERROR_MAX_BYTES {
        return text.to_owned();
    }
    let fits = |(at, letter): &(usize, char)| at + letter.len_utf8() <= TRY_ERROR_MAX_BYTES;
    let kept: String = text.char_indices().take_while(fits).map(|(_, letter)| letter).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_shown_as_the_word_that_is_stored() {
        for outcome in TryOutcome::ALL {
            assert_eq!(outcome.to_string(), outcome.word());
            let stored = format!("\"{}\"", outcome.word());
            assert_eq!(serde_json::to_string(&outcome).unwrap(), stored);
        }
    }

    #[test]
    fn tries_that_ended_are_told_from_the_one_under_way() {
        let numbers = |task: &Task| {
            let ended: Vec<u32> = task.ended_tries().map(|one| one.number).collect();
            (ended, task.open_try().map(|one| one.number))
        };
        let mut task = crate::sample::full_task();
        assert_eq!(numbers(&task), (vec![3], Some(4)));
        task.end_try(TryOutcome::Completed, None, WallTime(9));
        assert_eq!(numbers(&task), (vec![3, 4], None));
        task.tries.clear();
        assert_eq!(numbers(&task), (vec![], None));
    }

    #[test]
    fn a_long_error_is_cut_between_two_characters() {
        let longest = "x".repeat(TRY_ERROR_MAX_BYTES);
        // What is given, and how many bytes of it are kept.
        for (text, kept) in [
            (longest.clone(), None),
            (format!("{longest}y"), Some(TRY_ERROR_MAX_BYTES)),
            ("é".repeat(TRY_ERROR_MAX_BYTES), Some(TRY_ERROR_MAX_BYTES)),
            (format!("x{}", "é".repeat(TRY_ERROR_MAX_BYTES)), Some(TRY_ERROR_MAX_BYTES - 1)),
        ] {
            let expected = kept.map_or_else(|| text.clone(), |kept| format!("{}…", &text[..kept]));
            assert!(beginning(&text) == expected, "{kept:?} of {} bytes", text.len());
        }
    }
}
