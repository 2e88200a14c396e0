//! What a lock file says: other programs' lock files are read, and tenure's own are written.
//!
//! Tenure's own have one more field, `tenure`, with the store and the token. They are dated so that
//! the other programs take them for stale when the lease has lapsed and not before: for a lease that
//! is longer than their limit the date lies ahead, for a shorter one it lies back. So nothing has to
//! refresh them in time, and both sides judge a holder that is stopped or gone alike.

use super::{LockFiles, StaleRule};
use crate::store::ledger::StoredHold;
use crate::store::store_time::StoreTime;
use serde_json::{Map, Value, json};
use tenure_core::{Hold, Token, WallTime};
use tenure_text::exchange::without_byte_order_mark;
use tenure_text::time::{from_value as time_from_value, to_foreign_text as foreign_time};

/// What a lock file says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LockContent {
    /// The holder's name.
    pub(super) label: String,
    pub(super) operation: Option<String>,
    pub(super) since: WallTime,
    pub(super) pid: Option<u32>,
    pub(super) host: Option<String>,
    /// Which of tenure's holds it stands for; none if it is another program's.
    own: Option<OwnMark>,
    /// All fields, known or not.
    pub(super) fields: Map<String, Value>,
}

/// The mark of tenure's own lock files.
#[derive(Clone, Debug, PartialEq)]
struct OwnMark {
    store: String,
    token: u64,
}

impl LockContent {
    /// Reads the content of a lock file; `None` if its dialect does not write such.
    pub(super) fn parse(format: &dyn LockFiles, bytes: &[u8]) -> Option<LockContent> {
        let text = without_byte_order_mark(bytes);
        let Value::Object(fields) = serde_json::from_slice(text).ok()? else { return None };
        let names = format.field_names();
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let own = fields.get("tenure").and_then(|own| {
            let store = own.get("store")?.as_str()?.to_owned();
            Some(OwnMark { store, token: own.get("token")?.as_u64()? })
        });
        let pid = fields.get("pid").and_then(Value::as_u64);
        Some(LockContent {
            label: text(names.holder).unwrap_or_else(|| "unknown".to_owned()),
            operation: names.operation.and_then(text),
            since: fields.get(names.since).and_then(time_from_value)?,
            pid: pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0),
            host: text("hostname"),
            own,
            fields,
        })
    }

    /// A field that is a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str)
    }

    /// Which token of this store it stands for; none if it is another program's.
    pub(super) fn own_token(&self, store: &str) -> Option<Token> {
        self.own.as_ref().filter(|own| own.store == store).map(|own| Token(own.token))
    }

    /// How long the lock still counts by its dialect's rule; 0 means stale.
    pub(super) fn left_ms(&self, format: &dyn LockFiles, now: WallTime) -> i64 {
        let limit = match format.stale_rule(self) {
            StaleRule::DeadProcess { .. } => return 0,
            StaleRule::Age(limit) | StaleRule::OtherHost { after: limit, .. } => limit,
        };
        let age_ms = now.0.saturating_sub(self.since.0);
        (limit.as_millis() as i64).saturating_sub(age_ms).max(0)
    }

    /// Why it no longer counts, in the words of its dialect; `None` while it does.
    pub(super) fn stale_reason(&self, format: &dyn LockFiles, now: WallTime) -> Option<String> {
        if self.left_ms(format, now) > 0 {
            return None;
        }
        let age = now.0.saturating_sub(self.since.0) as f64 / 1000.0;
        Some(match format.stale_rule(self) {
            StaleRule::DeadProcess { pid } => format!("process {pid} is dead"),
            StaleRule::OtherHost { host, .. } => {
                format!("cross-machine lock from {host}, {age:.1}s old")
            }
            StaleRule::Age(limit) => format!("lock is {age:.1}s old (>{}s)", limit.as_secs()),
        })
    }
}

/// The content of tenure's own lock file for a hold. `before` are the fields of the file that it
/// replaces: those that no dialect knows are kept.
pub(super) fn print(
    format: &dyn LockFiles,
    stored: &StoredHold,
    store: &str,
    before: Option<&Map<String, Value>>,
    at: StoreTime,
) -> Vec<u8> {
    let mut fields = before.cloned().unwrap_or_default();
    fields.extend(format.fields(&stored.hold, date(format, stored.left_ms(at), at)));
    let own = json!({
        "store": store,
        "token": stored.hold.token.0,
        "version": 1,
        "held_since": foreign_time(stored.acquired_at),
        "renewed_at": foreign_time(stored.renewed_at),
        "expires_at": foreign_time(WallTime(at.wall_ms.saturating_add(stored.left_ms(at)))),
    });
    fields.insert("tenure".to_owned(), own);
    let mut bytes = serde_json::to_vec_pretty(&fields).expect("an object always serialises");
    bytes.push(b'\n');
    bytes
}

/// What a hold is for, in a lock file that must say so.
pub(super) fn operation(hold: &Hold) -> &str {
    hold.operation.as_deref().unwrap_or("held by tenure")
}

/// The date by which the other programs judge: at the end of the lease it is as old as they allow.
fn date(format: &dyn LockFiles, left_ms: i64, at: StoreTime) -> WallTime {
    let stale_ms = format.stale_after().as_millis() as i64;
    WallTime(at.wall_ms.saturating_add(left_ms.saturating_sub(stale_ms)))
}

#[cfg(test)]
mod tests {
    use super::super::memory::Memory;
    use super::*;

    #[test]
    fn a_lock_is_dated_so_that_it_is_stale_when_the_lease_ends() {
        let at = StoreTime { now_ms: 0, begin_ms: 0, wall_ms: 1_000_000 };
        assert_eq!(date(&Memory, 20_000, at), WallTime(990_000));
        assert_eq!(date(&Memory, 90_000, at), WallTime(1_060_000));
        let now = WallTime(1_800_000_000_000);
        assert_eq!(foreign_time(now), "2027-01-15T08:00:00.000000+00:00");
    }
}
