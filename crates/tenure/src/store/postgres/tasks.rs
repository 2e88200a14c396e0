//! Tasks and sections: the statements, and how a task is a row.
//!
//! Which tasks are shown depends on what the tables have, so a statement leaves their ids in a
//! setting of the transaction, `tenure.shown`, and the statements behind it in the same flight read
//! it: a round trip less.

use super::error::PgError;
use super::locks;
use super::pick::{self, now_ms, ready};
use super::read::{Gathered, hold_columns, wait_columns};
use super::row::Row;
use super::session::{Ask, Value};
use super::write::Plain::{Integer, Text};
use super::write::plain;
use crate::store::format::columns as format;
use crate::store::path_prefixes::{self, PathPrefixes};
use crate::store::store_time::{from_ms, milliseconds_up};
use crate::store::{SurplusTasks, Tally, TaskFilter};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use tenure_core::{
    Claim, EndedTask, FinishedClaim, Section, SectionSnapshot, Task, TaskId, TaskScope, Token,
    WallTime,
};

macro_rules! shown {
    () => {
        "ANY(string_to_array(current_setting('tenure.shown'), E'\\n'))"
    };
}

macro_rules! columns {
    () => {
        "id, title, description, section, status, priority, position, age, depends_on, unmet, \
         labels, files, payload, max_attempts, attempts, recoveries, timeout_ms, \
         not_before_at_ms, key, claim_by, claim_grant, claim_token, claim_parts, result, error, \
         feedback, created_at_ms, claimed_at_ms, started_at_ms, finished_at_ms, finished_by, \
         finished_grant, finished_token"
    };
}
pub(super) use columns;

/// What of the tasks is to be looked at, and whether what is picked is locked.
pub(super) struct TaskLook {
    /// To be carried out before a number is drawn, since it takes locks.
    pub(super) pick: Option<Ask>,
    /// Draws the number and reads, if the tasks are expected to be plain (`plain_tasks`).
    pub(super) numbered: Option<Ask>,
    pub(super) asks: Vec<Ask>,
    /// How many of these only say which tasks are shown.
    pub(super) shows: usize,
    pub(super) all_sections: bool,
}

impl TaskLook {
    /// The statements of a look.
    pub(super) fn new(scope: &TaskScope, way: pick::Way) -> TaskLook {
        let mut asks = Vec::new();
        let pick = scope.pick.as_ref().map(|pick| pick::ask(pick, way));
        let grants = Value::Texts(scope.grants.iter().map(ToString::to_string).collect());
        asks.extend(show(scope));
        let shows = asks.len();
        asks.push(Ask::Query(
            concat!("SELECT ", columns!(), ", tries, notes FROM @tasks WHERE id = ", shown!()),
            vec![],
        ));
        asks.push(around(grants));
        asks.push(sections());
        if scope.all_sections {
            asks.extend(all_sections());
        }
        TaskLook { pick, numbered: None, asks, shows, all_sections: scope.all_sections }
    }

    /// Puts the other answers into a snapshot.
    pub(super) fn gather(&self, rows: &[Vec<Row>], into: &mut Gathered) -> Result<(), PgError> {
        let rows = &rows[self.shows..];
        let tasks: Result<Vec<Task>, PgError> = rows[0].iter().map(read_task).collect();
        into.snapshot.tasks = tasks?;
        into.snapshot.tasks.sort_by_key(|task| task.age);
        into.entries(&rows[1])?;
        into.snapshot.sections = match self.all_sections {
            true => read_all_sections(&rows[3], &rows[4])?,
            false => rows[2].iter().filter_map(read_section).collect(),
        };
        Ok(())
    }
}

