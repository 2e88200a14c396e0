//! How long each step may take, in one order: a step ends before what waits for it gives up, so that each
//! error names its cause, and each change is tried at least twice.

use std::time::Duration;

/// How long it may take to connect, unless the URL says something else, and at least: libpq also takes one
/// second for two.
pub(super) const CONNECT_SECONDS: u64 = 5;
pub(super) const CONNECT_SECONDS_MIN: u64 = 2;

/// Begins maintenance, which waits shorter for locks than changes do: it can be done later.
pub(super) const BEGIN_MAINTENANCE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED;
 SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '60s'";

/// Begins the first look at the tables over a new connection. It waits shorter for a lock than it may take to connect,
/// so that the lock is named and not the server.
pub(super) const BEGIN_FIRST_LOOK: &str = "BEGIN; SET LOCAL lock_timeout = '1s'";

/// How long the server lets a transaction stay open between two messages: its process was stopped or cut off,
/// and others wait for its locks.
pub(super) const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(5);

/// How long a statement waits for a lock: longer than for a process that was stopped.
pub(super) const LOCK: Duration = Duration::from_secs(7);

/// How long a statement may take, with its wait for locks.
pub(super) const STATEMENT: Duration = Duration::from_secs(9);

/// How long to wait for the answer to one message, after which the connection counts as lost.
pub(super) const ANSWER: Duration = Duration::from_secs(11);

/// How long to wait for a free connection of the pool: longer than one change has it.
pub(super) const FREE_CONNECTION: Duration = Duration::from_secs(13);

/// How long a lease that is longer than all before waits until standbys know how long that is: less than others
/// wait for anything, since a standby may be far behind.
pub(super) const STANDBYS: Duration = Duration::from_secs(4);

/// How long a change is tried again: as long as a server restarts. The last try may begin just before, and
/// ends by itself.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// Sets for one transaction how long each of its statements may take: a change of the whole store, or a look at
/// much.
pub(super) const LARGE_STATEMENTS: &str = "SET LOCAL statement_timeout = '60s'";

/// The same as [`ANSWER`] for them.
pub(super) const LARGE_ANSWER: Duration = Duration::from_secs(65);

/// What is set for every connection, or for one transaction where a pooler keeps no settings.
///
/// Names are looked up in PostgreSQL's own schema alone: in another one, another role may have made a function
/// that fits better than the one that is meant, and would run as ours.
///
/// Statements are planned once for each connection and use indexes even where
/// a table is still small, because the plan stays when it has grown. What an index has in order is not
/// sorted: of a limit that is a value, the planner expects a tenth of all rows, and would rather read
/// and sort all of them. Bitmaps are off because only a plain scan of an index marks entries of rows that
/// are gone: the rows of a busy lock come and go, and each look would read all of them again until the
/// next vacuum.
pub(super) fn settings() -> Vec<(&'static str, String)> {
    let limit = |limit: Duration| format!("{}ms", limit.as_millis());
    let mut settings = vec![
        ("search_path", "pg_catalog".to_owned()),
        ("lock_timeout", limit(LOCK)),
        ("statement_timeout", limit(STATEMENT)),
        ("idle_in_transaction_session_timeout", limit(IDLE_IN_TRANSACTION)),
        ("plan_cache_mode", "force_generic_plan".to_owned()),
    ];
    let off = ["enable_seqscan", "enable_sort", "enable_bitmapscan", "jit"];
    settings.extend(off.map(|name| (name, "off".to_owned())));
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_ends_before_what_waits_for_it_gives_up() {
        let order =
            [STANDBYS, IDLE_IN_TRANSACTION, LOCK, STATEMENT, ANSWER, FREE_CONNECTION, PATIENCE];
        assert!(order.is_sorted_by(|one, next| one < next), "{order:?}");
        let seconds = |sql: &str, setting: &str| {
            let (_, rest) = sql.split_once(&format!("{setting} = '")).unwrap();
            Duration::from_secs(rest.split_once("s'").unwrap().0.parse().unwrap())
        };
        let first_look = seconds(BEGIN_FIRST_LOOK, "lock_timeout");
        assert!(first_look < Duration::from_secs(CONNECT_SECONDS_MIN));
        assert!(Duration::from_secs(CONNECT_SECONDS) < LOCK);
        assert!(seconds(BEGIN_MAINTENANCE, "lock_timeout") < LOCK);
        let large = seconds(LARGE_STATEMENTS, "statement_timeout");
        assert_eq!(seconds(BEGIN_MAINTENANCE, "statement_timeout"), large);
        assert!(STATEMENT < large && large < LARGE_ANSWER);
    }
}
