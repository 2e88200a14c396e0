//! Drafts, their names, and what killed writers left of them.
//!
//! A draft is named `.NAME.tenure-RANDOM.tmp`, beside the file that it is to replace. Its writer
//! keeps the kernel's lock on it, which ends with the writer: a draft without that lock is nobody's.

use super::original::do_not_wait;
use crate::kernel_lock::try_lock;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Between the name of the file and what makes the draft's name its own.
const MARK: &str = ".tenure-";

/// How a draft's name ends.
const ENDING: &str = ".tmp";

/// Random digits in the name: with so many no two drafts meet.
const RANDOM_DIGITS: usize = 12;

/// So much of a long name is kept: with mark, digits and ending it must fit in 255 bytes.
const NAME_BYTES_MAX: usize = 200;

/// How often another name is tried, when somebody who cleans up took a new draft for an old one.
const ATTEMPTS: usize = 16;

/// Most folder entries that a search through a whole tree looks at.
const ENTRIES_MAX: usize = 100_000;

/// Makes a draft beside `path`, locked, so that nobody takes it for a leftover.
pub(super) fn create_draft(path: &Path, private: bool) -> io::Result<(PathBuf, File)> {
    for _ in 0..ATTEMPTS {
        let draft = path.with_file_name(draft_name(path.file_name().unwrap_or_default()));
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        // What replaces a file gets that file's permissions at the end, and until then is nobody
        // else's to read.
        if private {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let file = options.open(&draft)?;
        // Somebody may have seen it before it was locked, and removed it.
        if try_lock(&file)? && draft.exists() {
            return Ok((draft, file));
        }
    }
    Err(io::Error::other("drafts are removed as soon as they are made"))
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

/// The name of the file that a draft is for; nothing if it is no draft.
fn drafted(name: &OsStr) -> Option<&[u8]> {
    let name = name.as_encoded_bytes().strip_prefix(b".")?.strip_suffix(ENDING.as_bytes())?;
    let (rest, digits) = name.split_at_checked(name.len().checked_sub(RANDOM_DIGITS)?)?;
    let random = digits.iter().all(|digit| digit.is_ascii_hexdigit());
    rest.strip_suffix(MARK.as_bytes()).filter(|_| random)
}

/// Removes what killed writers of this file left beside it; says how many there were.
pub fn remove_leftovers(path: &Path) -> usize {
    let Some(name) = path.file_name() else { return 0 };
    let own = draft_name(name);
    let folder = path.parent().unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let leftovers = entries.flatten().filter(|entry| drafted(&entry.file_name()) == drafted(&own));
    leftovers.filter(|entry| remove_if_nobodys(&entry.path())).count()
}

/// The same for all files in a folder and below, without following links, and without looking into
/// git's own folders. Gives up after a bounded number of entries.
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
