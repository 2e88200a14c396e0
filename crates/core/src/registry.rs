//! The registry of workers: what each worker says about itself, idle ones too.
//!
//! It is for showing. A worker that is not registered may work all the same, and one whose record is
//! there keeps nothing alive: holds have leases of their own.

use crate::decision::{Change, Decision, Write};
use crate::holder::check_label;
use crate::record::{RECORD_MAX_BYTES, RecordKind, RecordRange, RecordSnapshot, SmallRecord};
use crate::snapshot::Snapshot;
use crate::task::TaskId;
use crate::{Evidence, Liveness, WallTime, Witness, millis};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::time::Duration;

/// How long a worker is listed after it was last heard of.
pub const WORKER_TTL: Duration = Duration::from_secs(30);

/// How often a worker whose state does not change says that it is there: three times before its record
/// ends.
pub const WORKER_REFRESH: Duration = Duration::from_secs(10);

/// What a worker says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// Its label.
    pub label: String,
    /// The process that works, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// How long it has run so far.
    #[serde(rename = "running_for_ms", with = "millis")]
    pub running_for: Duration,
    /// Which section's tasks it takes; of all sections, if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// It takes only tasks with all these labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// The tasks that it has now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskId>,
    /// How many tasks it did.
    pub done: u64,
    /// How many tasks it could not do.
    pub failed: u64,
}

/// A worker as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisteredWorker {
    /// Tells it from other workers with the same label. It is made from the id that the worker chose,
    /// which stays the worker's secret: no other caller can change or remove what it said.
    pub id: String,
    /// When it was last heard of.
    pub last_seen_at: WallTime,
    /// What it said then.
    #[serde(flatten)]
    pub said: StoredWorker,
}

/// What a worker said about itself, in the form in which stores keep it: a field that is added must
/// have a default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredWorker {
    /// Its label.
    pub label: String,
    /// When it began, by the store's clock.
    pub started_at: WallTime,
    /// The process that works, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Which section's tasks it takes; of all sections, if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// It takes only tasks with all these labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// The tasks that it has now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskId>,
    /// How many tasks it did.
    #[serde(default)]
    pub done: u64,
    /// How many tasks it could not do.
    #[serde(default)]
    pub failed: u64,
}

impl RegisteredWorker {
    /// The workers of these records. A record that cannot be read is passed over: it decides nothing.
    pub fn of_records(records: &[RecordSnapshot]) -> Vec<RegisteredWorker> {
        let one = |record: &RecordSnapshot| {
            let said = serde_json::from_str(&record.text).ok()?;
            let (id, last_seen_at) = (record.key.clone(), record.written_at);
            Some(RegisteredWorker { id, last_seen_at, said })
        };
        let mut workers: Vec<RegisteredWorker> = records.iter().filter_map(one).collect();
        workers.sort_by(|one, other| {
            (one.said.started_at, &one.id).cmp(&(other.said.started_at, &other.id))
        });
        workers
    }

    /// What is known about its life.
    pub fn liveness(&self, witness: &dyn Witness) -> Liveness {
        self.said.evidence.as_ref().map_or(Liveness::Unknown, |evidence| witness.liveness(evidence))
    }
}

/// Registers a worker, or says what it does now.
pub(crate) fn put_worker(
    seen: &Snapshot,
    id: &str,
    report: &WorkerReport,
    ttl: Duration,
) -> Decision {
    if check_label(&report.label).is_err() || !is_id(id) {
        return Decision::Nothing;
    }
    let ms = i64::try_from(report.running_for.as_millis()).unwrap_or(i64::MAX);
    let said = StoredWorker {
        label: report.label.clone(),
        started_at: WallTime(seen.wall.0.saturating_sub(ms)),
        evidence: report.evidence.clone(),
        section: report.section.clone(),
        labels: report.labels.clone(),
        tasks: report.tasks.clone(),
        done: report.done,
        failed: report.failed,
    };
    let text = serde_json::to_string(&said).expect("a record of words and numbers has a JSON form");
    if text.len() > RECORD_MAX_BYTES {
        return Decision::Nothing;
    }
    let (kind, key, ttl) = (RecordKind::Worker, key_of(id), Some(ttl.min(WORKER_TTL)));
    let writes = vec![Write::PutRecord(SmallRecord { kind, key, text, ttl })];
    Change { writes, ..Change::default() }.decide()
}

/// Removes a worker that ended.
pub(crate) fn drop_worker(id: &str) -> Decision {
    if !is_id(id) {
        return Decision::Nothing;
    }
    let range = RecordRange { kind: RecordKind::Worker, prefix: key_of(id) };
    Change { writes: vec![Write::DropRecords(range)], ..Change::default() }.decide()
}

/// The key of a worker's record. Keys have one length, so that none is the beginning of another.
fn key_of(id: &str) -> String {
    let mut key = String::new();
    Sha256::digest(id).iter().take(16).for_each(|byte| _ = write!(key, "{byte:02x}"));
    key
}

fn is_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "00000000000000000000000000000001";

    #[test]
    fn what_a_worker_says_is_stored_in_this_form() {
        let seen = Snapshot { wall: WallTime(100_000), ..Snapshot::default() };
        let report = WorkerReport {
            label: "alice".to_owned(),
            running_for: Duration::from_secs(40),
            section: Some("api".to_owned()),
            labels: vec!["rust".to_owned()],
            tasks: vec!["build".parse().unwrap()],
            done: 3,
            failed: 1,
            ..WorkerReport::default()
        };
        let decision = put_worker(&seen, ID, &report, Duration::from_secs(3600));
        let [Write::PutRecord(record)] = decision.writes() else { panic!("{decision:?}") };
        assert_eq!((record.key.len(), record.ttl), (32, Some(WORKER_TTL)));
        assert_ne!(record.key, ID, "what is listed does not name the worker to others");
        let text = concat!(
            r#"{"label":"alice","started_at":60000,"section":"api","labels":["rust"],"#,
            r#""tasks":["build"],"done":3,"failed":1}"#,
        );
        assert_eq!(record.text, text);
        let shown = RecordSnapshot {
            key: ID.to_owned(),
            text: r#"{"label":"bob","started_at":5,"later":true}"#.to_owned(),
            written_at: WallTime(9),
        };
        let damaged = RecordSnapshot { text: "{".to_owned(), ..shown.clone() };
        let workers = RegisteredWorker::of_records(&[damaged, shown]);
        assert_eq!((workers.len(), workers[0].said.label.as_str()), (1, "bob"));
    }

    #[test]
    fn only_an_id_names_a_worker() {
        for id in ["", "0", "x0000000000000000000000000000001"] {
            assert_eq!(drop_worker(id), Decision::Nothing, "{id}");
        }
        assert_eq!(drop_worker(ID).writes().len(), 1);
    }
}
