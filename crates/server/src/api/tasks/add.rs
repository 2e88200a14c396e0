//! Adding tasks.

use crate::api::input::Body;
use crate::api::values::{
    Attempts, Description, Glob, Key, Label, Moment, Object, Position, Priority, SectionName,
    TaskLabel, TaskName, TimeoutMs, Title, list,
};
use crate::api::{Api, idempotency, schema};
use crate::caller::Caller;
use crate::problem::Problem;
use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tenure::core::rules::tasks::{AddError, Added, NewTask};
use tenure::core::task::{MAX_ATTEMPTS_DEFAULT, PRIORITY_DEFAULT};
use tenure::core::{GrantId, Task, TaskId};
use tenure::{Client, Error};
use tenure_frontend::naming::without_kind;
use tenure_frontend::view;
use utoipa::ToSchema;

/// Tasks to be added, all or none.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AddBody {
    /// The tasks, in order.
    #[serde(deserialize_with = "list::<_, _, 1, 1000>")]
    #[schema(min_items = 1, max_items = 1000, value_type = Vec<NewTaskBody>)]
    tasks: Vec<Object<NewTaskBody>>,
    /// Who adds them.
    #[serde(rename = "as")]
    label: Option<Label>,
}

/// A task to be added.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewTask)]
pub(super) struct NewTaskBody {
    /// Its id, which must be new; eight random digits unless told otherwise.
    id: Option<TaskName>,
    /// In a line.
    title: Title,
    /// In full.
    description: Option<Description>,
    /// Which section it belongs to.
    section: Option<SectionName>,
    /// Lower goes first; 50 unless told otherwise.
    priority: Option<Priority>,
    /// Among equals of priority, lower goes first; 0 unless told otherwise.
    position: Option<Position>,
    /// What must be completed before: tasks that are there, or of the same request.
    #[serde(default, deserialize_with = "list::<_, _, 0, 1000>")]
    #[schema(max_items = 1000)]
    depends_on: Vec<TaskName>,
    /// For picking.
    #[serde(default, deserialize_with = "list::<_, _, 0, 100>")]
    #[schema(max_items = 100)]
    labels: Vec<TaskLabel>,
    /// Globs of the files that it touches; held while it is worked on.
    #[serde(default, deserialize_with = "list::<_, _, 0, 1000>")]
    #[schema(max_items = 1000)]
    files: Vec<Glob>,
    /// Anything for the worker.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    payload: Value,
    /// How often it may be tried in all; 3 unless told otherwise.
    max_attempts: Option<Attempts>,
    /// How long a worker may take.
    timeout_ms: Option<TimeoutMs>,
    /// Not to be taken before this time.
    not_before: Option<Moment>,
    /// Adding a second task with this key adds none.
    key: Option<Key>,
}

/// The globs of a task's files as they are stored.
pub(super) fn globs(files: &[Glob]) -> Vec<String> {
    files.iter().map(|glob| without_kind(&glob.0).to_owned()).collect()
}

impl NewTaskBody {
    fn task(&self, id: TaskId, key: Option<String>) -> NewTask {
        let texts = |list: &[TaskLabel]| list.iter().map(|label| label.0.clone()).collect();
        NewTask {
            description: self.description.clone().map(String::from),
            section: self.section.clone().map(String::from),
            priority: self.priority.map_or(PRIORITY_DEFAULT, Priority::byte),
            position: self.position.map_or(0, |position| position.0),
            depends_on: self.depends_on.iter().map(|name| name.0.clone()).collect(),
            labels: texts(&self.labels),
            files: globs(&self.files),
            payload: (!self.payload.is_null()).then(|| self.payload.to_string()),
            max_attempts: self.max_attempts.map_or(MAX_ATTEMPTS_DEFAULT, |max| max.0 as u32),
            timeout: self.timeout_ms.map(|timeout| Duration::from_millis(timeout.0)),
            not_before: self.not_before.as_ref().map(|moment| moment.0),
            key: self.key.clone().map(String::from).or(key),
            ..NewTask::new(id, self.title.0.clone())
        }
    }
}

/// Adds tasks, all or none.
///
/// With an `Idempotency-Key`, tasks that have no `key` get one made of it, so that a request that
/// is repeated adds nothing even after a restart of the server.
#[utoipa::path(
    post, path = "/v1/tasks", operation_id = "add_tasks", tag = "tasks", request_body = AddBody,
    responses(
        (status = 201, description = "The tasks exist now, some of them new", body = schema::Added),
        (status = 200, description = "All tasks existed already", body = schema::Added),
        (status = 409, description = "TASK_REFUSED: a task has this id already, or a dependency does not exist"),
    ),
)]
pub(super) async fn add(
    api: Api,
    caller: Caller,
    headers: HeaderMap,
    Body(asked): Body<AddBody>,
) -> Result<(StatusCode, Json<schema::Added>), Problem> {
    let client = match &asked.label {
        Some(label) => api.holder(&caller, Some(label))?,
        None => api.actor(&caller, None)?,
    };
    let key = idempotency::key(&headers)?.map(|key| task_key(&caller, key));
    let added = add_all(&client, &asked.tasks, key.as_deref()).await?;
    let ids: Vec<(TaskId, bool)> = added
        .into_iter()
        .map(|added| match added {
            Added::New(id) => (id, true),
            Added::Existing(id) => (id, false),
        })
        .collect();
    let found = client.tasks().get_all(ids.iter().map(|(id, _)| id.clone()).collect()).await?;
    let found: HashMap<&TaskId, &Task> = found.iter().map(|task| (&task.id, task)).collect();
    let mut tasks = Vec::with_capacity(ids.len());
    for (id, created) in &ids {
        let task = found.get(id).ok_or_else(|| Error::NoSuchTask { text: id.to_string() })?;
        tasks.push(schema::AddedTask { task: view::Task::new(task, None), created: *created });
    }
    let status = match ids.iter().any(|(_, created)| *created) {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    Ok((status, Json(schema::Added { tasks })))
}

/// Callers with tokens of their own do not get in each other's way.
fn task_key(caller: &Caller, key: &str) -> String {
    match &caller.name {
        Some(name) => format!("{name}/{key}"),
        None => key.to_owned(),
    }
}

/// How often ids are drawn if there is a task with one of them already. With a million tasks one
/// draw in four thousand meets one, so this many in a row never do.
const DRAWS: usize = 16;

async fn add_all(
    client: &Client,
    asked: &[Object<NewTaskBody>],
    key: Option<&str>,
) -> Result<Vec<Added>, Problem> {
    let chosen: HashSet<&TaskId> =
        asked.iter().filter_map(|Object(task)| Some(&task.id.as_ref()?.0)).collect();
    let mut draws = 0;
    loop {
        let tasks = asked.iter().enumerate().map(|(index, Object(task))| {
            let id = task.id.as_ref().map_or_else(new_id, |id| id.0.clone());
            task.task(id, key.map(|key| format!("{key}/{index}")))
        });
        draws += 1;
        match client.tasks().add(tasks.collect()).await {
            Ok(added) => return Ok(added),
            Err(Error::Add(AddError::Exists { id } | AddError::Twice { id }))
                if !chosen.contains(&id) && draws < DRAWS => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn new_id() -> TaskId {
    let digits = format!("{:08x}", GrantId::random().to_bits() >> 96);
    digits.parse().expect("hexadecimal digits are a name")
}
