//! Before a change: takes the files if they are free, and says no if another owner has them.

use super::caller::Caller;
use super::changed_files::{self, ChangedFile};
use super::event::Verdict;
use super::refusal::{self, Conflict};
use super::shell::{Discard, Discarded, Writes};
use super::targets::{Group, Target, Targets, reach};
use crate::failure::Failure;
use tenure::core::{Blocker, HoldSnapshot, Proof, Reason, Resource};
use tenure::place::{Reach, StoreLocation};
use tenure::{Client, LeaseAttempt, Wait};
use tenure_frontend::config::Key;

/// What hooks do, as the setting `hooks.policy` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    /// Take what is free; refuse what another owner has.
    Claim,
    /// Take nothing; refuse what another owner has.
    Check,
    /// Take and refuse nothing; tell.
    Warn,
}

impl Policy {
    fn of(group: &Group) -> Policy {
        match group.context.settings.text(Key::HooksPolicy) {
            Some("check") => Policy::Check,
            Some("warn") => Policy::Warn,
            _ => Policy::Claim,
        }
    }
}

/// A lease that was taken for this edit.
struct Taken {
    client: Client,
    proof: Proof,
    resources: Vec<Resource>,
}

/// Judges a change of these targets. All of them are taken, or none.
pub(super) async fn before(
    caller: &Caller,
    groups: &[Group],
    purpose: &str,
) -> Result<Verdict, Failure> {
    let mut taken: Vec<Taken> = Vec::new();
    let mut warnings = Vec::new();
    for group in groups.iter().filter(|group| !group.targets.is_empty()) {
        let policy = Policy::of(group);
        let Some(client) = caller.client(&group.context, policy == Policy::Claim).await? else {
            continue;
        };
        let (lease, conflicts) = match policy {
            Policy::Claim => claim(caller, &client, group, purpose).await?,
            Policy::Check | Policy::Warn => (None, look(caller, &client, group).await?.conflicts),
        };
        taken.extend(lease);
        caller.renew(&client).await?;
        match (conflicts.is_empty(), policy) {
            (true, _) => {}
            (false, Policy::Warn) => warnings.extend(conflicts),
            (false, _) => {
                give_back(&taken).await?;
                return Ok(Verdict::Deny { reason: refusal::denial(&conflicts) });
            }
        }
    }
    Ok(match warnings.is_empty() {
        true => Verdict::Allow,
        false => Verdict::Warn { text: refusal::warning(&warnings) },
    })
}

/// What a look at the targets showed.
struct Looked<'a> {
    conflicts: Vec<Conflict>,
    /// The files that nothing of the agent itself covers yet. A subagent takes them for itself, also
    /// below what its parent holds.
    uncovered: Vec<&'a Target>,
}

async fn look<'a>(
    caller: &Caller,
    client: &Client,
    group: &'a Group,
) -> Result<Looked<'a>, Failure> {
    let resources: Vec<Resource> =
        group.targets.iter().map(|target| target.resource.clone()).collect();
    let seen = client.look(&resources).await?;
    let live: Vec<&HoldSnapshot> =
        seen.holds.iter().filter(|hold| !hold.gone(client.witness())).collect();
    let others = live.iter().filter(|hold| !caller.is_covered_by(hold));
    let blockers: Vec<Blocker> = others.map(|hold| Blocker::Hold((**hold).clone())).collect();
    let is_covered = |target: &Target| {
        live.iter()
            .any(|hold| caller.has(hold) && hold.hold.want.resource.includes(&target.resource))
    };
    let uncovered =
        group.targets.iter().filter(|target| target.is_file && !is_covered(target)).collect();
    Ok(Looked { conflicts: refusal::conflicts(&group.targets, &blockers), uncovered })
}

/// Takes the files that the agent does not have yet, if nothing is in the way of any target.
async fn claim(
    caller: &Caller,
    client: &Client,
    group: &Group,
    purpose: &str,
) -> Result<(Option<Taken>, Vec<Conflict>), Failure> {
    let Looked { conflicts, uncovered } = look(caller, client, group).await?;
    let Some((first, rest)) = uncovered.split_first().filter(|_| conflicts.is_empty()) else {
        return Ok((None, conflicts));
    };
    let lease = group.context.settings.duration(Key::HooksLease);
    let mut request = client.request(first.resource.clone()).wait(Wait::No).ttl(lease).detached();
    request = request.operation(operation(purpose, group.context.place()?));
    request = rest.iter().fold(request, |request, target| request.also(target.resource.clone()));
    request = caller.grants().iter().fold(request, |request, grant| request.under(*grant));
    match request.lease().await? {
        LeaseAttempt::Held(lease) => {
            let is_new = lease.reason != Reason::AlreadyOwned;
            let taken = is_new.then(|| Taken {
                client: client.clone(),
                proof: Proof::Grant(lease.grant),
                resources: lease.resources.clone(),
            });
            Ok((taken, conflicts))
        }
        LeaseAttempt::Busy(busy) => {
            Ok((None, refusal::conflicts(uncovered.iter().copied(), &busy.blockers)))
        }
    }
}

