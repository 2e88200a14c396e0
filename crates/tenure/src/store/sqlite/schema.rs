//! The tables, and how older files become newer ones.

/// Marks a file as a tenure store: "TENR".
pub(super) const APPLICATION_ID: i32 = 0x5445_4e52;

/// The version that this library writes.
pub(super) const VERSION: i32 = MIGRATIONS.len() as i32;

/// Brings a file from version n to n + 1, for each n from 0. To change the schema, append a step;
/// never edit one that was released.
pub(super) const MIGRATIONS: [&str; 1] = [TO_VERSION_1];

/// Times are integers. `*_ms` without more are milliseconds on the machine's monotonic clock and
/// judge leases; `*_at_ms` are milliseconds since 1970 and are for showing only. The wall clock can be
/// set, so `answers.at_ms` is counted by the monotonic clock.
///
/// The newest event's id is the store's revision and the source of tokens and tickets, so the
/// newest event is never deleted. `tally.kept` counts events, so that trimming never has to.
/// `boot` has the boot under which times are counted, or nothing where no id of it could be read.
/// `ended_boots` has those before it, of which every process is dead.
///
/// Paths are found by `prefix`, see [`crate::store::path_prefixes`]; other resources have none.
///
/// `section` of a task is empty for none, so that indexes can lead with it. `tallies` counts tasks by
/// section and status, kept by triggers, so that they never have to be counted. `tasks_ended` has
/// finished tasks in the order in which they ended, so that those beyond what is kept are found without
/// looking at the rest. `claim_parts`, `tries` and `notes` are JSON. The last two are the last columns:
/// a long row spills into further pages, and lists of tasks read neither.
///
/// `answers` has what was answered to requests that may be repeated. Its rows, and those of `records`, are
/// mostly longer than a quarter of a page: in a table without numbers each would spill into a page of
/// its own. `records.number` rises with each new key; `deadline_ms` is none for a record that is kept
/// until it is dropped.
///
/// The two views let programs that know only task and section locks read them here. SQLite's own
/// `datetime()` compares correctly with their columns.
const TO_VERSION_1: &str = "
CREATE TABLE boot (id TEXT NOT NULL) STRICT;
CREATE TABLE ended_boots (number INTEGER PRIMARY KEY, id TEXT NOT NULL) STRICT;
CREATE TABLE tally (kept INTEGER NOT NULL) STRICT;
INSERT INTO tally VALUES (0);

