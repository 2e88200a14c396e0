//! One lock file: reading it without being held up, and changing exactly the file that was judged.
//!
//! A name can lead to another file from one moment to the next, and no system call removes "this
//! file if it is still there". So a new file is swapped in for the old in one step, and only then
//! looked at: if the old one is not the one that was judged, they are swapped back. At no moment is
//! the name free for others to take.

use super::LockFiles;
use super::lock_content::LockContent;
use crate::platform;
use crate::platform::access;
use crate::store::file::error::FileStoreError;
use crate::store::file::failpoint::failpoint;
use crate::store::file::journal::draft;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tenure_core::WallTime;

/// The largest lock file that is read: real ones have some hundred bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// How often to swap back. Each time that once is not enough, two other programs were at the same
/// file within microseconds.
const GIVE_BACK_TRIES: u32 = 8;

/// A lock file as it was read.
#[derive(Clone, Debug)]
pub(super) struct LockFile {
    pub(super) path: PathBuf,
    /// What it says; none if it cannot be read as a lock.
    pub(super) content: Option<LockContent>,
    pub(super) modified: WallTime,
    identity: Identity,
    /// Of identity and content.
    pub(super) fingerprint: u128,
}

/// What tells a file from another under the same name, and from what it was before a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    inode: u64,
    modified_ns: i128,
    bytes: u64,
}

impl LockFile {
    /// Reads a lock file; `None` if there is none.
    pub(super) fn read(
        format: &dyn LockFiles,
        path: &Path,
    ) -> Result<Option<LockFile>, FileStoreError> {
        let mut file = match open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(obstacle(path, error)),
        };
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(FileStoreError::obstacle(path, "is no file, so it cannot be a lock"));
        }
        let mut bytes = Vec::new();
        (&mut file).take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        let content = match bytes.len() as u64 > MAX_BYTES {
            true => None,
            false => LockContent::parse(format, &bytes),
        };
        let identity = identity(&meta);
        let hash = {
            use sha2::{Digest, Sha256};
            let mut hasher = Sha256::new();
            hasher.update(identity.inode.to_le_bytes());
            hasher.update(identity.modified_ns.to_le_bytes());
            hasher.update(&bytes);
            let hash: [u8; 32] = hasher.finalize().into();
            u128::from_le_bytes(hash[..16].try_into().expect("16 of 32 bytes"))
        };
        Ok(Some(LockFile {
            path: path.to_owned(),
            content,
            modified: WallTime((identity.modified_ns / 1_000_000) as i64),
            identity,
            fingerprint: hash,
        }))
    }

    /// Replaces exactly this file. Returns `false`, and changes nothing, if another file is there by
    /// now. The replaced file is kept in `aside` if one is given.
    pub(super) fn replace(
        &self,
        content: &[u8],
        drafts: &Path,
        aside: Option<&Path>,
    ) -> io::Result<bool> {
        if let Some(aside) = aside {
            // Not later: what is swapped out must have a place to go to.
            access::make_folders(aside)?;
        }
        let draft = write_draft(drafts, content)?;
        failpoint("lock-drafted");
        // Almost always enough to leave another's file alone, even for a moment.
        let replaced = match identity_of(&self.path)? {
            Some(there) if there != self.identity => Ok(false),
            _ => self.swap(&draft, aside),
        };
        let _ = std::fs::remove_file(&draft);
        replaced
    }

    fn swap(&self, draft: &Path, aside: Option<&Path>) -> io::Result<bool> {
        // Open as long as its number is compared: else another's new file could get that number.
        let _own = File::open(draft)?;
        let own = inode_of(draft)?;
        match platform::exchange(draft, &self.path) {
            // It is gone: as good as replaced, unless another file takes its place first.
            Err(error) if error.kind() == io::ErrorKind::NotFound => link(draft, &self.path),
            Err(error) => Err(error),
            Ok(()) => {
                if identity_of(draft)? == Some(self.identity) {
                    keep(draft, aside)?;
                    return Ok(true);
                }
                // Another's, taken in the same moment: it must be back at once.
                self.give_back(draft, own)?;
                Ok(false)
            }
        }
    }

    /// Puts another program's file back where ours is by now. Programs that replace or remove files
    /// without looking may change it meanwhile; then the newest file stays.
    fn give_back(&self, draft: &Path, own: Option<u64>) -> io::Result<()> {
        let mut settled = vec![own];
        for _ in 0..GIVE_BACK_TRIES {
            let returned = inode_of(draft)?;
            match platform::exchange(draft, &self.path) {
                // The program that removed ours without looking would have removed that one; it may
                // be its holder, releasing it. Put back, it would block all until it is stale.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                swapped => swapped?,
            }
            if settled.contains(&inode_of(draft)?) {
                return Ok(());
            }
            // Ours had been removed and this one made since, so it goes back instead.
            settled.push(returned);
        }
        Ok(())
    }

    /// Removes exactly this file. Returns `false` if another file is there by now.
    pub(super) fn remove(&self, drafts: &Path, aside: Option<&Path>) -> io::Result<bool> {
        if identity_of(&self.path)? != Some(self.identity) {
            return Ok(false);
        }
        if let Some(aside) = aside {
            access::make_folders(aside)?;
        }
        let away = draft(drafts);
        match std::fs::rename(&self.path, &away) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            renamed => renamed?,
        }
        self.settle(&away, aside)
    }

    /// Ends a removal: the file that was moved away is dropped or kept if it is the one that was
    /// judged, and put back if not.
    fn settle(&self, away: &Path, aside: Option<&Path>) -> io::Result<bool> {
        let removed = identity_of(away)? == Some(self.identity);
        match removed {
            true => keep(away, aside)?,
            // It is another program's, made in the same moment. If the name was taken again, that
            // program lost it. If its owner released it in this moment, without looking, it found
            // nothing to remove: then its lock stays until it is stale. Not to put it back would
            // take valid locks away from owners that did not release them.
            false => drop(link(away, &self.path)?),
        }
        let _ = std::fs::remove_file(away);
        Ok(removed)
    }
}

