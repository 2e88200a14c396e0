//! Creating, opening and bringing up to date the database file.

use super::SqliteOptions;
use super::error::{self, Stage};
use super::log;
use super::read::RowError;
use super::schema::{APPLICATION_ID, MIGRATIONS, VERSION};
use super::session::Session;
use super::write::{self, COUNT_EVERY};
use crate::platform::access;
use crate::store::boot::{Reboot, reboot};
use crate::store::ipc::WriterQueue;
use crate::store::store_time::StoreTime;
use crate::store::{ENDED_BOOTS_MAX, StoreError};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure_core::{EventKind, NewEvent};

/// How long SQLite itself retries. The writer_queue keeps tenure's own writers apart, so this is only
/// for programs that write without queueing, and for recovery after a crash.
pub(super) const BUSY_PATIENCE: Duration = Duration::from_secs(20);

/// How far tokens jump when the machine was rebooted: further than changes could have been lost
/// that were reported but not yet on disk. A million changes fill gigabytes of log, which SQLite
/// would have synced long before.
const JUMP: u64 = 1024 * COUNT_EVERY;

/// The page size of new databases. Every change writes one page of records and one of events to the
/// log, whole: half of SQLite's usual size is half as much to copy, sum up and sync. Still smaller,
/// and records would spill over into pages of their own.
pub(super) const PAGE_BYTES: u32 = 2048;

/// The folder beside the database for what is not in it.
pub(super) fn side_folder(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".side");
    path.with_file_name(name)
}

/// The file itself, where the path leads to it by a link: all ways to it must share one side
/// folder.
pub(super) fn resolve(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Creates the database whole if there is none.
pub(super) fn ensure_there(path: &Path) -> Result<(), StoreError> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => {
            Err(error::corrupt(path, "there is a folder where the database should be"))
        }
        // A database appears whole (see `create`), so an empty file was emptied later, and
        // with it the tokens that must never repeat.
        Ok(meta) if meta.len() == 0 => Err(error::corrupt(path, "the file is empty")),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => create(path),
        Err(error) => Err(cannot_look(path, &error)),
    }
}

pub(super) fn cannot_look(path: &Path, error: &std::io::Error) -> StoreError {
    error::from_io(path, "its file cannot be looked at", error)
}

/// Opens the database, which is there. Beside a file that is not a store of ours nothing is made.
pub(super) fn open(path: &Path, options: &SqliteOptions) -> Result<Connection, StoreError> {
    let connection = connect(path, options.checkpoint_pages)?;
    recognise(path, &connection)?;
    if !options.look_only {
        make_side_folder(path)?;
    }
    Ok(connection)
}

fn make_side_folder(path: &Path) -> Result<(), StoreError> {
    access::make_folders(&side_folder(path).join("wake"))
        .map_err(|error| error::from_io(path, "its side folder cannot be made", &error))
}

/// Refuses files that are not ours or too new.
fn recognise(path: &Path, connection: &Connection) -> Result<(), StoreError> {
    let pragma = |name: &str| -> Result<i32, StoreError> {
        connection
            .pragma_query_value(None, name, |row| row.get(0))
            .map_err(|error| error::from_sqlite(path, Stage::Before, &error))
    };
    if pragma("application_id")? != APPLICATION_ID {
        return Err(error::corrupt(path, "the file is a SQLite database but not a tenure store"));
    }
    let version = pragma("user_version")?;
    if version > VERSION {
        return Err(error::too_new(path, version));
    }
    Ok(())
}

/// Opens one more connection to a database that exists.
pub(super) fn connect(path: &Path, checkpoint_pages: u32) -> Result<Connection, StoreError> {
    let sqlite = |error: rusqlite::Error| error::from_sqlite(path, Stage::Before, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(sqlite)?;
    configure(&connection, checkpoint_pages).map_err(sqlite)?;
    Ok(connection)
}

fn configure(connection: &Connection, checkpoint_pages: u32) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_PATIENCE)?;
    // A one-shot command must not pay for a checkpoint just because it is the last to leave.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Plans must not depend on bound values: SQLite would prepare statements again and again.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(48);
    // What a statement may have to undo stays in memory, or a large batch would write it to a file.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "journal_size_limit", log::KEPT_BYTES)?;
    connection.pragma_update(None, "wal_autocheckpoint", checkpoint_pages)
}

