//! The tools about one task: read it in full, note, change, review, start and retry it.

use super::answer::{Refused, terse};
use super::call::Call;
use super::task_json::{priority, task_json};
use super::work;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tenure::core::rules::tasks::{Finish, Finished, ManualChange, TaskChange};
use tenure::core::{Scope, Task, TaskId, TaskScope};
use tenure_frontend::refusal::Refusal;
use tenure_frontend::time::parse_time;
use tenure_frontend::{rescue, view};

/// The most dependencies or dependents that are named.
const RELATED_MAX: usize = 50;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskArguments {
    /// Id or exact title
    task_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoteArguments {
    /// Id or exact title
    task_id: String,
    /// What you learned, what is done, what is left
    text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateArguments {
    /// Id or exact title
    task_id: String,
    title: Option<String>,
    description: Option<String>,
    /// 0 to 100, lower first; with dialect=coordination 1 to 10
    priority: Option<u8>,
    /// Empty for none
    section: Option<String>,
    /// Globs of the files that it changes, from the root
    files: Option<Vec<String>>,
    max_attempts: Option<u32>,
    /// Not before this time (RFC 3339)
    not_before: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReviewArguments {
    /// Id or exact title
    task_id: String,
    /// approve, or reject with feedback; leave out to send your own task to review
    verdict: Option<String>,
    /// What must change (reject)
    feedback: Option<String>,
    /// The result (your own task)
    output: Option<Value>,
}

/// What [`register_agent`] takes besides the agent's name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RegisterArguments {
    /// Accepted and not used: what an agent may do depends on its token.
    #[serde(rename = "role")]
    _role: Option<String>,
}

/// One task in full, with what it waits for and what waits for it.
pub(super) async fn get_task(call: &Call, arguments: TaskArguments) -> Result<Value, Refused> {
    let task = call.client.tasks().find(&arguments.task_id).await?;
    let ids = vec![task.id.clone()];
    let scope = TaskScope { ids, dependencies: true, dependents: true, ..TaskScope::default() };
    let seen =
        call.client.backend().read(&Scope::Tasks(scope)).await.map_err(tenure::Error::from)?;
    let why = call.client.tasks().why(&task.id).await?;
    let outputs = call.client.tasks().attempts_with_output(&task.id).await?;
    let claims = view::Claims::of(&seen, call.client.witness());
    let related = |is_related: &dyn Fn(&Task) -> bool| -> Vec<Value> {
        let tasks = seen.tasks.iter().filter(|other| is_related(other)).take(RELATED_MAX);
        let brief = |task: &Task| {
            let (id, status) = (task.id.as_str(), task.status.word());
            json!({ "task_id": id, "title": task.title, "status": status })
        };
        tasks.map(brief).collect()
    };
    let mut value = terse(json!({
        "success": true,
        "task": task_json(&call.client, claims.task(&task).with_outputs(&outputs)),
        "waits_for": related(&|other| task.depends_on.contains(&other.id)),
        "waited_for_by": related(&|other| other.depends_on.contains(&task.id)),
        "not_ready_because": why,
    }));
    if let Some(reference) = rescue::reference(&task) {
        value["rescue_ref"] = json!(reference);
    }
    Ok(value)
}

/// Adds a note for the next worker.
pub(super) async fn add_note(call: &Call, arguments: NoteArguments) -> Result<Value, Refused> {
    let task = call.client.tasks().find(&arguments.task_id).await?;
    let task = call.client.tasks().add_note(&task.id, &arguments.text).await?;
    Ok(json!({ "success": true, "task_id": task.id.as_str(), "notes": task.notes.len() }))
}

/// Changes the fields that are given.
pub(super) async fn update_task(call: &Call, arguments: UpdateArguments) -> Result<Value, Refused> {
    let not_before = match &arguments.not_before {
        Some(text) => Some(parse_time(text).ok_or_else(|| {
            Refused::usage(format!(
                "not_before: {text:?} is not a time such as 2030-01-31T12:00:00Z"
            ))
        })?),
        None => None,
    };
    let files = arguments.files.as_deref().map(|files| call.task_globs(files)).transpose()?;
    let change = TaskChange {
        title: arguments.title,
        description: arguments.description,
        section: arguments.section,
        priority: priority(&call.client, arguments.priority)?,
        max_attempts: arguments.max_attempts,
        not_before,
        files,
        ..TaskChange::default()
    };
    if change == TaskChange::default() {
        return Err(Refused::usage("nothing to change: give at least one field"));
    }
    edit(call, &arguments.task_id, ManualChange::Update(Box::new(change))).await
}

/// Sends the agent's own task to review, or decides about one that is in review.
pub(super) async fn review_task(call: &Call, arguments: ReviewArguments) -> Result<Value, Refused> {
    let verdict = arguments.verdict.as_deref().filter(|verdict| !verdict.is_empty());
    match verdict {
        None => {
            let result = arguments.output.map(|output| json!({ "output": output }).to_string());
            work::end(call, &arguments.task_id, Finish::Review { result }).await
        }
        Some("approve") => edit(call, &arguments.task_id, ManualChange::Approve).await,
        Some("reject") => match arguments.feedback {
            Some(feedback) if !feedback.trim().is_empty() => {
                edit(call, &arguments.task_id, ManualChange::Reject { feedback }).await
            }
            _ => Err(Refused::usage("a rejection needs feedback: say what must change")),
        },
        Some(other) => {
            Err(Refused::usage(format!("verdict is {other:?}; it must be approve or reject")))
        }
    }
}

/// Has a failed, blocked, cancelled or skipped task done after all.
pub(super) async fn retry_task(call: &Call, arguments: TaskArguments) -> Result<Value, Refused> {
    edit(call, &arguments.task_id, ManualChange::Retry).await
}

async fn edit(call: &Call, task: &str, change: ManualChange) -> Result<Value, Refused> {
    let id = call.client.tasks().find(task).await?.id;
    let task = call.client.tasks().edit(&id, change).await?;
    Ok(changed(&task.id, &task))
}

fn changed(id: &TaskId, task: &Task) -> Value {
    json!({ "success": true, "task_id": id.as_str(), "status": task.status.word() })
}

/// Records that the agent began. A claim already makes the task the agent's own.
pub(super) async fn start_task(call: &Call, arguments: TaskArguments) -> Result<Value, Refused> {
    let task = call.client.tasks().find(&arguments.task_id).await?;
    let proof = call.session.proof_of(&task).await?;
    match call.client.tasks().start(&task.id, proof).await? {
        Finished::Done { task, .. } => Ok(changed(&task.id, &task)),
        Finished::NotYours(task) => Err(Refused::not_yours(&task)),
        Finished::ClaimLost { task, part } => Err(Refusal::claim_lost(&task, &part).into()),
        Finished::NotFound => Err(tenure::Error::NoSuchTask { text: task.id.to_string() }.into()),
    }
}

/// Says under which name the agent is known. Agents need not register.
pub(super) fn register_agent(call: &Call, _: RegisterArguments) -> Value {
    json!({ "success": true, "agent": call.client.holder().label })
}