/// Says which tasks are shown, beside those that were picked. What is usual has a statement of its
/// own: to begin the large one costs more than to carry out the small one.
fn show(scope: &TaskScope) -> Option<Ask> {
    let TaskScope { ids, keys, dependents, dependencies, beside, grants, in_progress, .. } = scope;
    let ids = Value::Texts(ids.iter().map(|id| id.as_str().to_owned()).collect());
    let is_usual =
        keys.is_empty() && grants.is_empty() && !(*dependencies || *beside || *in_progress);
    if is_usual && scope.pick.is_some() && scope.ids.is_empty() {
        return None;
    }
    if is_usual && scope.pick.is_none() {
        return Some(Ask::Query(
            "SELECT set_config('tenure.shown', array_to_string($1::text[] || ARRAY(
                SELECT dependent::text FROM @dependencies WHERE $2 AND task = ANY($1)), E'\\n'), true)",
            vec![ids, Value::Boolean(*dependents)],
        ));
    }
    Some(Ask::Query(
        concat!(
            "SELECT set_config('tenure.shown', coalesce((SELECT string_agg(id, E'\\n') FROM (
                SELECT unnest($1::text[]) AS id
                UNION SELECT unnest(string_to_array(
                    current_setting('tenure.shown', true), E'\\n'))
                UNION SELECT dependent FROM @dependencies WHERE $2 AND task = ANY($1)
                UNION SELECT unnest(depends_on) FROM @tasks WHERE $3 AND id = ANY($1)
                UNION SELECT id FROM @tasks WHERE key = ANY($4)
                UNION SELECT id FROM @tasks WHERE $5 AND status = 'in_progress'
                UNION SELECT id FROM @tasks
                    WHERE status = 'in_progress' AND claim_grant = ANY($6)
                UNION SELECT id FROM @tasks WHERE $7 AND status = 'in_progress' AND section IN
                    (SELECT section FROM @tasks WHERE id = ANY($1) AND section <> '')
                UNION SELECT first.id FROM
                    (SELECT DISTINCT section FROM @tasks
                     WHERE $7 AND id = ANY($1) AND section <> '') AS s
                    CROSS JOIN LATERAL (SELECT id FROM @tasks
                        WHERE ",
            ready!(),
            " AND section = s.section
                        ORDER BY priority, position, age LIMIT 1) AS first
                UNION SELECT due.id FROM
                    (SELECT DISTINCT section FROM @tasks
                     WHERE $7 AND id = ANY($1) AND section <> '') AS s
                    CROSS JOIN LATERAL (SELECT id FROM @tasks
                        WHERE status = 'pending' AND unmet = 0 AND not_before_at_ms IS NOT NULL
                            AND not_before_at_ms <= ",
            now_ms!(),
            " AND section = s.section
                        LIMIT 1) AS due
            ) AS wanted WHERE id <> ''), ''), true)"
        ),
        vec![
            ids,
            Value::Boolean(*dependents),
            Value::Boolean(*dependencies),
            Value::Texts(keys.clone()),
            Value::Boolean(*in_progress),
            Value::Texts(grants.iter().map(ToString::to_string).collect()),
            Value::Boolean(*beside),
        ],
    ))
}

/// What is held and waited for on the shown tasks, on their sections, on paths near their files, and
/// on all that these grants hold. Each is looked up by an index, however few rows the planner takes a
/// table to have: `OFFSET 0` keeps it from reading whole tables instead.
fn around(grants: Value) -> Ask {
    Ask::Query(
        concat!(
            "WITH shown AS MATERIALIZED (
                SELECT id, section, near_at, near_below FROM @tasks WHERE id = ",
            shown!(),
            "),
             keys AS MATERIALIZED (SELECT 'task:' || id AS k FROM shown
                UNION SELECT 'section:' || section FROM shown WHERE section <> ''
                UNION SELECT h.resource FROM unnest($1::text[]) AS g CROSS JOIN LATERAL
                    (SELECT resource FROM @holds WHERE grant_id = g OFFSET 0) AS h),
             at AS MATERIALIZED (SELECT DISTINCT unnest(near_at) AS p FROM shown),
             below AS MATERIALIZED (SELECT DISTINCT unnest(near_below) AS p FROM shown) ",
            hold_columns!("h."),
            "FROM keys CROSS JOIN LATERAL
                (SELECT * FROM @holds WHERE resource = k OFFSET 0) AS h UNION ALL ",
            hold_columns!("h."),
            "FROM at CROSS JOIN LATERAL
                (SELECT * FROM @holds WHERE prefix = p OFFSET 0) AS h UNION ALL ",
            hold_columns!("h."),
            "FROM below CROSS JOIN LATERAL (SELECT * FROM @holds
                WHERE prefix >= p || '/' AND prefix < p || '0' OFFSET 0) AS h UNION ALL ",
            wait_columns!("w."),
            "FROM keys CROSS JOIN LATERAL
                (SELECT * FROM @waits WHERE resource = k OFFSET 0) AS w UNION ALL ",
            wait_columns!("w."),
            "FROM at CROSS JOIN LATERAL
                (SELECT * FROM @waits WHERE prefix = p OFFSET 0) AS w UNION ALL ",
            wait_columns!("w."),
            "FROM below CROSS JOIN LATERAL (SELECT * FROM @waits
                WHERE prefix >= p || '/' AND prefix < p || '0' OFFSET 0) AS w"
        ),
        vec![grants],
    )
}

