//! `memory`: programs that change the files of a folder while they have its one lock file, `.lock`.

use super::lock_content::LockContent;
use super::{
    DialectRules, FieldNames, HoldDefaults, LockFiles, StaleRule, Subject, TaskListFormat,
};
use crate::platform;
use serde_json::{Map, Value};
use std::time::Duration;
use tenure_core::{Hold, Kind, Resource, WallTime};
use tenure_text::time::to_foreign_text as foreign_time;

/// Its programs hold the lock for seconds, and take over one that is older.
const STALE_AFTER: Duration = Duration::from_secs(30);

/// They take over a lock from another machine sooner.
const OTHER_HOST_STALE_AFTER: Duration = Duration::from_secs(10);

/// How long they wait for the lock.
const WAIT: Duration = Duration::from_secs(5);

/// The name of the one lock.
const LOCK: &str = "memory";

#[derive(Debug)]
pub(super) struct Memory;

impl DialectRules for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn temporary_files(&self) -> &'static [&'static str] {
        &[".lock", ".lock.tmp"]
    }

    fn lock_files(&self) -> Option<&'static dyn LockFiles> {
        Some(&Memory)
    }

    fn task_list(&self) -> Option<&'static dyn TaskListFormat> {
        None
    }

    fn defaults(&self) -> HoldDefaults {
        HoldDefaults {
            detached_lease: Some(STALE_AFTER),
            wait: Some(WAIT),
            label_variable: Some("CLAWDBOT_SESSION_ID"),
        }
    }
}

impl LockFiles for Memory {
    fn subject(&self) -> Subject {
        Subject::Folder(Resource::new(Kind::Lock, LOCK).expect("a plain name"))
    }

    fn stale_after(&self) -> Duration {
        STALE_AFTER
    }

    fn stale_rule(&self, lock: &LockContent) -> StaleRule {
        if let Some(host) = lock.host.as_ref().filter(|host| **host != platform::this_boot().host) {
            return StaleRule::OtherHost { host: host.clone(), after: OTHER_HOST_STALE_AFTER };
        }
        match lock.pid.filter(|pid| platform::start_of(*pid).is_none()) {
            Some(pid) => StaleRule::DeadProcess { pid },
            None => StaleRule::Age(STALE_AFTER),
        }
    }

    fn file_name(&self, resource: &Resource) -> Option<String> {
        (Subject::Folder(resource.clone()) == self.subject()).then(|| ".lock".to_owned())
    }

    fn resource(&self, _: &str, _: Option<&LockContent>) -> Option<Resource> {
        Resource::new(Kind::Lock, LOCK).ok()
    }

    fn hides_resource(&self) -> bool {
        false
    }

    /// The files that the lock is for lie in it too.
    fn owns_folder(&self) -> bool {
        false
    }

    fn field_names(&self) -> FieldNames {
        FieldNames { holder: "session_id", since: "acquired_at", operation: Some("operation") }
    }

    fn fields(&self, hold: &Hold, date: WallTime) -> Map<String, Value> {
        let here = platform::this_boot();
        let evidence = hold.holder.evidence.as_ref();
        let process = evidence
            .filter(|evidence| evidence.pid_namespace == here.pid_namespace)
            .and_then(|evidence| evidence.process);
        // 0 stands for no process: then the lease alone decides.
        let pid = process.map_or(0, |process| process.pid);
        Map::from_iter([
            ("pid".to_owned(), pid.into()),
            ("session_id".to_owned(), hold.holder.label.as_str().into()),
            ("acquired_at".to_owned(), foreign_time(date).into()),
            ("hostname".to_owned(), here.host.into()),
            ("operation".to_owned(), super::lock_content::operation(hold).into()),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_lock_says_why() {
        let reason = |pid: u32, host: &str, at: &str| {
            let json = format!(
                r#"{{"pid":{pid},"session_id":"s","acquired_at":"{at}","hostname":"{host}","operation":"o"}}"#
            );
            let lock = LockContent::parse(&Memory, json.as_bytes()).unwrap();
            lock.stale_reason(&Memory, WallTime(1_800_000_000_000))
        };
        let here = platform::this_boot().host;
        let alive = std::process::id();
        assert_eq!(reason(alive, &here, "2027-01-15T07:59:50Z"), None);
        assert_eq!(
            reason(alive, &here, "2027-01-15T07:59:14.8Z").as_deref(),
            Some("lock is 45.2s old (>30s)")
        );
        assert_eq!(
            reason(4_194_304, &here, "2027-01-15T08:00:00Z").as_deref(),
            Some("process 4194304 is dead")
        );
        assert_eq!(reason(1, "elsewhere", "2027-01-15T07:59:55Z"), None);
        assert_eq!(
            reason(1, "elsewhere", "2027-01-15T07:59:47.7Z").as_deref(),
            Some("cross-machine lock from elsewhere, 12.3s old")
        );
    }
}
