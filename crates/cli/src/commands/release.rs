//! `tenure release`: giving back.

use crate::args;
use crate::commands::ProofArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::holding::lost;
use crate::output::{NAME, styled};
use crate::show;
use clap::Args;
use serde_json::json;
use tenure::Client;
use tenure::core::{Proof, Released, Resource, SeenHold};
use tenure::place::Reach;
use tenure::refusal::Refusal;

/// Give back what you hold
///
/// Proves ownership by --grant, or by a label that you chose with --as. What others hold is never
/// touched (exit 5).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure release --grant \"$GRANT\"         all that this grant holds
  tenure release --as alice db")]
pub(crate) struct ReleaseArgs {
    /// Which of what you hold; all that the grant holds by default
    #[arg(value_name = "RESOURCE", value_parser = args::resource)]
    resources: Vec<args::Written>,
    #[command(flatten)]
    proof: ProofArgs,
}

pub(crate) async fn run(context: &Context, args: ReleaseArgs) -> Result<i32, Failure> {
    let proof = args.proof.proof(context)?;
    let only = context.only_resource();
    if args.resources.is_empty() && only.is_none() && matches!(proof, Proof::Label(_)) {
        return Err(Failure::usage("name what to release")
            .hint("A label may hold several things; a grant (--grant) needs no names."));
    }
    let client = context.client().await?;
    let resources = match only {
        Some(only) if args.resources.is_empty() => vec![only],
        _ => context.resources(&client, &args.resources, Reach::AllWorktrees).await?,
    };
    release(context, &client, proof, resources).await
}

/// Releases, and says what came of it.
pub(crate) async fn release(
    context: &Context,
    client: &Client,
    proof: Proof,
    resources: Vec<Resource>,
) -> Result<i32, Failure> {
    let named = (!resources.is_empty()).then_some(resources.as_slice());
    let holds = match client.release(proof.clone(), named).await? {
        Released::Ended(holds) => holds,
        Released::NotHeld(others) => {
            return Err(match (others.first(), &proof) {
                (Some(other), Proof::Label(_)) => Refusal::not_yours(other).into(),
                _ => Refusal::nothing_held(&proof, &resources).into(),
            });
        }
    };
    let names: Vec<Resource> = holds.iter().map(|seen| seen.hold.want.resource.clone()).collect();
    let text = show::names(&names);
    if holds.iter().any(SeenHold::lapsed) {
        return Err(lost(&format!("The lease on {text} had lapsed before it was released")));
    }
    let released: Vec<String> = names.iter().map(Resource::to_string).collect();
    context.output.done(json!({ "released": released }), || match context.output.quiet {
        true => String::new(),
        false => format!("Released {}", styled(NAME, text)),
    });
    Ok(0)
}
