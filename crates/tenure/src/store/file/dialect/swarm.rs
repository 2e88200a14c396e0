//! `swarm`: agents that lock each path before they edit it. The name of a lock file is the SHA-256
//! of the path; the file says which path it is.

use super::lock_content::LockContent;
use super::{
    DialectRules, FieldNames, HoldDefaults, LockFiles, StaleRule, Subject, TaskListFormat,
};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::time::Duration;
use tenure_core::{Hold, Kind, Resource, WallTime};

/// Its programs take over a lock that is older.
const STALE_AFTER: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(super) struct Swarm;

impl DialectRules for Swarm {
    fn name(&self) -> &'static str {
        "swarm"
    }

    fn temporary_files(&self) -> &'static [&'static str] {
        &["*.lock", "*.lock.tmp"]
    }

    fn lock_files(&self) -> Option<&'static dyn LockFiles> {
        Some(&Swarm)
    }

    fn task_list(&self) -> Option<&'static dyn TaskListFormat> {
        None
    }

    fn defaults(&self) -> HoldDefaults {
        HoldDefaults::default()
    }
}

impl LockFiles for Swarm {
    fn subject(&self) -> Subject {
        Subject::Each(Kind::Path)
    }

    fn stale_after(&self) -> Duration {
        STALE_AFTER
    }

    fn stale_rule(&self, _: &LockContent) -> StaleRule {
        StaleRule::Age(STALE_AFTER)
    }

    fn file_name(&self, resource: &Resource) -> Option<String> {
        let name = resource.name();
        if resource.kind() != Kind::Path {
            return None;
        }
        if is_lock_name(name) {
            return Some(name.to_owned());
        }
        resource.worktree().is_none().then(|| format!("{:x}.lock", Sha256::digest(name)))
    }

    /// A file that cannot be read goes by its own name, since the path is not known.
    fn resource(&self, stem: &str, content: Option<&LockContent>) -> Option<Resource> {
        match content {
            Some(content) => Resource::new(Kind::Path, content.text("filepath")?).ok(),
            None => Resource::new(Kind::Path, &format!("{stem}.lock")).ok(),
        }
    }

    fn hides_resource(&self) -> bool {
        true
    }

    fn owns_folder(&self) -> bool {
        true
    }

    fn field_names(&self) -> FieldNames {
        FieldNames { holder: "agent_id", since: "locked_at", operation: Some("reason") }
    }

    fn fields(&self, hold: &Hold, date: WallTime) -> Map<String, Value> {
        Map::from_iter([
            ("agent_id".to_owned(), hold.holder.label.as_str().into()),
            ("filepath".to_owned(), hold.want.resource.name().into()),
            ("locked_at".to_owned(), (date.0 as f64 / 1000.0).into()),
            ("reason".to_owned(), super::lock_content::operation(hold).into()),
        ])
    }
}

/// Whether a path is the name of a lock file itself, by which one that cannot be read is known.
fn is_lock_name(name: &str) -> bool {
    let hash = name.strip_suffix(".lock");
    hash.is_some_and(|hash| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_stale_after_five_minutes() {
        let text = r#"{"agent_id":"a","filepath":"x","locked_at":1799999900.5,"reason":"r"}"#;
        let lock = LockContent::parse(&Swarm, text.as_bytes()).unwrap();
        assert_eq!(lock.left_ms(&Swarm, WallTime(1_800_000_000_000)), 200_500);
    }
}
