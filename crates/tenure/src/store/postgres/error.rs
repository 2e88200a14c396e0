//! What PostgreSQL's errors mean to callers.

use crate::store::StoreError;
use crate::store::format::columns::FormatError;
use std::error::Error as _;
use std::time::Duration;
use tokio_postgres::error::SqlState;

/// Something that went wrong on the way to the database, or in it.
#[derive(Debug, thiserror::Error)]
pub(super) enum PgError {
    #[error("{}", said(.0))]
    Postgres(#[from] tokio_postgres::Error),
    #[error(transparent)]
    Format(#[from] FormatError),
    /// No answer came in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// A host does not answer while a connection is made: the server, or what is between, is silent.
    #[error("{0} did not answer within {1:?} (connect_timeout)")]
    Silent(String, Duration),
    /// A host has no address.
    #[error("{0}: {1}")]
    Address(String, std::io::Error),
    /// All connections of the pool are in use.
    #[error("all {0} connections of this process are in use")]
    Exhausted(usize),
    /// The tables were removed, or made anew, since this store was opened.
    #[error("its tables were removed or replaced")]
    Replaced,
    /// A newer tenure made or changed the tables.
    #[error("its tables are of version {0}, and this tenure knows versions up to {1}")]
    Newer(i32, i32),
    /// The connection cannot be made for a reason that trying again does not change.
    #[error("{what}")]
    Settings { what: String, hint: String },
    /// The server was started at another time than the one that was used last: it may be another one.
    #[error("the server was started anew, or another one took over")]
    OtherStart,
    /// After a failover nothing is granted until leases that this server may not know have ended.
    #[error("nothing is granted for the next {0:?}")]
    Withheld(Duration),
    #[error("the runtime of connections cannot be started: {0}")]
    Runtime(#[from] std::io::Error),
}

/// How errors begin or go on that are made on this side of a connection, and what to do then.
const REFUSED_CONNECTIONS: [(&str, &str); 3] = [
    ("password missing", "Give the password: in the URL, in PGPASSWORD or in ~/.pgpass."),
    (
        "server does not support TLS",
        "Set `ssl = on` at the server, or use ?sslmode=prefer if the network is trusted.",
    ),
    (
        "invalid peer certificate",
        "Check sslrootcert: it must have the authority that signed the server's certificate; with \
         sslmode=verify-full the host must be named in it.",
    ),
];

/// What the server or the system says, in one line.
fn said(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

impl PgError {
    pub(super) fn state(&self) -> Option<&SqlState> {
        match self {
            PgError::Postgres(error) => error.code(),
            _ => None,
        }
    }

    /// Whether the connection ended or cannot be trusted any more: the server restarts, the network
    /// failed, no answer came.
    pub(super) fn is_lost_connection(&self) -> bool {
        match self {
            PgError::Timeout(_) | PgError::Silent(..) | PgError::Address(..) => true,
            PgError::Postgres(error) => match error.code() {
                None => self.refused_connection().is_none(),
                Some(code) => {
                    let class = &code.code()[..2];
                    class == "08"
                        || class == "57"
                        || [
                            &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                            &SqlState::READ_ONLY_SQL_TRANSACTION,
                        ]
                        .contains(&code)
                }
            },
            _ => false,
        }
    }

    /// What to do where a connection is refused for a reason that trying again does not change, and that has no code.
    fn refused_connection(&self) -> Option<&'static str> {
        let PgError::Postgres(error) = self else { return None };
        if error.code().is_some() {
            return None;
        }
        let said = said(error);
        REFUSED_CONNECTIONS.iter().find(|(part, _)| said.contains(part)).map(|(_, hint)| *hint)
    }

    /// Whether to try again later may help although nothing is wrong with the connection.
    pub(super) fn is_conflict(&self) -> bool {
        self.state().is_some_and(|state| {
            [
                &SqlState::T_R_DEADLOCK_DETECTED,
                &SqlState::T_R_SERIALIZATION_FAILURE,
                &SqlState::UNIQUE_VIOLATION,
                // The session that keeps the lock may be one of a stopped process, which the server ends.
                &SqlState::LOCK_NOT_AVAILABLE,
            ]
            .contains(&state)
        })
    }

    /// Whether another session kept a lock for too long.
    pub(super) fn is_lock_timeout(&self) -> bool {
        self.state() == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }

    /// Whether a statement that the server had prepared is not there any more: a pooler between
    /// gave us another server connection.
    pub(super) fn is_missing_statement(&self) -> bool {
        self.state().is_some_and(|state| {
            *state == SqlState::INVALID_SQL_STATEMENT_NAME
                || *state == SqlState::DUPLICATE_PSTATEMENT
        })
    }

    /// Whether the tables are not there.
    pub(super) fn is_missing_table(&self) -> bool {
        self.state().is_some_and(|state| {
            [
                &SqlState::UNDEFINED_TABLE,
                &SqlState::INVALID_SCHEMA_NAME,
                &SqlState::UNDEFINED_OBJECT,
            ]
            .contains(&state)
        })
    }

    /// Whether the server cannot take another connection or is just starting.
    fn is_start_up(&self) -> bool {
        self.state().is_some_and(|state| state.code().starts_with("53"))
    }

    /// Whether the same may succeed in a moment.
    pub(super) fn is_passing(&self) -> bool {
        self.is_lost_connection()
            || self.is_start_up()
            || self.is_conflict()
            || self.is_missing_statement()
    }

    /// The error for callers, for a change that was surely not made, or for a look.
    pub(super) fn report(&self, store: &str) -> StoreError {
        let store = store.to_owned();
        let reason = self.to_string();
        let refused = |hint: &str| StoreError::Refused {
            store: store.clone(),
            reason: reason.clone(),
            hint: Some(hint.to_owned()),
        };
        match self {
            PgError::Format(_) => {
                let hint = Some("Restore the database from a backup.".to_owned());
                return StoreError::Corrupt { store, reason, hint };
            }
            PgError::Replaced => return StoreError::Gone { store, reason },
            PgError::Newer(..) => {
                return StoreError::Unsupported {
                    what: format!("the store at {store} was made by a newer tenure: {reason}"),
                    instead: "Upgrade tenure here; all programs on one store use one version."
                        .to_owned(),
                };
            }
            PgError::Settings { hint, .. } => return refused(hint),
            PgError::Withheld(left) => return StoreError::Withheld { store, left: *left },
            PgError::Exhausted(_) => {
                return StoreError::Unavailable {
                    store,
                    reason,
                    hint: Some("Allow more with ?pool=N in the store's URL.".to_owned()),
                };
            }
            _ => {}
        }
        let Some(state) = self.state() else {
            if let Some(hint) = self.refused_connection() {
                return refused(hint);
            }
            if reason.contains("does not allow writes") {
                let hint = "This is a standby, or default_transaction_read_only is on for the user or the \
                            database: name the primary, or turn that off.";
                return StoreError::Unavailable { store, reason, hint: Some(hint.to_owned()) };
            }
            let hint = "Check that the server runs and can be reached; `tenure doctor` tries it.";
            return StoreError::Unavailable { store, reason, hint: Some(hint.to_owned()) };
        };
        match *state {
            SqlState::INVALID_PASSWORD => {
                refused("Check user and password: in the URL, in PGPASSWORD or in ~/.pgpass.")
            }
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION => refused(
                "Check the user's name. Allow this user, database, address and encryption in the server's pg_hba.conf; where it says \
                 \"no encryption\", ?sslmode=require may be enough.",
            ),
            SqlState::UNTRANSLATABLE_CHARACTER if reason.contains("has no equivalent") => {
                StoreError::Unsupported {
                    what: format!("the database cannot store a character of a text: {reason}"),
                    instead: "Use a database in UTF8: CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0."
                        .to_owned(),
                }
            }
            SqlState::UNTRANSLATABLE_CHARACTER | SqlState::CHARACTER_NOT_IN_REPERTOIRE => {
                StoreError::Unsupported {
                    what: "a text has a character that PostgreSQL cannot store".to_owned(),
                    instead: "Leave out the character with the number 0.".to_owned(),
                }
            }
            SqlState::INVALID_CATALOG_NAME => {
                refused("Create the database first: `createdb NAME`.")
            }
            SqlState::INSUFFICIENT_PRIVILEGE => refused(
                "The user needs a schema of its own: CREATE SCHEMA tenure AUTHORIZATION user; \
                 or name another with ?schema=NAME.",
            ),
            SqlState::LOCK_NOT_AVAILABLE => StoreError::Unavailable {
                store,
                reason: "another session keeps a lock that this change needs".to_owned(),
                hint: Some("`tenure doctor` names the session.".to_owned()),
            },
            SqlState::T_R_DEADLOCK_DETECTED | SqlState::T_R_SERIALIZATION_FAILURE => {
                StoreError::Contended { store, tries: 1 }
            }
            _ => {
                let hint = "`tenure doctor` checks the database.".to_owned();
                StoreError::Unavailable { store, reason, hint: Some(hint) }
            }
        }
    }
}