/// Makes the database under another name and links it into place, so that it appears whole. Of two
/// processes that race, the second finds the first one's.
fn create(path: &Path) -> Result<(), StoreError> {
    let sqlite = |error: rusqlite::Error| error::from_sqlite(path, Stage::Before, &error);
    refuse_stray_log(path)?;
    make_side_folder(path)?;
    let draft = side_folder(path).join(format!("draft-{}", uuid::Uuid::new_v4().simple()));
    // SQLite gives the log and the shared memory beside a database the mode of the database.
    let file = access::create_new(&draft);
    drop(file.map_err(|error| error::from_io(path, "its file cannot be made", &error))?);
    let made = (|| {
        let mut connection = Connection::open(&draft)?;
        // Before anything is written: afterwards it is settled.
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        migrate(&mut connection, &MIGRATIONS, 0)?;
        // Only now: what goes into a log reaches the file when it is closed, and if that fails,
        // as on a full disk, no error is reported.
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.close().map_err(|(_, error)| error)
    })();
    let linked = made.map_err(sqlite).and_then(|()| match std::fs::hard_link(&draft, path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(error::from_io(path, "its file cannot be made", &error))
        }
        _ => Ok(()),
    });
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let mut name = draft.clone().into_os_string();
        name.push(suffix);
        let _ = std::fs::remove_file(name);
    }
    linked
}

/// SQLite would play the log of a database that was taken away into the new one.
fn refuse_stray_log(path: &Path) -> Result<(), StoreError> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let has_log = std::fs::metadata(&log).is_ok_and(|meta| meta.len() > 0);
    // In this order: a process that is creating the store makes the database before its log.
    if has_log && !path.exists() {
        return Err(error::corrupt(path, "the file is gone but its log, NAME-wal, is there"));
    }
    Ok(())
}

/// Takes the steps that a database of version `from` lacks, all or none.
fn migrate(connection: &mut Connection, steps: &[&str], from: i32) -> rusqlite::Result<()> {
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    for step in steps.iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", steps.len() as i32)?;
    transaction.commit()
}

/// Brings older files up to date, and moves the tokens ahead when the machine was rebooted since the
/// last use. Returns the boots of this machine that have ended. A look changes nothing, and sees leases
/// as they would begin anew.
pub(super) fn bring_up_to_date(
    path: &Path,
    connection: &mut Connection,
    writer_queue: &WriterQueue,
    options: &SqliteOptions,
) -> Result<Vec<String>, StoreError> {
    let clock = &*options.clock;
    let sqlite = |error: RowError| match error {
        RowError::Sqlite(error) => error::from_sqlite(path, Stage::Before, &error),
        RowError::Format(error) => error::from_format(path, &error),
        RowError::Newer(version) => error::too_new(path, version),
    };
    let version = |connection: &Connection| -> Result<i32, RowError> {
        Ok(connection.pragma_query_value(None, "user_version", |row| row.get(0))?)
    };
    let boot = clock.boot();
    let is_current = version(connection).map_err(sqlite)? == VERSION;
    if !is_current && options.look_only {
        return Err(StoreError::Unsupported {
            what: format!("the store at {} is of an older version", error::store_name(path)),
            instead:
                "`tenure doctor` brings it up to date, as all commands do that change something."
                    .to_owned(),
        });
    }
    let judged = is_current.then(|| judge_reboot(connection, &boot, StoreTime::of(clock)));
    let judged = judged.transpose().map_err(sqlite)?;
    if judged == Some(Reboot::None) || options.look_only {
        let mut ended = ended_boots(connection).map_err(sqlite)?;
        if judged == Some(Reboot::Happened) {
            ended.extend(stored_boot(connection).map_err(|error| sqlite(error.into()))?);
        }
        return Ok(ended);
    }
    let io = |error: std::io::Error| error::from_io(path, "its queue cannot be entered", &error);
    writer_queue.enter().map_err(io)?;
    let result = (|| {
        // Another process may have done it while this one queued.
        let from = version(connection)?;
        let at = StoreTime::of(clock);
        if from < VERSION {
            migrate(connection, &MIGRATIONS, from)?;
        }
        match judge_reboot(connection, &boot, at)? {
            Reboot::None => {}
            Reboot::Named => name_boot(connection, &boot)?,
            Reboot::Happened => begin_boot(connection, &boot, at)?,
        }
        ended_boots(connection)
    })();
    writer_queue.leave().map_err(io)?;
    result.map_err(sqlite)
}

