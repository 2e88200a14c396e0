//! `tenure tasks start`, `complete`, `fail`, `review`, `snooze` and `release`: what a worker
//! reports about its task.

use super::ownership::{OwnTaskArgs, late, proof_of};
use super::{find_with_hold, show, values};
use crate::args;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{NAME, styled};
use clap::Args;
use serde_json::json;
use std::time::Duration;
use tenure::Client;
use tenure::core::rules::tasks::{Finish, Finished};
use tenure::core::{HoldSnapshot, Status, Task};
use tenure_frontend::refusal::Refusal;
use tenure_frontend::view;

/// Complete a task that you claimed
///
/// Refused with exit 8 if the task is no longer yours; then nothing is changed.
#[derive(Debug, Args)]
pub(super) struct ResultArgs {
    #[command(flatten)]
    own: OwnTaskArgs,
    /// The result; text that is not JSON is stored as a JSON string
    #[arg(long, value_name = "JSON|TEXT")]
    result: Option<String>,
}

/// Fail a task that you claimed
///
/// It is retried after a pause, as often as the task allows, unless --no-retry is given.
#[derive(Debug, Args)]
pub(super) struct FailArgs {
    #[command(flatten)]
    own: OwnTaskArgs,
    /// The reason
    #[arg(long, value_name = "TEXT", default_value = "no reason given")]
    reason: String,
    /// Do not retry
    #[arg(long)]
    no_retry: bool,
}

/// Snooze a task that you claimed; the attempt does not count
///
/// Refused with exit 8 if the task is no longer yours. To put off a task that has no worker, use
/// `tenure tasks update TASK --not-before +1h`.
#[derive(Debug, Args)]
pub(super) struct SnoozeArgs {
    #[command(flatten)]
    own: OwnTaskArgs,
    /// For how long
    #[arg(long = "for", value_name = "DURATION", value_parser = args::span)]
    pause: Duration,
}

pub(super) async fn complete(context: &Context, args: ResultArgs) -> Result<i32, Failure> {
    let result = args.result.as_deref().map(values::json_or_text);
    end(context, &args.own, Finish::Complete { result }).await
}

pub(super) async fn review(context: &Context, args: ResultArgs) -> Result<i32, Failure> {
    let result = args.result.as_deref().map(values::json_or_text);
    end(context, &args.own, Finish::Review { result }).await
}

pub(super) async fn fail(context: &Context, args: FailArgs) -> Result<i32, Failure> {
    let finish = Finish::Fail { reason: args.reason, retry: !args.no_retry };
    end(context, &args.own, finish).await
}

pub(super) async fn release(context: &Context, args: OwnTaskArgs) -> Result<i32, Failure> {
    end(context, &args, Finish::Release).await
}

pub(super) async fn snooze(context: &Context, args: SnoozeArgs) -> Result<i32, Failure> {
    end(context, &args.own, Finish::Snooze { pause: args.pause }).await
}

async fn end(context: &Context, args: &OwnTaskArgs, finish: Finish) -> Result<i32, Failure> {
    let client = context.client().await?;
    let found = find_with_hold(&client, &args.task).await?;
    end_found(context, &client, found, args, finish).await
}

async fn end_found(
    context: &Context,
    client: &Client,
    (task, hold): (Task, Option<HoldSnapshot>),
    args: &OwnTaskArgs,
    finish: Finish,
) -> Result<i32, Failure> {
    let ended = end_task(context, client, &task, hold.as_ref(), args, finish.clone()).await?;
    let data = json!({
        "task": view::Task::new(&ended.task, None),
        "gave_up_section": ended.gave_up_section,
        "repeated": ended.repeated,
    });
    context.output.done(data, || match context.output.quiet {
        true => String::new(),
        false => words(&ended, &finish),
    });
    Ok(0)
}

/// A task after its worker ended the work on it.
pub(super) struct EndedTask {
    pub(super) task: Task,
    gave_up_section: bool,
    /// Whether this was reported before; then nothing was changed.
    repeated: bool,
}

/// Ends the caller's work on this task, if the task is the caller's.
pub(super) async fn end_task(
    context: &Context,
    client: &Client,
    task: &Task,
    hold: Option<&HoldSnapshot>,
    args: &OwnTaskArgs,
    finish: Finish,
) -> Result<EndedTask, Failure> {
    let own = proof_of(context, hold, &args.proof)?;
    let finished =
        client.tasks().finish(&task.id, own.proof, args.token(), own.runner, finish).await?;
    match finished {
        Finished::Done { task, gave_up_section, repeated } => {
            Ok(EndedTask { task, gave_up_section, repeated })
        }
        Finished::NotYours(task) => Err(late(&task, args.token())),
        Finished::ClaimLost { task, part } => Err(Refusal::claim_lost(&task, &part).into()),
        Finished::NotFound => Err(tenure::Error::NoSuchTask { text: task.id.to_string() }.into()),
    }
}

fn words(ended: &EndedTask, finish: &Finish) -> String {
    let task = &ended.task;
    let name = show::name(task);
    if ended.repeated {
        return format!("{name} is already {}; nothing was changed", task.status);
    }
    let again = task.not_before.and_then(show::in_how_long).unwrap_or_default();
    let mut text = match (finish, task.status) {
        (Finish::Complete { .. }, _) => format!("Completed {name}"),
        (Finish::Review { .. }, _) => format!("Sent {name} to review"),
        (Finish::Fail { .. }, Status::Pending) => {
            let (attempts, max) = (task.attempts, task.max_attempts);
            format!("Failed {name}, attempt {attempts} of {max}; it will be retried {again}")
        }
        (Finish::Fail { .. }, _) => format!("Failed {name}; it will not be retried"),
        (Finish::Snooze { .. }, _) => format!("Snoozed {name}; ready {again}"),
        (Finish::Release, _) => format!("Returned {name}"),
    };
    if let (true, Some(section)) = (ended.gave_up_section, &task.section) {
        let section = styled(NAME, section);
        text += &match finish {
            Finish::Release => format!("\nReleased {section}: you have no other task in it"),
            _ => format!("\nReleased {section}: no more tasks in it"),
        };
    }
    text
}

pub(super) async fn start(context: &Context, args: OwnTaskArgs) -> Result<i32, Failure> {
    let client = context.client().await?;
    let (task, hold) = find_with_hold(&client, &args.task).await?;
    let own = proof_of(context, hold.as_ref(), &args.proof)?;
    if let (Some(token), Some(claim)) = (args.token(), &task.claim)
        && claim.token != token
    {
        return Err(late(&task, Some(token)));
    }
    let task = match client.tasks().start(&task.id, own.proof).await? {
        Finished::Done { task, .. } => task,
        Finished::NotYours(task) => return Err(late(&task, args.token())),
        Finished::ClaimLost { task, part } => {
            return Err(Refusal::claim_lost(&task, &part).into());
        }
        Finished::NotFound => return Err(tenure::Error::NoSuchTask { text: args.task }.into()),
    };
    let data = json!({ "task": view::Task::new(&task, None) });
    context.output.done(data, || match context.output.quiet {
        true => String::new(),
        false => format!("Started {}", show::name(&task)),
    });
    Ok(0)
}
