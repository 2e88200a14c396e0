//! `tenure break`: ends a hold of another holder, as an operator.

use crate::args;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::naming::no_resource;
use crate::output::{NAME, styled};
use crate::show;
use clap::Args;
use serde_json::{Value, json};
use tenure::core::{HoldSnapshot, Resource, Token};
use tenure::{Broken, Client};
use tenure_frontend::refusal::Refusal;

/// End another holder's hold, as an operator
///
/// The holder loses its lease and is notified; a command under `tenure run` is stopped. The audit
/// log records who broke it and why. Only the hold that this command saw is ended, never that of a
/// successor.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure why deploy                       who holds it, and what would free it anyway
  tenure break deploy --force --reason 'its build machine was scrapped'")]
pub(crate) struct BreakArgs {
    /// The resource to free
    #[arg(value_name = "RESOURCE", value_parser = args::resource)]
    resource: Option<args::ResourceArg>,
    /// Confirm that you are an operator
    #[arg(long)]
    force: bool,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// End only the hold with this token
    #[arg(long, value_name = "N", value_parser = args::numbers::token)]
    token: Option<u64>,
}

pub(crate) async fn run(context: &Context, args: BreakArgs) -> Result<i32, Failure> {
    let reason = permission(args.force, args.reason.as_deref())?;
    let client = context.client().await?;
    let resource = match (&args.resource, context.only_resource()) {
        (Some(written), _) => context.resource(&client, written).await?,
        (None, Some(only)) => only,
        (None, None) => return Err(no_resource()),
    };
    break_all(context, &client, &resource, args.token.map(Token), reason).await
}

/// Checks that the operator confirmed and gave a reason. The message does not name the flag:
/// operators find it in the help, and agents must not learn it from an error.
pub(crate) fn permission(force: bool, reason: Option<&str>) -> Result<&str, Failure> {
    if !force {
        let message = "only operators can end another holder's hold";
        return Err(Failure::new(Exit::Refused, "NEEDS_FORCE", message)
            .hint("Wait for the holder to release it; a dead holder is replaced automatically."));
    }
    match reason.map(str::trim) {
        Some(reason) if !reason.is_empty() => Ok(reason),
        _ => Err(Failure::usage("a reason is required, for the audit log")),
    }
}

/// Ends all present holds of the resource, or the one with this token.
pub(crate) async fn break_all(
    context: &Context,
    client: &Client,
    resource: &Resource,
    token: Option<Token>,
    reason: &str,
) -> Result<i32, Failure> {
    let seen = client.look(std::slice::from_ref(resource)).await?;
    let targets: Vec<&HoldSnapshot> = seen
        .holds
        .iter()
        .filter(|seen| seen.hold.want.resource == *resource)
        .filter(|seen| token.is_none_or(|token| seen.hold.token == token))
        .collect();
    if targets.is_empty() {
        return Err(Refusal::nothing_to_break(resource, token).into());
    }
    let mut ended = Vec::new();
    for target in targets {
        match client.break_hold(resource, target.hold.token, reason).await? {
            Broken::Ended(seen) => ended.push(seen),
            Broken::Gone(_) => {
                let name = show::name(resource);
                context.output.note(&format!("{name} has a new holder by now, which keeps it"));
            }
        }
    }
    for seen in &ended {
        if let Some(left) = show::left_words(&seen.hold.holder) {
            let holder = &seen.hold.holder.label;
            context.output.note(&format!("The process of {holder} {left}. It is not stopped."));
        }
    }
    let data: Vec<Value> = ended
        .iter()
        .map(|seen| json!({ "holder": seen.hold.holder.label, "token": seen.hold.token }))
        .collect();
    let data = json!({ "resource": resource.to_string(), "reason": reason, "broken": data });
    context.output.confirm(data, || {
        let lines = ended.iter().map(|seen| {
            let holder = styled(NAME, &seen.hold.holder.label);
            let name = styled(NAME, show::name(resource));
            format!("Broke {name} held by {holder} (token {})", seen.hold.token)
        });
        lines.collect::<Vec<_>>().join("\n")
    });
    Ok(0)
}
