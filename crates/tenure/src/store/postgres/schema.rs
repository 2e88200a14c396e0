//! The tables: how they are made, brought up to date, and what a failover changes in them.

use super::error::PgError;
use super::limits::BEGIN_FIRST_LOOK;
use super::longest::FLOOR_MS;
use super::session::{Ask, Session};

/// The version of the tables that this library writes.
pub(super) const VERSION: i32 = MIGRATIONS.len() as i32;

/// When the server changed, numbers jump to a multiple of 2 to the power of this, past the next one: further than
/// the old server can have drawn numbers that did not reach this one, which at 10,000 a second is 79 days of them.
/// Below the largest number there is room for 65,000 failovers.
const FAILOVER_JUMP_BITS: u32 = 36;

/// Brings the tables from version n to n + 1. To change them, append a step; never edit one that was
/// released.
const MIGRATIONS: [&str; 1] = [TO_VERSION_1];

/// Times are milliseconds since 1970 by the server's clock. Texts that are compared by ranges have
/// the collation of bytes. `lock_keys` are the advisory locks that a change of the row needs, see
/// `locks`; `until` is the number of the last event of the same change, see `follow`; `near_at` and
/// `near_below` name the paths that can overlap a task's files.
///
/// `number` of a record rises with each new key; its `deadline_ms` is none if it is kept until it is dropped.
/// `tasks_ended` has finished tasks in the order in which they ended, so that those beyond what is kept are
/// found without looking at the rest. Tasks that are not at their end, which claims look for, are not in it.
///
/// `longest_ms` is the longest lease that may be granted now, and `withhold_ms` says for how long nothing is granted
/// after a failover; both begin with $FLOOR, see `longest`.
///
/// `check_token` and the views are for other programs, see `docs/postgres.md`; a grant is a secret and in none of
/// them. A row that was checked stays until the transaction of the check ends, since its removal waits for the lock;
/// a renewal does not.
///
/// Holds and places are few and change all the time: pages half empty keep updates in their page,
/// and an eager vacuum keeps the tables small. History lies apart.
const TO_VERSION_1: &str = "
CREATE TABLE @meta (
    version int NOT NULL,
    store_id text NOT NULL,
    timeline text NOT NULL,
    system_identifier text NOT NULL,
    started timestamptz NOT NULL,
    withhold_until_ms bigint NOT NULL DEFAULT 0,
    longest_ms bigint NOT NULL,
    withhold_ms bigint NOT NULL
);
CREATE SEQUENCE @numbers MINVALUE 1 MAXVALUE 9007199254740991 CACHE 1;
SELECT setval('@numbers', 1);

