//! Which of its arguments a program writes, for the programs that agents change files with.

use super::Judge;
use super::lexer::Word;
use std::path::{Path, PathBuf};

/// Programs that run the command after them unchanged.
const PREFIXES: [&str; 8] = ["command", "builtin", "exec", "nohup", "time", "sudo", "env", "nice"];

/// The command without assignments and programs that only run it. Nothing is left if such a
/// program has options of its own: what they mean is not known here.
pub(super) fn without_prefixes(words: &[Word]) -> &[Word] {
    let mut rest = words;
    loop {
        while rest.first().is_some_and(Word::is_assignment) {
            rest = &rest[1..];
        }
        let Some(name) = rest.first().and_then(Word::text) else { return rest };
        let is_timeout = name == "timeout" && rest.len() > 2 && !rest[1].is_option();
        if is_timeout {
            rest = &rest[2..];
        } else if PREFIXES.contains(&name) {
            rest = &rest[1..];
            if rest.first().is_some_and(Word::is_option) {
                return &[];
            }
        } else {
            return rest;
        }
    }
}

/// The script of `sh -c SCRIPT`, also with other options in the same word, as in `-lc`.
pub(super) fn inline_script(arguments: &[Word]) -> Option<String> {
    let index = arguments.iter().position(|word| {
        word.text().is_some_and(|text| {
            text.starts_with('-') && !text.starts_with("--") && text.ends_with('c')
        })
    })?;
    // Only options may be before it: else the shell runs a file.
    if !arguments[..index].iter().all(Word::is_option) {
        return None;
    }
    arguments.get(index + 1)?.text().map(str::to_owned)
}

/// The arguments of a command, apart: its options, and what they are about.
pub(super) struct Arguments<'a> {
    pub(super) options: Vec<&'a str>,
    pub(super) operands: Vec<&'a Word>,
    /// How many of the operands were before a `--`; `None` without one.
    pub(super) before_separator: Option<usize>,
}

impl<'a> Arguments<'a> {
    /// Takes the arguments apart. `with_value` are the options whose value is the next word.
    pub(super) fn new(words: &'a [Word], with_value: &[&str]) -> Arguments<'a> {
        let mut arguments = Arguments { options: vec![], operands: vec![], before_separator: None };
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let text = word.text().unwrap_or_default();
            if arguments.before_separator.is_some() || !word.is_option() {
                arguments.operands.push(word);
            } else if text == "--" {
                arguments.before_separator = Some(arguments.operands.len());
            } else {
                arguments.options.push(text);
                if with_value.contains(&text) {
                    rest.next();
                }
            }
        }
        arguments
    }

    /// Whether one of these options was given: as a long option, or a letter among short ones.
    pub(super) fn has(&self, short: &str, long: &[&str]) -> bool {
        self.options.iter().any(|option| match option.strip_prefix("--") {
            Some(name) => long.contains(&name.split('=').next().unwrap_or(name)),
            None => option[1..].contains(|letter| short.contains(letter)),
        })
    }

    /// The value of an option: the next word, or behind `=`.
    fn value(words: &'a [Word], names: &[&str]) -> Option<&'a str> {
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let text = word.text().unwrap_or_default();
            if names.contains(&text) {
                return rest.next().and_then(Word::text);
            }
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            if names.contains(&name) && !value.is_empty() {
                return Some(value);
            }
        }
        None
    }
}

/// Notes what the program with this name writes.
pub(super) fn judge(judge: &mut Judge<'_>, name: &str, words: &[Word]) {
    match name {
        "rm" | "unlink" | "shred" | "rmdir" => all_operands(judge, words, &["-n", "-s"]),
        "tee" => all_operands(judge, words, &[]),
        "touch" => all_operands(judge, words, &["-d", "-r", "-t", "--date", "--reference"]),
        "truncate" => all_operands(judge, words, &["-s", "-r", "--size", "--reference"]),
        "sed" | "gsed" => sed(judge, words),
        "perl" | "ruby" => perl(judge, words),
        "mv" | "cp" | "ln" | "install" => moved(judge, name, words),
        "dd" => {
            let targets = words.iter().filter_map(|word| word.text()?.strip_prefix("of="));
            let paths: Vec<PathBuf> = targets.filter_map(|path| judge.at(path)).collect();
            paths.into_iter().for_each(|path| judge.write_path(path));
        }
        "patch" => patch(judge, words),
        _ => {}
    }
}

fn all_operands(judge: &mut Judge<'_>, words: &[Word], with_value: &[&str]) {
    for word in Arguments::new(words, with_value).operands {
        judge.write(word);
    }
}

