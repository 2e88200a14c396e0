//! Handing out tasks.

use crate::api::input::{Body, usage};
use crate::api::values::{
    Count, Grant, Label, LeaseMs, SectionName, TaskLabel, TaskName, WaitMs, list,
};
use crate::api::{Api, LEASE_DEFAULT, schema};
use crate::caller::Caller;
use crate::problem::Problem;
use axum::Json;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;
use tenure::core::Blocker;
use tenure::core::rules::tasks::{Claimed, NoClaim};
use tenure::{Binding, Busy, ClaimRequest, Claims, Client, Error};
use tenure_frontend::refusal::{Refusal, RefusalKind};
use tenure_frontend::view;
use utoipa::ToSchema;

/// What a worker asks for.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ClaimBody {
    /// A label of the caller's choice, which then proves the claim too. Without it only the grant
    /// does.
    #[serde(rename = "as")]
    label: Option<Label>,
    /// At most so many; one unless told otherwise.
    count: Option<Count>,
    /// Only this task.
    task: Option<TaskName>,
    /// Only of this section.
    section: Option<SectionName>,
    /// Only with all of these labels.
    #[serde(default, deserialize_with = "list::<_, _, 0, 100>")]
    #[schema(max_items = 100)]
    labels: Vec<TaskLabel>,
    /// Lease of each claim, and of its section; a minute unless told otherwise.
    ttl_ms: Option<LeaseMs>,
    /// How long to wait for a task; not at all unless told otherwise.
    wait_ms: Option<WaitMs>,
    /// A grant of the caller's choice under which it keeps its section from task to task; give it
    /// with heartbeats and at the end of each task too. Without it a section is held with the task.
    runner: Option<Grant>,
    /// A grant of the caller's choice, for a named task. Ask again with it at once to go on waiting: the
    /// place in the queue is kept for 15 seconds from one request to the next.
    grant: Option<Grant>,
}

/// Takes the next tasks that are ready, or a named one. With each task its section (unless any
/// number may work in it) and its files are held.
///
/// Claims of a named task with `wait_ms` are served first come, first served. A claim has no place in the
/// queue as long as another runner holds the section of the task. A claim for a section ends as soon as
/// nothing is left to do there.
#[utoipa::path(
    post, path = "/v1/tasks/claim", operation_id = "claim_tasks", tag = "tasks", request_body = ClaimBody,
    responses(
        (status = 200, description = "The claimed tasks, or why there is none", body = schema::Claimed),
        (status = 404, description = "TASK_NOT_FOUND: no task has this id"),
        (status = 400, description = "USAGE: a grant was given without a task"),
    ),
)]
pub(super) async fn claim(
    api: Api,
    caller: Caller,
    Body(asked): Body<ClaimBody>,
) -> Result<Json<schema::Claimed>, Problem> {
    let client = api.holder(&caller, asked.label.as_ref())?;
    if asked.grant.is_some() && asked.task.is_none() {
        return Err(usage("a grant can be chosen only for a named task"));
    }
    let wait = api.wait(asked.wait_ms);
    let ttl = asked.ttl_ms.map_or(LEASE_DEFAULT, LeaseMs::span);
    let request = ClaimRequest {
        task: asked.task.map(|task| task.0),
        section: asked.section.map(String::from),
        labels: asked.labels.into_iter().map(String::from).collect(),
        count: asked.count.map_or(1, |count| count.0 as usize),
        ttl,
        section_ttl: ttl,
        runner: asked.runner.map(|runner| runner.0),
        tie: Binding::Elsewhere,
        grant: asked.grant.as_ref().map(|grant| grant.0),
        // What was claimed by a request whose answer was lost is the asker's.
        under: asked.grant.iter().map(|grant| grant.0).collect(),
        ..ClaimRequest::default()
    };
    let mut claim = client.tasks().request(request.clone()).wait(wait).leave_idle_sections();
    if asked.grant.is_some() {
        claim = claim.keep_place();
    }
    let claims = api.unless_stopping(wait, claim.take()).await?;
    let holder = client.holder().label.clone();
    match claims {
        Claims::Claimed { mut tasks, asked_at, .. } => {
            for one in &mut tasks {
                let hand_over = api.rescuer().take_over(&client, &one.task).await;
                hand_over.update(&mut one.task);
            }
            // To keep what earlier workers left may have taken longer than the lease.
            if !client.tasks().is_trusted(ttl, asked_at) {
                client.tasks().call_off(&tasks, request.runner).await?;
                return Err(Error::TooLate.into());
            }
            let tasks = tasks.iter().map(claimed).collect();
            Ok(Json(schema::Claimed { tasks, holder, why: None }))
        }
        Claims::None(NoClaim::NotFound) => {
            let text = request.task.as_ref().map(ToString::to_string).unwrap_or_default();
            Err(Error::NoSuchTask { text }.into())
        }
        Claims::None(none) => {
            let refusal = why_none(&client, &request, none).await?;
            let Refusal { code, message, details, .. } = refusal;
            let why = schema::WhyNone { code: code.to_owned(), detail: message, details };
            Ok(Json(schema::Claimed { tasks: vec![], holder, why: Some(why) }))
        }
    }
}

fn claimed(claimed: &Claimed) -> schema::ClaimedTask {
    let task = view::Task::claimed(claimed);
    let reason = claimed.reason.word().to_owned();
    schema::ClaimedTask { task, grant: claimed.grant.to_string(), reason }
}

async fn why_none(
    client: &Client,
    request: &ClaimRequest,
    none: NoClaim,
) -> Result<Refusal, Error> {
    let not_ready = |why: Vec<String>| {
        let what = match &request.task {
            Some(task) => format!("Task {task} cannot be claimed"),
            None => "No task can be claimed".to_owned(),
        };
        let message = format!("{what}: {}", why.join("; "));
        Refusal::new(RefusalKind::Locked, "NOT_READY", message).details(json!({ "why": why }))
    };
    Ok(match none {
        NoClaim::NotFound | NoClaim::NothingReady => {
            Refusal::none_ready(request, &client.tasks().left(request).await?)
        }
        NoClaim::AllTaken { by: Some(by), .. } => {
            let wanted = [by.hold.want.resource.clone()];
            let busy = Busy::new(vec![Blocker::Hold(*by)], Duration::ZERO);
            Refusal::locked(&wanted, &busy)
        }
        NoClaim::AllTaken { why, by: None, .. } | NoClaim::NotReady { why } => not_ready(why),
        NoClaim::Queue(_) | NoClaim::Deadlock(_) => not_ready(vec![]),
    })
}
