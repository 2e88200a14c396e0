//! A folder for what is unfinished, which only this user can read: a backup contains the grants of the
//! holds that there were.

use crate::exit::Exit;
use crate::failure::Failure;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tenure::core::GrantId;

/// The folder; removed on drop.
pub(super) struct Workplace {
    folder: PathBuf,
}

impl Workplace {
    /// Beside a file that is to be made, on the same file system, so that the file can be moved there.
    pub(super) fn beside(file: &Path) -> Result<Workplace, Failure> {
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        Workplace::within(parent.unwrap_or(Path::new(".")))
    }

    /// Anywhere.
    pub(super) fn temporary() -> Result<Workplace, Failure> {
        Workplace::within(&std::env::temp_dir())
    }

    fn within(parent: &Path) -> Result<Workplace, Failure> {
        let random = GrantId::random().to_string();
        let folder = parent.join(format!(".tenure-backup-{}", &random[..8]));
        DirBuilder::new().mode(0o700).create(&folder).map_err(|error| {
            let message = format!("cannot create a folder in {}: {error}", parent.display());
            Failure::new(Exit::Configuration, "BACKUP_PLACE", message)
        })?;
        // SQLite needs a path that does not depend on the current folder.
        let folder = folder.canonicalize().unwrap_or(folder);
        Ok(Workplace { folder })
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Moves a finished file into place, on disk when this returns. It never replaces another one.
    pub(super) fn publish(&self, file: &Path, to: &Path) -> Result<(), Failure> {
        let publish = || -> io::Result<()> {
            fs::set_permissions(file, Permissions::from_mode(0o600))?;
            File::open(file)?.sync_all()?;
            // A link fails where a file is, and a rename would replace it.
            fs::hard_link(file, to)?;
            let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
            File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
        };
        publish().map_err(|error| {
            let message = format!("cannot write {}: {error}", to.display());
            Failure::new(Exit::Error, "BACKUP_WRITE", message)
        })
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
