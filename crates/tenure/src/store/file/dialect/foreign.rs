//! What a lock file says, in each dialect, and how tenure's own are written.
//!
//! Tenure's own carry one more field, `tenure`, with the store and the token. Their date is such
//! that the other programs take them for stale when the lease has lapsed and not before: for a lease
//! that is longer than their limit it lies ahead, for a shorter one it lies back. So nothing has to
//! refresh them in time, and a holder that is stopped or gone is judged alike by both.

use super::Dialect;
use crate::platform;
use crate::store::ledger::StoredHold;
use crate::store::store_time::StoreTime;
use serde_json::{Map, Value, json};
use tenure_core::{Resource, WallTime};
use tenure_text::exchange::without_byte_order_mark;
use tenure_text::time::{from_value as time_from_value, to_foreign_text as foreign_time};

/// From another machine, a lock of the dialect `memory` is stale sooner.
const OTHER_HOST_STALE_MS: i64 = 10_000;

/// What another program's lock file says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Foreign {
    pub(super) label: String,
    pub(super) operation: Option<String>,
    pub(super) since: WallTime,
    pub(super) pid: Option<u32>,
    pub(super) host: Option<String>,
    /// What it is about, where the file's name does not say it.
    pub(super) about: Option<String>,
    /// Which of tenure's holds it stands for.
    pub(super) own: Option<Own>,
    /// All that it says.
    pub(super) fields: Map<String, Value>,
}

/// That a lock file is tenure's.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Own {
    pub(super) store: String,
    pub(super) token: u64,
}

impl Foreign {
    /// Reads a lock file; `None` where it is not what the dialect writes.
    pub(super) fn read(dialect: Dialect, bytes: &[u8]) -> Option<Foreign> {
        let text = without_byte_order_mark(bytes);
        let Value::Object(fields) = serde_json::from_slice(text).ok()? else { return None };
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let (label, operation, since, about) = match dialect {
            Dialect::Worker => (text("worker_id"), None, "started_at", text("task_id")),
            Dialect::Swarm => (text("agent_id"), text("reason"), "locked_at", text("filepath")),
            Dialect::Memory => (text("session_id"), text("operation"), "acquired_at", None),
            Dialect::Coordination => return None,
        };
        let since = fields.get(since).and_then(time_from_value)?;
        let own = fields.get("tenure").and_then(|own| {
            let store = own.get("store")?.as_str()?.to_owned();
            Some(Own { store, token: own.get("token")?.as_u64()? })
        });
        let pid = fields.get("pid").and_then(Value::as_u64);
        Some(Foreign {
            label: label.unwrap_or_else(|| "unknown".to_owned()),
            operation,
            since,
            pid: pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0),
            host: text("hostname"),
            about,
            own,
            fields,
        })
    }

    /// The process that held it, if it is dead: it ran on this host, and has ended.
    pub(super) fn dead_process(&self, dialect: Dialect) -> Option<u32> {
        if dialect != Dialect::Memory || self.is_from_elsewhere() {
            return None;
        }
        self.pid.filter(|pid| platform::start_of(*pid).is_none())
    }

    fn is_from_elsewhere(&self) -> bool {
        self.host.as_ref().is_some_and(|host| *host != platform::this_boot().host)
    }

    /// How long the lock still counts by the dialect's own rule; nothing left means stale.
    pub(super) fn left_ms(&self, dialect: Dialect, now: WallTime) -> i64 {
        let age_ms = now.0.saturating_sub(self.since.0);
        let mut limit_ms = dialect.stale_after().as_millis() as i64;
        if self.dead_process(dialect).is_some() {
            return 0;
        }
        if dialect == Dialect::Memory && self.is_from_elsewhere() {
            limit_ms = OTHER_HOST_STALE_MS;
        }
        limit_ms.saturating_sub(age_ms).max(0)
    }

    /// Why it no longer counts, in the dialect's own words.
    pub(super) fn stale_reason(&self, dialect: Dialect, now: WallTime) -> Option<String> {
        if self.left_ms(dialect, now) > 0 {
            return None;
        }
        let age = now.0.saturating_sub(self.since.0) as f64 / 1000.0;
        Some(match (self.dead_process(dialect), &self.host) {
            (Some(pid), _) => format!("process {pid} is dead"),
            (None, Some(host)) if dialect == Dialect::Memory && self.is_from_elsewhere() => {
                format!("cross-machine lock from {host}, {age:.1}s old")
            }
            _ => format!("lock is {age:.1}s old (>{}s)", dialect.stale_after().as_secs()),
        })
    }
}

