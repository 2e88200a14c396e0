//! `tenure completions`: prints shell completions.

use crate::completion;
use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use clap_complete::Shell;

/// Print shell completions
///
/// They complete commands, options and values, and read resources, tasks and sections from the
/// store. After `--` they complete the command to run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure completions bash > ~/.local/share/bash-completion/completions/tenure
  tenure completions zsh > ~/.zfunc/_tenure
  tenure completions fish > ~/.config/fish/completions/tenure.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(context: &Context, args: CompletionsArgs) -> Result<i32, Failure> {
    context.output.raw(&completion::script(&args.shell.to_string()));
    Ok(0)
}
