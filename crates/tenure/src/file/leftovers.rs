//! Drafts, their names, and removing those of killed writers.
//!
//! A draft is named `.NAME.tenure-RANDOM.tmp`, in the folder of the file that it will replace. Its
//! writer holds the kernel's lock on it, which ends with the writer: a draft without that lock is
//! abandoned.

use super::original::do_not_wait;
use crate::kernel_lock::try_lock;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Separates the file's name from the random part of a draft's name.
const MARK: &str = ".tenure-";

/// The suffix of a draft's name.
const ENDING: &str = ".tmp";

/// The number of random digits, enough that two drafts never have the same name.
const RANDOM_DIGITS: usize = 12;

/// How much of a long name is kept: with separator, digits and suffix it must fit in 255 bytes.
const NAME_BYTES_MAX: usize = 200;

/// How often another name is tried, if a cleaner took a new draft for an abandoned one.
const ATTEMPTS: usize = 16;

/// The most folder entries that a search through a whole tree reads.
const ENTRIES_MAX: usize = 100_000;

/// Creates a locked draft beside `path`, so that it is not taken for an abandoned one.
pub(super) fn create_draft(path: &Path, private: bool) -> io::Result<(PathBuf, File)> {
    for _ in 0..ATTEMPTS {
        let draft = path.with_file_name(draft_name(path.file_name().unwrap_or_default()));
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        // The draft gets the permissions of the replaced file at the end; until then only its owner
        // can read it.
        if private {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let file = options.open(&draft)?;
        // A cleaner may have seen it before it was locked, and removed it.
        if try_lock(&file)? && draft.exists() {
            return Ok((draft, file));
        }
    }
    Err(io::Error::other("drafts are removed as soon as they are created"))
}

fn draft_name(name: &OsStr) -> OsString {
    let mut draft = OsString::from(".");
    match name.to_str() {
        Some(text) => {
            let end = (0..=text.len().min(NAME_BYTES_MAX)).rev();
            let end = end.into_iter().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            draft.push(&text[..end]);
        }
        None if name.len() <= NAME_BYTES_MAX => draft.push(name),
        None => {}
    }
    draft.push(MARK);
    draft.push(&uuid::Uuid::new_v4().simple().to_string()[..RANDOM_DIGITS]);
    draft.push(ENDING);
    draft
}

/// The name of the file that a draft is for; `None` if it is not a draft.
fn drafted(name: &OsStr) -> Option<&[u8]> {
    let name = name.as_encoded_bytes().strip_prefix(b".")?.strip_suffix(ENDING.as_bytes())?;
    let (rest, digits) = name.split_at_checked(name.len().checked_sub(RANDOM_DIGITS)?)?;
    let random = digits.iter().all(|digit| digit.is_ascii_hexdigit());
    rest.strip_suffix(MARK.as_bytes()).filter(|_| random)
}

/// Removes abandoned drafts of this file; returns how many there were.
pub fn remove_leftovers(path: &Path) -> usize {
    let Some(name) = path.file_name() else { return 0 };
    let own = draft_name(name);
    let folder = path.parent().unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let leftovers = entries.flatten().filter(|entry| drafted(&entry.file_name()) == drafted(&own));
    leftovers.filter(|entry| remove_if_nobodys(&entry.path())).count()
}

/// As [`remove_leftovers`], for all files in a folder and below. It follows no links, skips git's
/// own folders, and stops after a bounded number of entries.
pub fn remove_all_leftovers(folder: &Path) -> usize {
    let (mut removed, mut looked_at) = (0, 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            looked_at += 1;
            if looked_at > ENTRIES_MAX {
                return removed;
            }
            let name = entry.file_name();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && name != ".git" {
                folders.push(entry.path());
            } else if drafted(&name).is_some() && remove_if_nobodys(&entry.path()) {
                removed += 1;
            }
        }
    }
    removed
}

fn remove_if_nobodys(path: &Path) -> bool {
    let plain = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut options = File::options();
    options.read(true);
    do_not_wait(&mut options);
    let Ok(file) = options.open(path) else { return false };
    plain && try_lock(&file).unwrap_or(false) && std::fs::remove_file(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_known_by_its_name() {
        let long = "é".repeat(127);
        for name in ["state.json", ".hidden", "a.tenure-b.tmp", long.as_str()] {
            let draft = draft_name(OsStr::new(name));
            assert!(draft.len() <= 255, "{draft:?}");
            let of = drafted(&draft).unwrap();
            assert!(name.as_bytes().starts_with(of), "{draft:?}");
        }
        for name in [".x.tmp", "x.tenure-0123456789ab.tmp", ".x.tenure-0123456789aX.tmp", ""] {
            assert_eq!(drafted(OsStr::new(name)), None, "{name}");
        }
    }
}