/// The sections of the shown tasks, what those wait for, and the one that stands for all. Without a limit
/// the planner would read all open tasks to see whether there is one.
fn sections() -> Ask {
    Ask::Query(
        concat!(
            "WITH shown AS (SELECT DISTINCT section FROM @tasks
                WHERE section <> '' AND id = ",
            shown!(),
            "),
             names AS (SELECT section AS name FROM shown UNION SELECT '*'
                UNION SELECT unnest(s.depends_on) FROM shown CROSS JOIN LATERAL
                    (SELECT depends_on FROM @sections WHERE name = section OFFSET 0) AS s)
             SELECT n.name, s.max_runners, s.priority, s.position, s.depends_on, s.paused,
                (SELECT true FROM @tasks AS t WHERE t.section = n.name
                    AND t.status NOT IN ('completed', 'failed', 'cancelled', 'skipped')
                 LIMIT 1) IS NOT NULL
             FROM names AS n LEFT JOIN LATERAL
                (SELECT * FROM @sections WHERE name = n.name OFFSET 0) AS s ON true"
        ),
        vec![],
    )
}

fn all_sections() -> [Ask; 2] {
    [
        Ask::Query(
            "SELECT name, max_runners, priority, position, depends_on, paused FROM @sections",
            vec![],
        ),
        tallies(),
    ]
}

/// Counts of tasks by section and status.
pub(super) fn tallies() -> Ask {
    Ask::Query(
        "SELECT section, status, sum(delta)::bigint FROM @tally
         GROUP BY section, status HAVING sum(delta) > 0 ORDER BY section, status",
        vec![],
    )
}

pub(super) fn read_tallies(rows: &[Row]) -> Result<Vec<Tally>, PgError> {
    let one = |row: &Row| {
        let section: String = row.get(0);
        Ok(Tally {
            section: (!section.is_empty()).then_some(section),
            status: format::status_from_text(row.get(1))?,
            count: row.get::<_, i64>(2) as u64,
        })
    };
    rows.iter().map(one).collect()
}

fn described(row: &Row) -> Option<Section> {
    Some(Section {
        name: row.get(0),
        max_runners: row.get::<_, Option<i64>>(1).map(|runners| runners as u32),
        priority: row.get::<_, Option<i32>>(2)? as u8,
        position: row.get::<_, Option<i64>>(3)?,
        depends_on: row.get::<_, Option<Vec<String>>>(4)?,
        paused: row.get::<_, Option<bool>>(5)?,
    })
}

fn read_section(row: &Row) -> Option<SectionSnapshot> {
    let open: bool = row.get(6);
    match described(row) {
        Some(section) => Some(SectionSnapshot { section, open: u64::from(open) }),
        None if open => Some(SectionSnapshot { section: Section::named(row.get(0)), open: 1 }),
        None => None,
    }
}

fn read_all_sections(rows: &[Row], tallies: &[Row]) -> Result<Vec<SectionSnapshot>, PgError> {
    let mut open: BTreeMap<String, u64> = BTreeMap::new();
    for tally in read_tallies(tallies)? {
        if let Some(section) = tally.section {
            let count = if tally.status.is_final() { 0 } else { tally.count };
            *open.entry(section).or_default() += count;
        }
    }
    let mut sections: Vec<SectionSnapshot> = rows
        .iter()
        .filter_map(described)
        .map(|section| SectionSnapshot { open: open.remove(&section.name).unwrap_or(0), section })
        .collect();
    let named = open.into_iter();
    sections
        .extend(named.map(|(name, open)| SectionSnapshot { section: Section::named(&name), open }));
    Ok(sections)
}

/// The statements that count and list finished tasks with a status, oldest first.
pub(super) fn ended(asked: &SurplusTasks) -> [Ask; 2] {
    let status = || Value::Text(asked.status.word().to_owned());
    let list = Ask::Query(
        "SELECT coalesce(finished_at_ms, created_at_ms), id FROM @tasks
         WHERE status = $1 AND status IN ('completed', 'failed', 'cancelled', 'skipped')
         ORDER BY coalesce(finished_at_ms, created_at_ms), id LIMIT $2 OFFSET $3",
        vec![status(), Value::Integer(asked.limit.into()), Value::Integer(asked.skip.into())],
    );
    let count = Ask::Query(
        "SELECT coalesce(sum(delta), 0)::bigint FROM @tally WHERE status = $1",
        vec![status()],
    );
    [list, count]
}