/// Tenure's own lock file for a hold. What a file that it follows said beyond the known is kept.
pub(super) fn write(
    dialect: Dialect,
    stored: &StoredHold,
    store: &str,
    before: Option<&Map<String, Value>>,
    at: StoreTime,
) -> Vec<u8> {
    let hold = &stored.hold;
    let date = date(dialect, stored.left_ms(at), at);
    let mut fields = before.cloned().unwrap_or_default();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    let label = Value::from(hold.holder.label.as_str());
    let operation = Value::from(hold.operation.as_deref().unwrap_or("held by tenure"));
    match dialect {
        Dialect::Worker => {
            put("worker_id", label);
            put("started_at", foreign_time(date).into());
            put("task_id", hold.want.resource.name().into());
        }
        Dialect::Swarm => {
            put("agent_id", label);
            put("filepath", hold.want.resource.name().into());
            put("locked_at", (date.0 as f64 / 1000.0).into());
            put("reason", operation);
        }
        Dialect::Memory => {
            let here = platform::this_boot();
            let evidence = hold.holder.evidence.as_ref();
            let process = evidence.filter(|evidence| evidence.pid_namespace == here.pid_namespace);
            // A number that stands for no process: the lease alone decides.
            let pid =
                process.and_then(|evidence| evidence.process).map_or(0, |process| process.pid);
            put("pid", pid.into());
            put("session_id", label);
            put("acquired_at", foreign_time(date).into());
            put("hostname", here.host.into());
            put("operation", operation);
        }
        Dialect::Coordination => {}
    }
    put(
        "tenure",
        json!({
            "store": store,
            "token": hold.token.0,
            "version": 1,
            "held_since": foreign_time(stored.acquired_at),
            "renewed_at": foreign_time(stored.renewed_at),
            "expires_at": foreign_time(WallTime(at.wall_ms.saturating_add(stored.left_ms(at)))),
        }),
    );
    let mut bytes = serde_json::to_vec_pretty(&fields).expect("an object always serialises");
    bytes.push(b'\n');
    bytes
}

/// The date by which the other programs judge: at the end of the lease it is as old as they allow.
fn date(dialect: Dialect, left_ms: i64, at: StoreTime) -> WallTime {
    let stale_ms = dialect.stale_after().as_millis() as i64;
    WallTime(at.wall_ms.saturating_add(left_ms.saturating_sub(stale_ms)))
}

/// What a lock file is about, by what it says.
pub(super) fn resource(dialect: Dialect, foreign: &Foreign, stem: &str) -> Option<Resource> {
    use tenure_core::Kind;
    match dialect {
        Dialect::Worker => Resource::new(Kind::Task, stem).ok(),
        Dialect::Swarm => Resource::new(Kind::Path, foreign.about.as_deref()?).ok(),
        Dialect::Memory => dialect.only_resource(),
        Dialect::Coordination => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallTime = WallTime(1_800_000_000_000);

    fn read(dialect: Dialect, json: &str) -> Foreign {
        Foreign::read(dialect, json.as_bytes()).unwrap()
    }

    #[test]
    fn each_dialect_has_its_own_limit() {
        let worker = |at: &str| {
            let json = format!(r#"{{"worker_id":"w","started_at":"{at}","task_id":"t"}}"#);
            read(Dialect::Worker, &json).left_ms(Dialect::Worker, NOW)
        };
        assert_eq!(worker("2027-01-15T08:00:00+00:00"), 300_000);
        assert_eq!(worker("2027-01-15T07:55:01Z"), 1_000);
        assert_eq!(worker("2027-01-15T07:54:59.000000+00:00"), 0);
        let swarm = r#"{"agent_id":"a","filepath":"x","locked_at":1799999900.5,"reason":"r"}"#;
        assert_eq!(read(Dialect::Swarm, swarm).left_ms(Dialect::Swarm, NOW), 200_500);
    }

    #[test]
    fn the_memory_dialect_names_why_a_lock_is_stale() {
        let lock = |pid: u32, host: &str, at: &str| {
            let json = format!(
                r#"{{"pid":{pid},"session_id":"s","acquired_at":"{at}","hostname":"{host}","operation":"o"}}"#
            );
            read(Dialect::Memory, &json).stale_reason(Dialect::Memory, NOW)
        };
        let here = platform::this_boot().host;
        let alive = std::process::id();
        assert_eq!(lock(alive, &here, "2027-01-15T07:59:50Z"), None);
        assert_eq!(
            lock(alive, &here, "2027-01-15T07:59:14.8Z").as_deref(),
            Some("lock is 45.2s old (>30s)")
        );
        assert_eq!(
            lock(4_194_304, &here, "2027-01-15T08:00:00Z").as_deref(),
            Some("process 4194304 is dead")
        );
        assert_eq!(lock(1, "elsewhere", "2027-01-15T07:59:55Z"), None);
        assert_eq!(
            lock(1, "elsewhere", "2027-01-15T07:59:47.7Z").as_deref(),
            Some("cross-machine lock from elsewhere, 12.3s old")
        );
    }

    #[test]
    fn what_is_no_lock_of_the_dialect_is_not_read() {
        for text in ["", "{", "[]", "{}", r#"{"worker_id":"w"}"#, r#"{"started_at":"soon"}"#] {
            assert_eq!(Foreign::read(Dialect::Worker, text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_lock_is_dated_so_that_it_is_stale_when_the_lease_ends() {
        let at = StoreTime { now_ms: 0, begin_ms: 0, wall_ms: 1_000_000 };
        assert_eq!(date(Dialect::Memory, 20_000, at), WallTime(990_000));
        assert_eq!(date(Dialect::Memory, 90_000, at), WallTime(1_060_000));
        assert_eq!(foreign_time(NOW), "2027-01-15T08:00:00.000000+00:00");
    }
}
