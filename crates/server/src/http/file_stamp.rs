//! Detects that a file was changed.

use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

/// Modification time, length and inode of a file.
pub(super) type Stamp = (Option<SystemTime>, u64, u64);

/// The stamp of the file at this path, if it exists.
pub(super) fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok(), metadata.len(), identity(&metadata)))
}

fn identity(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}
