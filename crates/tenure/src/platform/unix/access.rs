//! Who may use what a store keeps on disk, as it contains the grants that prove ownership.
//!
//! Folders have mode 0700 and files 0600, whatever the umask is. A group is asked for by a folder of
//! the group: one with the set-group-id bit that the group can write to (`chmod g+ws`). In such a
//! folder the modes are 2770 and 0660.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const FOLDER_OF_GROUP: u32 = 0o2770;
const FILE_OF_GROUP: u32 = 0o660;

/// Whether what is made at this path is for the group of its folder too.
pub(crate) fn is_for_group(path: &Path) -> bool {
    const OF_GROUP: u32 = 0o2020;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = fs::metadata(folder.unwrap_or(Path::new(".")));
    folder.is_ok_and(|folder| folder.mode() & OF_GROUP == OF_GROUP)
}

/// Creates a folder and those above it that are missing.
pub(crate) fn make_folders(path: &Path) -> io::Result<()> {
    match (make_folder(path), path.parent()) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
            make_folders(parent)?;
            make_folder(path)
        }
        (made, _) => made,
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        // It may be a link to a folder.
        Err(_) if path.is_dir() => return Ok(()),
        made => made?,
    }
    match is_for_group(path) {
        true => fs::set_permissions(path, Permissions::from_mode(FOLDER_OF_GROUP)),
        false => Ok(()),
    }
}

/// Opens a file with these options, which may create it.
pub(crate) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.mode(0o600).open(path)?;
    if is_for_group(path) {
        // Only its owner can, who did so when creating it.
        let _ = file.set_permissions(Permissions::from_mode(FILE_OF_GROUP));
    }
    Ok(file)
}

/// Creates a file that must not exist yet, for reading and writing.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true).write(true).create_new(true), path)
}

/// Writes a file, which is created if it does not exist.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    open(OpenOptions::new().write(true).create(true).truncate(true), path)?.write_all(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn where_nothing_can_be_made_it_fails() {
        let error = make_folders(Path::new("/proc/nowhere/below")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_is_made_is_for_its_owner_or_for_the_group_that_owns_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        for (outer, inner, file) in
            [(0o755, 0o700, 0o600), (0o775, 0o700, 0o600), (0o2775, 0o2770, 0o660)]
        {
            let outside = folder.path().join(format!("{outer:o}"));
            fs::create_dir(&outside).unwrap();
            fs::set_permissions(&outside, Permissions::from_mode(outer)).unwrap();
            let deep = outside.join("a/b");
            make_folders(&deep).unwrap();
            make_folders(&deep).unwrap();
            write(&deep.join("written"), b"x").unwrap();
            write(&deep.join("written"), b"y").unwrap();
            create_new(&deep.join("new")).unwrap();
            assert_eq!((mode(&outside.join("a")), mode(&deep)), (inner, inner), "{outer:o}");
            assert_eq!((mode(&deep.join("written")), mode(&deep.join("new"))), (file, file));
            assert_eq!(fs::read(deep.join("written")).unwrap(), b"y");
        }
        assert!(make_folders(&folder.path().join("755/a/b/new")).is_err(), "that is a file");
    }
}
