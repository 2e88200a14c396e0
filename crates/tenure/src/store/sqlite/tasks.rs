//! Reading and writing tasks and sections inside a transaction.

use super::read::{RowError, optional_text, text};
use super::session::Session;
use crate::store::format::columns as format;
use crate::store::store_time::{from_ms, milliseconds_up};
use crate::store::{SurplusTasks, Tally, TaskFilter};
use rusqlite::{Row, params};
use std::collections::{BTreeMap, BTreeSet};
use tenure_core::{
    Claim, EndedTask, FinishedClaim, Pick, Section, SectionSnapshot, Snapshot, Status, Task,
    TaskId, TaskScope, Token, WallTime,
};

/// How many tasks whose time has come are looked at beside those that had none.
const DUE_SHOWN: usize = 64;

/// What is selected of a task, before notes and tries.
macro_rules! columns {
    () => {
            "id, title, description, section, status, priority, position, age, depends_on, \
             unmet, labels, files, payload, max_attempts, attempts, recoveries, timeout_ms, \
             not_before_at_ms, key, claim_by, claim_grant, claim_token, result, error, feedback, \
             created_at_ms, claimed_at_ms, started_at_ms, finished_at_ms, claim_parts, \
             finished_by, finished_grant, finished_token"
    };
}

macro_rules! tasks {
    ($rest:literal) => {
        concat!("SELECT ", columns!(), ", tries, notes FROM tasks ", $rest)
    };
}

/// The same, without notes and tries: SQLite does not even read the pages into which they spill.
macro_rules! tasks_without_history {
    ($rest:literal) => {
        concat!("SELECT ", columns!(), ", NULL, NULL FROM tasks ", $rest)
    };
}

/// Shows the tasks that a rule looks at, and all sections.
pub(super) fn show(
    session: &Session<'_>,
    scope: &TaskScope,
    wall_ms: i64,
    seen: &mut Snapshot,
) -> Result<(), RowError> {
    for id in &scope.ids {
        read_all(session, tasks!("WHERE id = ?1"), params![id.as_str()], &mut seen.tasks)?;
        if scope.dependents {
            let sql = tasks!("WHERE id IN (SELECT dependent FROM dependencies WHERE task = ?1)");
            read_all(session, sql, params![id.as_str()], &mut seen.tasks)?;
        }
        if scope.dependencies {
            let sql = tasks!(
                "WHERE id IN (SELECT value FROM json_each(
                    (SELECT depends_on FROM tasks WHERE id = ?1)))"
            );
            read_all(session, sql, params![id.as_str()], &mut seen.tasks)?;
        }
    }
    for key in &scope.keys {
        read_all(session, tasks!("WHERE key = ?1"), params![key], &mut seen.tasks)?;
    }
    if scope.in_progress {
        let sql = tasks!("WHERE status = 'in_progress'");
        read_all(session, sql, params![], &mut seen.tasks)?;
    }
    for grant in &scope.grants {
        let sql = tasks!("WHERE status = 'in_progress' AND claim_grant = ?1");
        read_all(session, sql, params![grant.to_string()], &mut seen.tasks)?;
    }
    let tallies = tallies(session)?;
    show_sections(session, &tallies, seen)?;
    if let Some(pick) = &scope.pick {
        show_picked(session, pick, &tallies, wall_ms, seen)?;
    }
    if scope.beside {
        show_beside(session, scope, &tallies, wall_ms, seen)?;
    }
    if seen.tasks.len() > 1 {
        seen.tasks.sort_by_key(|task| task.age);
        seen.tasks.dedup_by(|one, other| one.id == other.id);
    }
    Ok(())
}

/// What else the sections of the named tasks have: one that is ready, and all in progress.
fn show_beside(
    session: &Session<'_>,
    scope: &TaskScope,
    tallies: &[Tally],
    wall_ms: i64,
    seen: &mut Snapshot,
) -> Result<(), RowError> {
    let named = seen.tasks.iter().filter(|task| scope.ids.contains(&task.id));
    let sections: BTreeSet<String> = named.filter_map(|task| task.section.clone()).collect();
    let more_to_pick = seen.more_to_pick;
    for section in sections {
        let sql = tasks!("WHERE status = 'in_progress' AND section = ?1");
        read_all(session, sql, params![section], &mut seen.tasks)?;
        let pick = Pick { section: Some(section), depth: 1, ..Pick::default() };
        show_picked(session, &pick, tallies, wall_ms, seen)?;
    }
    seen.more_to_pick = more_to_pick;
    Ok(())
}