fn judge_reboot(connection: &Connection, boot: &str, at: StoreTime) -> Result<Reboot, RowError> {
    let stored = stored_boot(connection)?.unwrap_or_default();
    reboot(&stored, boot, || Ok(newest_time_ms(connection)?), at)
}

/// The newest time of a hold or a place in a queue.
fn newest_time_ms(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row(
        "SELECT max(coalesce((SELECT max(max(since_ms, deadline_ms - ttl_ms)) FROM holds), 0),
                    coalesce((SELECT max(max(since_ms, deadline_ms - ttl_ms)) FROM waits), 0))",
        [],
        |row| row.get(0),
    )
}

fn stored_boot(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT id FROM boot", [], |row| row.get(0)).optional()
}

fn ended_boots(connection: &Connection) -> Result<Vec<String>, RowError> {
    let mut statement = connection.prepare("SELECT id FROM ended_boots ORDER BY number")?;
    let ids = statement.query_map([], |row| row.get(0))?;
    Ok(ids.collect::<rusqlite::Result<Vec<String>>>()?)
}

/// Notes the id of this boot. It must be on disk before any number is given out: only by it the
/// next boot is known to be another one.
fn name_boot(connection: &mut Connection, boot: &str) -> Result<(), RowError> {
    connection.pragma_update(None, "synchronous", "FULL")?;
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    transaction.execute("DELETE FROM boot", [])?;
    transaction.execute("INSERT INTO boot VALUES (?1)", [boot])?;
    transaction.commit()?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(())
}

/// Changes of the last boot may have been reported and yet not have reached the disk, so numbers
/// beyond the newest one on disk may have been seen. The jump itself must be on disk before any
/// number after it is given out, or the next power loss would make it repeat.
///
/// Leases that no process is tied to begin anew: the clock that judged them is gone.
fn begin_boot(connection: &mut Connection, boot: &str, at: StoreTime) -> Result<(), RowError> {
    connection.pragma_update(None, "synchronous", "FULL")?;
    let transaction =
        connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let session = Session::new(&transaction);
    let newest = session.newest()?;
    let stored = stored_boot(&transaction)?;
    transaction.execute("DELETE FROM boot", [])?;
    if !boot.is_empty() {
        transaction.execute("INSERT INTO boot VALUES (?1)", [boot])?;
    }
    if let Some(ended) = stored.filter(|id| !id.is_empty()) {
        transaction.execute("INSERT INTO ended_boots (id) VALUES (?1)", [ended])?;
        transaction.execute(
            "DELETE FROM ended_boots WHERE number <= (SELECT max(number) FROM ended_boots) - ?1",
            [ENDED_BOOTS_MAX as i64],
        )?;
    }
    for table in ["holds", "waits"] {
        transaction.execute(
            &format!("UPDATE {table} SET deadline_ms = ?1 + ttl_ms, since_ms = ?1"),
            [at.begin_ms],
        )?;
    }
    transaction.execute("UPDATE answers SET at_ms = ?1", [at.now_ms])?;
    // The programs that kept these alive ended with the boot.
    transaction.execute("DELETE FROM records WHERE deadline_ms IS NOT NULL", [])?;
    let event = NewEvent::new(None, "", None, EventKind::Rebooted);
    write::insert_event(&session, newest + JUMP, &event, at)?;
    write::count_one_more(&session)?;
    drop(session);
    transaction.commit()?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No version but the first exists yet: the next one is made up.
    #[test]
    fn an_older_database_takes_only_the_steps_that_it_lacks_all_or_none() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, &MIGRATIONS, 0).unwrap();
        let version = |connection: &Connection| -> i32 {
            connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
        };
        assert_eq!(version(&connection), VERSION);
        let failing = [MIGRATIONS[0], "CREATE TABLE next (a); CREATE TABLE next (a);"];
        migrate(&mut connection, &failing, VERSION).unwrap_err();
        assert_eq!(version(&connection), VERSION);
        let steps = [MIGRATIONS[0], "CREATE TABLE next (a);"];
        migrate(&mut connection, &steps, VERSION).unwrap();
        assert_eq!(version(&connection), VERSION + 1);
        connection.execute("INSERT INTO next VALUES (1)", []).unwrap();
    }
}
