//! The file baseline: the least work to create a complete lock file only if there is none.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// As long as a typical lock file.
const CONTENT: [u8; 200] = [b'x'; 200];

/// One lock file.
pub(crate) struct FileBaseline {
    draft: PathBuf,
    lock: PathBuf,
}

impl FileBaseline {
    /// The lock file of this name in this folder, which is created.
    pub(crate) fn open(folder: &Path, name: &str) -> io::Result<FileBaseline> {
        fs::create_dir_all(folder)?;
        let file = |end: &str| folder.join(format!("{name}.{end}"));
        Ok(FileBaseline { draft: file("draft"), lock: file("lock") })
    }

    /// Writes it under another name, links it into place, removes the other name, then removes it.
    pub(crate) fn pair(&self) -> io::Result<()> {
        File::create_new(&self.draft)?.write_all(&CONTENT)?;
        fs::hard_link(&self.draft, &self.lock)?;
        fs::remove_file(&self.draft)?;
        fs::remove_file(&self.lock)
    }
}