CREATE TABLE holds (
    resource TEXT NOT NULL,
    grant_id TEXT NOT NULL,
    token INTEGER NOT NULL,
    mode TEXT NOT NULL,
    slot INTEGER,
    label TEXT NOT NULL,
    chosen INTEGER NOT NULL,
    agent INTEGER NOT NULL,
    evidence TEXT,
    operation TEXT,
    ttl_ms INTEGER NOT NULL,
    deadline_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    acquired_at_ms INTEGER NOT NULL,
    renewed_at_ms INTEGER NOT NULL,
    prefix TEXT,
    PRIMARY KEY (resource, grant_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX holds_prefix ON holds (prefix) WHERE prefix IS NOT NULL;

CREATE TABLE waits (
    resource TEXT NOT NULL,
    ticket INTEGER NOT NULL,
    grant_id TEXT NOT NULL,
    wants TEXT NOT NULL,
    label TEXT NOT NULL,
    chosen INTEGER NOT NULL,
    agent INTEGER NOT NULL,
    evidence TEXT,
    operation TEXT,
    keeps TEXT,
    ttl_ms INTEGER NOT NULL,
    deadline_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    waiting_since_at_ms INTEGER NOT NULL,
    mailbox TEXT NOT NULL,
    woken_ms INTEGER,
    prefix TEXT,
    PRIMARY KEY (resource, ticket)
) STRICT, WITHOUT ROWID;
CREATE INDEX waits_prefix ON waits (prefix, ticket) WHERE prefix IS NOT NULL;

CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    resource TEXT,
    label TEXT NOT NULL,
    token INTEGER,
    detail TEXT,
    actor TEXT
) STRICT;

CREATE TABLE tasks (
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    description TEXT,
    section TEXT NOT NULL,
    status TEXT NOT NULL,
    priority INTEGER NOT NULL,
    position INTEGER NOT NULL,
    age INTEGER NOT NULL,
    depends_on TEXT,
    unmet INTEGER NOT NULL,
    labels TEXT,
    files TEXT,
    payload TEXT,
    max_attempts INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    recoveries INTEGER NOT NULL,
    timeout_ms INTEGER,
    not_before_at_ms INTEGER,
    key TEXT,
    claim_by TEXT,
    claim_grant TEXT,
    claim_token INTEGER,
    result TEXT,
    error TEXT,
    feedback TEXT,
    created_at_ms INTEGER NOT NULL,
    claimed_at_ms INTEGER,
    started_at_ms INTEGER,
    finished_at_ms INTEGER,
    claim_parts TEXT,
    finished_by TEXT,
    finished_grant TEXT,
    finished_token INTEGER,
    tries TEXT,
    notes TEXT
) STRICT;
CREATE INDEX tasks_ready ON tasks (section, priority, position, age)
    WHERE status = 'pending' AND unmet = 0 AND not_before_at_ms IS NULL;
CREATE INDEX tasks_later ON tasks (not_before_at_ms)
    WHERE status = 'pending' AND unmet = 0 AND not_before_at_ms IS NOT NULL;
CREATE INDEX tasks_in_progress ON tasks (age) WHERE status = 'in_progress';
CREATE INDEX tasks_ended ON tasks (status, coalesce(finished_at_ms, created_at_ms), id)
    WHERE status IN ('completed', 'failed', 'cancelled', 'skipped');
CREATE UNIQUE INDEX tasks_key ON tasks (key) WHERE key IS NOT NULL;
CREATE INDEX tasks_title ON tasks (title);
CREATE UNIQUE INDEX tasks_age ON tasks (age);

CREATE TABLE dependencies (
    task TEXT NOT NULL,
    dependent TEXT NOT NULL,
    PRIMARY KEY (task, dependent)
) STRICT, WITHOUT ROWID;

CREATE TABLE sections (
    name TEXT PRIMARY KEY,
    max_runners INTEGER,
    priority INTEGER NOT NULL,
    position INTEGER NOT NULL,
    depends_on TEXT,
    paused INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tallies (
    section TEXT NOT NULL,
    status TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (section, status)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER tasks_added AFTER INSERT ON tasks BEGIN
    INSERT INTO tallies VALUES (new.section, new.status, 1)
        ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER tasks_removed AFTER DELETE ON tasks BEGIN
    UPDATE tallies SET count = count - 1 WHERE section = old.section AND status = old.status;
    DELETE FROM dependencies WHERE dependent = old.id;
END;
CREATE TRIGGER tasks_moved AFTER UPDATE ON tasks
    WHEN old.status <> new.status OR old.section <> new.section BEGIN
    UPDATE tallies SET count = count - 1 WHERE section = old.section AND status = old.status;
    INSERT INTO tallies VALUES (new.section, new.status, 1)
        ON CONFLICT DO UPDATE SET count = count + 1;
END;

CREATE TABLE answers (
    slot TEXT NOT NULL UNIQUE,
    number INTEGER NOT NULL,
    text TEXT NOT NULL,
    at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX answers_old ON answers (at_ms);

CREATE TABLE records (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    text TEXT NOT NULL,
    deadline_ms INTEGER,
    written_at_ms INTEGER NOT NULL,
    UNIQUE (kind, key)
) STRICT;
CREATE INDEX records_order ON records (kind, number);

CREATE VIEW task_locks AS SELECT
    substr(resource, 6) AS task_id,
    label AS runner_id,
    datetime(acquired_at_ms / 1000, 'unixepoch') AS acquired_at,
    datetime((renewed_at_ms + ttl_ms) / 1000, 'unixepoch') AS expires_at,
    datetime(renewed_at_ms / 1000, 'unixepoch') AS heartbeat_at
FROM holds WHERE resource >= 'task:' AND resource < 'task;';

CREATE VIEW section_locks AS SELECT
    substr(resource, 9) AS section_id,
    label AS runner_id,
    datetime(acquired_at_ms / 1000, 'unixepoch') AS acquired_at,
    datetime((renewed_at_ms + ttl_ms) / 1000, 'unixepoch') AS expires_at
FROM holds WHERE resource >= 'section:' AND resource < 'section;';
";
