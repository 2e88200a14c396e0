//! A file that is used again.
//!
//! To make a file and to remove it is most of what a short hold costs: ext4 takes no number that was
//! freed within the last minute, and looks at each of them to find another. So the file of a hold
//! that ended is kept under another name and becomes that of the next, if no process can be reading it.

use super::journal::draft;
use crate::platform;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The one file that a handle keeps.
#[derive(Debug, Default)]
pub(super) struct ReusableFile {
    file: Option<File>,
    /// Where it is; nowhere if it is not kept.
    path: PathBuf,
    /// Whether that is a name for others to look at.
    shown: bool,
    /// Whether it was shown more than once: who holds once has no use for it.
    useful: bool,
}

impl ReusableFile {
    /// Publishes new content, whole, under a name that does not exist. Returns false where another way
    /// is needed.
    pub(super) fn show(&mut self, path: &Path, content: &[u8]) -> io::Result<bool> {
        if self.reuse(path, content) {
            return Ok(true);
        }
        let Some(file) = platform::create_whole(path, content)? else { return Ok(false) };
        if !self.shown {
            self.discard();
            (self.file, self.path, self.shown) = (Some(file), path.to_owned(), true);
        }
        Ok(true)
    }

    fn reuse(&mut self, path: &Path, content: &[u8]) -> bool {
        let Some(file) = self.file.as_ref().filter(|_| !self.shown) else { return false };
        let written = platform::is_ours_alone(file)
            && super::positional_io::write_all(file, 0, content).is_ok()
            && file.set_len(content.len() as u64).is_ok()
            && platform::rename_new(&self.path, path).is_ok();
        match written {
            true => (self.path, self.shown) = (path.to_owned(), true),
            // It may be half written, or another process tidied it away.
            false => self.discard(),
        }
        written
    }

    /// Removes a published file. Returns false if it is not the one that is kept.
    pub(super) fn hide(&mut self, path: &Path) -> bool {
        let ours = self.shown && self.path == path;
        let Some(file) = self.file.as_ref().filter(|_| ours) else { return false };
        if !self.useful {
            self.forget();
            self.useful = true;
            return false;
        }
        // Another program may have replaced it: then it has no name any more.
        let away = draft(path.parent().unwrap_or(Path::new(".")));
        if platform::has_name(file) && std::fs::rename(path, &away).is_ok() {
            (self.path, self.shown) = (away, false);
            return true;
        }
        self.forget();
        false
    }

    fn discard(&mut self) {
        if self.file.is_some() && !self.shown {
            let _ = std::fs::remove_file(&self.path);
        }
        self.forget();
    }

    fn forget(&mut self) {
        (self.file, self.shown) = (None, false);
    }
}

impl Drop for ReusableFile {
    fn drop(&mut self) {
        self.discard();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;

    /// A folder in which a file was shown and hidden often enough to be kept.
    fn kept() -> (tempfile::TempDir, PathBuf, ReusableFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let mut spare = ReusableFile::default();
        for _ in 0..2 {
            assert!(spare.show(&path, b"first").unwrap());
            if !spare.hide(&path) {
                std::fs::remove_file(&path).unwrap();
            }
        }
        (folder, path, spare)
    }

    fn files(folder: &tempfile::TempDir) -> usize {
        std::fs::read_dir(folder.path()).unwrap().count()
    }

    #[test]
    fn it_is_used_again_and_removed_in_the_end() {
        let (folder, path, mut spare) = kept();
        assert_eq!((files(&folder), path.exists()), (1, false));
        assert!(spare.show(&path, b"second, longer").unwrap());
        let inode = std::fs::metadata(&path).unwrap().ino();
        assert!(spare.hide(&path));
        assert!(spare.show(&path, b"third").unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().ino(), inode);
        assert_eq!(std::fs::read(&path).unwrap(), b"third");
        assert!(spare.hide(&path));
        drop(spare);
        assert_eq!(files(&folder), 0);
    }

    #[test]
    fn what_somebody_reads_is_not_written_to() {
        let (_folder, path, mut spare) = kept();
        assert!(spare.show(&path, b"before").unwrap());
        let mut reader = File::open(&path).unwrap();
        assert!(spare.hide(&path));
        assert!(spare.show(&path, b"after!").unwrap());
        let mut seen = String::new();
        reader.read_to_string(&mut seen).unwrap();
        assert_eq!(seen, "before");
        assert_eq!(std::fs::read(&path).unwrap(), b"after!");
    }

    #[test]
    fn what_another_put_in_its_place_is_not_taken_for_it() {
        let (folder, path, mut spare) = kept();
        assert!(spare.show(&path, b"ours").unwrap());
        let other = folder.path().join("other");
        std::fs::write(&other, b"theirs").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(!spare.hide(&path));
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
        // Nor is a name that is taken.
        assert!(!spare.show(&path, b"again").unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
    }
}
