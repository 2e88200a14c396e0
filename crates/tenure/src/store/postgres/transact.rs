//! One change: look, decide, write, in two round trips.
//!
//! The first flight begins a database transaction, takes the locks, draws a number and reads. The
//! second writes, commits, and wakes. Where the rule needs to see more, or writes what is not locked,
//! the change begins again with more locks: to wait for further locks while some are held could
//! close a cycle.

use super::error::PgError;
use super::locks::LockSet;
use super::pick::{self, Picked};
use super::plain_tasks;
use super::pool::Pooled;
use super::read::{self, Addresses, Gathered};
use super::row::Row;
use super::session::{Answered, Ask, Value};
use super::tasks::TaskLook;
use super::write::{Batch, EVENTS, Numbers, wake_word};
use super::{Inner, Retry};
use crate::store::store_time::{StoreTime, from_ms};
use crate::store::{Committed, Step, StoreError, Transaction};
use std::sync::Arc;
use tenure_core::{Change, GrantId, Revision, Scope, Snapshot, StoredReply, Write};

/// After so many beginnings with more locks a change takes the whole store.
const BEGINNINGS_MAX: u32 = 6;

/// Begins a change that shares the store with others; the statement that takes its locks takes that
/// of the store first.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// Begins a change that has the store alone, and may be large.
const BEGIN_WHOLE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL statement_timeout = '60s'; SELECT pg_advisory_xact_lock($SPACE, 0)";

/// Takes one lock exclusively, which is what most changes need.
const LOCK_ONE: &str = "SELECT $1::text, pg_advisory_xact_lock_shared($SPACE, 0)::text,
    pg_advisory_xact_lock(hashtextextended(substr($1, 2), $SEED))::text";

/// Takes locks, all in one statement: that of the store, which has no key, and then the others, in the
/// order in which they are given.
const LOCK: &str = "SELECT k, CASE left(k, 1)
    WHEN 'x' THEN pg_advisory_xact_lock(hashtextextended(substr(k, 2), $SEED))::text
    WHEN 's' THEN pg_advisory_xact_lock_shared(hashtextextended(substr(k, 2), $SEED))::text
    ELSE pg_advisory_xact_lock_shared($SPACE, 0)::text END
 FROM unnest($1::text[]) AS k";

/// The same with the locks of these tasks, and of those that wait for them: in one order, each once in
/// its strongest mode. The row of the store comes first, and is there if no other is wanted.
const LOCK_TASKS: &str = "WITH store AS MATERIALIZED (
    SELECT pg_advisory_xact_lock_shared($SPACE, 0)::text AS taken),
 wanted AS (
    SELECT unnest($1::text[]) AS k
    UNION ALL SELECT unnest(lock_keys) FROM @tasks WHERE id = ANY($2)
    UNION ALL SELECT 'xtask:' || dependent FROM @dependencies WHERE $3 AND task = ANY($2)),
 keys AS (SELECT substr(k, 2) AS k, bool_or(left(k, 1) = 'x') AS x FROM wanted GROUP BY 1),
 sorted AS MATERIALIZED (SELECT k, x, hashtextextended(k, $SEED) AS h FROM keys ORDER BY k COLLATE \"C\")
 SELECT CASE WHEN x THEN 'x' ELSE 's' END || k,
    CASE WHEN x THEN pg_advisory_xact_lock(h)::text ELSE pg_advisory_xact_lock_shared(h)::text END
 FROM store LEFT JOIN sorted ON true";

/// The same with the locks of all that these grants have.
const LOCK_GRANTS: &str = "WITH store AS MATERIALIZED (
    SELECT pg_advisory_xact_lock_shared($SPACE, 0)::text AS taken),
 wanted AS (
    SELECT unnest($1::text[]) AS k
    UNION SELECT unnest(lock_keys) FROM @tasks WHERE id = ANY($2)
    UNION SELECT 'xtask:' || dependent FROM @dependencies WHERE $3 AND task = ANY($2)
    UNION SELECT unnest(lock_keys) FROM @holds WHERE grant_id = ANY($4)
    UNION SELECT unnest(lock_keys) FROM @tasks
        WHERE status = 'in_progress' AND claim_grant = ANY($4)),
 keys AS (SELECT substr(k, 2) AS k, bool_or(left(k, 1) = 'x') AS x FROM wanted GROUP BY 1),
 sorted AS MATERIALIZED (SELECT k, x, hashtextextended(k, $SEED) AS h FROM keys ORDER BY k COLLATE \"C\")
 SELECT CASE WHEN x THEN 'x' ELSE 's' END || k,
    CASE WHEN x THEN pg_advisory_xact_lock(h)::text ELSE pg_advisory_xact_lock_shared(h)::text END
 FROM store LEFT JOIN sorted ON true";

/// Announces a change, see `follow`, and then draws its number, once its locks are taken; and what
/// every change must know. Columns are computed from left to right.
const NUMBER: &str = "SELECT pg_advisory_xact_lock_shared($ANNOUNCEMENTS,
        (last_value & 2147483647)::int)::text, nextval('@numbers'),
    floor(extract(epoch FROM t) * 1000)::bigint, ceil(extract(epoch FROM t) * 1000)::bigint,
    store_id, version, withhold_until_ms, longest_ms
 FROM @numbers, @meta, clock_timestamp() AS t";

