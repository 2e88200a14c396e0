//! The tables, and how older files become newer ones.

/// Marks a file as a tenure store: "TENR".
pub(super) const APPLICATION_ID: i32 = 0x5445_4e52;

/// The version that this library writes.
pub(super) const VERSION: i32 = 9;

/// Brings a file from version n to n + 1, for each n from 0. To change the schema, append a step;
/// never edit one that was released.
pub(super) const MIGRATIONS: [&str; VERSION as usize] = [
    TO_VERSION_1,
    TO_VERSION_2,
    TO_VERSION_3,
    TO_VERSION_4,
    TO_VERSION_5,
    TO_VERSION_6,
    TO_VERSION_7,
    TO_VERSION_8,
    TO_VERSION_9,
];

/// Times are integers. `*_ms` without more are milliseconds on the machine's monotonic clock and
/// judge leases; `*_at_ms` are milliseconds since 1970 and are for showing only.
///
/// The newest event's id is the store's revision and the source of tokens and tickets, so the
/// newest event is never deleted. `tally.kept` counts events, so that trimming never has to.
///
/// The two views let programs that know only task and section locks read them here. SQLite's own
/// `datetime()` compares correctly with their columns.
const TO_VERSION_1: &str = "
CREATE TABLE boot (id TEXT NOT NULL) STRICT;
CREATE TABLE tally (kept INTEGER NOT NULL) STRICT;
INSERT INTO tally VALUES (0);

CREATE TABLE holds (
    resource TEXT NOT NULL,
    grant_id TEXT NOT NULL,
    token INTEGER NOT NULL,
    mode TEXT NOT NULL,
    label TEXT NOT NULL,
    chosen INTEGER NOT NULL,
    evidence TEXT,
    operation TEXT,
    ttl_ms INTEGER NOT NULL,
    deadline_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    acquired_at_ms INTEGER NOT NULL,
    renewed_at_ms INTEGER NOT NULL,
    PRIMARY KEY (resource, grant_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE waits (
    resource TEXT NOT NULL,
    ticket INTEGER NOT NULL,
    grant_id TEXT NOT NULL,
    wants TEXT NOT NULL,
    label TEXT NOT NULL,
    chosen INTEGER NOT NULL,
    evidence TEXT,
    operation TEXT,
    keeps TEXT,
    ttl_ms INTEGER NOT NULL,
    deadline_ms INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    waiting_since_at_ms INTEGER NOT NULL,
    mailbox TEXT NOT NULL,
    PRIMARY KEY (resource, ticket)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL,
    resource TEXT,
    label TEXT NOT NULL,
    token INTEGER,
    detail TEXT
) STRICT;

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

/// Tasks. `section` is empty for none, so that indexes can lead with it. `tallies` counts tasks by
/// section and status, kept by triggers, so that they never have to be counted.
const TO_VERSION_2: &str = "
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
    finished_at_ms INTEGER
) STRICT;
CREATE INDEX tasks_ready ON tasks (section, priority, position, age)
    WHERE status = 'pending' AND unmet = 0 AND not_before_at_ms IS NULL;
CREATE INDEX tasks_later ON tasks (not_before_at_ms)
    WHERE status = 'pending' AND unmet = 0 AND not_before_at_ms IS NOT NULL;
CREATE INDEX tasks_in_progress ON tasks (age) WHERE status = 'in_progress';
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
";

/// Paths are found by `prefix`, see [`crate::store::path_prefixes`]; other resources have none. The empty
/// one, which is looked at with every path, is right for any path: those from before have it, and
/// those written by older programs that had the file open already.
const TO_VERSION_3: &str = "
ALTER TABLE holds ADD COLUMN prefix TEXT DEFAULT '';
ALTER TABLE waits ADD COLUMN prefix TEXT DEFAULT '';
UPDATE holds SET prefix = NULL WHERE resource < 'path:' OR resource >= 'path;';
UPDATE waits SET prefix = NULL WHERE resource < 'path:' OR resource >= 'path;';
CREATE INDEX holds_prefix ON holds (prefix) WHERE prefix IS NOT NULL;
CREATE INDEX waits_prefix ON waits (prefix, ticket) WHERE prefix IS NOT NULL;
";

/// What was answered to requests that may be repeated.
const TO_VERSION_4: &str = "
CREATE TABLE answers (
    slot TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    text TEXT NOT NULL,
    at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX answers_old ON answers (at_ms);
";

/// The same, with rows that fit into pages: rows of a table without numbers that are longer than a
/// quarter of a page spill into pages of their own, and most answers are.
const TO_VERSION_5: &str = "
ALTER TABLE answers RENAME TO answers_before;
DROP INDEX answers_old;
CREATE TABLE answers (
    slot TEXT NOT NULL UNIQUE,
    number INTEGER NOT NULL,
    text TEXT NOT NULL,
    at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX answers_old ON answers (at_ms);
INSERT INTO answers SELECT slot, number, text, at_ms FROM answers_before;
DROP TABLE answers_before;
";

/// What a claim took beside the task, as JSON, who finished a task under which claim, which slot a
/// hold has, where its resource is held by slots, and when a waiter was woken.
///
/// `boot` has the boot under which times are counted, or nothing where no id of it could be read.
/// `ended_boots` has those before it, of which every process is dead. `answers.at_ms` is counted by
/// the machine's monotonic clock from here on, since the wall clock can be set.
const TO_VERSION_6: &str = "
ALTER TABLE tasks ADD COLUMN claim_parts TEXT;
ALTER TABLE tasks ADD COLUMN finished_by TEXT;
ALTER TABLE tasks ADD COLUMN finished_grant TEXT;
ALTER TABLE tasks ADD COLUMN finished_token INTEGER;
ALTER TABLE holds ADD COLUMN slot INTEGER;
CREATE TABLE ended_boots (number INTEGER PRIMARY KEY, id TEXT NOT NULL) STRICT;
ALTER TABLE waits ADD COLUMN woken_ms INTEGER;
";

/// How the claims of a task ended and what was noted about it, as JSON. Both are the last columns:
/// a long row spills into further pages, and lists of tasks read neither.
const TO_VERSION_7: &str = "
ALTER TABLE tasks ADD COLUMN tries TEXT;
ALTER TABLE tasks ADD COLUMN notes TEXT;
";

/// Whether a hold or a place is an agent's, which shares it with all programs that act for it.
const TO_VERSION_8: &str = "
ALTER TABLE holds ADD COLUMN agent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE waits ADD COLUMN agent INTEGER NOT NULL DEFAULT 0;
";

/// Through which token of a server a change came, and small records. `records.number` rises with each new key; `deadline_ms` is none for a record that is kept
/// until it is dropped.
///
/// Also an index of finished tasks in the order in which they ended, so that those beyond what is kept are
/// found without looking at the rest. Tasks that are not at their end, which claims look for, are not in it.
const TO_VERSION_9: &str = "
ALTER TABLE events ADD COLUMN actor TEXT;
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
CREATE INDEX tasks_ended ON tasks (status, coalesce(finished_at_ms, created_at_ms), id)
    WHERE status IN ('completed', 'failed', 'cancelled', 'skipped');
";
