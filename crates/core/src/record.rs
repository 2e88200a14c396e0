//! Small records: bounded texts that a store keeps under a kind and a key, some of them only for a
//! time.
//!
//! They tell of work, and nothing is decided by them: a record that is missing or old never frees,
//! keeps or grants anything.

use crate::decision::{Change, Write};
use crate::snapshot::Snapshot;
use crate::task::TaskId;
use crate::{WallTime, millis};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest text of a record, in bytes. Every engine takes it in one value.
pub const RECORD_MAX_BYTES: usize = 96 * 1024;

/// How many records of a kind are kept; beyond, a store forgets the oldest at its next
/// occasion. With the longest texts that is 256 MiB, with usual ones some 10 MiB.
pub const RECORDS_MAX: usize = 4096;

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// The last lines that the command of one attempt of a task printed.
    Output,
    /// A worker that runs.
    Worker,
}

impl RecordKind {
    /// All of them.
    pub const ALL: [RecordKind; 2] = [RecordKind::Output, RecordKind::Worker];

    /// The word for it, as it is stored.
    pub fn word(self) -> &'static str {
        match self {
            RecordKind::Output => "output",
            RecordKind::Worker => "worker",
        }
    }
}

/// A record to be written, in the place of what its key had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmallRecord {
    /// What it is about.
    pub kind: RecordKind,
    /// Which one. No key is the beginning of another of its kind.
    pub key: String,
    /// What it says.
    pub text: String,
    /// How long it is kept, by the store's clock; until it is dropped, if this is not said.
    #[serde(rename = "ttl_ms", with = "millis::optional")]
    pub ttl: Option<Duration>,
}

/// Which records are meant: those of a kind whose keys begin so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordRange {
    /// Of which kind.
    pub kind: RecordKind,
    /// The beginning of their keys; all of the kind, if it is empty.
    pub prefix: String,
}

/// A record as a store shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordSnapshot {
    /// Which one.
    pub key: String,
    /// What it says.
    pub text: String,
    /// When it was written last, for showing.
    pub written_at: WallTime,
}

impl RecordRange {
    /// All of a kind.
    pub fn all(kind: RecordKind) -> RecordRange {
        RecordRange { kind, prefix: String::new() }
    }

    /// The outputs of a task.
    pub fn outputs(task: &TaskId) -> RecordRange {
        RecordRange { kind: RecordKind::Output, prefix: format!("{task}{ID_END}") }
    }

    /// The output of one attempt of a task.
    pub fn output(task: &TaskId, attempt: u32) -> RecordRange {
        RecordRange { kind: RecordKind::Output, prefix: output_key(task, attempt) }
    }

    /// Whether this record is meant.
    pub fn has(&self, kind: RecordKind, key: &str) -> bool {
        self.kind == kind && key.starts_with(&self.prefix)
    }
}

/// Ends the id of a task in the key of an output: no name has control characters, and every engine
/// can keep this one.
const ID_END: char = '\u{1f}';

/// The key of the output of one attempt. Keys sort by attempt, and none begins another.
pub fn output_key(task: &TaskId, attempt: u32) -> String {
    format!("{task}{ID_END}{attempt:010}")
}

/// The attempt that a key of an output names.
pub fn attempt_of(key: &str) -> Option<u32> {
    key.rsplit_once(ID_END)?.1.parse().ok()
}

impl Change {
    /// Drops the outputs of tasks that this change deletes and of tries that it forgets, so that an
    /// output lives as long as its attempt is remembered.
    pub fn drop_outputs(&mut self, seen: &Snapshot) {
        let mut drops = Vec::new();
        for write in &self.writes {
            match write {
                Write::DropTask(id) => drops.push(Write::DropRecords(RecordRange::outputs(id))),
                Write::Task(task) => {
                    let Some(before) = seen.task(&task.id) else { continue };
                    let kept = |number: u32| task.tries.iter().any(|one| one.number == number);
                    let gone = before.tries.iter().filter(|one| !kept(one.number));
                    drops.extend(
                        gone.map(|one| {
                            Write::DropRecords(RecordRange::output(&task.id, one.number))
                        }),
                    );
                }
                _ => {}
            }
        }
        self.writes.extend(drops);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn an_output_goes_with_its_task_and_with_its_try() {
        let mut before = sample::full_task();
        let try_template = before.tries[0].clone();
        before.tries =
            (1..=3).map(|number| crate::Try { number, ..try_template.clone() }).collect();
        let mut after = before.clone();
        after.tries.remove(0);
        let id = before.id.clone();
        let seen = Snapshot { tasks: vec![before], ..Snapshot::default() };
        let mut change = Change { writes: vec![Write::Task(Box::new(after))], ..Change::default() };
        change.drop_outputs(&seen);
        assert_eq!(change.writes[1..], [Write::DropRecords(RecordRange::output(&id, 1))]);
        let mut change = Change { writes: vec![Write::DropTask(id.clone())], ..Change::default() };
        change.drop_outputs(&seen);
        assert_eq!(change.writes[1..], [Write::DropRecords(RecordRange::outputs(&id))]);
        assert!(RecordRange::outputs(&id).has(RecordKind::Output, &output_key(&id, 7)));
        assert_eq!(attempt_of(&output_key(&id, 7)), Some(7));
    }

    #[test]
    fn a_range_has_the_records_of_its_kind_whose_keys_begin_so() {
        let id = |text: &str| -> TaskId { text.parse().unwrap() };
        let (output, worker) = (RecordKind::Output, RecordKind::Worker);
        let key = output_key(&id("build"), 12);
        for (range, kind, expected) in [
            (RecordRange::all(output), output, true),
            (RecordRange::all(worker), output, false),
            (RecordRange::outputs(&id("build")), output, true),
            (RecordRange::outputs(&id("build")), worker, false),
            (RecordRange::outputs(&id("buil")), output, false),
            (RecordRange::output(&id("build"), 12), output, true),
            (RecordRange::output(&id("build"), 1), output, false),
        ] {
            assert_eq!(range.has(kind, &key), expected, "{range:?} {kind:?}");
        }
        assert_eq!(attempt_of("build"), None);
    }

    #[test]
    fn the_word_of_a_kind_is_the_one_that_is_sent() {
        for kind in RecordKind::ALL {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("{:?}", kind.word()));
        }
    }
}
