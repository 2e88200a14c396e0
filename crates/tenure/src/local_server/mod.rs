//! Servers that this user runs on this machine, and the token that each creates for its user.
//!
//! A server without a token file creates one token of its own. It is stored in a folder that only
//! its user can read, one file per store, so that it outlives the server. While the server runs, a
//! `record` beside it has the addresses that it listens on. This user's clients read it, and send
//! the token only after they have checked that the listener at that address belongs to the process
//! that wrote the record: on loopback any user can take a free port.

mod folder;
mod record;

pub use folder::{ServerFolder, ServerFolderError};
#[cfg(feature = "http")]
pub(crate) use record::listeners;
pub use record::{Announcement, LocalServer, Record};
