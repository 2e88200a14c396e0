//! The tools for workers: claim, complete, fail.

use super::answer::{Refused, terse};
use super::call::{self, Call, Progress};
use super::task_json::task_json;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tenure::core::Status;
use tenure::core::rules::tasks::{Claimed, Finish, NoClaim};
use tenure::store::Tally;
use tenure::{ClaimRequest, Claims, Client, Error};
use tenure_frontend::{rescue, view};
use tokio::sync::watch;

/// What to tell an agent that claims a task while it has others.
const STILL_CLAIMED: &str = "You claimed these before and still hold them, so that no other agent \
    can do them: finish each with complete_task or fail_task, or return it with release_lock.";

/// When to retry if nothing else is known.
const RETRY_AFTER_SECONDS: u64 = 30;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ClaimArguments {
    /// Only this task: id or exact title
    task_id: Option<String>,
    section: Option<String>,
    /// Only tasks with all of these
    #[serde(default)]
    labels: Vec<String>,
    /// Wait at most this long (default 0)
    wait_seconds: Option<f64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CompleteArguments {
    task_id: String,
    /// The result
    output: Option<Value>,
    #[serde(default)]
    files_modified: Vec<String>,
    #[serde(default)]
    files_created: Vec<String>,
    /// A person should review it before it counts as completed
    #[serde(default)]
    review: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FailArguments {
    task_id: String,
    /// The reason
    error: String,
    /// Whether to retry it (default true)
    retry: Option<bool>,
}

pub(super) async fn claim_task(call: &Call, arguments: ClaimArguments) -> Result<Value, Refused> {
    let limit = call::limit(arguments.wait_seconds)?;
    let options = &call.session.options;
    let task = match &arguments.task_id {
        Some(text) => Some(call.client.tasks().find(text).await?.id),
        None => None,
    };
    let request = ClaimRequest {
        task,
        section: arguments.section,
        labels: arguments.labels,
        grant: Some(call.session.new_grant()),
        ttl: options.task_ttl,
        section_ttl: options.section_ttl,
        runner: Some(call.session.runner()),
        tie: call.session.tie,
        under: {
            let held = call.session.held().await;
            held.iter().map(|held| held.grant).chain(options.around.iter().copied()).collect()
        },
        workspace: options.rescuer.workspace(),
        ..ClaimRequest::default()
    };
    match claim(call, request.clone(), limit).await? {
        Ok((claimed, _)) if call.is_cancelled() => {
            call.session.hand_back(&claimed).await?;
            Err(Refused::cancelled())
        }
        Ok((mut claimed, asked_at)) => {
            call.session.keep_task(&claimed).await?;
            let hand_over = options.rescuer.take_over(&call.client, &claimed.task).await;
            hand_over.update(&mut claimed.task);
            // To keep what an earlier worker left may have taken longer than the lease.
            if !call.client.tasks().is_trusted(options.task_ttl, asked_at) {
                call.session.hand_back(&claimed).await?;
                return Err(Error::TooLate.into());
            }
            let task = task_json(&call.client, view::Task::claimed(&claimed));
            let reason = claimed.reason.word();
            let mut value = json!({ "success": true, "task": task, "reason": reason });
            if let Some(reference) = rescue::reference(&claimed.task) {
                value["rescue_ref"] = json!(reference);
            }
            let others = call.session.other_tasks(&claimed.task.id).await;
            if !others.is_empty() {
                value["still_claimed"] = json!(others);
                value["still_claimed_means"] = json!(STILL_CLAIMED);
            }
            Ok(value)
        }
        Err(none) => no_claim(&call.client, &request, none).await,
    }
}

type Claiming = Pin<Box<dyn Future<Output = Result<Claims, Error>> + Send>>;

/// Waits for a task, and reports progress now and then. Also says when it was asked for, on the client's clock. If the agent cancels the call, the claim is
/// dropped, which returns what it may have got.
async fn claim(
    call: &Call,
    request: ClaimRequest,
    limit: Duration,
) -> Result<Result<(Claimed, Duration), NoClaim>, Refused> {
    let (tell, told) = watch::channel(Progress::default());
    let claim = call.client.tasks().request(request).wait(call::patience(limit));
    let mut claiming: Claiming = Box::pin(claim.take_while(move |waiting| {
        let words = format!("Waiting for a task: {}", why(&waiting.none));
        tell.send_replace(Progress { waited: waiting.waited, words });
        std::future::ready(Ok(true))
    }));
    match call.wait(&mut claiming, told, limit).await {
        Some(claims) => Ok(match claims? {
            Claims::Claimed { mut tasks, asked_at, .. } => Ok((tasks.remove(0), asked_at)),
            Claims::None(none) => Err(none),
        }),
        None => Err(Refused::cancelled()),
    }
}

fn why(none: &NoClaim) -> String {
    match none {
        NoClaim::NotFound => "no such task".to_owned(),
        NoClaim::NothingReady => "none is ready".to_owned(),
        NoClaim::AllTaken { why, .. } | NoClaim::NotReady { why } if !why.is_empty() => {
            why.join("; ")
        }
        NoClaim::AllTaken { .. } => "all are claimed".to_owned(),
        NoClaim::NotReady { .. } | NoClaim::Queue(_) | NoClaim::Deadlock(_) => {
            "it is not ready".to_owned()
        }
    }
}

/// A claim without a task is a result, not an error.
async fn no_claim(
    client: &Client,
    request: &ClaimRequest,
    none: NoClaim,
) -> Result<Value, Refused> {
    let seconds = match &none {
        NoClaim::AllTaken { by: Some(hold), .. } => {
            hold.left.as_secs().clamp(1, RETRY_AFTER_SECONDS)
        }
        _ => RETRY_AFTER_SECONDS,
    };
    let mut message = format!("No task was claimed: {}", why(&none));
    let mut next = "Call claim_task again later, or with wait_seconds to wait for one.";
    let open = client.tasks().tallies().await?;
    let count = |status: Status| -> u64 {
        open.iter().filter(|tally| tally.status == status).map(|Tally { count, .. }| count).sum()
    };
    let (pending, in_progress) = (count(Status::Pending), count(Status::InProgress));
    if none == NoClaim::NothingReady {
        let left = client.tasks().left(request).await?;
        message = format!("No task was claimed: {}", left.clauses().join("; "));
        if left.is_empty() {
            let is_chosen = request.section.is_some() || !request.labels.is_empty();
            let which = if is_chosen { " of those that you asked for" } else { "" };
            message = format!("No task was claimed: none{which} is left to do");
            next = if pending + in_progress > 0 {
                "Other tasks are left: call claim_task without section and labels, or see get_status."
            } else {
                "All tasks are done; see get_status."
            };
        }
    }
    Ok(json!({
        "success": false,
        "message": message,
        "next": next,
        "retry_after_seconds": seconds,
        "pending": pending,
        "in_progress": in_progress,
    }))
}

pub(super) async fn complete_task(
    call: &Call,
    arguments: CompleteArguments,
) -> Result<Value, Refused> {
    let mut result = Map::new();
    if let Some(output) = arguments.output {
        result.insert("output".to_owned(), output);
    }
    let files =
        [("files_modified", arguments.files_modified), ("files_created", arguments.files_created)];
    for (name, files) in files.into_iter().filter(|(_, files)| !files.is_empty()) {
        result.insert(name.to_owned(), json!(files));
    }
    let result = (!result.is_empty()).then(|| Value::Object(result).to_string());
    let finish = match arguments.review {
        true => Finish::Review { result },
        false => Finish::Complete { result },
    };
    end(call, &arguments.task_id, finish).await
}

pub(super) async fn fail_task(call: &Call, arguments: FailArguments) -> Result<Value, Refused> {
    let retry = arguments.retry.unwrap_or(true);
    end(call, &arguments.task_id, Finish::Fail { reason: arguments.error, retry }).await
}

/// Ends the session's work on a task.
pub(super) async fn end(call: &Call, task: &str, finish: Finish) -> Result<Value, Refused> {
    let task = call.client.tasks().find(task).await?;
    let task = call.session.finish(&task, finish).await?;
    Ok(terse(json!({
        "success": true,
        "task_id": task.id.as_str(),
        "status": task.status.word(),
        "attempts": task.attempts,
        "max_attempts": task.max_attempts,
        "not_before": task.not_before.map(view::time),
    })))
}
