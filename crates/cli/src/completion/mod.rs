//! Shell completions that know what is in the store.
//!
//! A shell's script (see `tenure completions`) calls this program with [`VARIABLE`] set and the words
//! of the line. [`answer`] prints what could stand at the cursor: commands and options as they are
//! described, values by what they are called there ([`values`]), and what the store has ([`store`]).

mod store;
mod values;

use crate::args::Cli;
use clap::{Arg, CommandFactory};
use clap_complete::engine::ArgValueCompleter;
use clap_complete::env::{CompleteEnv, Shells};
use std::ffi::OsString;

/// Its presence asks for completions; its value names the shell.
const VARIABLE: &str = "TENURE_COMPLETE";

/// The script for bash is our own: bash splits words at colons, which resources have, and what comes
/// after `--` is completed as the command that it is.
const BASH: &str = include_str!("tenure.bash");

/// Zsh loads the script as a function of this name when it first needs it; that is a call already.
const ZSH_FIRST_CALL: &str = "\
[[ \"$funcstack[1]\" == _tenure ]] && _clap_dynamic_completer_tenure \"$@\"
";

/// Prints completions if a shell asks for them; says whether one did. Never fails: a shell in the
/// middle of a line has no place for an error.
pub(crate) fn answer(line: &[OsString]) -> bool {
    let words: Vec<OsString> =
        line.iter().skip_while(|word| *word != "--").skip(1).cloned().collect();
    let complete = CompleteEnv::with_factory(|| described(&words)).var(VARIABLE);
    let folder = std::env::current_dir().ok();
    complete.try_complete(line.iter(), folder.as_deref()).unwrap_or(true)
}

/// The script that makes a shell ask.
pub(crate) fn script(shell: &str) -> Vec<u8> {
    if shell == "bash" {
        return BASH.as_bytes().to_vec();
    }
    let mut script = Vec::new();
    if let Some(completer) = Shells::builtins().completer(shell) {
        // Nothing fails that is written to memory.
        let _ = completer.write_registration(VARIABLE, "tenure", "tenure", "tenure", &mut script);
    }
    if shell == "zsh" {
        script.extend_from_slice(ZSH_FIRST_CALL.as_bytes());
    }
    script
}

/// The command line as it is described, with what can complete each value.
fn described(words: &[OsString]) -> clap::Command {
    let mut after_dashes = words.iter().skip_while(|word| *word != "--").skip(1);
    if after_dashes.next().is_some() {
        return command_to_run(after_dashes.next().is_none());
    }
    let globals = store::Globals::of(words);
    with_values(Cli::command(), &[], &globals)
}

/// Another program's command line: its name, then whatever files there are.
fn command_to_run(is_name: bool) -> clap::Command {
    let completer = ArgValueCompleter::new(move |current: &std::ffi::OsStr| match is_name {
        true => values::programs(current),
        false => values::paths(current),
    });
    let words = Arg::new("words").num_args(0..).allow_hyphen_values(true).add(completer);
    clap::Command::new("tenure").disable_help_flag(true).arg(words)
}

/// Adds completers to all arguments of a command and of those below it.
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
