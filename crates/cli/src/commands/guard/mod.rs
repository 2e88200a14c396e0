//! `tenure guard`: what git hooks ask before a commit and before a push.
//!
//! Only a clear conflict stops a commit: files in it that another owner holds now. Whatever keeps the
//! guard from judging (settings, the store, git, a bug) is reported and lets the commit through.

mod conflicts;
mod git;
mod report;

use crate::args::Global;
use crate::context::{Context, current_folder};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use clap::{Args, Subcommand};
use conflicts::{Caller, Conflict};
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure::Client;
use tenure::core::{HoldSnapshot, Overview, Resource, Snapshot};
use tenure::place::StoreLocation;
use tenure_frontend::view::spelling::show_relative_to;

/// Refuse commits of files that others hold; git hooks call this
///
/// A file counts as held if another owner holds its path, or a glob that matches it, in any mode.
/// What you hold yourself is not in the way: under your label, or under the grant of the `run` or
/// `work` around you. Merges, rebases, cherry-picks and reverts in progress are not checked.
///
/// Without a store nothing is held. If the store cannot be read in time, the commit goes through and
/// one sentence says so.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure setup git                        install the hooks in this repository
  tenure guard pre-commit                 check what is staged now
  tenure guard pre-commit --json")]
pub(crate) struct GuardArgs {
    #[command(subcommand)]
    hook: Hook,
}

#[derive(Debug, Subcommand)]
enum Hook {
    /// Refuse the commit (exit 1) if others hold files that it changes
    PreCommit,
    /// Warn of files in the push that others hold; never refuses
    ///
    /// Reads the lines that git gives to a pre-push hook on standard input.
    PrePush {
        /// The name and the URL of the remote, as git gives them
        #[arg(value_name = "REMOTE")]
        remote: Vec<String>,
    },
}

/// How long the store may take to answer. A commit that waits longer for its guard would be skipped
/// by its author the next time.
const STORE_PATIENCE: Duration = Duration::from_secs(5);

/// Most bytes of the lines that git gives to a pre-push hook: tens of thousands of references.
const REFERENCES_MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Judges, and reports. Exits with 1 only for files that others hold.
pub(crate) fn run(output: &Output, global: &Global, args: &GuardArgs) -> i32 {
    let judged = catch_unwind(AssertUnwindSafe(|| judge(output, global, &args.hook)));
    let judged = judged.unwrap_or_else(|_| {
        Err(Failure::new(Exit::Error, "BUG", "the guard itself failed; please report this"))
    });
    match (judged, &args.hook) {
        (Ok(conflicts), Hook::PreCommit) => report::commit(output, &conflicts),
        (Ok(conflicts), Hook::PrePush { .. }) => report::push(output, &conflicts),
        (Err(failure), _) => report::unjudged(output, &failure),
    }
}

/// The files that others hold, of those in the commit or push.
fn judge(output: &Output, global: &Global, hook: &Hook) -> Result<Vec<Conflict>, Failure> {
    let context = Context::for_protection(global, output.clone(), &current_folder()?)?;
    let Ok(place) = context.place() else { return Ok(vec![]) };
    // Without a root there are no paths that could be held.
    let Some(root) = place.root().map(Path::to_owned) else { return Ok(vec![]) };
    show_paths_as_typed(&context, place);
    let caller = Caller::of(&context, place.worktree()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new(Exit::Error, "RUNTIME", format!("cannot start the async runtime: {error}"))
    })?;
    let looked = runtime.block_on(async {
        let looking = tokio::time::timeout(STORE_PATIENCE, look(&context));
        looking.await.unwrap_or_else(|_| Err(slow_store()))
    });
    // A thread may still wait for the store.
    runtime.shutdown_background();
    let Some((client, seen)) = looked? else { return Ok(vec![]) };
    let overview = Overview::of(&seen, client.witness());
    let others: Vec<&HoldSnapshot> =
        overview.held().filter(|seen| caller.is_hindered_by(seen)).collect();
    // The usual case: git need not be asked.
    if others.is_empty() {
        return Ok(vec![]);
    }
    let Some(paths) = changed_paths(hook, &root)? else { return Ok(vec![]) };
    Ok(conflicts::find(&paths, &others, client.witness()))
}

/// Shows resources as they can be typed where git was called. It runs hooks at the root, and says from
/// which folder below it was called.
fn show_paths_as_typed(context: &Context, place: &StoreLocation) {
    let called_from = std::env::var_os("GIT_PREFIX").unwrap_or_default();
    if let Some(folder) = place.folder_of(&context.directory().join(called_from)) {
        show_relative_to(folder);
    }
}

/// All paths that are held, in one read; `None` if there is no store yet.
async fn look(context: &Context) -> Result<Option<(Client, Snapshot)>, Failure> {
    let Some(client) = context.reader_of_existing().await? else { return Ok(None) };
    let all_paths: Resource = "path:**".parse().map_err(tenure::Error::from)?;
    let seen = client.look(&[all_paths]).await?;
    Ok(Some((client, seen)))
}

fn slow_store() -> Failure {
    let message = format!("the store did not answer within {} s", STORE_PATIENCE.as_secs());
    Failure::new(Exit::Configuration, "STORE_UNAVAILABLE", message)
}

/// The paths that the commit or push changes, relative to the root; `None` if they are not to be
/// judged.
fn changed_paths(hook: &Hook, root: &Path) -> Result<Option<Vec<PathBuf>>, Failure> {
    let repository = git::Repository::here()?;
    let paths = match hook {
        Hook::PreCommit if repository.is_replaying() => return Ok(None),
        Hook::PreCommit => git::staged_paths()?,
        Hook::PrePush { .. } => git::pushed_paths(&references()?)?,
    };
    Ok(Some(repository.below(root, paths)))
}

/// The lines that git gives to a pre-push hook. On a terminal there are none.
fn references() -> Result<Vec<git::PushedReference>, Failure> {
    let stdin = std::io::stdin();
    if std::io::IsTerminal::is_terminal(&stdin) {
        return Ok(vec![]);
    }
    let mut text = String::new();
    stdin.lock().take(REFERENCES_MAX_BYTES).read_to_string(&mut text).map_err(|error| {
        Failure::new(Exit::Error, "INPUT", format!("cannot read the references to push: {error}"))
    })?;
    Ok(text.lines().filter_map(git::PushedReference::parse).collect())
}
