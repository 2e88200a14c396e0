//! `tenure renew`: renews leases.

use crate::args;
use crate::commands::ProofArgs;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{NAME, styled};
use crate::run_under_lock::lost;
use crate::show;
use clap::Args;
use serde_json::json;
use std::time::Duration;
use tenure::core::HoldSnapshot;
use tenure::store::Renewed;
use tenure_frontend::duration::format_duration;
use tenure_frontend::refusal::Refusal;

/// Renew a lease
///
/// Only a lease that has not lapsed can be renewed: after that another holder may have it (exit 8).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure renew --grant \"$GRANT\"           all that this grant holds, same length
  tenure renew --as alice db --ttl 10m")]
pub(crate) struct RenewArgs {
    /// What to renew; by default everything that you hold
    #[arg(value_name = "RESOURCE", value_parser = args::resource)]
    resources: Vec<args::ResourceArg>,
    #[command(flatten)]
    proof: ProofArgs,
    /// Length of the lease from now on [default: as before]
    #[arg(long, value_name = "DURATION", value_parser = args::lease)]
    ttl: Option<Duration>,
}

pub(crate) async fn run(context: &Context, args: RenewArgs) -> Result<i32, Failure> {
    args.proof.proof(context)?;
    let client = context.client().await?;
    let resources = context.resources(&client, &args.resources).await?;
    let proof = args.proof.proof_for(context, &client, &resources).await?;
    let named = (!resources.is_empty()).then_some(resources.as_slice());
    let asked_at = client.now();
    let renewed = client.renew(&proof, named, args.ttl).await?;
    if renewed.is_empty() {
        return Err(Refusal::nothing_held(&proof, &resources).into());
    }
    let passed = client.now().saturating_sub(asked_at);
    let is_lost = |(seen, answer): &&(HoldSnapshot, Renewed)| {
        *answer == Renewed::Lost || passed >= args.ttl.unwrap_or(seen.hold.ttl)
    };
    if let Some((seen, _)) = renewed.iter().find(is_lost) {
        return Err(lost(&format!(
            "The lease on {} was lost",
            show::name(&seen.hold.want.resource)
        )));
    }
    let lines = renewed.iter().map(|(seen, _)| {
        let ttl = args.ttl.unwrap_or(seen.hold.ttl);
        (&seen.hold.want.resource, seen.hold.token, ttl)
    });
    let lines: Vec<_> = lines.collect();
    let data = lines.iter().map(|(resource, token, ttl)| {
        json!({ "resource": resource.to_string(), "token": token, "ttl_seconds": ttl.as_secs_f64() })
    });
    context.output.confirm(json!({ "renewed": data.collect::<Vec<_>>() }), || {
        let lines = lines.iter().map(|(resource, _, ttl)| {
            let name = styled(NAME, show::name(resource));
            format!("Renewed {name} for {}", format_duration(*ttl))
        });
        lines.collect::<Vec<_>>().join("\n")
    });
    Ok(0)
}
