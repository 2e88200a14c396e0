//! The location of `machine:`, the store that all users of a machine share.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{PlaceError, absolute};

/// Overrides the folder of the machine's store.
pub const MACHINE_FOLDER_VARIABLE: &str = "TENURE_MACHINE_DIR";

/// The folder of the machine's store, which need not exist. Reads the environment.
pub fn machine_folder() -> PathBuf {
    folder_from(std::env::var_os(MACHINE_FOLDER_VARIABLE))
}

fn folder_from(variable: Option<OsString>) -> PathBuf {
    if let Some(folder) = absolute(variable) {
        return folder;
    }
    match cfg!(target_os = "macos") {
        true => "/Library/Application Support/tenure".into(),
        false => "/var/lib/tenure".into(),
    }
}

/// Creates the folder of the machine's store for the members of a group: they can read and write in
/// it, and files that they create belong to the group. Other users have no access.
pub fn prepare_machine_folder(folder: &Path, group: u32) -> Result<(), PlaceError> {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    let failed = |source| PlaceError::from_writing(folder, source);
    fs::create_dir_all(folder).map_err(failed)?;
    std::os::unix::fs::chown(folder, None, Some(group)).map_err(failed)?;
    // After the owner, because changing the owner removes the set-group-id bit.
    fs::set_permissions(folder, fs::Permissions::from_mode(0o2770)).map_err(failed)
}

/// The id of a group, by its name in `/etc/group` or by the number itself.
pub fn group_id(name: &str) -> Option<u32> {
    if let Ok(number) = name.parse() {
        return Some(number);
    }
    group_in(&std::fs::read_to_string("/etc/group").ok()?, name)
}

fn group_in(groups: &str, name: &str) -> Option<u32> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_known_by_name_or_number() {
        let groups = "root:x:0:\nlocks:x:1007:alice,bob\n# comment\nbroken\n";
        assert_eq!(group_in(groups, "locks"), Some(1007));
        assert_eq!(group_in(groups, "lock"), None);
        assert_eq!(group_in(groups, "broken"), None);
        assert_eq!(group_id("12"), Some(12));
    }

    #[test]
    fn a_relative_variable_is_ignored() {
        assert_eq!(folder_from(Some("/x/y".into())), PathBuf::from("/x/y"));
        assert_eq!(folder_from(Some("y".into())), folder_from(None));
    }
}