/// What a look that changes nothing must know.
pub(super) const MOMENT: &str = "SELECT '', last_value + 1,
    floor(extract(epoch FROM t) * 1000)::bigint, ceil(extract(epoch FROM t) * 1000)::bigint,
    store_id, version, withhold_until_ms, longest_ms
 FROM @meta, @numbers, clock_timestamp() AS t";

/// When a change or a look happens, by the server's clock, and its number.
pub(super) struct Moment {
    pub(super) number: u64,
    pub(super) at: StoreTime,
    withhold_until_ms: i64,
    longest_ms: i64,
}

impl Moment {
    pub(super) fn read(inner: &Inner, rows: &[Row]) -> Result<Moment, PgError> {
        let row = rows.first().ok_or(PgError::Replaced)?;
        Moment::of(
            inner,
            row.get(4),
            row.get(5),
            Moment {
                number: row.get::<_, i64>(1) as u64,
                at: Moment::time(row.get(2), row.get(3)),
                withhold_until_ms: row.get(6),
                longest_ms: row.get(7),
            },
        )
    }

    /// The same of a statement that answers with more than the moment, see `number_columns`.
    fn read_first(inner: &Inner, rows: &[Row]) -> Result<Moment, PgError> {
        let is_moment = |row: &&Row| row.get::<_, i32>(0) == read::MOMENT_ROW;
        let row = rows.first().filter(is_moment).ok_or(PgError::Replaced)?;
        Moment::of(
            inner,
            row.get(2),
            row.get::<_, i64>(10) as i32,
            Moment {
                number: row.get::<_, i64>(3) as u64,
                at: Moment::time(row.get(11), row.get(12)),
                withhold_until_ms: row.get(13),
                longest_ms: row.get(14),
            },
        )
    }

    /// A moment of this store, if its tables are the right ones.
    fn of(inner: &Inner, store: &str, version: i32, moment: Moment) -> Result<Moment, PgError> {
        if store != inner.pool.connector().store_id() {
            return Err(PgError::Replaced);
        }
        if version > super::schema::VERSION {
            return Err(PgError::Newer(version, super::schema::VERSION));
        }
        Ok(moment)
    }

    fn time(now_ms: i64, begin_ms: i64) -> StoreTime {
        StoreTime { now_ms, begin_ms, wall_ms: now_ms }
    }
}

/// What came of one beginning.
enum Outcome {
    Done(Committed),
    /// It must begin again: with more locks, or a wider scope.
    Again,
    /// It was written, but the answer did not come.
    Unknown {
        number: u64,
        has_events: bool,
        /// All locks that it had, also those of records and of tasks that were picked.
        locks: LockSet,
        error: PgError,
    },
}

/// A change on its way.
struct Attempt {
    scope: Scope,
    /// Locks beyond those that the scope names.
    extra: LockSet,
    /// How often the rule asked to see more.
    steps: usize,
    beginnings: u32,
    has_tried_to_listen: bool,
    /// Whether the statements for plain tasks have shown too little.
    looks_at_all: bool,
}

