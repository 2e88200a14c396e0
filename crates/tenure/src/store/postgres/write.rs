//! A change as statements: one for each kind of record, however many records there are.
//!
//! Rows to change are looked up by an index, one by one, and then changed by where they lie (`ctid`),
//! which stays as it is under the locks. Given a join, the planner would read the whole table as long as
//! it takes that to be small: at its beginning, and for ever where rows come and go.

use super::locks;
use super::session::{Ask, Value};
use super::tasks;
use crate::store::RecordSearch;
use crate::store::format::columns as format;
use crate::store::path_prefixes;
use crate::store::store_time::{StoreTime, milliseconds_up};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap};
use tenure_core::{
    Change, EventKind, GrantId, Hold, NewEvent, RecordRange, Section, Task, TaskId, Waiter, Write,
};

/// Up to so many numbers are drawn one by one; to draw millions would take seconds, so a change that has
/// the store alone sets the sequence.
const NUMBERS_DRAWN_MAX: u64 = 1000;

/// The records of a change, by kind. Of several writes of one record the last counts.
#[derive(Default)]
pub(super) struct Batch {
    /// By resource and grant: the row of a new hold, or none where only an old one ends.
    holds: BTreeMap<(String, String), Option<Json>>,
    /// Holds to be removed before new ones are added.
    ended: Vec<(String, String)>,
    extended: BTreeMap<(String, String), Json>,
    waits: Vec<Json>,
    kept: Vec<Json>,
    woken: Vec<String>,
    left: Vec<String>,
    tasks: BTreeMap<String, Option<Task>>,
    sections: BTreeMap<String, Option<Section>>,
    answers: Vec<Json>,
    /// Records to be removed before new ones are written.
    dropped_records: Vec<RecordRange>,
    records: BTreeMap<(String, String), Json>,
}

/// The number of the first event, and of all that the change takes.
pub(super) struct Numbers {
    /// The number that was drawn for the change.
    pub(super) first: u64,
    /// Whether no other change is under way, so that the sequence can be set: no other change
    /// draws a number meanwhile.
    pub(super) alone: bool,
}

impl Batch {
    pub(super) fn of(change: &Change, at: StoreTime, mailbox: &str) -> Batch {
        let mut batch = Batch::default();
        for write in &change.writes {
            batch.add(write, at, mailbox);
        }
        batch
    }

    fn add(&mut self, write: &Write, at: StoreTime, mailbox: &str) {
        match write {
            Write::Hold(hold) => {
                let key = (hold.want.resource.key(), hold.grant.to_string());
                self.holds.insert(key, Some(hold_row(hold, at)));
            }
            Write::Extend { resource, grant, ttl, operation } => {
                let ttl_ms = milliseconds_up(*ttl);
                let key = (resource.key(), grant.to_string());
                let deadline_ms = at.begin_ms.saturating_add(ttl_ms);
                match self.holds.get_mut(&key) {
                    Some(Some(row)) => {
                        row["ttl_ms"] = json!(ttl_ms);
                        row["deadline_ms"] = json!(deadline_ms);
                        if operation.is_some() {
                            row["operation"] = json!(operation);
                        }
                    }
                    _ => {
                        let row = json!({
                            "resource": key.0, "grant_id": key.1, "ttl_ms": ttl_ms,
                            "deadline_ms": deadline_ms, "operation": operation,
                        });
                        self.extended.insert(key, row);
                    }
                }
            }
            Write::DropHold { resource, grant } => {
                let key = (resource.key(), grant.to_string());
                self.holds.remove(&key);
                self.extended.remove(&key);
                self.ended.push(key);
            }
            Write::Wait(waiter) => self.waits.extend(wait_rows(waiter, at, mailbox)),
            Write::KeepPlace(waiter) => {
                let ttl_ms = milliseconds_up(waiter.ttl);
                self.kept.push(json!({
                    "grant_id": waiter.grant.to_string(), "ttl_ms": ttl_ms,
                    "deadline_ms": at.begin_ms.saturating_add(ttl_ms),
                }));
            }
            Write::Woken(waiter) => self.woken.push(waiter.grant.to_string()),
            Write::DropWait(waiter) => self.left.push(waiter.grant.to_string()),
            Write::Task(task) => {
                self.tasks.insert(task.id.as_str().to_owned(), Some((**task).clone()));
            }
            Write::DropTask(id) => {
                self.tasks.insert(id.as_str().to_owned(), None);
            }
            Write::Section(section) => {
                self.sections.insert(section.name.clone(), Some(section.clone()));
            }
            Write::DropSection(name) => {
                self.sections.insert(name.clone(), None);
            }
            Write::PutRecord(record) => {
                let kind = record.kind.word();
                let row = json!({
                    "kind": kind, "key": record.key, "text": record.text,
                    "deadline_ms": record.ttl.map(|ttl| at.deadline_ms(ttl)),
                    "written_at_ms": at.wall_ms,
                });
                self.records.insert((kind.to_owned(), record.key.clone()), row);
            }
            Write::DropRecords(range) => {
                self.records.retain(|(kind, key), _| {
                    kind != range.kind.word() || !key.starts_with(&range.prefix)
                });
                self.dropped_records.push(range.clone());
            }
            Write::Answer(reply) => self.answers.push(json!({
                "slot": reply.slot, "number": reply.number, "text": reply.text, "at_ms": at.now_ms,
            })),
        }
    }