/// The first ready tasks of each section, and postponed tasks that are due.
fn show_picked(
    session: &Session<'_>,
    pick: &Pick,
    tallies: &[Tally],
    wall_ms: i64,
    seen: &mut Snapshot,
) -> Result<(), RowError> {
    let sections: Vec<&str> = match &pick.section {
        Some(section) => vec![section],
        None => {
            let pending = tallies.iter().filter(|tally| tally.status == Status::Pending);
            pending.map(|tally| tally.section.as_deref().unwrap_or_default()).collect()
        }
    };
    let limit = i64::try_from(pick.depth + 1).unwrap_or(i64::MAX);
    let labels = format::texts_to_json(&pick.labels);
    for section in sections {
        seen.more_to_pick |= if pick.labels.is_empty() {
            let sql = tasks!(
                "WHERE section = ?1 AND status = 'pending' AND unmet = 0
                   AND not_before_at_ms IS NULL ORDER BY priority, position, age LIMIT ?2"
            );
            read_some(session, sql, params![section, limit], pick.depth, &mut seen.tasks)?
        } else {
            let sql = tasks!(
                "WHERE section = ?1 AND status = 'pending' AND unmet = 0
                   AND not_before_at_ms IS NULL
                   AND NOT EXISTS (SELECT 1 FROM json_each(?3) AS wanted
                       WHERE wanted.value NOT IN (SELECT value FROM json_each(tasks.labels)))
                   ORDER BY priority, position, age LIMIT ?2"
            );
            let params = params![section, limit, labels];
            read_some(session, sql, params, pick.depth, &mut seen.tasks)?
        };
    }
    let mut due = Vec::new();
    let sql = tasks!(
        "WHERE status = 'pending' AND unmet = 0 AND not_before_at_ms IS NOT NULL
           AND not_before_at_ms <= ?1 ORDER BY not_before_at_ms LIMIT ?2"
    );
    read_all(session, sql, params![wall_ms, DUE_SHOWN as i64], &mut due)?;
    seen.tasks.extend(due.into_iter().filter(|task: &Task| {
        (pick.section.is_none() || pick.section == task.section)
            && pick.labels.iter().all(|label| task.labels.contains(label))
    }));
    Ok(())
}

/// Those that were described, and those that only have tasks which are not done.
fn show_sections(
    session: &Session<'_>,
    tallies: &[Tally],
    seen: &mut Snapshot,
) -> Result<(), RowError> {
    let mut open: BTreeMap<&str, u64> = BTreeMap::new();
    for tally in tallies.iter().filter(|tally| !tally.status.is_final()) {
        if let Some(section) = &tally.section {
            *open.entry(section).or_default() += tally.count;
        }
    }
    let mut statement = session.statement(
        "SELECT name, max_runners, priority, position, depends_on, paused FROM sections",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let depends_on = optional_text(row, 4)?.map(format::texts_from_json).transpose()?;
        let section = Section {
            name: row.get(0)?,
            max_runners: row.get(1)?,
            priority: row.get(2)?,
            position: row.get(3)?,
            depends_on: depends_on.unwrap_or_default(),
            paused: row.get(5)?,
        };
        let open = open.remove(section.name.as_str()).unwrap_or(0);
        seen.sections.push(SectionSnapshot { section, open });
    }
    for (name, open) in open {
        seen.sections.push(SectionSnapshot { section: Section::named(name), open });
    }
    Ok(())
}

fn read_all(
    session: &Session<'_>,
    sql: &'static str,
    params: impl rusqlite::Params,
    tasks: &mut Vec<Task>,
) -> Result<(), RowError> {
    read_some(session, sql, params, usize::MAX, tasks).map(drop)
}