/// Creates a lock file, which appears whole. Returns `false` if there is one already.
pub(super) fn create(path: &Path, content: &[u8], drafts: &Path) -> io::Result<bool> {
    let draft = write_draft(drafts, content)?;
    let linked = link(&draft, path);
    let _ = std::fs::remove_file(&draft);
    linked
}

/// Gives a file a second name. Returns `false` if the name is taken.
fn link(from: &Path, to: &Path) -> io::Result<bool> {
    match std::fs::hard_link(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

fn write_draft(drafts: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let draft = draft(drafts);
    match std::fs::write(&draft, content) {
        Ok(()) => Ok(draft),
        Err(error) => {
            let _ = std::fs::remove_file(&draft);
            Err(error)
        }
    }
}

/// How long ago a file was last changed.
pub(super) fn age_of(meta: &std::fs::Metadata, now: WallTime) -> std::time::Duration {
    let modified_ms = (identity(meta).modified_ns / 1_000_000) as i64;
    let age_ms = now.0.saturating_sub(modified_ms);
    std::time::Duration::from_millis(u64::try_from(age_ms).unwrap_or(0))
}

/// Moves a file that cannot be read into `aside`: such files are never deleted.
pub(super) fn keep(file: &Path, aside: Option<&Path>) -> io::Result<()> {
    let Some(aside) = aside else { return Ok(()) };
    let name = format!("lock-{}", uuid::Uuid::new_v4().simple());
    std::fs::rename(file, aside.join(name))
}

/// Opens a file without waiting, whatever kind of file it is, and without following a link.
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    options.read(true);
    options.custom_flags((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits() as i32);
    options.open(path)
}

/// The error for a file that cannot be opened.
fn obstacle(path: &Path, error: io::Error) -> FileStoreError {
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    match error.kind() {
        _ if is_link => {
            FileStoreError::obstacle(path, "is a symbolic link, so it cannot be a lock")
        }
        io::ErrorKind::PermissionDenied => {
            FileStoreError::obstacle(path, "may not be read, so its holder is unknown")
        }
        // A socket, say.
        _ if std::fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_file()) => {
            FileStoreError::obstacle(path, "is no file, so it cannot be a lock")
        }
        _ => error.into(),
    }
}

fn identity_of(path: &Path) -> io::Result<Option<Identity>> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) => Ok(Some(identity(&meta))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The number of a file, which stays the same whatever is written to it.
fn inode_of(path: &Path) -> io::Result<Option<u64>> {
    Ok(identity_of(path)?.map(|identity| identity.inode))
}

fn identity(meta: &std::fs::Metadata) -> Identity {
    let modified_ns =
        meta.modified().ok().map_or(0, |time| match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => since.as_nanos() as i128,
            Err(before) => -(before.duration().as_nanos() as i128),
        });
    let inode = std::os::unix::fs::MetadataExt::ino(meta);
    Identity { inode, modified_ns, bytes: meta.len() }
}

#[cfg(test)]
mod tests {
    use super::super::worker::Worker;
    use super::*;
    use std::fs;

    const STALE: &str = r#"{"worker_id":"gone","started_at":"2020-01-01T00:00:00Z"}"#;
    const FRESH: &str = r#"{"worker_id":"quick","started_at":"2027-01-01T00:00:00Z"}"#;

    struct Scene {
        folder: tempfile::TempDir,
        path: PathBuf,
        judged: LockFile,
    }

