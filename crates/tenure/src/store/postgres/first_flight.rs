//! The first flight of a change: it begins a database transaction, takes the locks, draws a number and
//! reads.

use super::Inner;
use super::error::PgError;
use super::locks::LockSet;
use super::look::Look;
use super::moment::{Moment, NUMBER};
use super::pick::{Picked, Way};
use super::plain_tasks;
use super::read::{Addresses, Gathered};
use super::row::Row;
use super::session::{Ask, Value};
use tenure_core::{Scope, Snapshot, StoredReply};

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

/// The statements of a first flight, and where their answers are.
pub(super) struct FirstFlight<'a> {
    asks: Vec<Ask>,
    look: Look<'a>,
    way: Way,
    /// The slot of the reply that is kept for the request.
    slot: Option<&'a str>,
    locks: LockSet,
    /// Whether the rule accepts that some of the tasks to pick from are left out.
    may_skip: bool,
    lock_at: Option<usize>,
    pick_at: Option<usize>,
    number_at: usize,
    /// Whether what draws the number reads too.
    is_numbered: bool,
}

/// What a first flight showed.
pub(super) enum Shown {
    /// All that the rule asked to see, under locks.
    All(Box<LockedLook>),
    /// The statements for plain tasks were used, and there is more to see.
    TooLittle,
    /// These locks are missing.
    Unlocked(LockSet),
}

/// What a rule decides about.
pub(super) struct LockedLook {
    pub(super) snapshot: Snapshot,
    pub(super) addresses: Addresses,
    pub(super) moment: Moment,
    pub(super) locks: LockSet,
}

impl<'a> FirstFlight<'a> {
    /// A look at this scope, with the locks that it names and with `extra` ones. `looks_at_all` if the
    /// statements for plain tasks have shown too little.
    pub(super) fn new(
        inner: &Inner,
        scope: &'a Scope,
        slot: Option<&'a str>,
        extra: &LockSet,
        looks_at_all: bool,
    ) -> FirstFlight<'a> {
        let mut locks = LockSet::of_scope(scope, slot);
        locks.add(extra.clone());
        let mut asks = vec![begin_ask(&locks)];
        let expected = inner.claimed.locks(scope).filter(|_| !looks_at_all);
        if let Some(expected) = &expected {
            locks.took(expected);
        }
        let way = inner.picks.way();
        let look = match scope {
            Scope::Tasks(scope)
                if !looks_at_all && plain_tasks::are_likely(inner, scope, expected.as_deref()) =>
            {
                Look::Tasks(plain_tasks::look(scope, way))
            }
            _ => Look::new(scope, way),
        };
        let mut add = |ask: Option<Ask>| {
            asks.extend(ask);
            asks.len() - 1
        };
        let lock = lock_ask(scope, &locks, expected.is_some());
        let lock_at = lock.is_some().then(|| add(lock));
        let pick = look.pick();
        let pick_at = pick.is_some().then(|| add(pick));
        let numbered = look.numbered();
        let is_numbered = numbered.is_some();
        let number_at = add(numbered.or_else(|| Some(Ask::Query(NUMBER, vec![]))));
        asks.extend(if is_numbered { look.asks_beside_number() } else { look.asks() });
        if let Some(slot) = slot {
            asks.push(Ask::Query(
                "SELECT number, text FROM @answers WHERE slot = $1",
                vec![Value::Text(slot.to_owned())],
            ));
        }
        let may_skip = matches!(scope, Scope::Tasks(scope)
            if scope.pick.as_ref().is_some_and(|pick| pick.may_skip));
        FirstFlight {
            asks,
            look,
            way,
            slot,
            locks,
            may_skip,
            lock_at,
            pick_at,
            number_at,
            is_numbered,
        }
    }

    pub(super) fn asks(&self) -> &[Ask] {
        &self.asks
    }

    /// What the answers show.
    pub(super) fn show(mut self, inner: &Inner, mut rows: Vec<Vec<Row>>) -> Result<Shown, PgError> {
        let number = &rows[self.number_at];
        let moment = match self.is_numbered {
            true => Moment::read_first(inner, number)?,
            false => Moment::read(inner, number)?,
        };
        let mut gathered = Gathered::new(moment.at);
        if let Some(at) = self.lock_at {
            let keys = rows[at].iter().filter_map(|row| row.get::<_, Option<String>>(0));
            let taken: Vec<String> = keys.filter(|key| !key.is_empty()).collect();
            self.locks.took(&taken);
        }
        let picked = match self.pick_at {
            Some(at) => Some(Picked::gather(&rows[at], self.may_skip, &mut gathered)?),
            None => None,
        };
        if let Some(picked) = picked.as_ref().filter(|picked| picked.may_skip) {
            self.locks.took(&picked.locks);
        }
        let kept = self.slot.and_then(|slot| Some((slot, rows.pop()?)));
        let beside = &rows[self.number_at + 1..];
        match self.is_numbered {
            true => {
                let entries = &rows[self.number_at][1..];
                self.look.gather_numbered(entries, beside, &mut gathered)?;
            }
            false => self.look.gather(beside, &mut gathered)?,
        }
        if gathered.has_more {
            if picked.is_some() {
                inner.picks.found_more();
            }
            return Ok(Shown::TooLittle);
        }
        let (mut snapshot, addresses) = gathered.finish();
        snapshot.next = moment.number;
        snapshot.answered = kept.and_then(|(slot, rows)| {
            let row = rows.first()?;
            let number = row.get::<_, i64>(0) as u64;
            Some(StoredReply { slot: slot.to_owned(), number, text: row.get(1) })
        });
        if let Some(picked) = picked
            && let Err(missing) = inner.picks.accept(&picked, self.way, &self.locks, &mut snapshot)
        {
            return Ok(Shown::Unlocked(missing));
        }
        let locks = self.locks;
        Ok(Shown::All(Box::new(LockedLook { snapshot, addresses, moment, locks })))
    }
}