/// Carries out a change, and again where the connection was lost before anything was written.
pub(super) async fn transact(
    inner: Arc<Inner>,
    mut transaction: Transaction,
) -> Result<Committed, StoreError> {
    let mut retry = Retry::new(&inner);
    let mut attempt = Attempt {
        scope: transaction.scope.clone(),
        extra: LockSet::default(),
        steps: 0,
        beginnings: 0,
        has_tried_to_listen: false,
        looks_at_all: false,
    };
    loop {
        let outcome = match inner.pool.get().await {
            Ok(session) => begin(&inner, session, &mut transaction, &mut attempt).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(Outcome::Done(committed)) => return Ok(committed),
            Ok(Outcome::Again) => {
                attempt.beginnings += 1;
                attempt.extra.whole |= attempt.beginnings >= BEGINNINGS_MAX;
            }
            Ok(Outcome::Unknown { number, has_events, locks, error }) => {
                // Without events it took no numbers, and to decide it again does no harm.
                if has_events {
                    match settle(&inner, &locks, number, &mut retry).await {
                        Ok(true) => return Ok(Committed { revision: Some(Revision(number)) }),
                        Ok(false) => {}
                        Err(_) => {
                            let reason = error.to_string();
                            return Err(StoreError::Unknown { store: inner.url.clone(), reason });
                        }
                    }
                }
                attempt.reset(&transaction);
            }
            Err(error) => {
                retry.after(error).await?;
                attempt.reset(&transaction);
            }
        }
    }
}

impl Attempt {
    /// Begins from the start: what was seen is out of date.
    fn reset(&mut self, transaction: &Transaction) {
        self.scope = transaction.scope.clone();
        self.steps = 0;
    }
}

fn locks_of(slot: Option<&str>, attempt: &Attempt) -> LockSet {
    let mut locks = LockSet::of_scope(&attempt.scope, slot);
    locks.add(attempt.extra.clone());
    locks
}

/// Begins a change with these locks.
pub(super) fn begin_ask(locks: &LockSet) -> Ask {
    Ask::Begin(if locks.whole { BEGIN_WHOLE } else { BEGIN })
}

/// Takes the named locks, unless the whole store is taken.
pub(super) fn keys_ask(locks: &LockSet) -> Ask {
    let mut keys = if locks.whole { vec![] } else { locks.encoded() };
    match keys.as_slice() {
        [one] if one.starts_with('x') => Ask::Query(LOCK_ONE, vec![Value::Text(keys.remove(0))]),
        _ => {
            keys.insert(0, String::new());
            Ask::Query(LOCK, vec![Value::Texts(keys)])
        }
    }
}

/// Takes the locks, and those that the tables name; `is_complete` if there are no more of these.
fn lock_ask(scope: &Scope, locks: &LockSet, is_complete: bool) -> Option<Ask> {
    if locks.whole {
        return None;
    }
    Some(match scope {
        _ if is_complete => keys_ask(locks),
        // A task that is added needs no more of those that it waits for than their own records.
        Scope::Tasks(scope) if !(scope.adds || scope.ids.is_empty() && scope.grants.is_empty()) => {
            let keys = Value::Texts(locks.encoded());
            let ids = scope.ids.iter().map(|id| id.as_str().to_owned()).collect();
            let mut values = vec![keys, Value::Texts(ids), Value::Boolean(scope.dependents)];
            if scope.grants.is_empty() {
                return Some(Ask::Query(LOCK_TASKS, values));
            }
            values.push(Value::Texts(scope.grants.iter().map(ToString::to_string).collect()));
            Ask::Query(LOCK_GRANTS, values)
        }
        _ => keys_ask(locks),
    })
}

