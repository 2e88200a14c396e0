//! `tenure tasks heartbeat`: the lease of a claim, and of the section kept with it, starts anew.

use super::obtain::section_of;
use super::own::{OwnArgs, hold_of, late, own};
use super::{find, show};
use crate::args;
use crate::context::Context;
use crate::failure::Failure;
use clap::Args;
use serde_json::json;
use std::time::Duration;
use tenure::core::{Kind, Proof};
use tenure::duration::format_duration;
use tenure::store::Renewed;

/// Start the lease of a task that you claimed anew, and that of its section
///
/// Refused with exit 8 if the task is not yours any more.
#[derive(Debug, Args)]
pub(super) struct HeartbeatArgs {
    #[command(flatten)]
    own: OwnArgs,
    /// Length of the task's lease from now on [default: as before]
    #[arg(long, value_name = "DURATION", value_parser = args::lease)]
    ttl: Option<Duration>,
}

pub(super) async fn run(context: &Context, args: HeartbeatArgs) -> Result<i32, Failure> {
    let client = context.client().await?;
    let task = find(&client, &args.own.task).await?;
    let own = own(context, &client, &task, &args.own.proof).await?;
    let token = args.own.token();
    let hold = hold_of(&client, &task).await?.filter(|seen| own.proof.recognises(seen));
    let hold = hold.filter(|seen| token.is_none_or(|token| token == seen.hold.token));
    let Some(hold) = hold else { return Err(late(&task, token)) };
    // All that is held for the task: its files, and its section where no label keeps that.
    let renewed = client.renew_with(&own.proof, &hold, args.ttl).await?;
    let lost = |(_, answer): &(_, Renewed)| *answer == Renewed::Lost;
    if renewed.is_empty() || renewed.iter().any(lost) {
        return Err(late(&task, token));
    }
    let mut with_task = renewed.iter().map(|(seen, _)| seen.hold.want.resource.kind());
    let mut keeps_section = with_task.any(|kind| kind == Kind::Section);
    if let (Some(runner), Some(section)) = (own.runner, section_of(&task)) {
        let renewed = client.renew(&Proof::Grant(runner), Some(&[section]), None).await?;
        keeps_section |= renewed.iter().any(|(_, answer)| *answer != Renewed::Lost);
    }
    let ttl = args.ttl.unwrap_or(hold.hold.ttl);
    let hold = hold_of(&client, &task).await?;
    let data = json!({
        "task": show::task_json(&task, hold.as_ref()),
        "ttl_seconds": ttl.as_secs_f64(),
        "section_renewed": keeps_section,
    });
    context.output.done(data, || match (context.output.quiet, &task.section) {
        (true, _) => String::new(),
        (false, Some(section)) if keeps_section => {
            let ttl = format_duration(ttl);
            format!("Renewed {} for {ttl}, and its section {section:?}", show::name(&task))
        }
        (false, _) => format!("Renewed {} for {}", show::name(&task), format_duration(ttl)),
    });
    Ok(0)
}