    /// The statements that write it, with its events. `known` are tasks as they were before.
    pub(super) fn asks(
        self,
        change: &Change,
        numbers: &Numbers,
        at: StoreTime,
        mailbox: &str,
        known: &[Task],
    ) -> Vec<Ask> {
        let mut asks = Vec::new();
        self.hold_asks(&mut asks, at);
        self.wait_asks(&mut asks, &change.wake, at, mailbox);
        self.task_asks(&mut asks, known);
        self.section_asks(&mut asks);
        self.record_asks(&mut asks);
        if !self.answers.is_empty() {
            asks.push(Ask::Query(
                "INSERT INTO @answers SELECT * FROM json_populate_recordset(NULL::@answers, $1::json)
                 ON CONFLICT (slot) DO UPDATE SET number = excluded.number, text = excluded.text,
                    at_ms = excluded.at_ms",
                vec![rows(self.answers)],
            ));
        }
        if !change.events.is_empty() {
            asks.push(event_ask(&change.events, numbers.first, at));
        }
        // Each event but the first draws a number; a change that takes more draws the rest.
        let taken = (change.last_number() + 1).saturating_sub(numbers.first);
        let drawn = change.events.len().max(1) as u64;
        if taken > drawn && numbers.alone && taken > NUMBERS_DRAWN_MAX {
            asks.push(Ask::Query(
                "SELECT setval('@numbers', greatest(last_value, $1)) FROM @numbers",
                vec![Value::Integer(change.last_number() as i64)],
            ));
        } else if taken > drawn {
            asks.push(Ask::Query(
                "SELECT count(nextval('@numbers')) FROM generate_series(1, $1)",
                vec![Value::Integer((taken - drawn) as i64)],
            ));
        }
        asks
    }

    fn record_asks(&self, asks: &mut Vec<Ask>) {
        for range in &self.dropped_records {
            let (first, last) = RecordSearch::all(range.clone()).bounds();
            let kind = range.kind.word().to_owned();
            asks.push(Ask::Query(
                "DELETE FROM @records WHERE kind = $1 AND key >= $2 AND key <= $3",
                vec![Value::Text(kind), Value::Text(first), Value::Text(last)],
            ));
        }
        if !self.records.is_empty() {
            asks.push(Ask::Query(
                "INSERT INTO @records (kind, key, text, deadline_ms, written_at_ms)
                 SELECT kind, key, text, deadline_ms, written_at_ms
                 FROM json_to_recordset($1::json) AS r(kind text, key text, text text,
                    deadline_ms bigint, written_at_ms bigint)
                 ON CONFLICT (kind, key) DO UPDATE SET text = excluded.text,
                    deadline_ms = excluded.deadline_ms, written_at_ms = excluded.written_at_ms",
                vec![rows(self.records.values().cloned().collect())],
            ));
        }
    }

