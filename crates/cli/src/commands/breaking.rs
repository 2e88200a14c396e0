//! `tenure break`: ending somebody else's hold, by an operator's decision.

use crate::args;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{NAME, styled};
use clap::Args;
use serde_json::{Value, json};
use tenure::core::{HoldSnapshot, Resource, Token};
use tenure::place::Reach;
use tenure::{Broken, Client};
use tenure_frontend::refusal::Refusal;

/// End somebody else's hold, as an operator
///
/// The holder loses its lease and learns of it; a command under `tenure run` is stopped. Who did
/// it and why is in the audit log. Only the exact hold that this command saw is ended, never a
/// successor's.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure why deploy                       who holds it, and what would free it anyway
  tenure break deploy --force --reason 'its build machine was scrapped'")]
pub(crate) struct BreakArgs {
    /// What to free
    #[arg(value_name = "RESOURCE", value_parser = args::resource)]
    resource: Option<args::ResourceArg>,
    /// Yes, really
    #[arg(long)]
    force: bool,
    /// Why, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Only the hold with this token
    #[arg(long, value_name = "N", value_parser = args::numbers::token)]
    token: Option<u64>,
}

pub(crate) async fn run(context: &Context, args: BreakArgs) -> Result<i32, Failure> {
    let reason = permission(args.force, args.reason.as_deref())?;
    let client = context.client().await?;
    let named = args.resource.as_slice();
    let resource = context.resources_or_only(&client, named, Reach::AllWorktrees).await?;
    break_all(context, &client, &resource[0], args.token.map(Token), reason).await
}

/// Whether the operator said all that is needed. The message does not teach the flag: whoever may
/// use it finds it in the help.
pub(crate) fn permission(force: bool, reason: Option<&str>) -> Result<&str, Failure> {
    if !force {
        let message = "ending somebody else's hold is for operators only";
        return Err(Failure::new(Exit::Refused, "NEEDS_FORCE", message)
            .hint("Wait for its holder to release it; a dead holder is replaced by itself."));
    }
    match reason.map(str::trim) {
        Some(reason) if !reason.is_empty() => Ok(reason),
        _ => Err(Failure::usage("a reason is needed, for the audit log")),
    }
}

/// Ends the holds that are there now, or the one with this token.
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
                context.output.note(&format!(
                    "{resource} changed hands meanwhile; its new holder is left alone"
                ));
            }
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
            format!("Broke {} held by {holder} (token {})", styled(NAME, resource), seen.hold.token)
        });
        lines.collect::<Vec<_>>().join("\n")
    });
    Ok(0)
}
