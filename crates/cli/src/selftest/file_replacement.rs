//! Tests without turns: all processes replace or swap files at once, and a reader must never find
//! them missing or half written.

use super::contender::NoTurn;
use super::trial::Trial;
use std::fs;
use std::io;
use std::path::Path;

/// How often a process repeats its number in a file, so that a partial write is noticed.
const LINES: usize = 200;

/// The two files that swap names, with their initial content.
const PAIR: [(&str, &str); 2] = [("one", "1"), ("other", "2")];

/// A failure in one sentence.
pub(super) type Wrong = String;

/// The result of a round.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// The file existed and was complete.
    Fine,
    /// The file was missing for a moment.
    Gap,
    /// The file had content that no process had written.
    Wrong(Wrong),
}

/// Creates the files that the processes need, before they start.
pub(super) fn prepare(trial: Trial, folder: &Path) -> io::Result<()> {
    match trial {
        Trial::Rename => fs::write(folder.join("baton"), ""),
        Trial::Replace => fs::write(folder.join("shared"), text(0)),
        Trial::Exchange => {
            PAIR.iter().try_for_each(|(name, content)| fs::write(folder.join(name), content))
        }
        Trial::Store | Trial::KernelLock | Trial::HardLink => Ok(()),
    }
}

/// Runs one round of a process.
pub(super) fn round(trial: Trial, folder: &Path) -> Result<Round, NoTurn> {
    match trial {
        Trial::Exchange => swap(folder),
        _ => replace(folder),
    }
}

fn text(number: u32) -> String {
    format!("{number}\n").repeat(LINES)
}

fn replace(folder: &Path) -> Result<Round, NoTurn> {
    let (shared, pid) = (folder.join("shared"), std::process::id());
    let draft = folder.join(format!("draft-{pid}"));
    fs::write(&draft, text(pid)).map_err(NoTurn::File)?;
    fs::rename(&draft, &shared).map_err(NoTurn::File)?;
    look(&shared, is_whole, "a file that was replaced by renaming was seen half written")
}

/// Reads a file while other processes replace it.
fn look(
    file: &Path,
    is_right: impl Fn(&str) -> bool,
    otherwise: &'static str,
) -> Result<Round, NoTurn> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Round::Gap),
        Err(error) => Err(NoTurn::File(error)),
        Ok(content) if is_right(&content) => Ok(Round::Fine),
        Ok(_) => Ok(Round::Wrong(otherwise.to_owned())),
    }
}

fn is_whole(content: &str) -> bool {
    let mut lines = content.lines();
    let Some(first) = lines.next() else { return false };
    content.ends_with('\n') && lines.clone().count() == LINES - 1 && lines.all(|line| line == first)
}

fn swap(folder: &Path) -> Result<Round, NoTurn> {
    let [one, other] = PAIR.map(|(name, _)| folder.join(name));
    exchange(&one, &other)?;
    let is_known = |content: &str| PAIR.iter().any(|(_, known)| content == *known);
    look(&one, is_known, "a file with swapped names had wrong content")
}

#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> Result<(), NoTurn> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(io::Error::from)?)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> Result<(), NoTurn> {
    Err(NoTurn::Missing(io::ErrorKind::Unsupported.into()))
}

/// Checks what the processes left after this many rounds in all.
pub(super) fn leftover(trial: Trial, folder: &Path, rounds: u64) -> Option<Wrong> {
    if trial != Trial::Exchange {
        return None;
    }
    let mut expected = PAIR.map(|(_, content)| content);
    if rounds % 2 == 1 {
        expected.reverse();
    }
    let found = PAIR.map(|(name, _)| fs::read_to_string(folder.join(name)).unwrap_or_default());
    (found != expected).then(|| format!("of {rounds} swaps of two files some were lost"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_and_mixtures_are_not_whole() {
        assert!(is_whole(&text(7)));
        assert!(!is_whole(""));
        assert!(!is_whole(&text(7)[..100]));
        assert!(!is_whole(&text(7).replacen('7', "8", 3)));
    }

    #[test]
    fn what_a_reader_finds_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shared");
        let found = || look(&file, is_whole, "torn").unwrap();
        assert_eq!(found(), Round::Gap);
        fs::write(&file, "7\n").unwrap();
        assert_eq!(found(), Round::Wrong("torn".to_owned()));
        fs::write(&file, text(7)).unwrap();
        assert_eq!(found(), Round::Fine);
    }

    #[test]
    fn a_lost_swap_shows() {
        let folder = tempfile::tempdir().unwrap();
        prepare(Trial::Exchange, folder.path()).unwrap();
        match round(Trial::Exchange, folder.path()) {
            Ok(round) => assert_eq!(round, Round::Fine),
            // Not every file system supports it.
            Err(NoTurn::Missing(_)) => {}
            Err(error) => panic!("{error}"),
        }
        let done = u64::from(fs::read_to_string(folder.path().join("one")).unwrap() == "2");
        assert_eq!(leftover(Trial::Exchange, folder.path(), done), None);
        assert!(leftover(Trial::Exchange, folder.path(), done + 1).is_some());
    }
}