/// One database transaction, from its beginning to its end.
async fn begin(
    inner: &Arc<Inner>,
    session: Pooled,
    transaction: &mut Transaction,
    attempt: &mut Attempt,
) -> Result<Outcome, PgError> {
    let slot = transaction.slot().map(str::to_owned);
    let mut locks = locks_of(slot.as_deref(), attempt);
    let scope = attempt.scope.clone();
    let way = inner.picks.way();
    let mut asks = vec![begin_ask(&locks)];
    let expected = inner.claimed.locks(&scope).filter(|_| !attempt.looks_at_all);
    if let Some(expected) = &expected {
        locks.took(expected);
    }
    let look = match &scope {
        Scope::Tasks(scope)
            if !attempt.looks_at_all
                && plain_tasks::are_likely(inner, scope, expected.as_deref()) =>
        {
            Look::Tasks(plain_tasks::look(scope, way))
        }
        _ => Look::new(&scope, way),
    };
    let lock = lock_ask(&scope, &locks, expected.is_some());
    let has_lock = lock.is_some();
    asks.extend(lock);
    let pick = look.pick();
    let has_pick = pick.is_some();
    let may_skip = matches!(&scope, Scope::Tasks(scope)
        if scope.pick.as_ref().is_some_and(|pick| pick.may_skip));
    asks.extend(pick);
    // What draws the number reads too, where one statement can do both.
    let numbered = look.numbered();
    let is_numbered = numbered.is_some();
    asks.push(numbered.unwrap_or_else(|| Ask::Query(NUMBER, vec![])));
    let reads = asks.len();
    asks.extend(if is_numbered { look.asks_beside_number() } else { look.asks() });
    if let Some(slot) = &slot {
        asks.push(Ask::Query(
            "SELECT number, text FROM @answers WHERE slot = $1",
            vec![Value::Text(slot.clone())],
        ));
    }
    let (session, mut rows) = begun(session, &asks).await?;
    let mut picked = None;
    let mut has_more = false;
    let mut shown = || -> Result<(Snapshot, Addresses, Moment), PgError> {
        let number = &rows[reads - 1];
        let moment = match is_numbered {
            true => Moment::read_first(inner, number)?,
            false => Moment::read(inner, number)?,
        };
        let mut gathered = Gathered::new(moment.at);
        if has_lock {
            let keys = rows[1].iter().filter_map(|row| row.get::<_, Option<String>>(0));
            let taken: Vec<String> = keys.filter(|key| !key.is_empty()).collect();
            locks.took(&taken);
        }
        if has_pick {
            let at = 1 + usize::from(has_lock);
            let answer = picked.insert(Picked::gather(&rows[at], may_skip, &mut gathered)?);
            if answer.may_skip {
                locks.took(&answer.locks);
            }
        }
        let answered = slot.as_ref().and_then(|_| rows.pop());
        match is_numbered {
            true => look.gather_numbered(&rows[reads - 1][1..], &rows[reads..], &mut gathered)?,
            false => look.gather(&rows[reads..], &mut gathered)?,
        }
        has_more = gathered.has_more;
        let (mut snapshot, addresses) = gathered.finish();
        snapshot.next = moment.number;
        snapshot.answered = answered.and_then(|rows| {
            let row = rows.first()?;
            let slot = slot.clone()?;
            Some(StoredReply { slot, number: row.get::<_, i64>(0) as u64, text: row.get(1) })
        });
        Ok((snapshot, addresses, moment))
    };
    let (mut snapshot, addresses, moment) = match shown() {
        Ok(shown) => shown,
        Err(error) => {
            roll_back(session);
            return Err(error);
        }
    };
    if has_more {
        roll_back(session);
        if picked.is_some() {
            inner.picks.found_more();
        }
        attempt.looks_at_all = true;
        return Ok(Outcome::Again);
    }
    if let Some(picked) = picked
        && let Err(missing) = inner.picks.accept(&picked, way, &locks, &mut snapshot)
    {
        roll_back(session);
        attempt.extra.add(missing);
        return Ok(Outcome::Again);
    }
    match transaction.step(&scope, &snapshot, &mut attempt.steps) {
        Step::Wider(wider) => {
            roll_back(session);
            attempt.scope = wider;
            Ok(Outcome::Again)
        }
        Step::Chosen(None) => {
            roll_back(session);
            Ok(Outcome::Done(Committed { revision: None }))
        }
        Step::Chosen(Some(change)) => {
            if let Some(missing) = locks.missing(&change) {
                roll_back(session);
                attempt.extra.add(missing);
                return Ok(Outcome::Again);
            }
            let queues = change
                .writes
                .iter()
                .any(|write| matches!(write, Write::Wait(_) | Write::KeepPlace(_)));
            if queues && !inner.listener.is_ready() && !attempt.has_tried_to_listen {
                // A wake must not come before anyone listens, and no lock is held meanwhile. If the
                // connection cannot be made now, the waiter looks by itself.
                roll_back(session);
                inner.listener.start(inner).await;
                attempt.has_tried_to_listen = true;
                return Ok(Outcome::Again);
            }
            if let Some(error) = withheld(&change, &moment) {
                roll_back(session);
                return Err(error);
            }
            write(inner, session, change, snapshot, addresses, moment, locks).await
        }
    }
}

