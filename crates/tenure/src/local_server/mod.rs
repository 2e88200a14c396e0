//! Servers that this user runs on this machine, and the token that each makes for its user.
//!
//! A server without a file of tokens makes one token of its own. It is kept in a folder that only
//! its user can read, one file per store, so that it outlives the server. While the server runs, a
//! `record` beside it says at which addresses it listens. This user's clients look there,
//! and send the token only after they have seen that the listener at that address belongs to the
//! process that wrote the record: on loopback any user can take a port that is free.

mod folder;
mod record;

pub use folder::{ServerFolder, ServerFolderError};
#[cfg(feature = "http")]
pub(crate) use record::listeners;
pub use record::{Announcement, LocalServer, Record};
