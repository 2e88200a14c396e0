//! Replaces a file in one step.

use super::leftovers::create_draft;
use super::original::Found;
use super::stamp::Stamp;
use super::{Content, FileError, Format, Original};
use crate::kernel_lock::lock_within;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait for appenders of the file: they need milliseconds unless their disk is slow. A
/// longer hold is intentional.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// Options of a replacement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Replace<'a> {
    /// Replace the file even if another program changed it, or if it has other names.
    pub overwrite: bool,
    /// Keep the old content beside the file, under its name with this suffix.
    pub backup: Option<&'a OsStr>,
}

/// The new content of a file, being written. It is removed on drop.
#[derive(Debug)]
pub struct Draft<'a> {
    original: &'a Original,
    temporary: Temporary,
    bytes: u64,
}

/// A draft on disk, with the file's permissions, while the kernel's lock keeps cooperating programs
/// from changing the file. It is removed on drop.
#[derive(Debug)]
#[must_use = "nothing is replaced until it is told to"]
pub struct Sealed<'a> {
    original: &'a Original,
    temporary: Temporary,
    backup: Option<(Temporary, PathBuf)>,
    overwrite: bool,
}

impl Original {
    /// Creates a draft beside the file.
    pub fn draft(&self) -> Result<Draft<'_>, FileError> {
        let temporary = Temporary::beside(self.path(), self.exists())?;
        Ok(Draft { original: self, temporary, bytes: 0 })
    }
}

impl Draft<'_> {
    /// The number of bytes written.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends to the draft.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.temporary.file.write_all(bytes).map_err(|error| self.unwritten(error))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Checks the format of the draft.
    pub fn check(&mut self, format: Format) -> Result<Content, FileError> {
        format.check(&mut self.temporary.file).map_err(|error| self.unwritten(error))
    }

    fn unwritten(&self, error: io::Error) -> FileError {
        FileError::from_attempt(self.original.path(), "written", error)
    }
}

impl<'a> Draft<'a> {
    /// Puts the draft on disk with the file's permissions and, if this process may, its owner; and
    /// locks the file. Check the lease after this.
    pub fn seal(self, how: Replace<'_>) -> Result<Sealed<'a>, FileError> {
        let (path, original) = (self.original.path(), self.original);
        let refused = |error| FileError::from_attempt(path, "replaced", error);
        if let Some(found) = original.found() {
            if original.other_names() > 0 && !how.overwrite {
                let names = original.other_names() + 1;
                return Err(FileError::Linked { path: path.to_owned(), names });
            }
            if !lock_within(&found.file, Some(LOCK_PATIENCE)).map_err(refused)? {
                return Err(FileError::Locked { path: path.to_owned() });
            }
        }
        // From here on an error drops it, and so unlocks the file.
        let overwrite = how.overwrite;
        let mut sealed = Sealed { original, temporary: self.temporary, backup: None, overwrite };
        if let Some(found) = original.found() {
            keep_permissions(&sealed.temporary.file, &found.metadata).map_err(refused)?;
            sealed.backup = how.backup.map(|ending| copy(original, found, ending)).transpose()?;
        }
        let synced = sealed.temporary.file.sync_all();
        synced.map_err(|error| FileError::from_attempt(path, "written", error))?;
        Ok(sealed)
    }
}

impl Sealed<'_> {
    /// Replaces the file, unless another program changed it; returns where the old content is kept.
    ///
    /// Until this returns, readers see the complete old content or the complete new one. When it
    /// has returned, the new content is on disk.
    pub fn replace(mut self) -> Result<Option<PathBuf>, FileError> {
        let path = self.original.path();
        let refused = |error| FileError::from_attempt(path, "replaced", error);
        let now = match std::fs::metadata(path) {
            Ok(metadata) => Some(Stamp::of(&metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(refused(error)),
        };
        if now.as_ref() != self.original.found().map(|found| &found.stamp) && !self.overwrite {
            return Err(FileError::Changed { path: path.to_owned() });
        }
        let mut kept = None;
        if let Some((copy, name)) = &mut self.backup {
            copy.rename(name).map_err(|error| FileError::from_attempt(name, "written", error))?;
            kept = Some(name.clone());
        }
        match now.is_some() || self.overwrite {
            true => self.temporary.rename(path).map_err(refused)?,
            false => self.temporary.appear(path)?,
        }
        sync_folder(path).map_err(refused)?;
        Ok(kept)
    }
}

impl Drop for Sealed<'_> {
    fn drop(&mut self) {
        // The original stays open and would keep the lock. If unlocking fails, the lock ends when
        // the original is closed.
        if let Some(found) = self.original.found() {
            let _ = found.file.unlock();
        }
    }
}

/// A file beside another one, removed on drop unless it was renamed.
#[derive(Debug)]
struct Temporary {
    path: Option<PathBuf>,
    file: File,
}

impl Temporary {
    fn beside(path: &Path, private: bool) -> Result<Temporary, FileError> {
        let (draft, file) = create_draft(path, private).map_err(|error| {
            let folder = path.parent().unwrap_or(path);
            FileError::from_attempt(folder, "written to", error)
        })?;
        Ok(Temporary { path: Some(draft), file })
    }

    fn rename(&mut self, to: &Path) -> io::Result<()> {
        if let Some(path) = &self.path {
            std::fs::rename(path, to)?;
            self.path = None;
        }
        Ok(())
    }

    /// Takes a free name, without replacing a file that was created meanwhile.
    fn appear(&mut self, to: &Path) -> Result<(), FileError> {
        let Some(path) = &self.path else { return Ok(()) };
        match std::fs::hard_link(path, to) {
            Ok(()) => Ok(()), // Its first name goes with the draft.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(FileError::Changed { path: to.to_owned() })
            }
            // A file system without hard links.
            Err(_) => {
                self.rename(to).map_err(|error| FileError::from_attempt(to, "created", error))
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A copy of the original on disk, and the name that it will get.
fn copy(
    original: &Original,
    found: &Found,
    ending: &OsStr,
) -> Result<(Temporary, PathBuf), FileError> {
    let mut name = original.path().as_os_str().to_owned();
    name.push(ending);
    let name = PathBuf::from(name);
    let refused = |error| FileError::from_attempt(&name, "written", error);
    let mut copy = Temporary::beside(&name, true)?;
    if let Some(mut content) = original.content()? {
        io::copy(&mut content, &mut copy.file).map_err(refused)?;
    }
    keep_permissions(&copy.file, &found.metadata).map_err(refused)?;
    copy.file.sync_all().map_err(refused)?;
    Ok((copy, name))
}

/// Gives a file the permissions of another, and its owner and group if that is allowed.
fn keep_permissions(file: &File, of: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    /// Set-user-id and set-group-id.
    const IDENTITY_BITS: u32 = 0o6000;
    let own = file.metadata()?;
    let user = (own.uid() != of.uid()).then(|| of.uid());
    let group = (own.gid() != of.gid()).then(|| of.gid());
    let give = |user: Option<u32>, group: Option<u32>| {
        let user = user.map(rustix::fs::Uid::from_raw);
        let group = group.map(rustix::fs::Gid::from_raw);
        rustix::fs::fchown(file, user, group).is_ok()
    };
    let mut mode = of.mode() & 0o7777;
    if (user.is_some() || group.is_some()) && !give(user, group) {
        // A file of another user must not run as this one.
        mode &= !IDENTITY_BITS;
        if group.is_some() && !give(None, group) {
            // This process's group must not get the permissions of the other file's group.
            mode &= !0o070 | (mode & 0o007) << 3;
        }
    }
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

/// A new name is on disk when its folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}
