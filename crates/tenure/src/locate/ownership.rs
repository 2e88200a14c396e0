//! Whose a place is. Who owns a store's folder decides what is in it, so another user's is not used
//! without a word, and by root not at all.

use std::fmt;
use std::path::PathBuf;

use crate::place::StoreLocation;

/// The user who runs this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// The effective user id; `None` where the system has none.
    pub id: Option<u32>,
    /// The user who became root by `sudo`.
    pub before_sudo: Option<u32>,
}

impl User {
    /// The user of this process. Reads `SUDO_UID`, which counts for root only.
    pub fn of_process() -> User {
        let id = rustix::process::geteuid().as_raw();
        let before = std::env::var_os("SUDO_UID").and_then(|value| value.to_str()?.parse().ok());
        User { id: Some(id), before_sudo: before.filter(|_| id == 0) }
    }

    /// Whether what this user owns is this process's own.
    pub(super) fn is(self, owner: u32) -> bool {
        self.id == Some(owner) || self.before_sudo == Some(owner)
    }
}

/// A place that belongs to another user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignOwner {
    /// The folder or file.
    pub path: PathBuf,
    /// The id of the user it belongs to.
    pub owner: u32,
    /// Whether it is refused, not only worth a warning.
    pub is_refused: bool,
}

impl fmt::Display for ForeignOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} belongs to another user (id {})", self.path.display(), self.owner)
    }
}

/// Whether the place belongs to somebody whom this user has not chosen to rely on.
///
/// Root is refused: another user could make it write where that user likes. Others are refused only
/// where anybody could have put the folder there, as in `/tmp`.
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