async fn give_back(taken: &[Taken]) -> Result<(), Failure> {
    for Taken { client, proof, resources } in taken {
        client.release(proof.clone(), Some(resources)).await?;
    }
    Ok(())
}

/// How the purpose of a hold begins that a hook took. At the end of a turn such holds are found
/// again by it.
const EDITING: &str = "editing (";

/// What a hook holds a file for: the host, and the worktree in which the file is changed unless it
/// is the main one.
fn operation(host: &str, place: &StoreLocation) -> String {
    match place.worktree() {
        Ok(Some(worktree)) if worktree != MAIN_WORKTREE => {
            format!("{EDITING}{host}, worktree {worktree})")
        }
        _ => format!("{EDITING}{host})"),
    }
}

/// The name of the main worktree.
pub(super) const MAIN_WORKTREE: &str = ".";

/// The worktree in which a hook let a file be changed, if a hook took this hold.
pub(super) fn edited_in(seen: &HoldSnapshot) -> Option<&str> {
    let inside = seen.hold.operation.as_deref()?.strip_prefix(EDITING)?.strip_suffix(')')?;
    Some(inside.split_once(", worktree ").map_or(MAIN_WORKTREE, |(_, worktree)| worktree))
}

/// Judges what a shell command clearly writes.
pub(super) async fn before_writes(
    caller: &Caller,
    writes: &Writes,
    targets: &mut Targets<'_>,
    purpose: &str,
) -> Result<Verdict, Failure> {
    for discard in &writes.discards {
        if let Some(conflicts) = discarded(caller, discard, targets).await?
            && !conflicts.is_empty()
        {
            return Ok(Verdict::Deny { reason: refusal::discard_denial(&conflicts) });
        }
    }
    before(caller, &targets.groups, purpose).await
}

/// Which uncommitted changes of other owners git would throw away; `None` where that is not
/// refused.
async fn discarded(
    caller: &Caller,
    discard: &Discard,
    targets: &mut Targets<'_>,
) -> Result<Option<Vec<Conflict>>, Failure> {
    let folder = match std::fs::canonicalize(&discard.folder) {
        Ok(folder) => folder,
        Err(_) => return Ok(None),
    };
    let Some(group) = targets.group(&folder)? else { return Ok(None) };
    if Policy::of(group) == Policy::Warn {
        return Ok(None);
    }
    let (root, reach) = (group.root.clone(), reach(&group.context));
    let Some(client) = caller.client(&group.context, false).await? else { return Ok(None) };
    let seen = client.look_everywhere().await?;
    let others = seen
        .holds
        .iter()
        .filter(|hold| hold.hold.want.resource.glob().is_some())
        .filter(|hold| !hold.gone(client.witness()) && !caller.is_covered_by(hold));
    let blockers: Vec<Blocker> = others.cloned().map(Blocker::Hold).collect();
    if blockers.is_empty() {
        return Ok(None);
    }
    let below = if discard.whole_worktree { root.clone() } else { folder };
    let changed = changed_files::below(&root, &[below])?;
    let concerned = changed.iter().filter(|file| is_discarded(file, discard.which));
    let place = group.context.place()?.clone();
    let found: Vec<Target> = concerned
        .filter_map(|file| target(&place, root.join(&file.path), reach))
        .map(|(path, resource)| Target { shown: targets.shown(&path), resource, is_file: true })
        .collect();
    Ok(Some(refusal::conflicts(&found, &blockers)))
}

fn is_discarded(file: &ChangedFile, which: Discarded) -> bool {
    match which {
        Discarded::Tracked => !file.is_untracked,
        Discarded::Untracked => file.is_untracked,
        Discarded::Both => true,
    }
}

fn target(
    place: &StoreLocation,
    path: std::path::PathBuf,
    reach: Reach,
) -> Option<(std::path::PathBuf, Resource)> {
    let resource = place.resource_of(&path, reach).ok()?;
    Some((path, resource))
}