/// Why nothing may be granted now, if so.
fn withheld(change: &Change, moment: &Moment) -> Option<PgError> {
    let left_ms = moment.withhold_until_ms.saturating_sub(moment.at.now_ms);
    let grants = change.writes.iter().any(|write| matches!(write, Write::Hold(_)));
    (grants && left_ms > 0).then(|| PgError::Withheld(from_ms(left_ms)))
}

/// The second flight.
async fn write(
    inner: &Arc<Inner>,
    session: Pooled,
    change: Change,
    snapshot: Snapshot,
    addresses: Addresses,
    moment: Moment,
    locks: LockSet,
) -> Result<Outcome, PgError> {
    for write in &change.writes {
        if let Write::Wait(waiter) | Write::KeepPlace(waiter) = write {
            inner.listener.expect(waiter.grant);
        }
    }
    let mailbox = inner.listener.channel();
    let numbers =
        Numbers { first: moment.number, longest_ms: moment.longest_ms, alone: locks.whole };
    let batch = Batch::of(&change, moment.at, mailbox);
    let mut asks = batch.asks(&change, &numbers, moment.at, mailbox, &snapshot.tasks);
    let has_events = !change.events.is_empty();
    let event_at = asks.iter().position(|ask| matches!(ask, Ask::Query(sql, _) if *sql == EVENTS));
    let commit_at = asks.len();
    asks.push(Ask::Run("COMMIT"));
    asks.extend(wake(&change, &addresses));
    asks.extend((!change.events.is_empty()).then(|| tell(inner)));
    let mut answers = session.flight(&asks).await;
    // What was not told is found by the next look of each waiter.
    answers.truncate(commit_at + 1);
    let failed = answers.iter().position(Result::is_err);
    if let Some(index) = failed {
        let error = answers.swap_remove(index).err().unwrap_or(PgError::Replaced);
        // The server said no to a statement: then it did not commit. If no answer came, it is unknown.
        return match error.is_lost_connection() {
            true => Ok(Outcome::Unknown { number: moment.number, has_events, locks, error }),
            false => {
                roll_back(session);
                Err(error)
            }
        };
    }
    session.set_in_transaction(false);
    for write in &change.writes {
        if let Write::DropWait(waiter) = write {
            inner.listener.forget(waiter.grant);
        }
    }
    // A single event has the number of the change.
    let newest = match event_at {
        Some(index) => {
            let rows = answers[index].as_ref().ok();
            rows.and_then(|rows| rows.iter().map(|row| row.get::<_, i64>(0) as u64).max())
        }
        None => has_events.then_some(moment.number),
    };
    inner.after_commit(session, &change);
    Ok(Outcome::Done(Committed { revision: newest.map(Revision) }))
}

/// Wakes waiters in a transaction of its own, behind the commit in the same flight: to notify inside
/// of the change would make all commits wait for each other. A wake is a hint, so it need not be on
/// disk before it is told.
fn wake(change: &Change, addresses: &Addresses) -> Option<Ask> {
    let woken = |grant: &GrantId| Some((addresses.get(grant)?.clone(), wake_word(*grant)));
    let (channels, words): (Vec<String>, Vec<String>) =
        change.wake.iter().filter_map(woken).unzip();
    (!channels.is_empty()).then(|| {
        Ask::Query(
            "SELECT set_config('synchronous_commit', 'off', true), pg_notify(c, w)::text
             FROM unnest($1::text[], $2::text[]) AS t(c, w)",
            vec![Value::Texts(channels), Value::Texts(words)],
        )
    })
}

/// Tells processes that watch for changes. They share a lock; without any, nothing is sent.
fn tell(inner: &Inner) -> Ask {
    Ask::Query(
        "SELECT CASE WHEN pg_try_advisory_xact_lock($SPACE, 2) THEN ''
            ELSE set_config('synchronous_commit', 'off', true) || pg_notify($1, '')::text END",
        vec![Value::Text(inner.names.changes_channel())],
    )
}

/// Whether a change with this number was made: looked at under its locks, so that one which is still
/// on its way has come to its end.
async fn settle(
    inner: &Arc<Inner>,
    locks: &LockSet,
    number: u64,
    retry: &mut Retry,
) -> Result<bool, StoreError> {
    loop {
        let session = match inner.pool.get().await {
            Ok(session) => session,
            Err(error) => {
                retry.after(error).await?;
                continue;
            }
        };
        let asks = [
            begin_ask(locks),
            keys_ask(locks),
            Ask::Query("SELECT 1 FROM @events WHERE id = $1", vec![Value::Integer(number as i64)]),
        ];
        session.set_in_transaction(true);
        let answered = all(session.flight(&asks).await);
        roll_back(session);
        match answered {
            Ok(rows) => return Ok(!rows[2].is_empty()),
            Err(error) => retry.after(error).await?,
        }
    }
}

