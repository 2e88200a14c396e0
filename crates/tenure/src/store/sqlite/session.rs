//! A connection in use for one transaction.

use super::read::{self, RowError};
use rusqlite::{CachedStatement, Connection};
use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};

/// What was found once need not be looked for again before the transaction ends: statements, which
/// rusqlite finds by their whole text, and the newest revision, which only we change.
pub(super) struct Session<'c> {
    connection: &'c Connection,
    /// Those that were used and are not in use.
    statements: RefCell<Vec<(&'static str, CachedStatement<'c>)>>,
    newest: Cell<Option<u64>>,
}

impl<'c> Session<'c> {
    pub(super) fn new(connection: &'c Connection) -> Session<'c> {
        Session { connection, statements: RefCell::default(), newest: Cell::default() }
    }

    /// A statement, ready to be run.
    pub(super) fn statement(&self, sql: &'static str) -> rusqlite::Result<Ready<'_, 'c>> {
        let mut known = self.statements.borrow_mut();
        // The same text is mostly at the same place.
        let place = known.iter().position(|(text, _)| std::ptr::eq(*text, sql));
        let statement = match place {
            Some(place) => known.swap_remove(place).1,
            None => self.connection.prepare_cached(sql)?,
        };
        drop(known);
        Ok(Ready { session: self, sql, statement: Some(statement) })
    }

    /// The store's revision.
    pub(super) fn newest(&self) -> Result<u64, RowError> {
        match self.newest.get() {
            Some(newest) => Ok(newest),
            None => {
                let newest = read::newest(self)?;
                self.newest.set(Some(newest));
                Ok(newest)
            }
        }
    }

    /// Notes that this revision was written.
    pub(super) fn wrote(&self, newest: u64) {
        self.newest.set(Some(newest));
    }
}

/// A statement in use; given back when dropped.
pub(super) struct Ready<'a, 'c> {
    session: &'a Session<'c>,
    sql: &'static str,
    statement: Option<CachedStatement<'c>>,
}

impl<'c> Deref for Ready<'_, 'c> {
    type Target = CachedStatement<'c>;

    fn deref(&self) -> &CachedStatement<'c> {
        self.statement.as_ref().expect("it is given back only at the end")
    }
}

impl<'c> DerefMut for Ready<'_, 'c> {
    fn deref_mut(&mut self) -> &mut CachedStatement<'c> {
        self.statement.as_mut().expect("it is given back only at the end")
    }
}

impl Drop for Ready<'_, '_> {
    fn drop(&mut self) {
        if let Some(statement) = self.statement.take() {
            self.session.statements.borrow_mut().push((self.sql, statement));
        }
    }
}
