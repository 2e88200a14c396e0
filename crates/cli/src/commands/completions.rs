//! `tenure completions`: shell completions.

use crate::completion;
use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use clap_complete::Shell;

/// Print completions for a shell
///
/// They know commands, options and their values, and look into the store for resources, tasks and
/// sections. After `--` the command to run is completed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure completions bash > ~/.local/share/bash-completion/completions/tenure
  tenure completions zsh > ~/.zfunc/_tenure
  tenure completions fish > ~/.config/fish/completions/tenure.fish")]
pub(crate) struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

pub(crate) fn run(context: &Context, args: CompletionsArgs) -> Result<i32, Failure> {
    context.output.raw(&completion::script(&args.shell.to_string()));
    Ok(0)
}
