//! Parses the command line quickly.
//!
//! clap needs the description of every option of every command before it parses the first word, and
//! building that takes longer than most commands run. For commands that scripts call in loops, only
//! the called command is described. If that fails (a mistake, or a request for help), the whole
//! command line is described and parsed again.

use crate::args::{Cli, Global};
use crate::commands;
use crate::help;
use clap::{ArgMatches, Args, FromArgMatches};
use std::ffi::OsString;
use std::mem::ManuallyDrop;

/// A command line that was understood.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) cli: Cli,
    /// The name of the command, for the JSON envelope.
    pub(crate) command: String,
    /// The name of the command below it, if it has any.
    pub(crate) subcommand: Option<String>,
}

/// Parses a command line, which begins with the program's own name.
pub(crate) fn parse(line: &[OsString]) -> Result<Parsed, clap::Error> {
    if let Some(Ok(parsed)) = description_of_one(line).map(|one| read(one, line)) {
        return Ok(parsed);
    }
    read(help::described(), line)
}

/// Describes only the called command, if it is one that scripts call often.
fn description_of_one(line: &[OsString]) -> Option<clap::Command> {
    let (name, describe): (_, fn(clap::Command) -> clap::Command) = match line.get(1)?.to_str()? {
        "run" => ("run", commands::run::RunArgs::augment_args),
        "update" => ("update", commands::update::UpdateArgs::augment_args),
        "append" => ("append", commands::append::AppendArgs::augment_args),
        "acquire" => ("acquire", commands::acquire::AcquireArgs::augment_args),
        "renew" => ("renew", commands::renew::RenewArgs::augment_args),
        "release" => ("release", commands::release::ReleaseArgs::augment_args),
        "verify" => ("verify", commands::verify::VerifyArgs::augment_args),
        "wait" => ("wait", commands::wait::WaitArgs::augment_args),
        "status" => ("status", commands::status::StatusArgs::augment_args),
        "tasks" => ("tasks", commands::tasks::TasksArgs::augment_args),
        "guard" => ("guard", commands::guard::GuardArgs::augment_args),
        _ => return None,
    };
    let one = describe(clap::Command::new(name));
    Some(Global::augment_args(clap::Command::new("tenure")).subcommand(one))
}

fn read(description: clap::Command, line: &[OsString]) -> Result<Parsed, clap::Error> {
    // It is never dropped: freeing the description takes almost as long as parsing.
    let mut description = ManuallyDrop::new(description);
    let mut matches = description.try_get_matches_from_mut(line)?;
    let (command, subcommand) = names(&matches);
    let cli = Cli::from_arg_matches_mut(&mut matches);
    let cli = cli.map_err(|error| error.format(&mut description))?;
    Ok(Parsed { cli, command, subcommand })
}

/// Commands that list if no command is given below them.
const LISTS: [&str; 3] = ["locks", "tasks", "sections"];

/// The names of the command and of the one below it.
fn names(matches: &ArgMatches) -> (String, Option<String>) {
    match matches.subcommand() {
        None => (String::new(), None),
        Some((command, below)) => {
            let default = LISTS.contains(&command).then_some("list");
            let subcommand = below.subcommand_name().or(default);
            (command.to_owned(), subcommand.map(str::to_owned))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;

    fn line(words: &str) -> Vec<OsString> {
        words.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn one_command_described_alone_is_read_like_all_together() {
        for words in [
            "tenure run deploy -- ./deploy.sh --now -- x",
            "tenure run -n -E 0 -s a section:b --json --as me -- true",
            "tenure run --slots 3 -w 0.5 --ttl 1m gpu --store sqlite:x.db -C / -- true",
            "tenure update a.json -w 3 --backup --validate json -- jq .",
            "tenure append log.jsonl --line {} --sync",
            "tenure acquire db --ttl 10m --no-wait",
            "tenure renew db",
            "tenure release --as me -q",
            "tenure verify db --token 7",
            "tenure wait db -w 3",
            "tenure status",
            "tenure status -v db",
            "tenure tasks list --json",
        ] {
            let line = line(words);
            let alone = read(description_of_one(&line).unwrap(), &line);
            let together = read(help::described(), &line);
            assert_eq!(format!("{:?}", alone.unwrap()), format!("{:?}", together.unwrap()));
        }
    }

    #[test]
    fn mistakes_and_calls_for_help_are_answered_by_the_whole_description() {
        for words in
            ["tenure run", "tenure run --help", "tenure status --version", "tenure wait -x"]
        {
            let line = line(words);
            let together = read(help::described(), &line).unwrap_err();
            assert_eq!(parse(&line).unwrap_err().to_string(), together.to_string());
        }
    }

    #[test]
    fn each_command_described_alone_has_all_its_options() {
        let mut whole = help::described();
        whole.build();
        for command in whole.get_subcommands() {
            let line = line(&format!("tenure {}", command.get_name()));
            let Some(mut alone) = description_of_one(&line) else { continue };
            alone.build();
            let options = |command: &clap::Command| -> Vec<String> {
                let ids = command.get_arguments().map(|argument| argument.get_id().to_string());
                ids.filter(|id| id != "version").collect()
            };
            let alone = alone.find_subcommand(command.get_name()).unwrap();
            assert_eq!(options(alone), options(command));
        }
    }

    /// Values that almost every option must refuse.
    const WRONG: [&str; 9] =
        ["", "x", "-1", "0", "1.5", "99999999999999999999999", "300", "\u{1F680}", "a b"];

    /// Words of Rust's own parsers and of clap's ranges, which users should not see.
    const JARGON: [&str; 8] = [
        "invalid digit",
        "cannot parse",
        "number too",
        "invalid float",
        "ParseInt",
        "is not in",
        "unknown variant",
        "out of range integral",
    ];

    #[test]
    fn a_wrong_value_of_any_option_is_answered_in_plain_words() {
        let mut refused = 0;
        let mut whole = help::described();
        whole.build();
        let mut open = vec![(vec!["tenure".to_owned()], whole)];
        while let Some((words, command)) = open.pop() {
            for argument in command.get_arguments().filter(|one| one.get_action().takes_values()) {
                for wrong in WRONG {
                    let mut line: Vec<OsString> = words.iter().map(OsString::from).collect();
                    line.push(match (argument.get_long(), argument.get_short()) {
                        (Some(long), _) => format!("--{long}={wrong}").into(),
                        (None, Some(short)) => format!("-{short}={wrong}").into(),
                        (None, None) => wrong.into(),
                    });
                    let Err(error) = read(help::described(), &line) else { continue };
                    if error.kind() == ErrorKind::UnknownArgument {
                        // clap took it for an option, not for a value.
                        continue;
                    }
                    let failure = crate::failure::Failure::from(&error);
                    refused += 1;
                    let jargon = JARGON.into_iter().find(|one| failure.message.contains(one));
                    assert_eq!(jargon, None, "{line:?}: {}", failure.message);
                }
            }
            for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
                let words = [&words[..], &[below.get_name().to_owned()]].concat();
                open.push((words, below.clone()));
            }
        }
        assert!(refused > 500, "only {refused} values were refused");
    }
}
