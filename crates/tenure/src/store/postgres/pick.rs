//! Which ready tasks a claim is shown.
//!
//! A change tries to lock what it picks, in the order of claims, and leaves out what others are taking.
//! A statement sees the tables as they were when it began, but a lock that it tries may have been given
//! up since by a change that took the task. So it looks at the row again after that, as it is by then:
//! that is what `FOR NO KEY UPDATE` does. Otherwise a claim would find nothing while tasks are ready.

use super::error::PgError;
use super::locks::LockSet;
use super::plain_tasks::is_plain;
use super::read::Gathered;
use super::row::Row;
use super::session::{Ask, Value};
use std::sync::atomic::{AtomicU32, Ordering};
use tenure_core::{Pick, Snapshot, Task};

/// Tasks beyond those that are asked for at which a pick looks, in case others take the first.
const SLACK: usize = 32;

/// So many others may be taking as many tasks at the same time, and a pick from one section still gets all
/// that it asks for. It reads further only as far as others are ahead of it.
const RIVALS: usize = 7;

/// A pick of more than so many tasks locks none of them: the rule names the few that it takes.
const LOCKED_MAX: usize = 128;

/// After so many picks that saw no section the statement for one section is tried again; and after so
/// many that saw only plain tasks, the statement for plain ones.
const PICKS_BEFORE_HOPE: u32 = 16;

macro_rules! ready {
    () => {
        "status = 'pending' AND unmet = 0 AND not_before_at_ms IS NULL"
    };
}
pub(super) use ready;

macro_rules! now_ms {
    () => {
        "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}
pub(super) use now_ms;

macro_rules! due {
    () => {
        concat!(
            "status = 'pending' AND unmet = 0 AND not_before_at_ms IS NOT NULL AND not_before_at_ms <= ",
            now_ms!()
        )
    };
}

/// Whether all locks of a task with these `lock_keys` could be had at once.
macro_rules! locked {
    ($keys:literal) => {
        concat!(
            "(SELECT bool_and(CASE WHEN left(k, 1) = 'x'
                THEN pg_try_advisory_xact_lock(hashtextextended(substr(k, 2), $SEED))
                ELSE pg_try_advisory_xact_lock_shared(hashtextextended(substr(k, 2), $SEED))
                END) FROM unnest(",
            $keys,
            ") AS k)"
        )
    };
}

/// Whether the task with this `id` can still be taken, once its locks are had. Rows that a stranger has
/// locked are left out.
macro_rules! still_there {
    ($id:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM @tasks AS t WHERE t.id = ",
            $id,
            " AND t.status = 'pending' AND t.unmet = 0 FOR NO KEY UPDATE SKIP LOCKED)"
        )
    };
}

/// How tasks are picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// For a look that changes nothing.
    Look,
    /// In a change, from all sections.
    Sections,
    /// In a change, in the hope that all that is ready lies in one section: a much smaller statement.
    OneSection,
}

/// Which way is likely to be right.
#[derive(Default)]
pub(super) struct Picks {
    /// How many more picks look at all sections.
    all_sections: AtomicU32,
    /// How many more picks expect tasks that are not plain.
    not_plain: AtomicU32,
}

impl Picks {
    pub(super) fn way(&self) -> Way {
        match self.all_sections.load(Ordering::Relaxed) {
            0 => Way::OneSection,
            _ => Way::Sections,
        }
    }

    /// Whether what is picked now is likely to be plain, see `plain_tasks`.
    pub(super) fn expects_plain(&self) -> bool {
        self.not_plain.load(Ordering::Relaxed) == 0
    }

    /// Notes that a pick found more than plain tasks.
    pub(super) fn found_more(&self) {
        self.not_plain.store(PICKS_BEFORE_HOPE, Ordering::Relaxed);
    }

    /// Whether a rule can go by what this pick shows; the locks that are missing if it cannot, so that the
    /// change has to begin again.
    pub(super) fn accept(
        &self,
        picked: &Picked,
        way: Way,
        locks: &LockSet,
        snapshot: &mut Snapshot,
    ) -> Result<(), LockSet> {
        let is_elsewhere = |task: &Task| task.section.is_some() || task.not_before.is_some();
        if picked.must_see_sections
            || way == Way::Sections && snapshot.tasks.iter().any(is_elsewhere)
        {
            self.all_sections.store(PICKS_BEFORE_HOPE, Ordering::Relaxed);
        } else if way == Way::Sections {
            count_down(&self.all_sections);
        }
        match snapshot.tasks.iter().all(is_plain) {
            true => count_down(&self.not_plain),
            false => self.found_more(),
        }
        if picked.must_see_sections {
            return Err(LockSet::default());
        }
        if picked.may_skip {
            snapshot.skipped |= picked.is_outdated(snapshot);
            return Ok(());
        }
        // A rule that must not miss any decides about tasks that others cannot take meanwhile.
        locks.lacking(&picked.locks).map_or(Ok(()), Err)
    }
}