/// Those of the listed tasks that are beyond what is kept.
pub(super) fn read_surplus(
    asked: &SurplusTasks,
    listed: &[Row],
    count: &[Row],
    now: WallTime,
) -> Result<Vec<EndedTask>, PgError> {
    let one = |row: &Row| {
        let id = format::task_id_from_text(row.get(1))?;
        Ok::<_, PgError>(EndedTask { at: WallTime(row.get(0)), id })
    };
    let mut ended: Vec<EndedTask> = listed.iter().map(one).collect::<Result<_, _>>()?;
    let total = count.first().map_or(0, |row| row.get::<_, i64>(0));
    let total = u64::try_from(total).unwrap_or(0);
    let times: Vec<WallTime> = ended.iter().map(|ended| ended.at).collect();
    ended.truncate(asked.keep.surplus(&times, asked.skip.into(), total, now));
    Ok(ended)
}

/// The statement of a list.
pub(super) fn list(filter: &TaskFilter) -> Ask {
    let text = |text: &Option<String>| Value::OptionalText(text.clone());
    Ask::Query(
        concat!(
            "SELECT ",
            columns!(),
            ", CASE WHEN $8 THEN NULL ELSE tries END,
                CASE WHEN $8 THEN NULL ELSE notes END
             FROM @tasks WHERE age > $1 AND ($2::text IS NULL OR status = $2)
                AND ($3::text IS NULL OR section = $3)
                AND ($4::text IS NULL OR labels @> ARRAY[$4])
                AND ($5::text IS NULL OR starts_with(id, $5))
                AND ($6::text IS NULL OR title = $6)
             ORDER BY age, id LIMIT $7"
        ),
        vec![
            Value::Integer(i64::try_from(filter.after_age).unwrap_or(i64::MAX)),
            Value::OptionalText(filter.status.map(|status| status.word().to_owned())),
            text(&filter.section),
            text(&filter.label),
            text(&filter.id_prefix),
            text(&filter.title),
            Value::Integer(i64::from(filter.limit)),
            Value::Boolean(filter.without_history),
        ],
    )
}

fn read_time(row: &Row, index: usize) -> Option<WallTime> {
    row.get::<_, Option<i64>>(index).map(WallTime)
}

pub(super) fn read_task(row: &Row) -> Result<Task, PgError> {
    let number = |index: usize| row.get::<_, i64>(index) as u32;
    let section: String = row.get(3);
    let depends_on: Vec<String> = row.get(8);
    let depends_on: Result<Vec<TaskId>, _> =
        depends_on.iter().map(|id| format::task_id_from_text(id)).collect();
    let id = format::task_id_from_text(row.get(0))?;
    let mut task = Task::new(id, row.get::<_, String>(1), WallTime(row.get(26)));
    task.description = row.get(2);
    task.section = (!section.is_empty()).then_some(section);
    task.status = format::status_from_text(row.get(4))?;
    task.priority = row.get::<_, i32>(5) as u8;
    task.position = row.get(6);
    task.age = row.get::<_, i64>(7) as u64;
    task.depends_on = depends_on?;
    task.unmet = number(9);
    task.labels = row.get(10);
    task.files = row.get(11);
    task.payload = row.get(12);
    task.max_attempts = number(13);
    task.attempts = number(14);
    task.recoveries = number(15);
    task.timeout = row.get::<_, Option<i64>>(16).map(from_ms);
    task.not_before = read_time(row, 17);
    task.key = row.get(18);
    task.claim = read_claim(row)?;
    task.result = row.get(23);
    task.error = row.get(24);
    task.feedback = row.get(25);
    task.claimed_at = read_time(row, 27);
    task.started_at = read_time(row, 28);
    task.finished_at = read_time(row, 29);
    task.finished_by = row.get(30);
    if let (Some(grant), Some(token)) =
        (row.get::<_, Option<&str>>(31), row.get::<_, Option<i64>>(32))
    {
        let grant = format::grant_from_text(grant)?;
        task.finished_claim = Some(FinishedClaim::new(grant, Token(token as u64)));
    }
    task.tries = row.get::<_, Option<&str>>(33).map_or(Ok(vec![]), format::tries_from_json)?;
    task.notes = row.get::<_, Option<&str>>(34).map_or(Ok(vec![]), format::notes_from_json)?;
    Ok(task)
}

