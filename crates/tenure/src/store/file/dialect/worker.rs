//! `worker`: programs that take tasks from `queue.json`. A worker has a task while `TASK.lock` is
//! there, and appends what became of it to `execution_log.jsonl`.

use super::lock_content::LockContent;
use super::task_list::{QueueJson, TaskList};
use super::{
    DialectRules, FieldNames, HoldDefaults, LockFiles, SharedFolder, StaleRule, Subject,
    TaskListFormat,
};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure_core::{Hold, Kind, Resource, WallTime};
use tenure_text::time::to_foreign_text as foreign_time;

/// Its programs take over a lock that is older.
const STALE_AFTER: Duration = Duration::from_secs(300);

/// A file name has 255 bytes at most, and temporary files get a longer one.
const NAME_BYTES_MAX: usize = 200;

#[derive(Debug)]
pub(super) struct Worker;

impl DialectRules for Worker {
    fn name(&self) -> &'static str {
        "worker"
    }

    fn temporary_files(&self) -> &'static [&'static str] {
        &["*.lock"]
    }

    fn lock_files(&self) -> Option<&'static dyn LockFiles> {
        Some(&Worker)
    }

    fn task_list(&self) -> Option<&'static dyn TaskListFormat> {
        Some(&Worker)
    }

    fn defaults(&self) -> HoldDefaults {
        HoldDefaults::default()
    }
}

impl TaskListFormat for Worker {
    fn files(&self, folder: &Path) -> Vec<PathBuf> {
        QueueJson::paths(folder).to_vec()
    }

    fn open(&self, shared: &SharedFolder<'_>) -> Box<dyn TaskList> {
        Box::new(QueueJson::new(shared))
    }

    /// A claim ends when its lock file is stale.
    fn has_endless_claims(&self) -> bool {
        false
    }
}

impl LockFiles for Worker {
    fn subject(&self) -> Subject {
        Subject::Each(Kind::Task)
    }

    fn stale_after(&self) -> Duration {
        STALE_AFTER
    }

    fn stale_rule(&self, _: &LockContent) -> StaleRule {
        StaleRule::Age(STALE_AFTER)
    }

    fn file_name(&self, resource: &Resource) -> Option<String> {
        let name = resource.name();
        let is_file_name =
            !name.starts_with('.') && !name.contains(['/', '\\']) && name.len() <= NAME_BYTES_MAX;
        (resource.kind() == Kind::Task && is_file_name).then(|| format!("{name}.lock"))
    }

    fn resource(&self, stem: &str, _: Option<&LockContent>) -> Option<Resource> {
        Resource::new(Kind::Task, stem).ok()
    }

    fn hides_resource(&self) -> bool {
        false
    }

    fn owns_folder(&self) -> bool {
        false
    }

    fn field_names(&self) -> FieldNames {
        FieldNames { holder: "worker_id", since: "started_at", operation: None }
    }

    fn fields(&self, hold: &Hold, date: WallTime) -> Map<String, Value> {
        Map::from_iter([
            ("worker_id".to_owned(), hold.holder.label.as_str().into()),
            ("started_at".to_owned(), foreign_time(date).into()),
            ("task_id".to_owned(), hold.want.resource.name().into()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_stale_after_five_minutes() {
        let left_ms = |at: &str| {
            let json = format!(r#"{{"worker_id":"w","started_at":"{at}","task_id":"t"}}"#);
            let lock = LockContent::parse(&Worker, json.as_bytes()).unwrap();
            lock.left_ms(&Worker, WallTime(1_800_000_000_000))
        };
        assert_eq!(left_ms("2027-01-15T08:00:00+00:00"), 300_000);
        assert_eq!(left_ms("2027-01-15T07:55:01Z"), 1_000);
        assert_eq!(left_ms("2027-01-15T07:54:59.000000+00:00"), 0);
    }

    #[test]
    fn what_is_no_lock_is_not_read() {
        for text in ["", "{", "[]", "{}", r#"{"worker_id":"w"}"#, r#"{"started_at":"soon"}"#] {
            assert_eq!(LockContent::parse(&Worker, text.as_bytes()), None, "{text}");
        }
    }
}
