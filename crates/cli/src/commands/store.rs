//! `tenure store`: what an operator tells the store.

use crate::context::Context;
use crate::failure::Failure;
use clap::{Args, Subcommand};
use serde_json::json;

/// Tell a database that an older state of it was put back
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure store moved --store postgres://locks@db.example.org/jobs
                                  after a snapshot of the database's disk was put back")]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Jump ahead of all tokens, and grant nothing until lost leases have ended
    ///
    /// For PostgreSQL and etcd, after a volume snapshot or a backup was put back: run it before the
    /// store is used again. What was reported after that backup is missing. New tokens are higher than
    /// all that were given out; PostgreSQL grants nothing until every lease that is missing has ended.
    /// Over a server it needs the role `admin`.
    Moved,
}

pub(crate) async fn run(context: &Context, args: StoreArgs) -> Result<i32, Failure> {
    let StoreCommand::Moved = args.command;
    let withheld = context.client().await?.note_moved().await?;
    let seconds = withheld.as_millis().div_ceil(1000);
    let data = json!({ "withheld_seconds": seconds });
    context.output.confirm(data, || match seconds {
        0 => "New tokens are higher than all before".to_owned(),
        seconds => {
            format!("New tokens are higher than all before; nothing is granted for {seconds}s")
        }
    });
    Ok(0)
}
