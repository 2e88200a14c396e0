//! `tenure top`: a live view of the store in the terminal.

use crate::context::Context;
use crate::failure::Failure;
use crate::top;
use clap::Args;
use std::io::{IsTerminal, stdin, stdout};

/// Show live who holds what, who waits, and which tasks run
///
/// Shows held locks with their time left and waiters, tasks and sections, workers, and events. It
/// is read-only. Without a terminal, or with --once, --json or TERM=dumb, it prints one snapshot
/// and exits.
#[derive(Debug, Args)]
#[command(after_help = "\
Keys: q quits, Tab or 1-4 choose a pane, arrows scroll, / searches, ? shows all keys.

Examples:
  tenure top
  tenure top --once                       one snapshot, for a log
  tenure top --json | jq .data.locks")]
pub(crate) struct TopArgs {
    /// Print one snapshot and exit
    #[arg(long)]
    once: bool,
}

pub(crate) async fn run(context: &Context, args: TopArgs) -> Result<i32, Failure> {
    let watched = stdin().is_terminal() && stdout().is_terminal() && can_move_cursor();
    match args.once || context.output.json || !watched {
        true => top::snapshot(context).await,
        false => top::live(context).await,
    }
}

/// Whether the terminal can redraw in place; `TERM=dumb` cannot.
fn can_move_cursor() -> bool {
    std::env::var_os("TERM").is_none_or(|name| name != "dumb")
}
