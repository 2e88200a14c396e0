//! `tenure release`: releases holds.

use crate::args;
use crate::commands::ProofArgs;
use crate::commands::tasks::runner_grant;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{NAME, styled};
use crate::run_under_lock::lost;
use crate::show;
use clap::Args;
use serde_json::json;
use tenure::Client;
use tenure::core::rules::tasks::{Finish, Finished};
use tenure::core::{HoldSnapshot, Kind, Proof, Released, Resource};
use tenure::place::Reach;
use tenure_frontend::refusal::Refusal;

/// Release what you hold
///
/// Prove ownership with --grant, or with the label that you chose with --as. What others hold is
/// never touched (exit 5). A task that you claimed is returned, as with `tenure tasks release`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure release --grant \"$GRANT\"         everything that this grant holds
  tenure release --as alice db
  tenure release --as alice --all         everything that alice holds, tasks too")]
pub(crate) struct ReleaseArgs {
    /// What to release; by default everything that the grant holds
    #[arg(value_name = "RESOURCE", value_parser = args::resource)]
    resources: Vec<args::ResourceArg>,
    /// Release everything that your label or grant holds
    #[arg(long, conflicts_with = "resources")]
    all: bool,
    #[command(flatten)]
    proof: ProofArgs,
}

pub(crate) async fn run(context: &Context, args: ReleaseArgs) -> Result<i32, Failure> {
    let proof = args.proof.proof(context)?;
    let only = context.only_resource();
    let is_named = args.all || !args.resources.is_empty() || only.is_some();
    if !is_named && matches!(proof, Proof::Label(_)) {
        return Err(Failure::usage("no resource to release")
            .hint("Name a resource, or release everything that the label holds with --all."));
    }
    let client = context.client().await?;
    let resources = match only {
        Some(only) if args.resources.is_empty() && !args.all => vec![only],
        _ => context.resources(&client, &args.resources, Reach::AllWorktrees).await?,
    };
    let proof = args.proof.proof_for(context, &client, &resources).await?;
    release(context, &client, proof, resources).await
}

/// Releases and prints the result.
pub(crate) async fn release(
    context: &Context,
    client: &Client,
    proof: Proof,
    resources: Vec<Resource>,
) -> Result<i32, Failure> {
    let mut handed_back = hand_back(client, &proof, &resources).await?;
    let rest: Vec<Resource> =
        resources.iter().filter(|one| !handed_back.contains(one)).cloned().collect();
    if rest.is_empty() && !resources.is_empty() {
        return Ok(confirm(context, &handed_back));
    }
    let named = (!rest.is_empty()).then_some(rest.as_slice());
    let holds = match client.release(proof.clone(), named).await? {
        Released::Ended(holds) => holds,
        Released::NotHeld(others) if others.is_empty() && !handed_back.is_empty() => vec![],
        Released::NotHeld(others) => {
            return Err(match (others.first(), &proof) {
                (Some(other), Proof::Label(_)) => Refusal::not_yours(other).into(),
                _ => Refusal::nothing_held(&proof, &resources).into(),
            });
        }
    };
    let names: Vec<Resource> = holds.iter().map(|seen| seen.hold.want.resource.clone()).collect();
    let text = show::names(&names);
    if holds.iter().any(HoldSnapshot::lapsed) {
        return Err(lost(&format!("The lease on {text} lapsed before the release")));
    }
    handed_back.extend(names);
    Ok(confirm(context, &handed_back))
}

fn confirm(context: &Context, released: &[Resource]) -> i32 {
    let names: Vec<String> = released.iter().map(Resource::to_string).collect();
    context.output.confirm(json!({ "released": names }), || {
        format!("Released {}", styled(NAME, show::names(released)))
    });
    0
}

/// Returns the tasks that are worked on under this proof. Ending only their holds would make them
/// look abandoned by a dead worker. Returns the resources that this frees: the tasks and what was
/// held for them.
pub(crate) async fn hand_back(
    client: &Client,
    proof: &Proof,
    resources: &[Resource],
) -> Result<Vec<Resource>, Failure> {
    let seen = match resources {
        [] => client.look_everywhere().await?,
        some if some.iter().all(|one| one.kind() != Kind::Task) => return Ok(vec![]),
        some => client.look(some).await?,
    };
    let mine = seen.holds.iter().filter(|hold| {
        let resource = &hold.hold.want.resource;
        let is_meant = resources.is_empty() || resources.contains(resource);
        resource.kind() == Kind::Task && is_meant && proof.recognises(hold) && !hold.lapsed()
    });
    let mut released = Vec::new();
    for hold in mine {
        let Ok(id) = hold.hold.want.resource.name().parse() else { continue };
        let (token, holder) = (Some(hold.hold.token), &hold.hold.holder);
        // A runner with a chosen label keeps its section until its last task ends.
        let runner = holder.chosen.then(|| runner_grant(&holder.label));
        let tasks = client.tasks();
        let finished = tasks.finish(&id, proof.clone(), token, runner, Finish::Release).await?;
        if let Finished::Done { task, gave_up_section, .. } = finished {
            released.push(hold.hold.want.resource.clone());
            released.extend(task.section_resource().filter(|_| gave_up_section));
        }
    }
    Ok(released)
}
