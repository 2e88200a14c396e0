//! `tenure tasks claim`: claims the next ready task, or a named one.

use super::claim_or_wait::{ClaimOptions, claim_or_wait};
use super::{find, show};
use crate::context::Context;
use crate::failure::Failure;
use crate::show::time;
use clap::Args;
use serde_json::{Value, json};
use std::time::Duration;
use tenure::ClaimRequest;
use tenure::core::Reason;
use tenure::core::rules::tasks::Claimed;
use tenure_frontend::{rescue, view};

/// Claim the next ready task, or a named one
///
/// Takes the task, its section (unless any number of runners may work in it) and its files, all or
/// nothing. The claim outlives this command: renew it with `tenure tasks heartbeat`, end it with
/// `complete`, `fail`, `review`, `snooze` or `release`, and prove it with the printed grant or with
/// your --as label. With --as you keep the section from task to task until no task is left in it. A
/// named task that others hold is waited for; without a name, -w is needed to wait. Exits 6 if no
/// task is ready now, 4 if none is left to do.
///
/// The order: tasks of the section that you keep; then by the task's priority, by the priority and
/// position of its section, by its own position, and by age, oldest first. A section without a
/// description, and a task without a section, count with priority 50 and position 0.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure tasks claim --as alice --section Backend
  tenure tasks claim 'Fix bug' -n
  ID=$(tenure -q tasks claim --as alice -w 60)")]
pub(super) struct ClaimArgs {
    /// Id, unique beginning of an id, or exact title
    #[arg(value_name = "TASK", conflicts_with_all = ["section", "labels", "count"])]
    task: Option<String>,
    /// Only tasks of this section
    #[arg(long, value_name = "SECTION")]
    section: Option<String>,
    /// Only tasks with this label; can be repeated
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// Claim at most N tasks
    #[arg(long, value_name = "N", value_parser = crate::args::numbers::claimed)]
    count: Option<u16>,
    #[command(flatten)]
    how: ClaimOptions,
}

pub(super) async fn run(context: &Context, args: ClaimArgs) -> Result<i32, Failure> {
    let client = context.client().await?;
    let task = match &args.task {
        Some(text) => Some(find(&client, text).await?.id),
        None => None,
    };
    let request = ClaimRequest {
        task,
        section: args.section,
        labels: args.labels,
        count: args.count.unwrap_or(1).into(),
        ..args.how.request(context)
    };
    let obtained = claim_or_wait(context, &client, &request, &args.how).await?;
    let tasks = &obtained.tasks;
    let data = json!({ "tasks": tasks.iter().map(claimed_json).collect::<Vec<_>>() });
    let words = || {
        let words = tasks.iter().map(|one| match context.output.quiet {
            true => one.task.id.to_string(),
            false => {
                let how = match one.reason {
                    Reason::AlreadyOwned => "Renewed your claim of",
                    Reason::AcquiredNew => "Claimed",
                    Reason::ClaimedExpired | Reason::ClaimedDead => "Took over",
                };
                let (name, text) = (show::name(&one.task), claim_text(one, request.ttl));
                format!("{how} {name}\n{text}{}", show::history_text(&one.task))
            }
        });
        words.collect::<Vec<_>>().join("\n")
    };
    obtained.hand_out(context, &client, data, words).await
}

/// A claimed task as JSON for its worker, with the grant that proves the claim.
pub(super) fn claimed_json(claimed: &Claimed) -> Value {
    let mut value = view::json(&view::Task::claimed(claimed));
    value["rescue_ref"] = json!(rescue::reference(&claimed.task));
    value["grant"] = json!(claimed.grant);
    value["token"] = json!(claimed.token);
    value["reason"] = json!(claimed.reason);
    value
}

/// What the worker must know about its claim, which just began.
pub(super) fn claim_text(claimed: &Claimed, ttl: Duration) -> String {
    let Claimed { grant, token, expires_at, .. } = claimed;
    let (at, left) = (time(*expires_at), tenure_frontend::duration::format_duration(ttl));
    format!("  grant    {grant}\n  token    {token}\n  expires  {at} (in {left})")
}
