//! `tenure init`: creates a store.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{NAME, styled};
use clap::Args;
use serde_json::json;
use std::path::Path;
use tenure::place::{PlaceKind, StoreLocation};
use tenure::url::StoreUrl;
use tenure_frontend::config::Key;

/// Create the store
///
/// In a git repository the store is in .tenure/ at the root of the main worktree, so that all
/// worktrees share it; elsewhere in .tenure/ of the current folder. In a repository other commands
/// create it when needed; outside one they use the nearest .tenure/ upward, else one per user.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure init                             for this repository, or this folder
  tenure init --store sqlite:/srv/t.db    at a path of your choice
  sudo tenure init --store machine: --group devs
                                          for all members of a group on this machine")]
pub(crate) struct InitArgs {
    /// With --store machine:, the group whose members can use it [default: tenure]
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
}

/// The default group of the machine's store.
const MACHINE_GROUP: &str = "tenure";

pub(crate) async fn run(context: &Context, args: InitArgs) -> Result<i32, Failure> {
    let is_machine =
        context.settings.text(Key::Store).is_some() && context.store_url()? == StoreUrl::machine();
    if args.group.is_some() && !is_machine {
        return Err(Failure::usage("--group needs --store machine:"));
    }
    if context.settings.text(Key::Store).is_some() {
        let url = context.store_url()?;
        let fresh = !url.exists() || url.folder().is_some_and(is_empty);
        if is_machine && fresh {
            prepare_machine(args.group.as_deref())?;
        }
        let client = context.make_store().await?;
        let fresh = match url {
            // What a server has is known only when it is asked; that also makes the tables.
            StoreUrl::Postgres(_) | StoreUrl::Etcd(_) => {
                client.look_everywhere().await?;
                client.info().is_new
            }
            _ => fresh,
        };
        return tell(context, &client.info().url, fresh);
    }
    let found = context.place()?;
    let in_repository = matches!(found.kind, PlaceKind::Repository { .. });
    let place = if in_repository { found.clone() } else { here()? };
    let fresh = !place.database().exists();
    place.prepare()?;
    tenure::place::check_file_system(&place.folder)?;
    let url = format!("sqlite:{}", place.database().display());
    tenure::Client::builder().one_shot().open(&url).await?;
    tell(context, &url, fresh)
}

/// Creates the folder of the machine's store for a group.
fn prepare_machine(group: Option<&str>) -> Result<(), Failure> {
    let name = group.unwrap_or(MACHINE_GROUP);
    let Some(id) = tenure::place::group_id(name) else {
        let message = format!("no group {name:?} on this machine");
        return Err(Failure::new(Exit::Usage, "USAGE", message)
            .hint("Name the group whose members can use the store: --group GROUP."));
    };
    let folder = tenure::place::machine_folder();
    tenure::place::prepare_machine_folder(&folder, id).map_err(|error| {
        let message = error.to_string();
        Failure::new(Exit::Configuration, "STORE_PLACE", message)
            .hint("Only an administrator can create it: run this with sudo.")
    })?;
    Ok(())
}

/// Whether this is a folder with nothing in it.
fn is_empty(folder: &Path) -> bool {
    folder.read_dir().is_ok_and(|mut entries| entries.next().is_none())
}

fn here() -> Result<StoreLocation, Failure> {
    let folder = std::env::current_dir().map_err(|error| {
        Failure::new(
            Exit::Configuration,
            "DIRECTORY",
            format!("cannot use the current folder: {error}"),
        )
    })?;
    let folder = folder.join(".tenure");
    let exists = folder.is_dir();
    Ok(StoreLocation { folder, kind: PlaceKind::Folder, exists })
}

fn tell(context: &Context, url: &str, fresh: bool) -> Result<i32, Failure> {
    let data = json!({ "store": url, "created": fresh });
    if context.output.quiet && !context.output.json {
        return Ok(0);
    }
    context.output.done(data, || match fresh {
        true => format!("Created the store {}", styled(NAME, url)),
        false => format!("The store {} already exists", styled(NAME, url)),
    });
    Ok(0)
}
