//! `tenure tasks heartbeat`: renews the lease of a claim and of its section.

use super::ownership::{OwnTaskArgs, hold_of, late, proof_of};
use super::{find_with_hold, show};
use crate::args;
use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use serde_json::json;
use std::time::Duration;
use tenure::core::rules::tasks::Heartbeat;
use tenure_frontend::duration::format_duration;
use tenure_frontend::refusal::Refusal;
use tenure_frontend::view;

/// Renew the lease of a task that you claimed, and of its section
///
/// Refused with exit 8 if the task is no longer yours.
#[derive(Debug, Args)]
pub(super) struct HeartbeatArgs {
    #[command(flatten)]
    own: OwnTaskArgs,
    /// Length of the task's lease from now on [default: as before]
    #[arg(long, value_name = "DURATION", value_parser = args::lease)]
    ttl: Option<Duration>,
}

pub(super) async fn run(context: &Context, args: HeartbeatArgs) -> Result<i32, Failure> {
    let client = context.client().await?;
    let (task, hold) = find_with_hold(&client, &args.own.task).await?;
    let own = proof_of(context, hold.as_ref(), &args.own.proof)?;
    let token = args.own.token();
    let answer = client.tasks().heartbeat(&task.id, own.proof, token, args.ttl).await?;
    let (task, ttl, section_renewed) = match answer {
        Heartbeat::Renewed { task, ttl, section } => (task, ttl, section),
        Heartbeat::NotYours(task) => return Err(late(&task, token)),
        Heartbeat::ClaimLost { task, part } => {
            return Err(Refusal::claim_lost(&task, &part).into());
        }
        Heartbeat::NotFound => return Err(tenure::Error::NoSuchTask { text: args.own.task }.into()),
    };
    let hold = hold_of(&client, &task).await?;
    let data = json!({
        "task": view::Task::new(&task, hold.and_then(|seen| seen.limit())),
        "ttl_seconds": ttl.as_secs_f64(),
        "section_renewed": section_renewed,
    });
    context.output.done(data, || match (context.output.quiet, &task.section) {
        (true, _) => String::new(),
        (false, Some(section)) if section_renewed => {
            let ttl = format_duration(ttl);
            format!("Renewed {} for {ttl}, and its section {section:?}", show::name(&task))
        }
        (false, _) => format!("Renewed {} for {}", show::name(&task), format_duration(ttl)),
    });
    Ok(0)
}
