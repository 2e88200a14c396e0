//! Files that many processes change: replaced whole, or appended to in whole lines.
//!
//! In reading order: [`Original`] is a file as it was found, [`Draft`] what is to replace it,
//! [`Sealed`] a draft that is on disk and complete, [`Sealed::replace`] the one step in which the
//! file changes. [`Appender`] adds lines. [`Format`] says what a content must be.
//!
//! Nothing here takes a lease: whoever replaces holds one (see [`StoreLocation::resource_of`]), and looks
//! whether it still does between [`Draft::seal`] and [`Sealed::replace`]. Beneath that, the kernel's
//! lock on the file itself (`flock`) keeps an append, or a replacement by somebody who uses another
//! store, from falling between the last look at the file and its replacement. It is held for that
//! moment only, and whoever asks for it looks afterwards whether the file is still the one at its
//! path.
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
pub use format::{Format, Invalid};
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
