//! `tenure token`: who may ask a server for what.

mod create;
mod list;
mod revoke;
mod show;

use crate::context::Context;
use crate::failure::Failure;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;
use tenure_server::http::tokens::TokenFile;

/// Make, show and end the tokens that a server asks for
///
/// Without a file of tokens, a server makes one token for the user who runs it; `show` prints it.
///
/// Roles: read looks; work also holds, adds, claims and finishes; admin also breaks, cancels, edits
/// and pauses. As soon as there is a file of tokens, servers of this store ask for one of those alone,
/// and follow changes of the file within seconds.
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
    /// The file of tokens [default: beside the store]
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

impl TokenArgs {
    /// The word for the envelope.
    pub(crate) fn subcommand(&self) -> &'static str {
        match self.command {
            TokenCommand::Create(_) => "create",
            TokenCommand::List(_) => "list",
            TokenCommand::Revoke(_) => "revoke",
            TokenCommand::Show(_) => "show",
        }
    }
}

pub(crate) fn run(context: &Context, args: TokenArgs) -> Result<i32, Failure> {
    let chosen = args.file.is_some();
    let file = TokenFile::at(args.file.map_or_else(|| context.token_file(), Ok)?);
    match args.command {
        TokenCommand::Create(args) => create::run(context, &file, chosen, args),
        TokenCommand::List(args) => list::run(context, &file, args),
        TokenCommand::Revoke(args) => revoke::run(context, &file, args),
        TokenCommand::Show(args) => show::run(context, &file, args),
    }
}
