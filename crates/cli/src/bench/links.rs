//! The floor of the file store: the least that bare files must do so that a lock file appears whole,
//! and only if there was none.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// As long as what a lock file usually says.
const CONTENT: [u8; 200] = [b'x'; 200];

/// One lock file.
pub(super) struct Links {
    draft: PathBuf,
    lock: PathBuf,
}

impl Links {
    /// The lock file of this name in this folder, which is made.
    pub(super) fn open(folder: &Path, name: &str) -> io::Result<Links> {
        fs::create_dir_all(folder)?;
        let file = |end: &str| folder.join(format!("{name}.{end}"));
        Ok(Links { draft: file("draft"), lock: file("lock") })
    }

    /// Writes it under another name, links it into place, and removes the other name; then removes
    /// it.
    pub(super) fn pair(&self) -> io::Result<()> {
        File::create_new(&self.draft)?.write_all(&CONTENT)?;
        fs::hard_link(&self.draft, &self.lock)?;
        fs::remove_file(&self.draft)?;
        fs::remove_file(&self.lock)
    }
}
