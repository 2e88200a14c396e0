//! Names that are hard to write.

use crate::repository::{Repository, is_refused};
use crate::support::TENURE;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn names_with_spaces_quotes_wildcards_and_letters_of_all_kinds_are_told_apart() {
    let names =
        ["with space", "it's", "\"quoted\"", "a*b", "[x]", "ü-ß-猫", "back\\slash", "-dash"];
    let repository = Repository::with_files(&names);
    for name in names {
        let written = ["\\", "*", "["]
            .iter()
            .fold(name.to_owned(), |name, special| name.replace(special, &format!("\\{special}")));
        repository.hold(&[&format!("path:{written}")]);
        for name in names {
            repository.write(name, &format!("while {written} is held\n"));
        }
        is_refused(&repository.commit_all(), &[name]);
        repository.release();
    }
}

#[test]
fn a_name_with_a_line_break_or_without_text_is_covered_by_a_glob() {
    let repository = Repository::with_files(&["odd/plain"]);
    repository.write("odd/two\nlines", "x\n");
    repository.write(OsStr::from_bytes(b"odd/\xff\xfe"), "x\n");
    repository.git(&["add", "-A"]);
    repository.hold(&["path:odd/**"]);
    let ended = repository.try_git(&["commit", "-q", "-m", "odd"]);
    is_refused(&ended, &["\"odd/two\\nlines\"", "odd/\u{fffd}\u{fffd}"]);
}

#[test]
fn the_hint_can_be_pasted_into_a_shell() {
    let repository = Repository::with_files(&["it's [a] b"]);
    repository.hold(&["path:it's \\[a] b"]);
    repository.write("it's [a] b", "second\n");
    let ended = repository.commit_all();
    let (_, hint) = ended.stderr.split_once('`').expect("a command");
    let (command, _) = hint.split_once('`').expect("the end of the command");
    let command = command.replacen("tenure wait", &format!("'{TENURE}' wait -n"), 1);
    // It waits for just this file: busy while it is held, free afterwards.
    assert_eq!(repository.run_in(&repository.root, &["sh", "-c", &command]).code, 6, "{command}");
    repository.release();
    assert_eq!(repository.run_in(&repository.root, &["sh", "-c", &command]).code, 0, "{command}");
}
