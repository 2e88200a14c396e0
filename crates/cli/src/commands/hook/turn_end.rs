//! At the end of a turn, of a subagent or of a session: gives back what is no longer needed.

use super::caller::Caller;
use super::changed_files;
use super::edit::{MAIN_WORKTREE, edited_in};
use crate::commands::release::hand_back;
use crate::context::Context;
use crate::failure::Failure;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tenure::agent::Agent;
use tenure::core::glob::Glob;
use tenure::core::{HoldSnapshot, Kind, Proof, Resource};
use tenure::place::{self, PlaceKind, StoreLocation, Surroundings};
use tenure::{Client, Wait};
use tenure_frontend::config::Key;

/// Releases the files that hooks took for this agent and that have no uncommitted changes. What is
/// left of a subagent goes on to the agent that started it: the subagent itself will not finish it.
pub(super) async fn turn(caller: &Caller, context: &Context) -> Result<(), Failure> {
    let Some(client) = caller.client(context, false).await? else { return Ok(()) };
    let seen = client.look_everywhere().await?;
    let mut by_worktree: BTreeMap<String, Vec<&HoldSnapshot>> = BTreeMap::new();
    for hold in seen.holds.iter().filter(|hold| caller.owns(hold) && !hold.lapsed()) {
        let worktree = hold.hold.want.resource.worktree().or(edited_in(hold));
        if let Some(worktree) = worktree.filter(|_| edited_in(hold).is_some()) {
            by_worktree.entry(worktree.to_owned()).or_default().push(hold);
        }
    }
    let (mut clean, mut changed) = (Vec::<&HoldSnapshot>::new(), Vec::<&HoldSnapshot>::new());
    for (worktree, holds) in by_worktree {
        match root_of(context.place()?, &worktree)? {
            Some(root) => {
                let (some_changed, some_clean) = by_changes(&root, holds)?;
                changed.extend(some_changed);
                clean.extend(some_clean);
            }
            // The worktree is gone, or nothing is ever committed here.
            None => clean.extend(holds),
        }
    }
    let proof = Proof::Label(caller.agent.label.clone());
    if !clean.is_empty() {
        client.release(proof.clone(), Some(&resources(&clean))).await?;
    }
    if let Some(parent) = &caller.agent.parent {
        // Nobody else can end what it took in other ways.
        release_all(&client, |label| label == caller.agent.label).await?;
        let parent = Agent { label: parent.clone(), parent: None, ..caller.agent.clone() };
        hand_on(context, &changed, &parent).await?;
    }
    caller.renew(&client).await
}

/// The root of the worktree with this name; `None` if there is none.
fn root_of(place: &StoreLocation, worktree: &str) -> Result<Option<PathBuf>, Failure> {
    let PlaceKind::Repository { root, worktree_root } = &place.kind else { return Ok(None) };
    if place.worktree()?.as_deref() == Some(worktree) {
        return Ok(Some(worktree_root.clone()));
    }
    if worktree == MAIN_WORKTREE {
        return Ok(Some(root.clone()));
    }
    for other in changed_files::worktrees(worktree_root)? {
        let found = place::find(&Surroundings::of_process(other.clone()));
        let name = found.ok().and_then(|place| place.worktree().ok()?);
        if name.as_deref() == Some(worktree) {
            return Ok(Some(other));
        }
    }
    Ok(None)
}

fn resources(holds: &[&HoldSnapshot]) -> Vec<Resource> {
    holds.iter().map(|hold| hold.hold.want.resource.clone()).collect()
}

/// Holds whose files have uncommitted changes in this worktree, and holds whose files have none.
fn by_changes<'a>(
    root: &Path,
    holds: Vec<&'a HoldSnapshot>,
) -> Result<(Vec<&'a HoldSnapshot>, Vec<&'a HoldSnapshot>), Failure> {
    let paths: Vec<PathBuf> =
        holds.iter().filter_map(|hold| file_of(hold)).map(|path| root.join(path)).collect();
    let changed = changed_files::below(root, &paths)?;
    let has_changes = |hold: &&HoldSnapshot| match file_of(hold) {
        Some(path) => changed.iter().any(|file| file.path == Path::new(path)),
        None => true,
    };
    Ok(holds.into_iter().partition(has_changes))
}

/// The file that is held, from the root; `None` if a glob is held.
fn file_of(hold: &HoldSnapshot) -> Option<&str> {
    let glob = hold.hold.want.resource.glob()?;
    let path = glob.literal_prefix();
    (Glob::literal(path).ok().as_ref() == Some(glob)).then_some(path)
}

/// Takes for an agent what its subagent just released with uncommitted changes.
async fn hand_on(
    context: &Context,
    holds: &[&HoldSnapshot],
    parent: &Agent,
) -> Result<(), Failure> {
    let Some(client) = context.client_of(parent, false).await? else { return Ok(()) };
    let lease = context.settings.duration(Key::HooksLease);
    for hold in holds {
        let resource = hold.hold.want.resource.clone();
        let mut request = client.request(resource).wait(Wait::No).ttl(lease).detached();
        if let Some(operation) = &hold.hold.operation {
            request = request.operation(operation);
        }
        // Another agent may have been waiting for it.
        let _ = request.lease().await?;
    }
    Ok(())
}

/// Releases everything that belongs to the agent and its subagents, and returns their tasks.
pub(super) async fn session(caller: &Caller, context: &Context) -> Result<(), Failure> {
    let Some(client) = caller.client(context, false).await? else { return Ok(()) };
    let below = format!("{}/", caller.agent.label);
    release_all(&client, |label| label == caller.agent.label || label.starts_with(&below)).await
}

/// Releases all that belongs to these labels, and returns their tasks.
async fn release_all(client: &Client, is_meant: impl Fn(&str) -> bool) -> Result<(), Failure> {
    let seen = client.look_everywhere().await?;
    let is_meant = |hold: &HoldSnapshot| {
        let holder = &hold.hold.holder;
        holder.is_owned_by_label() && is_meant(&holder.label)
    };
    let mut by_label: BTreeMap<&str, Vec<Resource>> = BTreeMap::new();
    for hold in seen.holds.iter().filter(|hold| is_meant(hold)) {
        let resources = by_label.entry(&hold.hold.holder.label).or_default();
        resources.push(hold.hold.want.resource.clone());
    }
    for (label, resources) in by_label {
        let proof = Proof::Label(label.to_owned());
        let tasks: Vec<Resource> =
            resources.iter().filter(|one| one.kind() == Kind::Task).cloned().collect();
        let mut returned = Vec::new();
        if !tasks.is_empty() {
            returned = hand_back(client, &proof, &tasks).await?;
        }
        let rest: Vec<Resource> =
            resources.into_iter().filter(|one| !returned.contains(one)).collect();
        if !rest.is_empty() {
            client.release(proof, Some(&rest)).await?;
        }
    }
    Ok(())
}
