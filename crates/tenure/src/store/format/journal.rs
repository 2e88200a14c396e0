//! The journal of the file store, version 1. Where a later version begins, the first change begins a generation
//! of that version.
//!
//! A generation is a header line, then the whole state, then changes, one line each. A field that is
//! added must have a default, so that older files stay readable; any other change needs a new
//! [`VERSION`].

use super::parts::{
    EventRecord, EvidenceRecord, HoldRecord, ReplyRecord, SectionRecord, TaskRecord, WaiterRecord,
};
use super::record::{Form, record};
use crate::store::ledger::{Record, Renewed, StoredHold, StoredWaiter};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tenure_core::{GrantId, NewEvent, Resource, TaskId, WallTime};

/// The version of the format; a newer one is refused.
pub(crate) const VERSION: u32 = 1;

/// The first line of a generation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The version of the format.
    pub(crate) tenure: u32,
    pub(crate) generation: u64,
    /// Tells this store from others.
    #[serde(default)]
    pub(crate) store: String,
    /// The newest event's number when it was begun.
    pub(crate) revision: u64,
    /// How many events there were before it: numbers jump, this does not.
    #[serde(default)]
    pub(crate) events: u64,
    /// The boot under which deadlines are counted; empty if its id could not be read.
    pub(crate) boot: String,
    /// The boots before it, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ended_boots: Vec<String>,
    /// How many bytes of state follow.
    pub(crate) state_bytes: u64,
    /// How many of those are answers to requests, which come last: only what serves clients reads
    /// them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) answers_bytes: u64,
    /// How many bytes the file of tasks beside it has.
    #[serde(default)]
    pub(crate) tasks_bytes: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Any other line: one change, or a part of the state.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// The number of the first event; 0 for a line that is part of the state.
    pub(crate) next: u64,
    pub(crate) at: WallTime,
    pub(crate) records: Vec<Record>,
    pub(crate) events: Vec<NewEvent>,
    /// Which generation follows; no line comes after such a line.
    pub(crate) sealed: Option<u64>,
}

impl Serialize for Line {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        LineRecord::of(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Line, D::Error> {
        LineRecord::deserialize(source).map(LineRecord::into_core)
    }
}

record! {
    /// A line as it is written.
    LineRecord = Line {
        #[serde(default)]
        next: u64 = next,
        #[serde(default)]
        at: WallTime = at,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        records: Vec<ChangeRecord> = records,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        events: Vec<EventRecord> = events,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sealed: Option<u64> = sealed,
    }
}

record! {
    /// A hold with its times.
    StoredHoldRecord = StoredHold {
        hold: HoldRecord = hold,
        since_ms: i64 = since_ms,
        deadline_ms: i64 = deadline_ms,
        acquired_at: WallTime = acquired_at,
        renewed_at: WallTime = renewed_at,
    }
}

record! {
    /// A place in the queue with its times, and where its waiter is to be woken.
    StoredWaiterRecord = StoredWaiter {
        waiter: WaiterRecord = waiter,
        mailbox: String = mailbox,
        since_ms: i64 = since_ms,
        deadline_ms: i64 = deadline_ms,
        waiting_since: WallTime = waiting_since,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        woken_ms: Option<i64> = woken_ms,
    }
}

record! {
    /// What a renewal changes.
    RenewedRecord = Renewed {
        grant: GrantId = grant,
        resources: Vec<Resource> = resources,
        ttl_ms: i64 = ttl_ms,
        deadline_ms: i64 = deadline_ms,
        renewed_at: WallTime = renewed_at,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<EvidenceRecord> = evidence,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operation: Option<String> = operation,
    }
}

/// The line of the file of a small record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RecordLine {
    pub(crate) key: String,
    pub(crate) written_at: WallTime,
    /// The boot by whose clock the deadline is counted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) boot: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deadline_ms: Option<i64>,
    pub(crate) text: String,
}