/// `sed -i`: the files behind the script.
fn sed(judge: &mut Judge<'_>, words: &[Word]) {
    let arguments = Arguments::new(words, &["-e", "-f", "--expression", "--file", "-l"]);
    // `-i` may have a suffix, so that letters behind it are no options.
    let in_place = arguments.options.iter().any(|option| match option.strip_prefix("--") {
        Some(name) => name.starts_with("in-place"),
        None => option.contains('i'),
    });
    if !in_place {
        return;
    }
    let has_script = arguments.options.iter().any(|option| {
        matches!(*option, "-e" | "-f" | "--expression" | "--file")
            || option.starts_with("--expression=")
            || option.starts_with("--file=")
            || is_cluster_with(option, "ef")
    });
    // `sed -i '' SCRIPT FILE`, as on macOS: an empty suffix is a word of its own.
    let operands = arguments.operands.iter().filter(|word| word.text() != Some(""));
    for word in operands.skip(usize::from(!has_script)) {
        judge.write(word);
    }
}

/// Whether short options in one word end with one of these letters, whose value is the next word:
/// `-ne`. What follows an `i` is a suffix.
fn is_cluster_with(option: &str, letters: &str) -> bool {
    let letters_before_suffix = option.trim_start_matches('-').split('i').next().unwrap_or("");
    !option.starts_with("--")
        && !option.contains('i')
        && letters_before_suffix.ends_with(|last| letters.contains(last))
}

/// `perl -pi -e SCRIPT FILE`: the files behind the script.
fn perl(judge: &mut Judge<'_>, words: &[Word]) {
    let (mut in_place, mut has_script) = (false, false);
    let mut files: Vec<&Word> = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let Some(text) = word.text() else { return };
        if !files.is_empty() || !word.is_option() {
            files.push(word);
            continue;
        }
        for (index, letter) in text.char_indices().skip(1) {
            match letter {
                'i' => in_place = true,
                'e' | 'E' => has_script = true,
                _ => continue,
            }
            // Behind `-e` comes the script, in this word or in the next one; behind `-i` a suffix.
            if letter != 'i' && index + 1 == text.len() {
                rest.next();
            }
            break;
        }
    }
    if in_place {
        files.iter().skip(usize::from(!has_script)).for_each(|word| judge.write(word));
    }
}

/// `mv`, `cp`, `ln`, `install`: the target, and what `mv` takes away.
fn moved(judge: &mut Judge<'_>, name: &str, words: &[Word]) {
    const WITH_VALUE: [&str; 10] = [
        "-t",
        "--target-directory",
        "-S",
        "--suffix",
        "-m",
        "--mode",
        "-o",
        "--owner",
        "-g",
        "--group",
    ];
    let arguments = Arguments::new(words, &WITH_VALUE);
    if name == "install" && arguments.has("d", &["directory"]) {
        return;
    }
    let mut sources = arguments.operands.clone();
    let target = match Arguments::value(words, &["-t", "--target-directory"]) {
        Some(folder) => judge.at(folder),
        None if sources.len() < 2 => return,
        None => sources.pop().filter(|word| !word.has_pattern()).and_then(|word| {
            let text = word.text()?;
            judge.at(text)
        }),
    };
    if name == "mv" {
        sources.iter().for_each(|word| judge.write(word));
    }
    let Some(target) = target else { return };
    if !judge.files.is_folder(&target) {
        let copies_folder = sources.iter().any(|word| is_folder(judge, word));
        match copies_folder {
            true => judge.found.trees.push(target),
            false => judge.write_path(target),
        }
        return;
    }
    for source in sources {
        if source.has_pattern() {
            continue;
        }
        let Some(text) = source.text() else { continue };
        let Some(file) = Path::new(text).file_name() else { continue };
        let inside = target.join(file);
        match is_folder(judge, source) {
            true => judge.found.trees.push(inside),
            false => judge.write_path(inside),
        }
    }
}

fn is_folder(judge: &Judge<'_>, word: &Word) -> bool {
    let path = word.text().and_then(|text| judge.at(text));
    path.is_some_and(|path| judge.files.is_folder(&path))
}

/// `patch FILE`: the file; without one it is named in the patch, which is not read.
fn patch(judge: &mut Judge<'_>, words: &[Word]) {
    let with_value = ["-p", "-i", "-d", "-o", "--input", "--directory", "--output", "--strip"];
    if Arguments::value(words, &["-d", "--directory"]).is_some() {
        return;
    }
    if let Some(output) = Arguments::value(words, &["-o", "--output"]) {
        let path = judge.at(output);
        path.into_iter().for_each(|path| judge.write_path(path));
        return;
    }
    if let Some(file) = Arguments::new(words, &with_value).operands.first() {
        judge.write(file);
    }
}