/// At most so many; says whether there is one more.
fn read_some(
    session: &Session<'_>,
    sql: &'static str,
    params: impl rusqlite::Params,
    at_most: usize,
    tasks: &mut Vec<Task>,
) -> Result<bool, RowError> {
    let mut statement = session.statement(sql)?;
    let mut rows = statement.query(params)?;
    let before = tasks.len();
    while let Some(row) = rows.next()? {
        if tasks.len() - before == at_most {
            return Ok(true);
        }
        tasks.push(read_task(row)?);
    }
    Ok(false)
}

fn read_texts(row: &Row<'_>, index: usize) -> Result<Vec<String>, RowError> {
    let texts = optional_text(row, index)?.map(format::texts_from_json).transpose()?;
    Ok(texts.unwrap_or_default())
}

fn read_time(row: &Row<'_>, index: usize) -> Result<Option<WallTime>, RowError> {
    Ok(row.get::<_, Option<i64>>(index)?.map(WallTime))
}

fn read_task(row: &Row<'_>) -> Result<Task, RowError> {
    let section: String = row.get(3)?;
    let depends_on = read_texts(row, 8)?;
    let depends_on: Result<Vec<TaskId>, _> =
        depends_on.iter().map(|id| format::task_id_from_text(id)).collect();
    let id = format::task_id_from_text(text(row, 0)?)?;
    let mut task = Task::new(id, row.get::<_, String>(1)?, WallTime(row.get(25)?));
    task.description = row.get(2)?;
    task.section = (!section.is_empty()).then_some(section);
    task.status = format::status_from_text(text(row, 4)?)?;
    task.priority = row.get(5)?;
    task.position = row.get(6)?;
    task.age = row.get::<_, i64>(7)? as u64;
    task.depends_on = depends_on?;
    task.unmet = row.get(9)?;
    task.labels = read_texts(row, 10)?;
    task.files = read_texts(row, 11)?;
    task.payload = row.get(12)?;
    task.max_attempts = row.get(13)?;
    task.attempts = row.get(14)?;
    task.recoveries = row.get(15)?;
    task.timeout = row.get::<_, Option<i64>>(16)?.map(from_ms);
    task.not_before = read_time(row, 17)?;
    task.key = row.get(18)?;
    task.claim = read_claim(row)?;
    task.result = row.get(22)?;
    task.error = row.get(23)?;
    task.feedback = row.get(24)?;
    task.claimed_at = read_time(row, 26)?;
    task.started_at = read_time(row, 27)?;
    task.finished_at = read_time(row, 28)?;
    task.finished_by = row.get(30)?;
    task.notes = optional_text(row, 34)?.map_or(Ok(vec![]), format::notes_from_json)?;
    task.tries = optional_text(row, 33)?.map_or(Ok(vec![]), format::tries_from_json)?;
    if let (Some(grant), Some(token)) = (optional_text(row, 31)?, row.get::<_, Option<i64>>(32)?) {
        let grant = format::grant_from_text(grant)?;
        task.finished_claim = Some(FinishedClaim::new(grant, Token(token as u64)));
    }
    Ok(task)
}

fn read_claim(row: &Row<'_>) -> Result<Option<Claim>, RowError> {
    let (Some(by), Some(grant)) = (optional_text(row, 19)?, optional_text(row, 20)?) else {
        return Ok(None);
    };
    let token = Token(row.get::<_, i64>(21)? as u64);
    let mut claim = Claim::new(by, format::grant_from_text(grant)?, token);
    claim.parts = optional_text(row, 29)?.map_or(Ok(vec![]), format::parts_from_json)?;
    Ok(Some(claim))
}

fn texts(texts: &[String]) -> Option<String> {
    (!texts.is_empty()).then(|| format::texts_to_json(texts))
}

