//! What git commands write or throw away in the working tree.

use super::commands::Arguments;
use super::lexer::Word;
use super::{Discard, Discarded, Judge};

/// Notes what a git command changes in the working tree.
pub(super) fn judge(judge: &mut Judge<'_>, words: &[Word]) {
    let before = judge.folder.clone();
    if let Some((verb, rest)) = verb(judge, words) {
        command(judge, verb, rest);
    }
    judge.folder = before;
}

/// The verb behind git's own options, of which `-C` changes the folder.
fn verb<'a>(judge: &mut Judge<'_>, words: &'a [Word]) -> Option<(&'a str, &'a [Word])> {
    let mut rest = words;
    loop {
        let (first, after) = rest.split_first()?;
        rest = after;
        match first.text()? {
            "-C" => {
                let (folder, after) = rest.split_first()?;
                judge.folder = folder.text().and_then(|folder| judge.at(folder));
                rest = after;
            }
            "-c" => rest = rest.get(1..)?,
            "--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs" => {}
            // Another repository, or something that is not known here.
            option if option.starts_with('-') => return None,
            verb => return Some((verb, rest)),
        }
    }
}

fn command(judge: &mut Judge<'_>, verb: &str, words: &[Word]) {
    match verb {
        "checkout" => checkout(judge, words),
        "switch" => {
            let arguments = Arguments::new(words, &["-c", "-C", "--orphan"]);
            if arguments.has("f", &["force", "discard-changes"]) {
                discard_everything(judge, Discarded::Tracked);
            }
        }
        "restore" => {
            let arguments = Arguments::new(words, &["-s", "--source"]);
            let only_index = arguments.has("S", &["staged"]) && !arguments.has("W", &["worktree"]);
            if !only_index {
                discard_each(judge, &arguments.operands, Discarded::Tracked);
            }
        }
        "rm" => {
            let arguments = Arguments::new(words, &[]);
            if !arguments.has("n", &["cached", "dry-run"]) {
                arguments.operands.iter().for_each(|word| judge.write(word));
            }
        }
        "mv" => super::commands::judge(judge, "mv", words),
        "reset" if Arguments::new(words, &[]).has("", &["hard"]) => {
            discard_everything(judge, Discarded::Tracked);
        }
        "clean" => {
            let arguments = Arguments::new(words, &["-e", "--exclude"]);
            let removes = arguments.has("f", &["force"]) && !arguments.has("n", &["dry-run"]);
            match arguments.operands.is_empty() {
                _ if !removes => {}
                true => discard_everything(judge, Discarded::Untracked),
                false => discard_each(judge, &arguments.operands, Discarded::Untracked),
            }
        }
        "stash" => stash(judge, words),
        _ => {}
    }
}

/// `git checkout` throws changes away at the paths that it is given, or everywhere with `--force`.
fn checkout(judge: &mut Judge<'_>, words: &[Word]) {
    let arguments = Arguments::new(words, &["-b", "-B", "--orphan"]);
    if arguments.has("bBt", &["orphan", "track", "detach"]) {
        return;
    }
    let operands = &arguments.operands;
    let paths: &[&Word] = match arguments.before_separator {
        Some(before) => &operands[before..],
        // A single name is a branch, unless there is a file of that name; so may be the first.
        None => {
            let is_path = |word: &&Word| {
                word.text().is_some_and(|text| {
                    judge.at(text).is_some_and(|path| judge.files.exists(&path))
                })
            };
            let from = operands.iter().position(is_path);
            from.map_or(&[], |from| &operands[from..])
        }
    };
    if paths.is_empty() && arguments.has("f", &["force"]) {
        return discard_everything(judge, Discarded::Tracked);
    }
    discard_each(judge, paths, Discarded::Tracked);
}

/// `git stash` takes changes away, `git stash pop` and others bring them back.
fn stash(judge: &mut Judge<'_>, words: &[Word]) {
    let first = words.iter().find(|word| !word.is_option()).and_then(Word::text);
    let rest = match first {
        None | Some("push" | "save") => words,
        Some(_) if words.first().is_some_and(|word| word.text() == Some("--")) => words,
        Some(_) => return,
    };
    let arguments = Arguments::new(rest, &["-m", "--message"]);
    let which = match arguments.has("ua", &["include-untracked", "all"]) {
        true => Discarded::Both,
        false => Discarded::Tracked,
    };
    match arguments.before_separator {
        Some(before) => discard_each(judge, &arguments.operands[before..], which),
        None => discard_everything(judge, which),
    }
}

fn discard_each(judge: &mut Judge<'_>, paths: &[&Word], which: Discarded) {
    paths.iter().for_each(|word| judge.discard(word, which));
}

/// Notes that all that is not committed would be lost.
fn discard_everything(judge: &mut Judge<'_>, which: Discarded) {
    if let Some(folder) = judge.folder.clone() {
        judge.note_discard(Discard { folder, whole_worktree: true, which });
    }
}
