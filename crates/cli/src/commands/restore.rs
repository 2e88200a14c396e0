//! `tenure restore`: fills an empty store from a backup.

use crate::backup;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::migrate::{self, Migrated, Progress, Side};
use crate::output::{NAME, styled};
use clap::{Args, ValueHint};
use serde_json::json;
use std::path::PathBuf;
use tenure::url::StoreUrl;
use tenure_frontend::config::Key;

/// Restore a backup into an empty store
///
/// The store, of any engine, must be empty or not exist yet: move an old one away first. Tasks, sections
/// and history are as in the backup, which is compared by checksums; a difference exits 7. If it is
/// interrupted, run the same command again: it goes on.
///
/// Nothing is held in the restored store: leases and waiting requests are not restored, and tasks that were
/// in progress are taken back as if their workers had died. Tokens begin far above those of the backup, so
/// that no token that the old store gave out is ever accepted or given out again. Stop all programs that
/// still use the old store.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure restore tenure-2026-11-17.db --store sqlite:/var/lib/tenure/tenure.db
  tenure restore app.db --store postgres://db/app")]
pub(crate) struct RestoreArgs {
    /// The backup, a file that `tenure backup` made
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    from: PathBuf,
}

pub(crate) async fn run(context: &Context, args: RestoreArgs) -> Result<i32, Failure> {
    let from = args.from.canonicalize().map_err(|error| {
        let message = format!("no backup at {}: {error}", args.from.display());
        Failure::new(Exit::Configuration, "NO_BACKUP", message)
    })?;
    let url = context.store_url()?;
    let to = migrate::copyable("--store", url.clone())?;
    if migrate::is_same(&StoreUrl::Sqlite { path: from.clone() }, &to) {
        return Err(Failure::usage("the backup and the store are the same file")
            .hint("Name an empty store, or one that does not exist yet, with --store."));
    }
    if context.settings.text(Key::Store).is_none() {
        context.place()?.prepare()?;
    }
    let target = Side::open_or_create(context, to, false).await?;
    let progress = Progress::new(!context.output.quiet && !context.output.json, 0);
    let restored = backup::restore(context, &from, &target, &progress).await;
    progress.end();
    let restored = restored?;
    let mut data = restored.contents.json();
    data["file"] = json!(from);
    data["store"] = json!(target.url.to_string());
    data["equal"] = json!(true);
    data["resumed"] = json!(restored.resumed);
    data["numbers_above"] = json!(restored.numbers_above);
    data["events_not_kept"] = json!(restored.events_dropped);
    context.output.confirm(data, || text(&args, &target, &restored));
    Ok(Exit::Ok.code())
}

fn text(args: &RestoreArgs, target: &Side, restored: &Migrated) -> String {
    let store = styled(NAME, &target.url);
    let mut lines = vec![
        format!("Restored {} from {} to {store}", restored.contents.summary(), args.from.display()),
        restored.contents.sums(),
        format!("Tokens begin above {}", restored.numbers_above),
    ];
    if restored.events_dropped > 0 {
        lines.push(format!("{} older events are no longer kept", restored.events_dropped));
    }
    lines.join("\n")
}
