//! Changes files that many processes share: replaces them as a whole, or appends whole lines.
//!
//! In reading order: [`Original`] is a file as it was found, [`Draft`] is its new content,
//! [`Sealed`] is a complete draft on disk, [`Sealed::replace`] is the one step in which the file
//! changes. [`Appender`] adds lines. [`Format`] checks content.
//!
//! Nothing here takes a lease: the caller holds one (see [`StoreLocation::resource_of`]), and
//! checks that it still does between [`Draft::seal`] and [`Sealed::replace`]. In addition, the
//! kernel's lock on the file itself (`flock`) keeps an append, or a replacement by a process with
//! another store, from falling between the last check of the file and its replacement. It is held
//! only for that moment, and its holder then checks that the file is still the one at its path.
//!
//! [`StoreLocation::resource_of`]: crate::place::StoreLocation::resource_of

mod append;
mod error;
mod format;
mod leftovers;
mod original;
mod replace;
mod stamp;
#[cfg(test)]
mod tests;

pub use append::{Appended, Appender, LINE_MAX_BYTES};
pub use error::FileError;
pub use format::{Content, Format, Invalid};
pub use leftovers::{remove_all_leftovers, remove_leftovers};
pub use original::Original;
pub use replace::{Draft, Replace, Sealed};

use std::io;
use std::path::{Path, PathBuf};

/// Gives the one path by which the file is known; see [`real_path`](crate::place::real_path).
pub fn real_path(path: &Path) -> Result<PathBuf, FileError> {
    crate::place::real_path(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => FileError::NoFolder { path: path.to_owned() },
        _ => FileError::from_attempt(path, "found", error),
    })
}
