//! Detects a command line without the `--` before the command to run, and shows the corrected line.

use crate::args::{Cli, Command};
use crate::failure::Failure;
use crate::parse;
use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::{OsStr, OsString};

/// The commands that take another command after `--`.
const RUNNERS: [&str; 4] = ["run", "update", "work", "swarm"];

/// The failure to show for a refused line, if the line would parse with a `--` before the command
/// to run. Nothing was locked. The words after the first resource are taken as the command.
pub(crate) fn failure(line: &[OsString], error: &clap::Error) -> Option<Failure> {
    if line.iter().any(|word| word == "--") {
        return None;
    }
    let root = Cli::command();
    let runner = line.iter().position(|word| root.find_subcommand(word).is_some())?;
    if !RUNNERS.iter().any(|name| line[runner] == *name) {
        return None;
    }
    let place = match error.kind() {
        ErrorKind::MissingRequiredArgument => second_resource(line, line),
        ErrorKind::UnknownArgument => unknown_word(line, error),
        _ => return None,
    };
    let failure = Failure::usage("no command to run: write it after `--`");
    let name = line[runner].to_string_lossy();
    Some(failure.hint(match place.filter(|place| *place > runner) {
        Some(place) => {
            let (before, command) = line.split_at(place);
            let dashes = OsString::from("--");
            let words = before[1..].iter().chain([&dashes]).chain(command).map(|word| shown(word));
            format!("Write: tenure {}", words.collect::<Vec<_>>().join(" "))
        }
        None if error.kind() == ErrorKind::UnknownArgument => return None,
        None if name == "run" => "Write: tenure run NAME -- COMMAND".to_owned(),
        None if name == "update" => "Write: tenure update FILE -- COMMAND".to_owned(),
        None => format!("Write: tenure {name} -- COMMAND"),
    }))
}

/// The index of the second resource of a `run`, which is the first word of the command.
fn second_resource(line: &[OsString], until: &[OsString]) -> Option<usize> {
    let completed: Vec<OsString> =
        until.iter().cloned().chain(["--", "true"].map(OsString::from)).collect();
    let Command::Run(args) = parse::parse(&completed).ok()?.cli.command else { return None };
    let written: Vec<&str> = args.written().collect();
    let [first, second, ..] = written.as_slice() else { return None };
    let after_first = line.iter().position(|word| word == *first)? + 1;
    Some(after_first + line[after_first..].iter().position(|word| word == *second)?)
}

/// The index at which the command begins, given an unexpected word: at that word, or before it if
/// it is an option of the command.
fn unknown_word(line: &[OsString], error: &clap::Error) -> Option<usize> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_it = |given: &OsString| {
        let given = given.to_string_lossy();
        given == *word || given.starts_with(&format!("{word}="))
    };
    let place = line.iter().position(is_it)?;
    match word.starts_with('-') {
        true => second_resource(line, &line[..place]),
        false => Some(place),
    }
}

/// Quotes a word for a shell.
fn shown(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,~".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(words: &[&str]) -> Option<String> {
        let line: Vec<OsString> = words.iter().map(OsString::from).collect();
        let error = parse::parse(&line).expect_err("it lacks `--`");
        failure(&line, &error).map(|failure| failure.hint.unwrap())
    }

    #[test]
    fn the_line_that_was_meant_is_shown() {
        for (words, meant) in [
            (&["tenure", "run", "deploy", "./deploy.sh"][..], "tenure run deploy -- ./deploy.sh"),
            (
                &["tenure", "run", "-w", "3", "deploy", "make", "all it is"],
                "tenure run -w 3 deploy -- make 'all it is'",
            ),
            (&["tenure", "run", "deploy", "make", "--prod"], "tenure run deploy -- make --prod"),
            (&["tenure", "run", "deploy", "make", "-j=4"], "tenure run deploy -- make -j=4"),
            (&["tenure", "update", "n.json", "jq", "."], "tenure update n.json -- jq ."),
            (&["tenure", "work", "./agent.sh"], "tenure work -- ./agent.sh"),
            (&["tenure", "run", "deploy"], "tenure run NAME -- COMMAND"),
            (&["tenure", "swarm", "-n", "3"], "tenure swarm -- COMMAND"),
        ] {
            assert_eq!(hint(words), Some(format!("Write: {meant}")), "{words:?}");
        }
    }

    #[test]
    fn other_mistakes_are_left_to_others() {
        for words in [
            &["tenure", "run", "deploy", "--no-such-option"][..],
            &["tenure", "run", "deploy", "--no-such", "--", "true"],
            &["tenure", "release", "a", "--bogus"],
            &["tenure", "tasks", "update"],
            &["tenure", "sections", "update", "--bogus"],
        ] {
            assert_eq!(hint(words), None, "{words:?}");
        }
    }
}