    fn hold_asks(&self, asks: &mut Vec<Ask>, at: StoreTime) {
        if !self.ended.is_empty() {
            let (resources, grants) = self.ended.iter().cloned().unzip();
            asks.push(match self.ended.as_slice() {
                [(resource, grant)] => Ask::Query(
                    "DELETE FROM @holds WHERE resource = $1 AND grant_id = $2",
                    vec![Value::Text(resource.clone()), Value::Text(grant.clone())],
                ),
                _ => Ask::Query(
                    "DELETE FROM @holds WHERE ctid = ANY(ARRAY(SELECT h.ctid
                        FROM unnest($1::text[], $2::text[]) AS d(r, g) CROSS JOIN LATERAL
                            (SELECT ctid FROM @holds WHERE resource = r AND grant_id = g OFFSET 0)
                            AS h))",
                    vec![Value::Texts(resources), Value::Texts(grants)],
                ),
            });
        }
        if !self.extended.is_empty() {
            asks.push(Ask::Query(
                "UPDATE @holds AS h SET ttl_ms = e.ttl_ms, deadline_ms = e.deadline_ms,
                    renewed_at_ms = $2, operation = coalesce(e.operation, h.operation)
                 FROM (SELECT e.*, old.ctid AS place FROM json_to_recordset($1::json) AS e(
                        resource text, grant_id text, ttl_ms bigint, deadline_ms bigint,
                        operation text)
                    CROSS JOIN LATERAL (SELECT ctid FROM @holds
                        WHERE resource = e.resource AND grant_id = e.grant_id OFFSET 0) AS old) AS e
                 WHERE h.ctid = e.place",
                vec![rows(self.extended.values().cloned().collect()), Value::Integer(at.wall_ms)],
            ));
        }
        let new: Vec<Json> = self.holds.values().flatten().cloned().collect();
        if let [row] = new.as_slice() {
            asks.push(Ask::Query(HOLD_ONE, plain(row, &HOLD_COLUMNS)));
        } else if !new.is_empty() {
            asks.push(Ask::Query(
                "INSERT INTO @holds SELECT * FROM json_populate_recordset(NULL::@holds, $1::json)",
                vec![rows(new)],
            ));
        }
    }

    fn wait_asks(&self, asks: &mut Vec<Ask>, wake: &[GrantId], at: StoreTime, mailbox: &str) {
        if !self.waits.is_empty() {
            asks.push(Ask::Query(
                "INSERT INTO @waits SELECT * FROM json_populate_recordset(NULL::@waits, $1::json)",
                vec![rows(self.waits.clone())],
            ));
        }
        if !self.kept.is_empty() {
            asks.push(Ask::Query(
                "UPDATE @waits AS w SET ttl_ms = k.ttl_ms, deadline_ms = k.deadline_ms,
                    mailbox = $2, woken_ms = NULL, wakes = 0
                 FROM (SELECT k.*, old.ctid AS place FROM json_to_recordset($1::json)
                        AS k(grant_id text, ttl_ms bigint, deadline_ms bigint)
                    CROSS JOIN LATERAL
                        (SELECT ctid FROM @waits WHERE grant_id = k.grant_id OFFSET 0) AS old) AS k
                 WHERE w.ctid = k.place",
                vec![rows(self.kept.clone()), Value::Text(mailbox.to_owned())],
            ));
        }
        if !self.woken.is_empty() || !wake.is_empty() {
            // Waiters that hear no messages look at the count.
            let wake = wake.iter().map(ToString::to_string);
            asks.push(Ask::Query(
                "UPDATE @waits SET wakes = wakes + 1,
                    woken_ms = CASE WHEN grant_id = ANY($2) THEN $3 ELSE woken_ms END
                 WHERE grant_id = ANY($1 || $2)",
                vec![
                    Value::Texts(wake.collect()),
                    Value::Texts(self.woken.clone()),
                    Value::Integer(at.now_ms),
                ],
            ));
        }
        if !self.left.is_empty() {
            asks.push(Ask::Query(
                "DELETE FROM @waits WHERE grant_id = ANY($1)",
                vec![Value::Texts(self.left.clone())],
            ));
        }
    }

    fn task_asks(&self, asks: &mut Vec<Ask>, known: &[Task]) {
        let gone = self.tasks.iter().filter(|(_, task)| task.is_none());
        let gone: Vec<String> = gone.map(|(id, _)| id.clone()).collect();
        if !gone.is_empty() {
            asks.push(Ask::Query(
                "WITH gone AS (DELETE FROM @tasks WHERE id = ANY($1) RETURNING section, status),
                    links AS (DELETE FROM @dependencies WHERE dependent = ANY($1))
                 INSERT INTO @tally SELECT section, status, -count(*) FROM gone GROUP BY 1, 2",
                vec![Value::Texts(gone)],
            ));
        }
        let known: HashMap<&TaskId, &Task> = known.iter().map(|task| (&task.id, task)).collect();
        let (mut moved, mut put): (Vec<(&Task, &Task)>, Vec<&Task>) = (vec![], vec![]);
        for task in self.tasks.values().flatten() {
            match known.get(&task.id) {
                Some(before) if tasks::is_progress(before, task) => moved.push((before, task)),
                _ => put.push(task),
            }
        }
        if let [(before, after)] = moved.as_slice()
            && before.status != after.status
        {
            let values = tasks::progress_one_values(before, after);
            asks.push(Ask::Query(tasks::PROGRESS_ONE, values));
        } else if !moved.is_empty() {
            let values = tasks::progress_values(&moved).map(rows);
            asks.push(Ask::Query(tasks::PROGRESS, values.to_vec()));
        }
        if put.is_empty() {
            return;
        }
        // Counts change by what is added: to keep them in one row each would make all changes of a
        // section wait for each other.
        asks.push(Ask::Query(
            "WITH new AS MATERIALIZED (
                SELECT * FROM json_populate_recordset(NULL::@tasks, $1::json)),
             old AS MATERIALIZED (SELECT t.section, t.status FROM new CROSS JOIN LATERAL
                (SELECT section, status FROM @tasks WHERE id = new.id OFFSET 0) AS t),
             put AS (INSERT INTO @tasks SELECT * FROM new ON CONFLICT (id) DO UPDATE SET
                title = excluded.title, description = excluded.description,
                section = excluded.section, status = excluded.status,
                priority = excluded.priority, position = excluded.position, age = excluded.age,
                depends_on = excluded.depends_on, unmet = excluded.unmet,
                labels = excluded.labels, files = excluded.files, payload = excluded.payload,
                max_attempts = excluded.max_attempts, attempts = excluded.attempts,
                recoveries = excluded.recoveries, timeout_ms = excluded.timeout_ms,
                not_before_at_ms = excluded.not_before_at_ms, key = excluded.key,
                claim_by = excluded.claim_by, claim_grant = excluded.claim_grant,
                claim_token = excluded.claim_token, claim_parts = excluded.claim_parts,
                result = excluded.result, error = excluded.error, feedback = excluded.feedback,
                created_at_ms = excluded.created_at_ms, claimed_at_ms = excluded.claimed_at_ms,
                started_at_ms = excluded.started_at_ms, finished_at_ms = excluded.finished_at_ms,
                finished_by = excluded.finished_by, finished_grant = excluded.finished_grant,
                finished_token = excluded.finished_token, tries = excluded.tries,
                notes = excluded.notes, lock_keys = excluded.lock_keys,
                near_at = excluded.near_at, near_below = excluded.near_below)
             INSERT INTO @tally SELECT section, status, sum(delta) FROM (
                SELECT section, status, -1 AS delta FROM old
                UNION ALL SELECT section, status, 1 FROM new) AS moved
             GROUP BY 1, 2 HAVING sum(delta) <> 0",
            vec![rows(put.iter().map(|task| tasks::row_of(task)).collect())],
        ));
        let relinked: Vec<&&Task> = put
            .iter()
            .filter(|task| {
                known.get(&task.id).map_or(!task.depends_on.is_empty(), |before| {
                    before.depends_on != task.depends_on
                })
            })
            .collect();
        if relinked.is_empty() {
            return;
        }
        let links = relinked.iter().flat_map(|task| {
            let dependent = task.id.as_str();
            let before = task.depends_on.iter();
            before.map(move |id| json!({ "task": id.as_str(), "dependent": dependent }))
        });
        asks.push(Ask::Query(
            "WITH links AS MATERIALIZED (
                SELECT * FROM json_populate_recordset(NULL::@dependencies, $1::json)),
             gone AS (DELETE FROM @dependencies AS d WHERE d.dependent = ANY($2) AND NOT EXISTS
                (SELECT 1 FROM links WHERE links.task = d.task AND links.dependent = d.dependent))
             INSERT INTO @dependencies SELECT DISTINCT * FROM links ON CONFLICT DO NOTHING",
            vec![
                rows(links.collect()),
                Value::Texts(relinked.iter().map(|task| task.id.as_str().to_owned()).collect()),
            ],
        ));
    }

    fn section_asks(&self, asks: &mut Vec<Ask>) {
        let put: Vec<Json> = self.sections.values().flatten().map(tasks::section_row).collect();
        if !put.is_empty() {
            asks.push(Ask::Query(
                "INSERT INTO @sections
                    SELECT * FROM json_populate_recordset(NULL::@sections, $1::json)
                 ON CONFLICT (name) DO UPDATE SET max_runners = excluded.max_runners,
                    priority = excluded.priority, position = excluded.position,
                    depends_on = excluded.depends_on, paused = excluded.paused",
                vec![rows(put)],
            ));
        }
        let gone = self.sections.iter().filter(|(_, section)| section.is_none());
        let gone: Vec<String> = gone.map(|(name, _)| name.clone()).collect();
        if !gone.is_empty() {
            asks.push(Ask::Query(
                "DELETE FROM @sections WHERE name = ANY($1)",
                vec![Value::Texts(gone)],
            ));
        }
    }
}