/// Two picks may count at once; one more or less does not matter.
fn count_down(counter: &AtomicU32) {
    counter.store(counter.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
}

/// What a pick answered.
pub(super) struct Picked {
    ids: Vec<String>,
    /// The locks that were taken, or that must be taken if none may be skipped.
    pub(super) locks: Vec<String>,
    /// Whether the statement for one section did not see all that could be picked.
    must_see_sections: bool,
    /// Whether the rule accepts that some are left out.
    pub(super) may_skip: bool,
}

impl Picked {
    /// Puts the answer into a snapshot.
    pub(super) fn gather(
        rows: &[Row],
        may_skip: bool,
        into: &mut Gathered,
    ) -> Result<Picked, PgError> {
        let row = rows.first().ok_or(PgError::Replaced)?;
        let ids = row.get::<_, &str>(0).split('\n').filter(|id| !id.is_empty());
        into.snapshot.skipped = row.get(2);
        into.snapshot.more_to_pick = row.get(3);
        Ok(Picked {
            ids: ids.map(str::to_owned).collect(),
            locks: row.get(1),
            must_see_sections: row.get(4),
            may_skip,
        })
    }

    /// Whether tasks were picked that others had taken by the time at which they were read.
    fn is_outdated(&self, snapshot: &Snapshot) -> bool {
        let is_ready = |id: &String| {
            snapshot.tasks.iter().any(|task| task.id.as_str() == id && task.is_ready(snapshot.wall))
        };
        !self.ids.iter().all(is_ready)
    }
}

/// The first ready tasks of each section and those that are due. If they are to be locked, the best
/// of all of them are tried in the order of claims, until as many as are wanted are locked; those
/// that others have are left out. A section that its runner keeps comes first, and one that is taken
/// comes last, because the rule will hardly choose it.
macro_rules! of_all_sections {
    ($got:expr) => {
        concat!(
            "WITH RECURSIVE s(section) AS (
                SELECT CASE WHEN $1::text IS NOT NULL THEN $1
                    ELSE (SELECT section FROM @tasks WHERE ",
            ready!(),
            " ORDER BY section, priority, position, age LIMIT 1) END
                UNION ALL
                SELECT (SELECT section FROM @tasks
                    WHERE ",
            ready!(),
            " AND section > s.section ORDER BY section, priority, position, age LIMIT 1)
                FROM s WHERE $1 IS NULL AND s.section IS NOT NULL
            ),
            placed AS (
                SELECT t.*, row_number() OVER (PARTITION BY t.section
                    ORDER BY t.priority, t.position, t.age) AS place
                FROM s CROSS JOIN LATERAL (
                    SELECT id, section, priority, position, age, lock_keys FROM @tasks
                    WHERE ",
            ready!(),
            " AND section = s.section AND labels @> $2
                    ORDER BY priority, position, age LIMIT $3) AS t
                WHERE s.section IS NOT NULL
                UNION ALL
                (SELECT id, section, priority, position, age, lock_keys, 0 FROM @tasks
                 WHERE ",
            due!(),
            " AND ($1 IS NULL OR section = $1) AND labels @> $2
                 ORDER BY not_before_at_ms LIMIT 64)
            ),
            ranked AS MATERIALIZED (
                SELECT p.*, row_number() OVER (ORDER BY
                    CASE WHEN $5 > 0 AND p.section <> '' THEN
                        (SELECT CASE WHEN bool_or(h.grant_id = $6) THEN 0
                            WHEN count(*) >= coalesce(s.max_runners, 1) THEN 2 ELSE 1 END
                         FROM @holds AS h WHERE h.resource = 'section:' || p.section)
                        ELSE 1 END,
                    p.priority, coalesce(s.priority, 50), coalesce(s.position, 0), p.position,
                    p.age) AS rank
                FROM placed AS p LEFT JOIN @sections AS s ON s.name = p.section
            ),
            got AS MATERIALIZED (
                SELECT r.id, r.rank FROM (SELECT * FROM ranked ORDER BY rank OFFSET 0) AS r
                WHERE ",
            $got,
            " LIMIT $5
            ),
            marked AS MATERIALIZED (
                SELECT r.id, r.place, r.lock_keys, g.id IS NOT NULL AS locked,
                    $5 > 0 AND g.id IS NULL AND (r.rank < (SELECT max(rank) FROM got)
                        OR (SELECT count(*) FROM got) < $5) AS failed
                FROM ranked AS r LEFT JOIN got AS g ON g.id = r.id
            ),
            chosen AS MATERIALIZED (
                SELECT * FROM marked WHERE locked OR (NOT failed AND place <= $4)
            )
            SELECT set_config('tenure.shown',
                    coalesce((SELECT string_agg(id, E'\\n') FROM chosen), ''), true),
                ARRAY(SELECT DISTINCT k FROM chosen, unnest(lock_keys) AS k WHERE locked OR $7),
                EXISTS (SELECT 1 FROM marked WHERE failed),
                EXISTS (SELECT 1 FROM marked WHERE place > $4), false"
        )
    };
}

/// The same where all that is ready lies in one section, `$1`: there is nothing to rank. The last column
/// says if that is not so.
const OF_ONE_SECTION: &str = concat!(
    "WITH got AS MATERIALIZED (
        SELECT c.id, c.lock_keys, c.place FROM (
            SELECT id, lock_keys, row_number() OVER () AS place FROM (
                SELECT id, lock_keys FROM @tasks WHERE ",
    ready!(),
    " AND section = $1 AND labels @> $2
                ORDER BY priority, position, age LIMIT $3) AS front) AS c
        WHERE CASE WHEN ",
    locked!("c.lock_keys"),
    " THEN ",
    still_there!("c.id"),
    " ELSE false END LIMIT $5
    )
    SELECT set_config('tenure.shown', coalesce(string_agg(id, E'\\n'), ''), true),
        ARRAY(SELECT k FROM got, unnest(lock_keys) AS k),
        coalesce(count(*) < max(place), false) OR (count(*) < $5 AND count(*) < (SELECT count(*)
            FROM (SELECT 1 FROM @tasks WHERE ",
    ready!(),
    " AND section = $1 AND labels @> $2 LIMIT $3) AS front)),
        EXISTS (SELECT 1 FROM @tasks WHERE ",
    ready!(),
    " AND section = $1 AND labels @> $2 ORDER BY priority, position, age OFFSET $4),
        ($6 AND EXISTS (SELECT 1 FROM @tasks WHERE ",
    ready!(),
    " AND section > ''))
        OR EXISTS (SELECT 1 FROM @tasks WHERE ",
    due!(),
    " AND ($6 OR section = $1))
    FROM got"
);

/// Whether a change locks what it picks.
pub(super) fn locks(pick: &Pick, way: Way) -> bool {
    way != Way::Look && pick.may_skip && pick.depth <= LOCKED_MAX
}

/// The statement of a pick. Where tasks are locked, the first that others do not have are.
pub(super) fn ask(pick: &Pick, way: Way) -> Ask {
    let integer = |number: usize| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let lock = locks(pick, way);
    let (wanted, slack) = if lock { (pick.depth, SLACK) } else { (0, 1) };
    let labels = Value::Texts(pick.labels.clone());
    let limits = |slack: usize| [pick.depth.saturating_add(slack), pick.depth, wanted].map(integer);
    if lock && way == Way::OneSection {
        let limits = limits(slack.max(pick.depth.saturating_mul(RIVALS)));
        let section = Value::Text(pick.section.clone().unwrap_or_default());
        let mut values = vec![section, labels];
        values.extend(limits);
        values.push(Value::Boolean(pick.section.is_none()));
        return Ask::Query(OF_ONE_SECTION, values);
    }
    let mut values = vec![Value::OptionalText(pick.section.clone()), labels];
    values.extend(limits(slack));
    values.push(Value::OptionalText(pick.runner.map(|runner| runner.to_string())));
    values.push(Value::Boolean(way != Way::Look && !pick.may_skip));
    let sql = match lock {
        true => of_all_sections!(concat!(
            "CASE WHEN ",
            locked!("r.lock_keys"),
            " THEN ",
            still_there!("r.id"),
            " ELSE false END"
        )),
        // What only looks may not ask for rows to change.
        false => of_all_sections!("false"),
    };
    Ask::Query(sql, values)
}
