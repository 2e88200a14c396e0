//! What is written to disk. These are promises: what was written must be readable later.
//!
//! Each format has a module with record types of its own, so that a name in core can change while the
//! name on disk stays:
//!
//! - `journal`, `archive` — the file store. `columns` — texts and JSON in the columns of SQLite.
//!   `etcd` — the values of the etcd store.
//! - `parts` — the records of which those are made. `record` — how a record is declared.
//!
//! A value that is one text or one number (a resource, a grant, a token, a time, a mode, the id of a
//! task) is written in the form that core gives it.

#[cfg(feature = "file-store")]
pub(crate) mod archive;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) mod columns;
#[cfg(feature = "etcd")]
pub(crate) mod etcd;
#[cfg(feature = "file-store")]
pub(crate) mod journal;
pub(crate) mod parts;
mod record;

pub(crate) use record::Form;