fn read_claim(row: &Row) -> Result<Option<Claim>, PgError> {
    let (Some(by), Some(grant), Some(token)) = (
        row.get::<_, Option<&str>>(19),
        row.get::<_, Option<&str>>(20),
        row.get::<_, Option<i64>>(21),
    ) else {
        return Ok(None);
    };
    let mut claim = Claim::new(by, format::grant_from_text(grant)?, Token(token as u64));
    claim.parts = row.get::<_, Option<&str>>(22).map_or(Ok(vec![]), format::parts_from_json)?;
    Ok(Some(claim))
}

/// A task as the columns of its row.
pub(super) fn row_of(task: &Task) -> Json {
    let depends_on: Vec<&str> = task.depends_on.iter().map(TaskId::as_str).collect();
    let PathPrefixes { at, below } =
        PathPrefixes::to(&path_prefixes::files(std::slice::from_ref(task)));
    let below: Vec<&str> =
        below.iter().map(|range| range.start.strip_suffix('/').unwrap_or_default()).collect();
    let mut row = progress_row(task);
    let rest = json!({
        "title": task.title,
        "description": task.description,
        "section": task.section.as_deref().unwrap_or_default(),
        "priority": task.priority,
        "position": task.position,
        "age": task.age,
        "depends_on": depends_on,
        "labels": task.labels,
        "files": task.files,
        "payload": task.payload,
        "max_attempts": task.max_attempts,
        "timeout_ms": task.timeout.map(milliseconds_up),
        "key": task.key,
        "created_at_ms": task.created_at.0,
        "lock_keys": locks::of_task(task),
        "near_at": at,
        "near_below": below,
    });
    if let (Json::Object(row), Json::Object(rest)) = (&mut row, rest) {
        row.extend(rest);
    }
    row
}

/// The columns that [`PROGRESS`] writes.
fn progress_row(task: &Task) -> Json {
    let claim = task.claim.as_ref();
    let time = |time: Option<WallTime>| time.map(|time| time.0);
    json!({
        "id": task.id.as_str(),
        "status": task.status.word(),
        "unmet": task.unmet,
        "attempts": task.attempts,
        "recoveries": task.recoveries,
        "not_before_at_ms": time(task.not_before),
        "claim_by": claim.map(|claim| &claim.by),
        "claim_grant": claim.map(|claim| claim.grant.to_string()),
        "claim_token": claim.map(|claim| claim.token.0),
        "claim_parts": claim
            .filter(|claim| !claim.parts.is_empty())
            .map(|claim| format::parts_to_json(&claim.parts)),
        "result": task.result,
        "error": task.error,
        "feedback": task.feedback,
        "claimed_at_ms": time(task.claimed_at),
        "started_at_ms": time(task.started_at),
        "finished_at_ms": time(task.finished_at),
        "finished_by": task.finished_by,
        "finished_grant": task.finished_claim.as_ref().map(|claim| claim.grant.to_string()),
        "finished_token": task.finished_claim.as_ref().map(|claim| claim.token.0),
        "tries": (!task.tries.is_empty()).then(|| format::tries_to_json(&task.tries)),
        "notes": (!task.notes.is_empty()).then(|| format::notes_to_json(&task.notes)),
    })
}

/// Whether nothing but a task's progress differs, which is all that claims and finishes change.
pub(super) fn is_progress(before: &Task, after: &Task) -> bool {
    let mut same = before.clone();
    same.status = after.status;
    same.unmet = after.unmet;
    same.attempts = after.attempts;
    same.recoveries = after.recoveries;
    same.not_before = after.not_before;
    same.claim = after.claim.clone();
    same.result = after.result.clone();
    same.error = after.error.clone();
    same.feedback = after.feedback.clone();
    same.claimed_at = after.claimed_at;
    same.started_at = after.started_at;
    same.finished_at = after.finished_at;
    same.finished_by = after.finished_by.clone();
    same.finished_claim = after.finished_claim.clone();
    same.tries = after.tries.clone();
    same.notes = after.notes.clone();
    same == *after
}

