//! Noticing that a store's file was removed or replaced while it was open: other processes use
//! another file by then, so locks in the old one exclude no one.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Which file a store handle has open. The handle keeps that file open, so that its number cannot
/// be given to another file meanwhile.
///
/// A lost identity stays lost, for every handle of that file in this process, even if the file is
/// put back: others may have held the same locks in another file in between.
#[derive(Debug)]
pub(crate) struct Identity {
    path: PathBuf,
    opened: Option<FileId>,
    lost: Arc<AtomicBool>,
}

/// Why the file at the store's path is not, or not known to be, the one that was opened.
#[derive(Debug)]
pub(crate) enum IdentityError {
    /// The file was removed or replaced, now or at an earlier look.
    Lost,
    /// The system does not tell.
    Unreadable(io::Error),
}

/// Device and number of a file.
type FileId = (u64, u64);

/// For each file that this process has open at a path, whether it was lost.
type Known = HashMap<(PathBuf, FileId), Weak<AtomicBool>>;

/// The handles of this process share what they know of a file.
static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

impl Identity {
    /// The identity of the file that is at this path now. To be taken before it is opened, and
    /// checked after.
    pub(crate) fn of_path(path: PathBuf) -> io::Result<Identity> {
        let meta = std::fs::metadata(&path)?;
        Ok(Identity::new(path, &meta))
    }

    /// The identity of this file, which was opened at this path.
    pub(crate) fn new(path: PathBuf, opened: &Metadata) -> Identity {
        let opened = file_id(opened);
        let lost = match opened {
            Some(file) => share(&path, file),
            None => Arc::default(),
        };
        Identity { path, opened, lost }
    }

    /// Fails if the file at the path is another than the one that was opened, or ever was.
    pub(crate) fn check(&self) -> Result<(), IdentityError> {
        if self.lost.load(Ordering::SeqCst) {
            return Err(IdentityError::Lost);
        }
        match std::fs::metadata(&self.path) {
            Ok(meta) if file_id(&meta) == self.opened => Ok(()),
            Err(error) if !is_absent(&error) => Err(IdentityError::Unreadable(error)),
            _ => {
                self.lost.store(true, Ordering::SeqCst);
                Err(IdentityError::Lost)
            }
        }
    }
}

/// What the handles of this file share. A store that is opened after a loss begins anew.
fn share(path: &Path, file: FileId) -> Arc<AtomicBool> {
    let mut known = KNOWN.lock();
    let known = known.get_or_insert_default();
    known.retain(|_, lost| lost.strong_count() > 0);
    let key = (path.to_owned(), file);
    let shared = known.get(&key).and_then(Weak::upgrade);
    if let Some(shared) = shared.filter(|lost| !lost.load(Ordering::SeqCst)) {
        return shared;
    }
    let fresh = Arc::default();
    known.insert(key, Arc::downgrade(&fresh));
    fresh
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// What tells a file from another that takes its place; `None` where the system cannot tell. Opens
/// nothing: closing SQLite's own files would drop its locks.
fn file_id(meta: &Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    Some((meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_away_is_lost_for_ever_to_every_handle_that_was_open() {
        let folder = tempfile::tempdir().unwrap();
        let (path, aside) = (folder.path().join("file"), folder.path().join("aside"));
        std::fs::write(&path, "").unwrap();
        let open = || Identity::of_path(path.clone()).unwrap();
        let (one, other) = (open(), open());
        assert!(one.check().is_ok() && other.check().is_ok());
        std::fs::rename(&path, &aside).unwrap();
        assert!(matches!(one.check(), Err(IdentityError::Lost)));
        std::fs::rename(&aside, &path).unwrap();
        assert!(matches!(one.check(), Err(IdentityError::Lost)));
        assert!(matches!(other.check(), Err(IdentityError::Lost)), "it did not look meanwhile");
        assert!(open().check().is_ok(), "a handle that is opened now uses what is there");
    }
}