/// Rows as JSON. A value that a row does not name is null.
fn rows(mut rows: Vec<Json>) -> Value {
    for row in rows.iter_mut().filter_map(Json::as_object_mut) {
        row.retain(|_, value| !value.is_null());
    }
    Value::Text(Json::Array(rows).to_string())
}

fn hold_row(hold: &Hold, at: StoreTime) -> Json {
    let ttl_ms = milliseconds_up(hold.ttl);
    json!({
        "resource": hold.want.resource.key(),
        "grant_id": hold.grant.to_string(),
        "token": hold.token.0 as i64,
        "mode": format::mode_to_text(hold.want.mode),
        "label": hold.holder.label,
        "chosen": hold.holder.chosen,
        "agent": hold.holder.agent,
        "evidence": hold.holder.evidence.as_ref().map(format::evidence_to_json),
        "operation": hold.operation,
        "ttl_ms": ttl_ms,
        "deadline_ms": at.begin_ms.saturating_add(ttl_ms),
        "since_ms": at.now_ms,
        "acquired_at_ms": at.wall_ms,
        "renewed_at_ms": at.wall_ms,
        "slot": hold.slot,
        "prefix": path_prefixes::prefix(&hold.want.resource),
        "lock_keys": locks::of_resource(&hold.want.resource),
    })
}

