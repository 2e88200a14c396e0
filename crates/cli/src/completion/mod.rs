//! Shell completions that know what is in the store.
//!
//! A shell script (see `tenure completions`) calls this program with [`VARIABLE`] set and the words
//! of the line. [`answer`] prints the candidates for the word at the cursor: commands and options
//! from clap, values by their name in the help ([`values`]), and names from the store ([`store`]).

mod store;
mod values;

use crate::args::Cli;
use clap::{Arg, CommandFactory};
use clap_complete::engine::ArgValueCompleter;
use clap_complete::env::{CompleteEnv, Shells};
use std::ffi::OsString;

/// If this variable is set, the program prints completions; its value names the shell.
const VARIABLE: &str = "TENURE_COMPLETE";

/// The bash script is our own, because bash splits words at the colons of resources, and the words
/// after `--` are completed as another command.
const BASH: &str = include_str!("tenure.bash");

/// zsh loads the script as a function of this name on first use, and that use is a call already.
const ZSH_FIRST_CALL: &str = "\
[[ \"$funcstack[1]\" == _tenure ]] && _clap_dynamic_completer_tenure \"$@\"
";

/// Prints completions if a shell asks for them, and returns whether one did. It never fails,
/// because a shell cannot show an error in the middle of a line.
pub(crate) fn answer(line: &[OsString]) -> bool {
    let words: Vec<OsString> =
        line.iter().skip_while(|word| *word != "--").skip(1).cloned().collect();
    let complete = CompleteEnv::with_factory(|| described(&words)).var(VARIABLE);
    let folder = std::env::current_dir().ok();
    complete.try_complete(line.iter(), folder.as_deref()).unwrap_or(true)
}

/// The script that connects a shell to [`answer`].
pub(crate) fn script(shell: &str) -> Vec<u8> {
    if shell == "bash" {
        return BASH.as_bytes().to_vec();
    }
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(shell) {
        // Writing to memory cannot fail.
        let _ = completer.write_registration(VARIABLE, "tenure", "tenure", "tenure", &mut script);
    }
    if shell == "zsh" {
        script.extend_from_slice(ZSH_FIRST_CALL.as_bytes());
    }
    script
}

/// The description of the command line, with a completer for each value.
fn described(words: &[OsString]) -> clap::Command {
    let mut after_dashes = words.iter().skip_while(|word| *word != "--").skip(1);
    if after_dashes.next().is_some() {
        return command_to_run(after_dashes.next().is_none());
    }
    let globals = store::Globals::of(words);
    with_values(Cli::command(), &[], &globals)
}

/// The command line of another program: its name, then files.
fn command_to_run(is_name: bool) -> clap::Command {
    let completer = ArgValueCompleter::new(move |current: &std::ffi::OsStr| match is_name {
        true => values::programs(current),
        false => values::paths(current),
    });
    let words = Arg::new("words").num_args(0..).allow_hyphen_values(true).add(completer);
    clap::Command::new("tenure").disable_help_flag(true).arg(words)
}

/// Adds completers to the arguments of a command and of its subcommands.
fn with_values(
    command: clap::Command,
    around: &[String],
    globals: &store::Globals,
) -> clap::Command {
    let mut path = around.to_vec();
    path.push(command.get_name().to_owned());
    let command = command.mut_args(|arg| match values::completer(&path, &arg, globals) {
        Some(completer) => arg.add(completer),
        None => arg,
    });
    command.mut_subcommands(|below| with_values(below, &path, globals))
}
