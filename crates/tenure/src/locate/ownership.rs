//! Checks who owns the location of a store. The owner of a store's folder controls its content, so
//! using another user's causes a warning, and root refuses it.

use std::fmt;
use std::path::PathBuf;

use crate::place::StoreLocation;

/// The user who runs this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// The effective user id; `None` if the system has none.
    pub id: Option<u32>,
    /// The user who became root with `sudo`.
    pub before_sudo: Option<u32>,
}

impl User {
    /// The user of this process. Reads `SUDO_UID`, which is used for root only.
    pub fn of_process() -> User {
        let id = rustix::process::geteuid().as_raw();
        let before = std::env::var_os("SUDO_UID").and_then(|value| value.to_str()?.parse().ok());
        User { id: Some(id), before_sudo: before.filter(|_| id == 0) }
    }

    /// Whether this process's user owns what `owner` owns.
    pub(super) fn is(self, owner: u32) -> bool {
        self.id == Some(owner) || self.before_sudo == Some(owner)
    }
}

/// A location that belongs to another user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignOwner {
    /// The folder or file.
    pub path: PathBuf,
    /// The id of its owner.
    pub owner: u32,
    /// Whether it is refused, not only worth a warning.
    pub is_refused: bool,
}

impl fmt::Display for ForeignOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} belongs to another user (id {})", self.path.display(), self.owner)
    }
}

/// Whether the location belongs to a user that this one has not trusted.
///
/// Root is refused: the owner could make root write to files of the owner's choice. Other users are
/// refused only where any user can create folders, as in `/tmp`.
pub(super) fn foreign_owner(place: &StoreLocation, user: User) -> Option<ForeignOwner> {
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    let own = user.id?;
    let parent = place.folder.parent().and_then(|folder| fs::metadata(folder).ok());
    let anybody_may_create = parent.is_some_and(|meta| meta.mode() & 0o002 != 0);
    let config_file = place.config_file();
    let looks = [
        (&place.folder, fs::symlink_metadata(&place.folder)),
        (&place.folder, fs::metadata(&place.folder)),
        (&config_file, fs::metadata(&config_file)),
    ];
    looks.into_iter().find_map(|(path, meta)| {
        let owner = meta.ok()?.uid();
        // Root can do everything anyway.
        if user.is(owner) || owner == 0 {
            return None;
        }
        let is_refused = own == 0 || anybody_may_create;
        Some(ForeignOwner { path: path.clone(), owner, is_refused })
    })
}