fn wait_rows(waiter: &Waiter, at: StoreTime, mailbox: &str) -> Vec<Json> {
    let ttl_ms = milliseconds_up(waiter.ttl);
    let keeps = (!waiter.keeps.is_empty()).then(|| format::grants_to_json(&waiter.keeps));
    let one = |want: &tenure_core::Want| {
        json!({
            "resource": want.resource.key(),
            "ticket": waiter.ticket as i64,
            "grant_id": waiter.grant.to_string(),
            "wants": format::wants_to_json(&waiter.wants),
            "label": waiter.holder.label,
            "chosen": waiter.holder.chosen,
            "agent": waiter.holder.agent,
            "evidence": waiter.holder.evidence.as_ref().map(format::evidence_to_json),
            "operation": waiter.operation,
            "keeps": keeps,
            "ttl_ms": ttl_ms,
            "deadline_ms": at.begin_ms.saturating_add(ttl_ms),
            "since_ms": at.now_ms,
            "waiting_since_at_ms": at.wall_ms,
            "mailbox": mailbox,
            "woken_ms": null,
            "wakes": 0,
            "prefix": path_prefixes::prefix(&want.resource),
        })
    };
    waiter.wants.iter().map(one).collect()
}

/// Adds one hold, without the cost of reading JSON.
const HOLD_ONE: &str = "INSERT INTO @holds (resource, grant_id, token, mode, label, chosen, agent,
    evidence, operation, ttl_ms, deadline_ms, since_ms, acquired_at_ms, renewed_at_ms, slot, prefix,
    lock_keys)
 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";

