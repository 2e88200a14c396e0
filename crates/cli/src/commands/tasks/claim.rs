//! `tenure tasks claim`: the next task that is ready, or a named one.

use super::obtain::{HowArgs, Obtained, obtain};
use super::{find, show};
use crate::context::Context;
use crate::failure::Failure;
use crate::show::time;
use clap::Args;
use serde_json::{Value, json};
use tenure::ClaimRequest;

/// Take the next task that is ready, or a named one
///
/// Takes the task, its section (unless any number may work in it) and its files in one act. The
/// claim outlives this command: prolong it with `tenure tasks heartbeat`, end it with `complete`,
/// `fail`, `review`, `snooze` or `release`, proved by the grant that is printed or by your --as
/// label. With --as you keep the section from task to task until nothing is left to do in it.
/// A named task is waited for while others hold it; without a name it waits only if -w says so.
/// Exit 6 if there are tasks but none can be had now, 4 if none is left to do.
///
/// The order: first tasks of the section that you keep; then by the task's priority, by the priority
/// and position of its section, by its own position, and the oldest first. A section that was not
/// described, and a task without a section, have priority 50 and position 0 there.
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
    /// Only of this section
    #[arg(long, value_name = "SECTION")]
    section: Option<String>,
    /// Only with this label; may be given several times
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = crate::args::numbers::claimed)]
    count: Option<u16>,
    #[command(flatten)]
    how: HowArgs,
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
    let obtained = obtain(context, &client, &request, &args.how).await?;
    let data = json!({ "tasks": obtained.iter().map(claimed_json).collect::<Vec<_>>() });
    context.output.done(data, || {
        let words = obtained.iter().map(|one| match context.output.quiet {
            true => one.claimed.task.id.to_string(),
            false => format!("Claimed {}\n{}", show::name(&one.claimed.task), claim_words(one)),
        });
        words.collect::<Vec<_>>().join("\n")
    });
    Ok(0)
}

/// A claimed task as JSON for its claimer, with the grant that proves the claim.
pub(super) fn claimed_json(obtained: &Obtained) -> Value {
    let mut value = show::task_json(&obtained.claimed.task, obtained.hold.as_ref());
    value["grant"] = json!(obtained.claimed.grant);
    value["token"] = json!(obtained.claimed.token);
    value
}

/// What the claimer must know.
pub(super) fn claim_words(obtained: &Obtained) -> String {
    let (grant, token) = (obtained.claimed.grant, obtained.claimed.token);
    let mut text = format!("  grant    {grant}\n  token    {token}");
    if let Some(seen) = &obtained.hold {
        let left = tenure_frontend::duration::format_duration(seen.left);
        text += &format!("\n  expires  {} (in {left})", time(seen.expires_at));
    }
    text
}
