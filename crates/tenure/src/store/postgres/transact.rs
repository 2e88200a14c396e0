//! One change: look, decide, write, in two round trips.
//!
//! The first flight begins a database transaction, takes the locks, draws a number and reads. The
//! second writes, commits, and wakes. Where the rule needs to see more, or writes what is not locked,
//! the change begins again with more locks: to wait for further locks while some are held could
//! close a cycle.

use super::error::PgError;
use super::first_flight::{FirstFlight, LockedLook, Shown, begin_ask, keys_ask};
use super::locks::LockSet;
use super::longest;
use super::moment::Moment;
use super::pool::Pooled;
use super::read::Addresses;
use super::row::Row;
use super::schema::{self, Lost};
use super::session::{Answered, Ask, Value};
use super::write::{Batch, EVENTS, Numbers, wake_word};
use super::{Inner, Retry};
use crate::store::store_time::from_ms;
use crate::store::{Committed, Step, StoreError, Transaction};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tenure_core::{Change, GrantId, Revision, Scope, Write};

/// After so many beginnings with more locks a change takes the whole store.
const BEGINNINGS_MAX: u32 = 6;

/// What came of one beginning.
enum Outcome {
    Done(Committed),
    /// It must begin again: with more locks, or a wider scope; over the same connection, so that it does
    /// not meet the locks that it had. Without one if it waited: what waits holds no connection, which
    /// others may need to end that wait.
    Again(Option<Box<Pooled>>),
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
    let mut used = None;
    loop {
        let session = match used.take() {
            Some(session) => Ok(session),
            None => inner.pool.get().await,
        };
        let outcome = match session {
            Ok(session) => begin(&inner, session, &mut transaction, &mut attempt).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(Outcome::Done(committed)) => return Ok(committed),
            Ok(Outcome::Again(session)) => {
                used = session.map(|session| *session);
                attempt.beginnings += 1;
                attempt.extra.whole |= attempt.beginnings >= BEGINNINGS_MAX;
            }
            Ok(Outcome::Unknown { number, has_events, locks, error }) => {
                // Without events it took no numbers, and to decide it again does no harm.
                if has_events {
                    // Connections beside one that died without a word have died too.
                    inner.pool.forget_idle();
                    match settle(&inner, &locks, number, &mut retry).await {
                        Ok(Settled::Made) => {
                            return Ok(Committed { revision: Some(Revision(number)) });
                        }
                        Ok(Settled::NotMade) => {}
                        // The rule sees by the stored reply whether it was made.
                        Ok(Settled::Trimmed) if transaction.slot().is_some() => {}
                        Ok(Settled::Trimmed) | Err(_) => {
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

/// One database transaction, from its beginning to its end.
async fn begin(
    inner: &Arc<Inner>,
    session: Pooled,
    transaction: &mut Transaction,
    attempt: &mut Attempt,
) -> Result<Outcome, PgError> {
    let scope = attempt.scope.clone();
    // Numbers that are drawn from now on are higher.
    let highest = inner.highest.load(Ordering::SeqCst);
    let flight =
        FirstFlight::new(inner, &scope, transaction.slot(), &attempt.extra, attempt.looks_at_all);
    let (session, rows) = begun(session, flight.asks()).await?;
    let shown = match flight.show(inner, rows) {
        Ok(shown) => shown,
        Err(PgError::OtherStart) => {
            session.leave_transaction();
            schema::ensure(&session, schema::look(&session).await, false).await?;
            return Ok(Outcome::Again(Some(Box::new(session))));
        }
        Err(error) => {
            roll_back(session);
            return Err(error);
        }
    };
    match shown {
        Shown::TooLittle => {
            session.leave_transaction();
            attempt.looks_at_all = true;
            Ok(Outcome::Again(Some(Box::new(session))))
        }
        Shown::Unlocked(missing) => {
            session.leave_transaction();
            attempt.extra.add(missing);
            Ok(Outcome::Again(Some(Box::new(session))))
        }
        Shown::All(look) if look.moment.number <= highest => {
            session.leave_transaction();
            schema::note_lost_changes(&session, &Lost::Rewound { highest }).await?;
            Ok(Outcome::Again(Some(Box::new(session))))
        }
        Shown::All(look) => decide(inner, session, transaction, attempt, *look).await,
    }
}

/// Lets the rule choose, and writes what it chose.
async fn decide(
    inner: &Arc<Inner>,
    session: Pooled,
    transaction: &mut Transaction,
    attempt: &mut Attempt,
    look: LockedLook,
) -> Result<Outcome, PgError> {
    let scope = attempt.scope.clone();
    match transaction.step(&scope, &look.snapshot, &mut attempt.steps) {
        Step::Wider(wider) => {
            session.leave_transaction();
            attempt.scope = wider;
            Ok(Outcome::Again(Some(Box::new(session))))
        }
        Step::Chosen(None) => {
            session.leave_transaction();
            give_back(session);
            Ok(Outcome::Done(Committed { revision: None }))
        }
        Step::Chosen(Some(change)) => {
            if let Some(missing) = look.locks.missing(&change) {
                session.leave_transaction();
                attempt.extra.add(missing);
                return Ok(Outcome::Again(Some(Box::new(session))));
            }
            let queues = change
                .writes
                .iter()
                .any(|write| matches!(write, Write::Wait(_) | Write::KeepPlace(_)));
            if queues && !inner.listener.is_ready() && !attempt.has_tried_to_listen {
                // A wake must not come before anyone listens, and no lock is held meanwhile. If the
                // connection cannot be made now, the waiter looks by itself.
                session.leave_transaction();
                give_back(session);
                inner.listener.start(inner).await;
                attempt.has_tried_to_listen = true;
                return Ok(Outcome::Again(None));
            }
            if let Some(error) = withheld(&change, &look.moment) {
                roll_back(session);
                return Err(error);
            }
            let longest_ms = longest::of(&change);
            if longest_ms > look.moment.longest_ms {
                session.leave_transaction();
                give_back(session);
                longest::raise(inner, longest_ms).await?;
                return Ok(Outcome::Again(None));
            }
            write(inner, session, change, look).await
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
    look: LockedLook,
) -> Result<Outcome, PgError> {
    let LockedLook { snapshot, addresses, moment, locks } = look;
    for write in &change.writes {
        if let Write::Wait(waiter) | Write::KeepPlace(waiter) = write {
            inner.listener.expect(waiter.grant);
        }
    }
    let mailbox = inner.listener.channel();
    let numbers = Numbers { first: moment.number, alone: locks.whole };
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
    inner.highest.fetch_max(moment.number, Ordering::SeqCst);
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

/// Whether a change was made.
enum Settled {
    Made,
    NotMade,
    /// Events of its age are removed already.
    Trimmed,
}

/// Whether a change with this number was made: looked at under its locks, so that one which is still
/// on its way has come to its end.
async fn settle(
    inner: &Arc<Inner>,
    locks: &LockSet,
    number: u64,
    retry: &mut Retry,
) -> Result<Settled, StoreError> {
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
            // The oldest are removed first, and one always stays.
            Ask::Query(
                "SELECT EXISTS (SELECT FROM @events WHERE id = $1),
                    coalesce((SELECT min(id) FROM @events) > $1, false)",
                vec![Value::Integer(number as i64)],
            ),
        ];
        session.set_in_transaction(true);
        let answered = all(session.flight(&asks).await);
        roll_back(session);
        match answered {
            Ok(rows) => {
                let row = rows[2].first();
                let is_set = |column: usize| row.is_some_and(|row| row.get(column));
                return Ok(match (is_set(0), is_set(1)) {
                    (true, _) => Settled::Made,
                    (false, false) => Settled::NotMade,
                    (false, true) => Settled::Trimmed,
                });
            }
            Err(error) => retry.after(error).await?,
        }
    }
}

/// Gives a connection back on which no transaction is open.
pub(super) fn give_back(session: Pooled) {
    // What need not be prepared is free at once for the next change.
    if session.has_to_prepare() {
        tokio::spawn(async move { session.prepare_seen().await });
    }
}

/// Ends a transaction that failed, while the caller goes on. The connection is free again when the server
/// has answered.
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