/// Writes a task, new or changed.
pub(super) fn put(session: &Session<'_>, task: &Task) -> Result<(), RowError> {
    let claim = task.claim.as_ref();
    let depends_on: Vec<String> = task.depends_on.iter().map(|id| id.as_str().to_owned()).collect();
    let params = params![
        task.id.as_str(),
        task.title,
        task.description,
        task.section.as_deref().unwrap_or_default(),
        task.status.word(),
        task.priority,
        task.position,
        task.age as i64,
        texts(&depends_on),
        task.unmet,
        texts(&task.labels),
        texts(&task.files),
        task.payload,
        task.max_attempts,
        task.attempts,
        task.recoveries,
        task.timeout.map(milliseconds_up),
        task.not_before.map(|time| time.0),
        task.key,
        claim.map(|claim| &claim.by),
        claim.map(|claim| claim.grant.to_string()),
        claim.map(|claim| claim.token.0 as i64),
        task.result,
        task.error,
        task.feedback,
        task.created_at.0,
        task.claimed_at.map(|time| time.0),
        task.started_at.map(|time| time.0),
        task.finished_at.map(|time| time.0),
        claim
            .filter(|claim| !claim.parts.is_empty())
            .map(|claim| format::parts_to_json(&claim.parts)),
        task.finished_by,
        task.finished_claim.as_ref().map(|claim| claim.grant.to_string()),
        task.finished_claim.as_ref().map(|claim| claim.token.0 as i64),
        (!task.tries.is_empty()).then(|| format::tries_to_json(&task.tries)),
        (!task.notes.is_empty()).then(|| format::notes_to_json(&task.notes)),
    ];
    // Most changes are of what work itself moves. To name the other columns would make SQLite
    // write their indexes anew, each a page more to sync.
    let moved = session
        .statement(
            "UPDATE tasks SET status = ?5, unmet = ?10, attempts = ?15, recoveries = ?16,
                not_before_at_ms = ?18, claim_by = ?20, claim_grant = ?21, claim_token = ?22,
                result = ?23, error = ?24, feedback = ?25, claimed_at_ms = ?27,
                started_at_ms = ?28, finished_at_ms = ?29, claim_parts = ?30, finished_by = ?31,
                finished_grant = ?32, finished_token = ?33, tries = ?34, notes = ?35
             WHERE id = ?1 AND title = ?2 AND description IS ?3 AND section = ?4
               AND priority = ?6 AND position = ?7 AND age = ?8 AND depends_on IS ?9
               AND labels IS ?11 AND files IS ?12 AND payload IS ?13 AND max_attempts = ?14
               AND timeout_ms IS ?17 AND key IS ?19 AND created_at_ms = ?26",
        )?
        .execute(params)?;
    if moved > 0 {
        return Ok(());
    }
    let changed = session
        .statement(
            "UPDATE tasks SET title = ?2, description = ?3, section = ?4, status = ?5,
                priority = ?6, position = ?7, age = ?8, depends_on = ?9, unmet = ?10, labels = ?11,
                files = ?12, payload = ?13, max_attempts = ?14, attempts = ?15, recoveries = ?16,
                timeout_ms = ?17, not_before_at_ms = ?18, key = ?19, claim_by = ?20,
                claim_grant = ?21, claim_token = ?22, result = ?23, error = ?24, feedback = ?25,
                created_at_ms = ?26, claimed_at_ms = ?27, started_at_ms = ?28, finished_at_ms = ?29,
                claim_parts = ?30, finished_by = ?31, finished_grant = ?32, finished_token = ?33,
                tries = ?34, notes = ?35
             WHERE id = ?1",
        )?
        .execute(params)?;
    if changed > 0 {
        return Ok(());
    }
    session
        .statement(
            "INSERT INTO tasks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,
                ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29,
                ?30, ?31, ?32, ?33, ?34, ?35)",
        )?
        .execute(params)?;
    let mut dependency = session.statement("INSERT OR IGNORE INTO dependencies VALUES (?1, ?2)")?;
    for before in &task.depends_on {
        dependency.execute(params![before.as_str(), task.id.as_str()])?;
    }
    Ok(())
}

pub(super) fn delete(session: &Session<'_>, id: &TaskId) -> Result<(), RowError> {
    session.statement("DELETE FROM tasks WHERE id = ?1")?.execute([id.as_str()])?;
    Ok(())
}