CREATE TABLE @holds (
    resource text COLLATE \"C\" NOT NULL,
    grant_id text COLLATE \"C\" NOT NULL,
    token bigint NOT NULL,
    mode text NOT NULL,
    label text NOT NULL,
    chosen boolean NOT NULL,
    agent boolean NOT NULL,
    evidence text,
    operation text,
    ttl_ms bigint NOT NULL,
    deadline_ms bigint NOT NULL,
    since_ms bigint NOT NULL,
    acquired_at_ms bigint NOT NULL,
    renewed_at_ms bigint NOT NULL,
    slot bigint,
    prefix text COLLATE \"C\",
    lock_keys text[] NOT NULL,
    PRIMARY KEY (resource, grant_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX $PREFIXholds_prefix ON @holds (prefix) WHERE prefix IS NOT NULL;
CREATE INDEX $PREFIXholds_grant ON @holds (grant_id);

CREATE TABLE @waits (
    resource text COLLATE \"C\" NOT NULL,
    ticket bigint NOT NULL,
    grant_id text COLLATE \"C\" NOT NULL,
    wants text NOT NULL,
    label text NOT NULL,
    chosen boolean NOT NULL,
    agent boolean NOT NULL,
    evidence text,
    operation text,
    keeps text,
    ttl_ms bigint NOT NULL,
    deadline_ms bigint NOT NULL,
    since_ms bigint NOT NULL,
    waiting_since_at_ms bigint NOT NULL,
    mailbox text NOT NULL,
    woken_ms bigint,
    wakes bigint NOT NULL,
    prefix text COLLATE \"C\",
    PRIMARY KEY (resource, ticket, grant_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX $PREFIXwaits_prefix ON @waits (prefix) WHERE prefix IS NOT NULL;
CREATE INDEX $PREFIXwaits_grant ON @waits (grant_id);

CREATE TABLE @tasks (
    id text COLLATE \"C\" PRIMARY KEY,
    title text NOT NULL,
    description text,
    section text COLLATE \"C\" NOT NULL,
    status text NOT NULL,
    priority int NOT NULL,
    position bigint NOT NULL,
    age bigint NOT NULL,
    depends_on text[] NOT NULL,
    unmet bigint NOT NULL,
    labels text[] NOT NULL,
    files text[] NOT NULL,
    payload text,
    max_attempts bigint NOT NULL,
    attempts bigint NOT NULL,
    recoveries bigint NOT NULL,
    timeout_ms bigint,
    not_before_at_ms bigint,
    key text COLLATE \"C\",
    claim_by text,
    claim_grant text COLLATE \"C\",
    claim_token bigint,
    claim_parts text,
    result text,
    error text,
    feedback text,
    created_at_ms bigint NOT NULL,
    claimed_at_ms bigint,
    started_at_ms bigint,
    finished_at_ms bigint,
    finished_by text,
    finished_grant text,
    finished_token bigint,
    tries text,
    notes text,
    lock_keys text[] NOT NULL,
    near_at text[] NOT NULL,
    near_below text[] NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX $PREFIXtasks_ready ON @tasks (section, priority, position, age)
    WHERE status = 'pending' AND unmet = 0 AND not_before_at_ms IS NULL;
CREATE INDEX $PREFIXtasks_later ON @tasks (not_before_at_ms)
    WHERE status = 'pending' AND unmet = 0 AND not_before_at_ms IS NOT NULL;
CREATE INDEX $PREFIXtasks_in_progress ON @tasks (section) WHERE status = 'in_progress';
CREATE INDEX $PREFIXtasks_claim ON @tasks (claim_grant) WHERE status = 'in_progress';
CREATE INDEX $PREFIXtasks_open ON @tasks (section)
    WHERE status NOT IN ('completed', 'failed', 'cancelled', 'skipped');
CREATE UNIQUE INDEX $PREFIXtasks_key ON @tasks (key) WHERE key IS NOT NULL;
CREATE INDEX $PREFIXtasks_ended ON @tasks (status, coalesce(finished_at_ms, created_at_ms), id)
    WHERE status IN ('completed', 'failed', 'cancelled', 'skipped');
CREATE INDEX $PREFIXtasks_title ON @tasks (title);
CREATE INDEX $PREFIXtasks_age ON @tasks (age);

CREATE TABLE @dependencies (
    task text COLLATE \"C\" NOT NULL,
    dependent text COLLATE \"C\" NOT NULL,
    PRIMARY KEY (task, dependent)
);
CREATE INDEX $PREFIXdependencies_dependent ON @dependencies (dependent);

CREATE TABLE @sections (
    name text COLLATE \"C\" PRIMARY KEY,
    max_runners bigint,
    priority int NOT NULL,
    position bigint NOT NULL,
    depends_on text[] NOT NULL,
    paused boolean NOT NULL
);

CREATE TABLE @tally (
    section text COLLATE \"C\" NOT NULL,
    status text NOT NULL,
    delta bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);

CREATE TABLE @events (
    id bigint PRIMARY KEY,
    until bigint NOT NULL,
    at_ms bigint NOT NULL,
    kind text NOT NULL,
    resource text,
    label text NOT NULL,
    token bigint,
    detail text,
    actor text
);

CREATE TABLE @answers (
    slot text COLLATE \"C\" PRIMARY KEY,
    number bigint NOT NULL,
    text text NOT NULL,
    at_ms bigint NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX $PREFIXanswers_old ON @answers (at_ms);

CREATE TABLE @records (
    kind text COLLATE \"C\" NOT NULL,
    key text COLLATE \"C\" NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    text text NOT NULL,
    deadline_ms bigint,
    written_at_ms bigint NOT NULL,
    PRIMARY KEY (kind, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX $PREFIXrecords_order ON @records (kind, number);

CREATE FUNCTION @check_token(resource text, token bigint) RETURNS void
LANGUAGE plpgsql SECURITY INVOKER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    PERFORM FROM @holds AS h WHERE h.resource = $1 AND h.token = $2
        AND h.deadline_ms > floor(extract(epoch FROM clock_timestamp()) * 1000) FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION '% is not held with token %', $1, $2
            USING ERRCODE = 'TN001', HINT = 'The lease is over: stop, and change nothing.';
    END IF;
END $function$;

CREATE VIEW @task_list AS SELECT id, title, description, nullif(section, '') AS section, status, priority, labels,
    files, depends_on, attempts, claim_by AS worker, claim_token AS token, result, error,
    to_timestamp(created_at_ms / 1000.0) AS created_at, to_timestamp(claimed_at_ms / 1000.0) AS claimed_at,
    to_timestamp(finished_at_ms / 1000.0) AS finished_at
 FROM @tasks;

CREATE VIEW @hold_list AS SELECT resource, token, mode, label, operation,
    to_timestamp(acquired_at_ms / 1000.0) AS acquired_at, to_timestamp(deadline_ms / 1000.0) AS expires_at
 FROM @holds WHERE deadline_ms > floor(extract(epoch FROM clock_timestamp()) * 1000);

INSERT INTO @meta (version, store_id, timeline, system_identifier, started, longest_ms, withhold_ms)
    VALUES (1, gen_random_uuid()::text, $TIMELINE, $SYSTEM, pg_postmaster_start_time(), $FLOOR, $FLOOR);
";

/// The first eight digits of the name of the file to which the server writes: they change whenever a
/// standby becomes the primary, or the server is restored with its log.
const TIMELINE: &str = "substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)";

/// Which cluster of databases this is: a standby has the same, and another one into which tables are restored does
/// not.
const SYSTEM: &str = "(SELECT system_identifier::text FROM pg_control_system())";

/// What the tables say of themselves.
pub(super) struct Found {
    pub(super) store_id: String,
    pub(super) version: i32,
    /// Whether the server is the one that was used last.
    same_server: bool,
    /// Whether it was not started anew since.
    same_start: bool,
    /// The mark of the process that made this server connection.
    pub(super) process: Option<String>,
    /// Whether the database reports commits before they are on disk, and on that of a synchronous standby,
    /// unless told otherwise.
    pub(super) commits_early: bool,
    /// Whether the tables were made just now.
    pub(super) made: bool,
}

/// Reads it.
pub(super) async fn look(session: &Session) -> Result<Found, PgError> {
    let asks = [
        Ask::Begin(BEGIN_FIRST_LOOK),
        Ask::Query(
            "SELECT version, store_id,
                timeline = substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)
                    AND system_identifier = (SELECT system_identifier::text FROM pg_control_system()),
                started = pg_postmaster_start_time(),
                current_setting('tenure.process', true),
                coalesce(current_setting('tenure.default_commit', true),
                    current_setting('synchronous_commit')) NOT IN ('on', 'remote_apply')
             FROM @meta",
            vec![],
        ),
        Ask::Run("COMMIT"),
    ];
    let mut answers = session.flight(&asks).await.into_iter();
    answers.next().unwrap_or(Err(PgError::Replaced))?;
    let rows = answers.next().unwrap_or(Err(PgError::Replaced))?;
    let row = rows.first().ok_or(PgError::Replaced)?;
    Ok(Found {
        version: row.get(0),
        store_id: row.get(1),
        same_server: row.get(2),
        same_start: row.get(3),
        process: row.get(4),
        commits_early: row.get(5),
        made: false,
    })
}

/// Makes the tables if a look did not find them and `may_create`, brings older ones up to date, and refuses
/// newer ones.
pub(super) async fn ensure(
    session: &Session,
    looked: Result<Found, PgError>,
    may_create: bool,
) -> Result<Found, PgError> {
    let found = match looked {
        Ok(found) => found,
        Err(error) if error.is_missing_table() && may_create => {
            let made = migrate(session, 0).await?;
            Found { made, ..look(session).await? }
        }
        Err(error) if error.is_missing_table() => return Err(PgError::Replaced),
        Err(error) => return Err(error),
    };
    if found.version > VERSION {
        return Err(PgError::Newer(found.version, VERSION));
    }
    if found.version < VERSION {
        migrate(session, found.version).await?;
        return look(session).await;
    }
    if !found.same_server {
        note_lost_changes(session, &Lost::ByOtherServer).await?;
    } else if !found.same_start {
        note_start(session).await?;
    }
    Ok(found)
}

/// Brings the tables up to date under a lock, so that of several processes one does it. Says whether they were
/// made just now.
async fn migrate(session: &Session, from: i32) -> Result<bool, PgError> {
    session.set_in_transaction(true);
    let begun = session
        .run(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL search_path = pg_catalog;
             SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock($SPACE, 1)",
        )
        .await;
    let done = match begun {
        Ok(()) => steps(session, from).await,
        Err(error) => Err(error),
    };
    let ended = match &done {
        Ok(_) => session.run("COMMIT").await,
        Err(_) => session.run("ROLLBACK").await,
    };
    session.set_in_transaction(ended.is_err());
    let made = done?;
    ended?;
    Ok(made)
}

async fn steps(session: &Session, from: i32) -> Result<bool, PgError> {
    // Another process may have done it meanwhile.
    let there = session.text("SELECT to_regclass('@meta')").await?;
    let version = match there {
        Some(_) => {
            let version = session.text("SELECT version FROM @meta").await?;
            version.and_then(|text| text.parse().ok()).unwrap_or(0)
        }
        None => 0,
    };
    if version > from || (version == from && from == VERSION) {
        return Ok(false);
    }
    if version == 0 {
        // Where the schema exists, the right to create schemas is not needed.
        let exists = session.text("SELECT to_regnamespace('$SCHEMA')").await?;
        if exists.is_none() {
            session.run("CREATE SCHEMA IF NOT EXISTS $SCHEMA").await?;
        }
    }
    for step in MIGRATIONS.iter().skip(version as usize) {
        let step = step
            .replace("$TIMELINE", TIMELINE)
            .replace("$SYSTEM", SYSTEM)
            .replace("$FLOOR", &FLOOR_MS.to_string());
        session.run_text(&step).await?;
    }
    session.run_text(&format!("UPDATE @meta SET version = {VERSION}")).await?;
    Ok(version == 0)
}

/// Why changes that were reported may be missing in these tables.
pub(super) enum Lost {
    /// Another server goes on where the last one ended.
    ByOtherServer,
    /// This process has seen this number, and the next one is not higher.
    Rewound { highest: u64 },
    /// A person says so.
    AsTold,
}

impl Lost {
    /// The condition in SQL, over `@meta` and `@numbers`: another process may have noted it already.
    fn condition(&self) -> String {
        match self {
            Lost::ByOtherServer => {
                format!("timeline <> {TIMELINE} OR system_identifier <> {SYSTEM}")
            }
            Lost::Rewound { highest } => format!("last_value <= {highest}"),
            Lost::AsTold => "true".to_owned(),
        }
    }
}

/// Makes numbers jump, and withholds grants until every lease that the tables may lack has ended.
pub(super) async fn note_lost_changes(session: &Session, lost: &Lost) -> Result<(), PgError> {
    session.set_in_transaction(true);
    let condition = lost.condition();
    let now_ms = "floor(extract(epoch FROM clock_timestamp()) * 1000)";
    let noted = session
        .run_text(&format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL search_path = pg_catalog;
             SET LOCAL synchronous_commit = on;
             SELECT pg_advisory_xact_lock($SPACE, 0);
             SELECT set_config('tenure.lost', ({condition})::text, true) FROM @meta, @numbers;
             SELECT setval('@numbers', ((last_value >> {FAILOVER_JUMP_BITS}) + 2) << {FAILOVER_JUMP_BITS})
                FROM @numbers WHERE current_setting('tenure.lost')::boolean;
             INSERT INTO @events (id, until, at_ms, kind, label)
                SELECT nextval('@numbers'), currval('@numbers'), {now_ms}, 'rebooted', ''
                WHERE current_setting('tenure.lost')::boolean;
             UPDATE @meta SET withhold_until_ms = {now_ms} + withhold_ms
                WHERE current_setting('tenure.lost')::boolean;
             UPDATE @meta SET timeline = {TIMELINE}, system_identifier = {SYSTEM},
                started = pg_postmaster_start_time();
             COMMIT"
        ))
        .await;
    if noted.is_err() {
        let _ = session.run("ROLLBACK").await;
    }
    session.set_in_transaction(false);
    noted
}

/// Notes that the server that was used last was started anew. It has all that it reported.
async fn note_start(session: &Session) -> Result<(), PgError> {
    session
        .run_text(&format!(
            "UPDATE @meta SET started = pg_postmaster_start_time()
             WHERE timeline = {TIMELINE} AND system_identifier = {SYSTEM}
                AND started <> pg_postmaster_start_time()"
        ))
        .await
}
