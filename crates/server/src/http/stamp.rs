//! By what a file that was changed is known.

use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

/// When it was changed, its length, and which file it is.
pub(super) type Stamp = (Option<SystemTime>, u64, u64);

/// That of the file there, if there is one.
pub(super) fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok(), metadata.len(), identity(&metadata)))
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> u64 {
    0
}