/// Ends a transaction that wrote nothing, while the caller goes on.
pub(super) fn roll_back(session: Pooled) {
    tokio::spawn(async move {
        if session.run("ROLLBACK").await.is_ok() {
            session.set_in_transaction(false);
            session.prepare().await;
        }
    });
}

/// Begins a transaction with these statements; if one fails, it is rolled back.
pub(super) async fn begun(
    session: Pooled,
    asks: &[Ask],
) -> Result<(Pooled, Vec<Vec<Row>>), PgError> {
    session.set_in_transaction(true);
    match all(session.flight(asks).await) {
        Ok(rows) => Ok((session, rows)),
        Err(error) => {
            roll_back(session);
            Err(error)
        }
    }
}

/// All answers, or the first error.
pub(super) fn all(answers: Vec<Answered>) -> Result<Vec<Vec<Row>>, PgError> {
    answers.into_iter().collect()
}

/// The statements by which a scope is looked at.
pub(super) enum Look<'a> {
    At { resources: &'a [tenure_core::Resource], ticket: Option<u64>, whole: bool },
    Other(Vec<Ask>, &'a Scope),
    Tasks(TaskLook),
}

impl Look<'_> {
    pub(super) fn new(scope: &Scope, way: pick::Way) -> Look<'_> {
        match scope {
            Scope::At { resources, ticket } => {
                Look::At { resources, ticket: *ticket, whole: false }
            }
            Scope::Queues(resources) => Look::At { resources, ticket: None, whole: true },
            Scope::Everything => Look::Other(read::everything(), scope),
            Scope::Waits { resources, owner } => {
                Look::Other(read::all_waits(resources, owner), scope)
            }
            Scope::Tasks(scope) => Look::Tasks(TaskLook::new(scope, way)),
        }
    }

    pub(super) fn pick(&self) -> Option<Ask> {
        match self {
            Look::Tasks(look) => look.pick.clone(),
            _ => None,
        }
    }

    /// One statement that draws a number and reads, if there is one for this scope.
    fn numbered(&self) -> Option<Ask> {
        match self {
            Look::At { resources, ticket, whole: false } => read::numbered_at(resources, *ticket),
            Look::Tasks(look) => look.numbered.clone(),
            _ => None,
        }
    }

    /// What is asked beside [`numbered`](Look::numbered).
    fn asks_beside_number(&self) -> Vec<Ask> {
        match self {
            Look::Tasks(look) => look.asks.clone(),
            _ => vec![],
        }
    }

    /// Puts the answers to [`numbered`](Look::numbered), without its first row, and to
    /// [`asks_beside_number`](Look::asks_beside_number) into a snapshot.
    fn gather_numbered(
        &self,
        entries: &[Row],
        beside: &[Vec<Row>],
        into: &mut Gathered,
    ) -> Result<(), PgError> {
        match self {
            Look::Tasks(_) => plain_tasks::gather(entries, &beside[0], into),
            _ => into.entries_at(entries),
        }
    }

    pub(super) fn asks(&self) -> Vec<Ask> {
        match self {
            Look::At { resources, ticket, whole } => read::at(resources, *ticket, *whole),
            Look::Other(asks, _) => asks.clone(),
            Look::Tasks(look) => look.asks.clone(),
        }
    }

    /// Puts the answers to [`Look::asks`] into a snapshot.
    pub(super) fn gather(&self, rows: &[Vec<Row>], into: &mut Gathered) -> Result<(), PgError> {
        match self {
            Look::At { resources, whole, .. } => into.at(resources, rows, *whole),
            Look::Other(_, scope) => {
                into.snapshot.whole = **scope == Scope::Everything;
                into.snapshot.shows_waits = matches!(scope, Scope::Waits { .. });
                into.holds(&rows[0], |_| true)?;
                into.waits(&rows[1], |_| true)
            }
            Look::Tasks(look) => look.gather(rows, into),
        }
    }
}