    /// A stale lock that was looked at.
    fn scene() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("task.lock");
        fs::write(&path, STALE).unwrap();
        let judged = LockFile::read(&Worker, &path).unwrap().unwrap();
        Scene { folder, path, judged }
    }

    impl Scene {
        /// Another program's lock takes the place of what was judged.
        fn put(&self, content: &str) {
            fs::remove_file(&self.path).unwrap();
            // Not to be given the number of the file that was there.
            fs::write(self.folder.path().join("other"), "").unwrap();
            fs::write(&self.path, content).unwrap();
        }

        fn draft(&self) -> PathBuf {
            write_draft(self.folder.path(), b"ours").unwrap()
        }

        fn text(&self) -> String {
            fs::read_to_string(&self.path).unwrap()
        }
    }

    #[test]
    fn what_was_judged_is_replaced() {
        let scene = scene();
        assert!(scene.judged.replace(b"ours", scene.folder.path(), None).unwrap());
        assert_eq!(scene.text(), "ours");
        assert_eq!(fs::read_dir(scene.folder.path()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn another_that_came_meanwhile_is_left_in_its_place() {
        let scene = scene();
        scene.put(FRESH);
        let before = inode_of(&scene.path).unwrap();
        assert!(!scene.judged.replace(b"ours", scene.folder.path(), None).unwrap());
        // And if it came just after the last look.
        assert!(!scene.judged.swap(&scene.draft(), None).unwrap());
        assert_eq!((scene.text().as_str(), inode_of(&scene.path).unwrap()), (FRESH, before));
        assert!(!scene.judged.remove(scene.folder.path(), None).unwrap());
        assert_eq!((scene.text().as_str(), inode_of(&scene.path).unwrap()), (FRESH, before));
    }

    #[test]
    fn what_changed_in_its_place_is_left() {
        let scene = scene();
        fs::write(&scene.path, FRESH).unwrap();
        assert!(!scene.judged.swap(&scene.draft(), None).unwrap());
        assert_eq!(scene.text(), FRESH);
    }

    #[test]
    fn what_is_gone_is_replaced_unless_somebody_was_faster() {
        let scene = scene();
        fs::remove_file(&scene.path).unwrap();
        assert!(scene.judged.replace(b"ours", scene.folder.path(), None).unwrap());
        assert_eq!(scene.text(), "ours");
    }

    /// A draft that holds another's file, as after a swap that must be undone.
    fn to_give_back(scene: &Scene) -> (PathBuf, Option<u64>) {
        scene.put(FRESH);
        let draft = scene.draft();
        let own = inode_of(&draft).unwrap();
        platform::exchange(&draft, &scene.path).unwrap();
        (draft, own)
    }

    #[test]
    fn if_ours_was_removed_without_a_look_the_name_stays_free() {
        let scene = scene();
        let (draft, own) = to_give_back(&scene);
        fs::remove_file(&scene.path).unwrap();
        scene.judged.give_back(&draft, own).unwrap();
        assert!(!scene.path.exists(), "it may have been its holder who let go");
    }

    #[test]
    fn if_ours_was_removed_and_a_third_came_the_third_stays() {
        let scene = scene();
        let (draft, own) = to_give_back(&scene);
        let third = scene.folder.path().join("third");
        fs::write(&third, "third").unwrap();
        fs::rename(third, &scene.path).unwrap();
        scene.judged.give_back(&draft, own).unwrap();
        assert_eq!(scene.text(), "third");
    }

    /// Another's lock that took the place of ours between the last look and the removal.
    fn caught(scene: &Scene) -> PathBuf {
        scene.put(FRESH);
        let away = draft(scene.folder.path());
        fs::rename(&scene.path, &away).unwrap();
        away
    }

    #[test]
    fn what_was_removed_by_mistake_is_put_back_as_it_was() {
        let scene = scene();
        let away = caught(&scene);
        let before = identity_of(&away).unwrap();
        assert!(!scene.judged.settle(&away, None).unwrap());
        assert_eq!(identity_of(&scene.path).unwrap(), before, "the very file, with its date");
        assert!(!away.exists());
    }

    /// What made two runs in thirty stand still: an owner that lets go without a look, just then,
    /// finds nothing to remove, and its lock is put back after. Its own rule ends it.
    #[test]
    fn a_lock_whose_owner_let_go_in_that_moment_is_stale_by_its_own_rule() {
        let scene = scene();
        let away = caught(&scene);
        let released = fs::remove_file(&scene.path);
        assert_eq!(released.unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(!scene.judged.settle(&away, None).unwrap());
        let left = LockFile::read(&Worker, &scene.path).unwrap().unwrap();
        let left = left.content.expect("it can be read");
        let just_after = WallTime(left.since.0 + 1_000);
        assert_eq!(left.left_ms(&Worker, just_after), 299_000, "nothing prolongs it");
        let limit = WallTime(left.since.0 + 300_000);
        assert_eq!(left.left_ms(&Worker, limit), 0, "and it is taken over then");
    }

    #[test]
    fn what_was_removed_by_mistake_stays_away_if_the_name_was_taken_again() {
        let scene = scene();
        let away = caught(&scene);
        fs::write(&scene.path, "third").unwrap();
        assert!(!scene.judged.settle(&away, None).unwrap());
        assert_eq!(scene.text(), "third");
        assert!(!away.exists());
    }

    #[test]
    fn what_cannot_be_read_is_kept() {
        let scene = scene();
        let aside = scene.folder.path().join("aside");
        assert!(scene.judged.replace(b"ours", scene.folder.path(), Some(&aside)).unwrap());
        let kept: Vec<_> = fs::read_dir(aside).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(kept.len(), 1);
        assert_eq!(fs::read_to_string(&kept[0]).unwrap(), STALE);
    }
}
