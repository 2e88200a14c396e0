//! `tenure token`: manages the tokens of servers.

mod create;
mod list;
mod revoke;
mod show;

use crate::context::Context;
use crate::failure::Failure;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;
use tenure_server::http::tokens::TokenFile;

/// Create, show and revoke server tokens
///
/// Without a token file, a server creates one token for the user who runs it; `show` prints it.
///
/// Roles: `read` can look; `work` can also hold, add, claim and finish; `admin` can also break,
/// cancel, edit and pause. With a token file, servers of this store accept only the tokens in it,
/// and notice changes of the file within seconds.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  export TENURE_SERVER_TOKEN=$(tenure token show)
  tenure token create ci --role work --expires 90d
  tenure token list
  tenure token revoke ci")]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
    /// The token file [default: beside the store]
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    Create(create::CreateArgs),
    List(list::ListArgs),
    Revoke(revoke::RevokeArgs),
    Show(show::ShowArgs),
}

pub(crate) fn run(context: &Context, args: TokenArgs, labels: Vec<String>) -> Result<i32, Failure> {
    let chosen = args.file.is_some();
    let file = TokenFile::at(args.file.map_or_else(|| context.token_file(), Ok)?);
    match args.command {
        TokenCommand::Create(args) => create::run(context, &file, chosen, args, labels),
        TokenCommand::List(args) => list::run(context, &file, args),
        TokenCommand::Revoke(args) => revoke::run(context, &file, args),
        TokenCommand::Show(args) => show::run(context, &file, args),
    }
}
