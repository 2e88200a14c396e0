//! The tables, and how older files become newer ones.

/// Marks a file as a tenure store: "TENR".
pub(super) const APPLICATION_ID: i32 = 0x5445_4e52;

/// The version that this library writes.
pub(super) const VERSION: i32 = 1;

/// Brings a file from version n to n + 1, for each n from 0. To change the schema, append a step;
/// never edit one that was released.
pub(super) const MIGRATIONS: [&str; VERSION as usize] = [TO_VERSION_1];

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
