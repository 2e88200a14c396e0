//! Detects that a file was changed.

use std::fs::Metadata;

/// The identity of a file and the time of its last change. A change that keeps the size within the
/// same tick of the file system's clock (some milliseconds) is not detected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    identity: Option<(u64, u64)>,
    length: u64,
    changed: Option<(i64, i64)>,
    modified: Option<std::time::SystemTime>,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            identity: identity(metadata),
            length: metadata.len(),
            changed: changed(metadata),
            modified: metadata.modified().ok(),
        }
    }
}

/// Whether both are the same file. If the system cannot tell: yes.
pub(super) fn same_file(one: &Metadata, other: &Metadata) -> bool {
    identity(one) == identity(other)
}

/// How many names the file has.
pub(super) fn names(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata)
}

fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

fn changed(metadata: &Metadata) -> Option<(i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.ctime(), metadata.ctime_nsec()))
}