/// One change to one record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ChangeRecord {
    #[serde(rename = "hold")]
    Hold(StoredHoldRecord),
    #[serde(rename = "renew")]
    Renew(RenewedRecord),
    #[serde(rename = "drop_hold")]
    DropHold { resource: Resource, grant: GrantId },
    #[serde(rename = "wait")]
    Wait(StoredWaiterRecord),
    #[serde(rename = "keep_place")]
    KeepPlace { ticket: u64, ttl_ms: i64, deadline_ms: i64, mailbox: String },
    #[serde(rename = "woken")]
    Woken { ticket: u64, at_ms: i64 },
    #[serde(rename = "drop_wait")]
    DropWait { ticket: u64 },
    #[serde(rename = "task")]
    Task(Box<TaskRecord>),
    #[serde(rename = "drop_task")]
    DropTask(TaskId),
    #[serde(rename = "section")]
    Section(SectionRecord),
    #[serde(rename = "drop_section")]
    DropSection(String),
    #[serde(rename = "boot")]
    Boot {
        id: String,
        begin_ms: i64,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        same: bool,
    },
    #[serde(rename = "archived")]
    Archived { section: Option<String>, count: i64 },
    #[serde(rename = "answer")]
    Answer {
        answered: ReplyRecord,
        at: WallTime,
        #[serde(default)]
        at_ms: i64,
    },
}

impl Form<Record> for ChangeRecord {
    fn of(core: &Record) -> ChangeRecord {
        match core {
            Record::Hold(hold) => ChangeRecord::Hold(Form::of(hold)),
            Record::Renew(renewed) => ChangeRecord::Renew(Form::of(renewed)),
            Record::DropHold { resource, grant } => {
                ChangeRecord::DropHold { resource: resource.clone(), grant: *grant }
            }
            Record::Wait(waiter) => ChangeRecord::Wait(Form::of(waiter)),
            Record::KeepPlace { ticket, ttl_ms, deadline_ms, mailbox } => ChangeRecord::KeepPlace {
                ticket: *ticket,
                ttl_ms: *ttl_ms,
                deadline_ms: *deadline_ms,
                mailbox: mailbox.clone(),
            },
            Record::Woken { ticket, at_ms } => {
                ChangeRecord::Woken { ticket: *ticket, at_ms: *at_ms }
            }
            Record::DropWait { ticket } => ChangeRecord::DropWait { ticket: *ticket },
            Record::Task(task) => ChangeRecord::Task(Form::of(task)),
            Record::DropTask(id) => ChangeRecord::DropTask(id.clone()),
            Record::Section(section) => ChangeRecord::Section(Form::of(section)),
            Record::DropSection(name) => ChangeRecord::DropSection(name.clone()),
            Record::Boot { id, begin_ms, same } => {
                ChangeRecord::Boot { id: id.clone(), begin_ms: *begin_ms, same: *same }
            }
            Record::Archived { section, count } => {
                ChangeRecord::Archived { section: section.clone(), count: *count }
            }
            Record::Answer { answered, at, at_ms } => {
                ChangeRecord::Answer { answered: Form::of(answered), at: *at, at_ms: *at_ms }
            }
        }
    }

