//! `tenure backup`: a copy of a live store in one file.

use crate::backup;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::migrate::{self, Contents, Progress};
use crate::output::{NAME, styled};
use clap::{Args, ValueHint};
use serde_json::json;
use std::path::PathBuf;

/// Make a backup of the store while it is in use
///
/// The backup is one file, a SQLite store, with all tasks, sections and the history, and contains all that
/// was reported as done before the command began. Workers go on meanwhile; stores that are not SQLite hand
/// out no task during the last seconds. Only you can read the file: keep it as secret as the store.
///
/// Restore it with `tenure restore`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure backup tenure-2026-11-17.db
  tenure backup --store postgres://db/app /backups/app.db")]
pub(crate) struct BackupArgs {
    /// The file to write, which must not exist yet
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    to: PathBuf,
}

pub(crate) async fn run(context: &Context, args: BackupArgs) -> Result<i32, Failure> {
    let url = context.store_url()?;
    let from = migrate::copyable("--store", url.clone())?;
    let progress = Progress::new(!context.output.quiet && !context.output.json, 0);
    let made = backup::backup(context, from, &args.to, &progress).await;
    progress.end();
    let contents = made?;
    let mut data = contents.json();
    data["store"] = json!(url.to_string());
    data["file"] = json!(args.to);
    context.output.confirm(data, || text(&args, &url.to_string(), &contents));
    Ok(Exit::Ok.code())
}

fn text(args: &BackupArgs, store: &str, contents: &Contents) -> String {
    let file = styled(NAME, args.to.display());
    format!("Backed up {} of {store} to {file}\n{}", contents.summary(), contents.sums())
}