/// Writes the progress of tasks, and how the counts change by it.
pub(super) const PROGRESS: &str = "WITH put AS (UPDATE @tasks AS t SET status = n.status,
    unmet = n.unmet, attempts = n.attempts, recoveries = n.recoveries,
    not_before_at_ms = n.not_before_at_ms, claim_by = n.claim_by, claim_grant = n.claim_grant,
    claim_token = n.claim_token, claim_parts = n.claim_parts, result = n.result,
    error = n.error, feedback = n.feedback, claimed_at_ms = n.claimed_at_ms,
    started_at_ms = n.started_at_ms, finished_at_ms = n.finished_at_ms,
    finished_by = n.finished_by, finished_grant = n.finished_grant,
    finished_token = n.finished_token, tries = n.tries, notes = n.notes
 FROM (SELECT n.*, old.ctid AS place FROM json_to_recordset($1::json) AS n(id text, status text,
        unmet bigint, attempts bigint, recoveries bigint, not_before_at_ms bigint, claim_by text,
        claim_grant text, claim_token bigint, claim_parts text, result text, error text,
        feedback text, claimed_at_ms bigint, started_at_ms bigint, finished_at_ms bigint,
        finished_by text, finished_grant text, finished_token bigint, tries text, notes text)
    CROSS JOIN LATERAL (SELECT ctid FROM @tasks WHERE id = n.id OFFSET 0) AS old) AS n
 WHERE t.ctid = n.place)
 INSERT INTO @tally SELECT section, status, delta
 FROM json_to_recordset($2::json) AS d(section text, status text, delta bigint)";

/// The same for one task whose status changes, without the cost of reading JSON.
pub(super) const PROGRESS_ONE: &str = "WITH put AS (UPDATE @tasks SET status = $2, unmet = $3,
    attempts = $4, recoveries = $5, not_before_at_ms = $6, claim_by = $7, claim_grant = $8,
    claim_token = $9, claim_parts = $10, result = $11, error = $12, feedback = $13,
    claimed_at_ms = $14, started_at_ms = $15, finished_at_ms = $16, finished_by = $17,
    finished_grant = $18, finished_token = $19, tries = $20, notes = $21 WHERE id = $1)
 INSERT INTO @tally VALUES ($22, $23, -1), ($22, $2, 1)";

/// What [`PROGRESS_ONE`] takes.
pub(super) fn progress_one_values(before: &Task, after: &Task) -> Vec<Value> {
    let mut values = plain(
        &progress_row(after),
        &[
            ("id", Text),
            ("status", Text),
            ("unmet", Integer),
            ("attempts", Integer),
            ("recoveries", Integer),
            ("not_before_at_ms", Integer),
            ("claim_by", Text),
            ("claim_grant", Text),
            ("claim_token", Integer),
            ("claim_parts", Text),
            ("result", Text),
            ("error", Text),
            ("feedback", Text),
            ("claimed_at_ms", Integer),
            ("started_at_ms", Integer),
            ("finished_at_ms", Integer),
            ("finished_by", Text),
            ("finished_grant", Text),
            ("finished_token", Integer),
            ("tries", Text),
            ("notes", Text),
        ],
    );
    values.push(Value::Text(after.section.clone().unwrap_or_default()));
    values.push(Value::Text(before.status.word().to_owned()));
    values
}

/// What [`PROGRESS`] takes for these tasks, as they were and as they are.
pub(super) fn progress_values(moved: &[(&Task, &Task)]) -> [Vec<Json>; 2] {
    let rows: Vec<Json> = moved.iter().map(|(_, after)| progress_row(after)).collect();
    let mut deltas: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for (before, after) in moved {
        for (task, delta) in [(before, -1), (after, 1)] {
            let section = task.section.as_deref().unwrap_or_default();
            *deltas.entry((section, task.status.word())).or_default() += delta;
        }
    }
    let deltas = deltas.into_iter().filter(|(_, delta)| *delta != 0);
    let deltas = deltas.map(|((section, status), delta)| {
        json!({ "section": section, "status": status, "delta": delta })
    });
    [rows, deltas.collect()]
}

pub(super) fn section_row(section: &Section) -> Json {
    json!({
        "name": section.name,
        "max_runners": section.max_runners,
        "priority": section.priority,
        "position": section.position,
        "depends_on": section.depends_on,
        "paused": section.paused,
    })
}
