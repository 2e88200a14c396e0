//! Copies of a live store: what `tenure backup` and `tenure restore` do.
//!
//! A backup is a SQLite store in one file, whatever engine it comes from. So every later version that
//! opens stores opens backups, and `tenure restore` is a migration out of it, with the same comparison by
//! checksums.
//!
//! - `database` — copying a SQLite database that is in use, by SQLite itself.
//! - `workplace` — a folder beside the backup for what is unfinished, and moving the result into place.

mod database;
mod workplace;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::migrate::{self, Contents, HeldPolicy, Migrated, Options, Progress, Side};
use std::path::Path;
use tenure::Wait;
use tenure::url::StoreUrl;
use tenure_frontend::config::Key;
use workplace::Workplace;

/// How far the numbers of a restored store are above those of the backup: further than the old store can
/// have gone on since the backup was made. At ten thousand changes a second that is eighty days; tokens
/// stay below 2^53 for a hundred thousand restores.
const JUMP: u64 = 1 << 36;

/// Makes a backup of this store at this path, where nothing may be yet; returns what is in it.
pub(crate) async fn backup(
    context: &Context,
    from: StoreUrl,
    to: &Path,
    progress: &Progress,
) -> Result<Contents, Failure> {
    if to.exists() {
        let message = format!("{} exists already", to.display());
        return Err(Failure::new(Exit::Refused, "BACKUP_EXISTS", message)
            .hint("Choose another name: a backup is never overwritten."));
    }
    let workplace = Workplace::beside(to)?;
    let copy = workplace.file("copy.db");
    let contents = match &from {
        StoreUrl::Sqlite { path } => {
            // An error about a store that is missing or of another program is the store's own.
            drop(Side::open(context, from.clone(), true).await?);
            database::copy(path, &copy)?;
            let side = Side::open(context, StoreUrl::Sqlite { path: copy.clone() }, true).await?;
            migrate::survey(&side).await?.0
        }
        _ => {
            let source = Side::open(context, from, false).await?;
            let built = workplace.file("built.db");
            let url = StoreUrl::Sqlite { path: built.clone() };
            let target = Side::open_or_create(context, url, false).await?;
            let recoveries_max = context.settings.integer(Key::MaxRecoveries);
            let contents = migrate::copy_live(&source, &target, recoveries_max, progress).await?;
            drop(target);
            database::copy(&built, &copy)?;
            contents
        }
    };
    workplace.publish(&copy, to)?;
    Ok(contents)
}

/// Fills an empty store from this backup.
pub(crate) async fn restore(
    context: &Context,
    from: &Path,
    target: &Side,
    progress: &Progress,
) -> Result<Migrated, Failure> {
    // The backup itself stays as it is: a store that is opened is written to.
    let workplace = Workplace::temporary()?;
    let copy = workplace.file("copy.db");
    database::copy(from, &copy)?;
    let opened = Side::open(context, StoreUrl::Sqlite { path: copy }, false).await?;
    // Under the name of the backup an interrupted restore is recognised and goes on.
    let url = StoreUrl::Sqlite { path: from.to_owned() };
    let source = Side { url, ..opened };
    let options = Options {
        held: HeldPolicy::Drop,
        wait: Wait::No,
        recoveries_max: context.settings.integer(Key::MaxRecoveries),
        leave_paused: false,
        jump: JUMP,
    };
    migrate::migrate(&source, target, options, progress).await
}
