//! `tenure init`: making a store at a place of one's choice.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{NAME, styled};
use clap::Args;
use serde_json::json;
use tenure::config::Key;
use tenure::place::{Place, PlaceKind};

/// Make the store
///
/// In a git repository it lives in .tenure/ at the root of the main worktree, so that all
/// worktrees share it; elsewhere in .tenure/ of the current folder. Other commands make it by
/// themselves in a repository; outside one they use the nearest .tenure/ upward, else one per
/// user.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure init                             for this repository, or this folder
  tenure init --here                      for this folder, even in a repository")]
pub(crate) struct InitArgs {
    /// In this folder, repository or not
    #[arg(long)]
    here: bool,
}

pub(crate) async fn run(context: &Context, args: InitArgs) -> Result<i32, Failure> {
    if context.settings.text(Key::Store).is_some() {
        let url = context.store_url()?;
        let fresh = !url.exists();
        let client = context.client().await?;
        return tell(context, &client.info().url, fresh);
    }
    let found = context.place()?;
    let in_repository = matches!(found.kind, PlaceKind::Repository { .. });
    let place = if in_repository && !args.here { found.clone() } else { here()? };
    let fresh = !place.database().exists();
    place.prepare()?;
    tenure::place::check_file_system(&place.folder)?;
    let url = format!("sqlite:{}", place.database().display());
    tenure::Client::builder().one_shot().open(&url).await?;
    tell(context, &url, fresh)
}

fn here() -> Result<Place, Failure> {
    let folder = std::env::current_dir().map_err(|error| {
        Failure::new(
            Exit::Configuration,
            "DIRECTORY",
            format!("the current folder cannot be used: {error}"),
        )
    })?;
    let folder = folder.join(".tenure");
    let exists = folder.is_dir();
    Ok(Place { folder, kind: PlaceKind::Folder, exists })
}

fn tell(context: &Context, url: &str, fresh: bool) -> Result<i32, Failure> {
    let data = json!({ "store": url, "created": fresh });
    context.output.done(data, || match fresh {
        true => format!("Made the store {}", styled(NAME, url)),
        false => format!("The store {} is there already", styled(NAME, url)),
    });
    Ok(0)
}