const HOLD_COLUMNS: [(&str, Plain); 17] = [
    ("resource", Plain::Text),
    ("grant_id", Plain::Text),
    ("token", Plain::Integer),
    ("mode", Plain::Text),
    ("label", Plain::Text),
    ("chosen", Plain::Boolean),
    ("agent", Plain::Boolean),
    ("evidence", Plain::Text),
    ("operation", Plain::Text),
    ("ttl_ms", Plain::Integer),
    ("deadline_ms", Plain::Integer),
    ("since_ms", Plain::Integer),
    ("acquired_at_ms", Plain::Integer),
    ("renewed_at_ms", Plain::Integer),
    ("slot", Plain::Integer),
    ("prefix", Plain::Text),
    ("lock_keys", Plain::Texts),
];

/// Adds one event, which has the number of the change.
const EVENT_ONE: &str =
    "INSERT INTO @events (id, until, at_ms, kind, resource, label, token, detail,
    actor) VALUES ($1, $1, coalesce($3, $2), $4, $5, $6, $7, $8, $9)";

const EVENT_COLUMNS: [(&str, Plain); 7] = [
    ("at_ms", Plain::Integer),
    ("kind", Plain::Text),
    ("resource", Plain::Text),
    ("label", Plain::Text),
    ("token", Plain::Integer),
    ("detail", Plain::Text),
    ("actor", Plain::Text),
];

/// What a column has.
#[derive(Clone, Copy)]
pub(super) enum Plain {
    Text,
    Texts,
    Integer,
    Boolean,
}

/// The columns of one row as values of a statement.
pub(super) fn plain(row: &Json, columns: &[(&str, Plain)]) -> Vec<Value> {
    let one = |(name, what): &(&str, Plain)| {
        let json = &row[*name];
        match what {
            Plain::Text => Value::OptionalText(json.as_str().map(str::to_owned)),
            Plain::Integer => Value::OptionalInteger(json.as_i64()),
            Plain::Boolean => Value::Boolean(json.as_bool() == Some(true)),
            Plain::Texts => {
                let texts = json.as_array().into_iter().flatten();
                Value::Texts(texts.filter_map(Json::as_str).map(str::to_owned).collect())
            }
        }
    };
    columns.iter().map(one).collect()
}

/// Adds events; answers with their numbers. Each is read once: an operator that takes one value out of a
/// JSON text reads all of the text.
pub(super) const EVENTS: &str = "WITH numbered AS MATERIALIZED (
    SELECT CASE WHEN t.n = 1 THEN $2 ELSE nextval('@numbers') END AS id, t.*
    FROM ROWS FROM (json_to_recordset($1::json) AS (at_ms bigint, kind text, resource text, label text,
            token bigint, detail text, actor text)) WITH ORDINALITY
        AS t(at_ms, kind, resource, label, token, detail, actor, n))
 INSERT INTO @events (id, until, at_ms, kind, resource, label, token, detail, actor)
 SELECT id, (SELECT max(id) FROM numbered), coalesce(at_ms, $3), kind, resource, label, token, detail,
    actor FROM numbered RETURNING id";

/// The first event has the number that was drawn for the change; each further one draws its own.
fn event_ask(events: &[NewEvent], first: u64, at: StoreTime) -> Ask {
    let one = |event: &NewEvent| {
        json!({
            "kind": event.kind.word(),
            "resource": event.resource.as_ref().map(|resource| resource.key()),
            "label": event.label,
            "token": event.token.map(|token| token.0 as i64),
            "detail": detail(&event.kind),
            "at_ms": event.at.map(|at| at.0),
            "actor": event.actor,
        })
    };
    if let [event] = events {
        let mut values = vec![Value::Integer(first as i64), Value::Integer(at.wall_ms)];
        values.extend(plain(&one(event), &EVENT_COLUMNS));
        return Ask::Query(EVENT_ONE, values);
    }
    Ask::Query(
        EVENTS,
        vec![
            rows(events.iter().map(one).collect()),
            Value::Integer(first as i64),
            Value::Integer(at.wall_ms),
        ],
    )
}

/// What the kind's name does not say.
fn detail(kind: &EventKind) -> Option<String> {
    let json = format::event_kind_to_json(kind);
    (json != format!("{{\"kind\":{:?}}}", kind.word())).then_some(json)
}

/// By what a grant is told of its wake: any user of the database can listen, and a grant is a
/// secret.
pub(super) fn wake_word(grant: GrantId) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(grant.to_string().as_bytes());
    digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}