pub(super) fn put_section(session: &Session<'_>, section: &Section) -> Result<(), RowError> {
    session.statement("INSERT OR REPLACE INTO sections VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?.execute(
        params![
            section.name,
            section.max_runners,
            section.priority,
            section.position,
            texts(&section.depends_on),
            section.paused,
        ],
    )?;
    Ok(())
}

pub(super) fn delete_section(session: &Session<'_>, name: &str) -> Result<(), RowError> {
    session.statement("DELETE FROM sections WHERE name = ?1")?.execute([name])?;
    Ok(())
}

/// Tasks, oldest first.
pub(super) fn list(session: &Session<'_>, filter: &TaskFilter) -> Result<Vec<Task>, RowError> {
    let mut found = Vec::new();
    if let Some(title) = &filter.title {
        read_all(session, tasks!("WHERE title = ?1 ORDER BY age"), params![title], &mut found)?;
    } else if let Some(prefix) = &filter.id_prefix {
        let sql = tasks!("WHERE id >= ?1 AND id < ?2 ORDER BY age");
        let above = format!("{prefix}\u{10ffff}");
        read_all(session, sql, params![prefix, above], &mut found)?;
    } else {
        macro_rules! listed {
            ($tasks:ident) => {
                $tasks!(
                    "WHERE age > ?1 AND (?2 IS NULL OR status = ?2) AND (?3 IS NULL OR section = ?3)
                       AND (?4 IS NULL OR ?4 IN (SELECT value FROM json_each(tasks.labels)))
                     ORDER BY age LIMIT ?5"
                )
            };
        }
        let sql = match filter.without_history {
            true => listed!(tasks_without_history),
            false => listed!(tasks),
        };
        let status = filter.status.map(|status| status.word());
        let params =
            params![filter.after_age as i64, status, filter.section, filter.label, filter.limit];
        read_all(session, sql, params, &mut found)?;
        return Ok(found);
    }
    found.retain(|task| filter.admits(task));
    found.truncate(filter.limit as usize);
    Ok(found.into_iter().map(|task| filter.listed(task)).collect())
}

/// How many tasks there are of each section and status.
pub(super) fn tallies(session: &Session<'_>) -> Result<Vec<Tally>, RowError> {
    let mut statement =
        session.statement("SELECT section, status, count FROM tallies WHERE count > 0")?;
    let mut rows = statement.query([])?;
    let mut tallies = Vec::new();
    while let Some(row) = rows.next()? {
        let section: String = row.get(0)?;
        tallies.push(Tally {
            section: (!section.is_empty()).then_some(section),
            status: format::status_from_text(text(row, 1)?)?,
            count: row.get::<_, i64>(2)? as u64,
        });
    }
    Ok(tallies)
}

/// Finished tasks that are beyond what is kept, oldest first, by the index of those that ended.
pub(super) fn surplus(
    session: &Session<'_>,
    asked: &SurplusTasks,
    wall_ms: i64,
) -> Result<Vec<EndedTask>, RowError> {
    let of_status = tallies(session)?.into_iter().filter(|tally| tally.status == asked.status);
    let total = of_status.map(|tally| tally.count).sum();
    let mut statement = session.statement(
        "SELECT coalesce(finished_at_ms, created_at_ms), id FROM tasks
         WHERE status = ?1 AND status IN ('completed', 'failed', 'cancelled', 'skipped')
         ORDER BY coalesce(finished_at_ms, created_at_ms), id LIMIT ?2 OFFSET ?3",
    )?;
    let mut rows = statement.query(params![asked.status.word(), asked.limit, asked.skip])?;
    let mut listed = Vec::new();
    while let Some(row) = rows.next()? {
        let at = WallTime(row.get(0)?);
        listed.push(EndedTask { at, id: format::task_id_from_text(text(row, 1)?)? });
    }
    let times: Vec<WallTime> = listed.iter().map(|ended| ended.at).collect();
    let now = WallTime(wall_ms);
    listed.truncate(asked.keep.surplus(&times, asked.skip.into(), total, now));
    Ok(listed)
}