    fn into_core(self) -> Record {
        match self {
            ChangeRecord::Hold(hold) => Record::Hold(hold.into_core()),
            ChangeRecord::Renew(renewed) => Record::Renew(renewed.into_core()),
            ChangeRecord::DropHold { resource, grant } => Record::DropHold { resource, grant },
            ChangeRecord::Wait(waiter) => Record::Wait(waiter.into_core()),
            ChangeRecord::KeepPlace { ticket, ttl_ms, deadline_ms, mailbox } => {
                Record::KeepPlace { ticket, ttl_ms, deadline_ms, mailbox }
            }
            ChangeRecord::Woken { ticket, at_ms } => Record::Woken { ticket, at_ms },
            ChangeRecord::DropWait { ticket } => Record::DropWait { ticket },
            ChangeRecord::Task(task) => Record::Task(task.into_core()),
            ChangeRecord::DropTask(id) => Record::DropTask(id),
            ChangeRecord::Section(section) => Record::Section(section.into_core()),
            ChangeRecord::DropSection(name) => Record::DropSection(name),
            ChangeRecord::Boot { id, begin_ms, same } => Record::Boot { id, begin_ms, same },
            ChangeRecord::Archived { section, count } => Record::Archived { section, count },
            ChangeRecord::Answer { answered, at, at_ms } => {
                Record::Answer { answered: answered.into_core(), at, at_ms }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::format::archive::{KeyLine, TaskLine};
    use serde::de::DeserializeOwned;
    use std::collections::BTreeSet;

    /// The files of a sample.
    struct Sample {
        first: &'static str,
        second: &'static str,
        tasks: &'static str,
        done: &'static str,
        deleted: &'static str,
        keys: &'static str,
    }

    macro_rules! sample {
        ($folder:literal) => {
            Sample {
                first: sample!($folder, "journal/00000001.jsonl"),
                second: sample!($folder, "journal/00000002.jsonl"),
                tasks: sample!($folder, "journal/00000002.tasks"),
                done: sample!($folder, "done/7d.jsonl"),
                deleted: sample!($folder, "done/45.jsonl"),
                keys: sample!($folder, "done/keys-c0.jsonl"),
            }
        };
        ($folder:literal, $file:literal) => {
            include_str!(concat!("../../../tests/samples/", $folder, "/", $file))
        };
    }

    /// One for each version.
    const SAMPLES: [Sample; VERSION as usize] = [sample!("file-1")];

    /// The length of `{"sum":"xxxxxxxx",`, which is in front of what the record says.
    const SUM_BYTES: usize = 18;

    /// Reads a line, and checks that it is written as it was.
    #[track_caller]
    fn read<T: Serialize + DeserializeOwned>(line: &str) -> T {
        let record: T = serde_json::from_str(line).expect(line);
        let written = serde_json::to_string(&record).unwrap();
        assert_eq!(written[1..], line[SUM_BYTES..]);
        record
    }

    fn lines(sample: &Sample) -> Vec<Line> {
        let (first, second) = (sample.first.lines().skip(1), sample.second.lines().skip(1));
        first.chain(second).chain(sample.tasks.lines()).map(read).collect()
    }

    #[test]
    fn every_line_is_written_as_it_was_read() {
        for (version, sample) in (1..).zip(&SAMPLES) {
            let first: Header = read(sample.first.lines().next().unwrap());
            let second: Header = read(sample.second.lines().next().unwrap());
            assert_eq!((first.tenure, first.generation, second.generation), (version, 1, 2));
            assert!(!lines(sample).is_empty());
            for line in sample.done.lines().chain(sample.deleted.lines()) {
                read::<TaskLine>(line);
            }
            sample.keys.lines().for_each(|line| drop(read::<KeyLine>(line)));
        }
    }

    #[test]
    fn a_small_record_is_written_as_it_was_read() {
        for line in [
            r#"{"key":"t\u001f0000000001","written_at":5,"text":"a\n"}"#,
            r#"{"key":"w","written_at":5,"boot":"b","deadline_ms":7,"text":"{}"}"#,
        ] {
            let read: RecordLine = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), line);
        }
    }

    /// A kind that is not in the samples could change unnoticed.
    #[test]
    fn every_kind_of_record_status_and_event_is_in_the_samples() {
        let lines = lines(SAMPLES.last().unwrap());
        let written = serde_json::to_value(&lines).unwrap();
        let values = |name: &str| {
            let lists = written.as_array().unwrap().iter().filter_map(|line| line[name].as_array());
            lists.flatten().cloned().collect::<Vec<serde_json::Value>>()
        };
        let records = values("records");
        let kinds: BTreeSet<&String> =
            records.iter().flat_map(|record| record.as_object().unwrap().keys()).collect();
        assert_eq!(kinds.len(), 14, "{kinds:?}");
        let events = values("events");
        let kinds: BTreeSet<&str> =
            events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds.len(), 27, "{kinds:?}");
        let tasks = lines.iter().flat_map(|line| &line.records).filter_map(|record| match record {
            Record::Task(task) => Some(task.status),
            _ => None,
        });
        let statuses: Vec<tenure_core::Status> = tasks.collect();
        for status in tenure_core::Status::ALL {
            assert!(statuses.contains(&status), "{status}");
        }
        let done = SAMPLES.last().unwrap().done.lines().map(read::<TaskLine>);
        let tries = done.filter_map(TaskLine::into_task).flat_map(|task| task.tries);
        let outcomes: Vec<_> = tries.filter_map(|one| one.outcome).collect();
        assert_eq!(outcomes, tenure_core::TryOutcome::ALL);
    }
}
