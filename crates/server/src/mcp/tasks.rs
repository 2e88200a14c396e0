//! The tools that add tasks.

use super::answer::Refused;
use super::call::Call;
use super::task_json::priority;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tenure::Error;
use tenure::core::rules::tasks::{AddError, Added, NewTask};
use tenure::core::task::PRIORITY_DEFAULT;
use tenure::core::{GrantId, TaskId};

/// The longest title, for lists; the rest stays in the description.
const TITLE_MAX_CHARS: usize = 80;

/// How often new ids are drawn if a task already has one of them.
const DRAWS: usize = 16;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewTaskArguments {
    /// What to do; the first line is the title
    description: String,
    /// 0 to 100, lower first (default 50); with dialect=coordination 1 to 10
    priority: Option<u8>,
    /// Tasks that must be completed first: id or exact title
    #[serde(default)]
    dependencies: Vec<String>,
    /// Files to read first; not locked
    #[serde(default)]
    context_files: Vec<String>,
    /// Advice for the worker
    hints: Option<Value>,
    /// Globs of the files that it changes, from the root; locked while it is worked on
    #[serde(default)]
    files: Vec<String>,
    /// Group of tasks
    section: Option<String>,
    #[serde(default)]
    labels: Vec<String>,
    /// Default: random
    id: Option<String>,
    /// Idempotency key: a second task with the same key is not added
    key: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchArguments {
    /// Each as for create_task; can depend on ids of the same batch
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    tasks: Vec<NewTaskArguments>,
}

pub(super) async fn create_task(call: &Call, task: NewTaskArguments) -> Result<Value, Refused> {
    let added = add(call, &[task]).await?;
    let (id, created) = named(&added[0]);
    Ok(json!({ "success": true, "task_id": id, "created": created }))
}

pub(super) async fn create_tasks_batch(
    call: &Call,
    arguments: BatchArguments,
) -> Result<Value, Refused> {
    let added = add(call, &arguments.tasks).await?;
    let ids: Vec<String> = added.iter().map(|added| named(added).0).collect();
    let created = added.iter().filter(|added| named(added).1).count();
    Ok(json!({ "success": true, "task_ids": ids, "created": created }))
}

fn named(added: &Added) -> (String, bool) {
    match added {
        Added::New(id) => (id.to_string(), true),
        Added::Existing(id) => (id.to_string(), false),
    }
}

async fn add(call: &Call, tasks: &[NewTaskArguments]) -> Result<Vec<Added>, Refused> {
    let own: Vec<&str> = tasks.iter().filter_map(|task| task.id.as_deref()).collect();
    let mut depends_on = Vec::new();
    for task in tasks {
        depends_on.push(dependencies(call, task, &own).await?);
    }
    let draws = if own.len() == tasks.len() { 1 } else { DRAWS };
    let mut last = None;
    for _ in 0..draws {
        let mut new = Vec::new();
        for (task, depends_on) in tasks.iter().zip(&depends_on) {
            new.push(new_task(call, task, depends_on.clone())?);
        }
        match call.client.tasks().add(new).await {
            Err(error @ Error::Add(AddError::Exists { .. })) => last = Some(error),
            added => return Ok(added?),
        }
    }
    Err(last.map_or_else(|| Refused::usage("no task given"), Refused::from))
}

/// An id of the same batch, or an existing task.
async fn dependencies(
    call: &Call,
    task: &NewTaskArguments,
    own: &[&str],
) -> Result<Vec<TaskId>, Refused> {
    let mut ids = Vec::new();
    for text in &task.dependencies {
        ids.push(match own.contains(&text.as_str()) {
            true => id(text)?,
            false => call.client.tasks().find(text).await?.id,
        });
    }
    Ok(ids)
}

fn id(text: &str) -> Result<TaskId, Refused> {
    text.parse().map_err(|error| Error::Resource(error).into())
}

fn new_task(
    call: &Call,
    task: &NewTaskArguments,
    depends_on: Vec<TaskId>,
) -> Result<NewTask, Refused> {
    let id = match &task.id {
        Some(text) => id(text)?,
        None => id(&format!("{:08x}", GrantId::random().to_bits() >> 96))?,
    };
    let title = title(&task.description);
    Ok(NewTask {
        description: (title != task.description).then(|| task.description.clone()),
        section: task.section.clone(),
        priority: priority(&call.client, task.priority)?.unwrap_or(PRIORITY_DEFAULT),
        depends_on,
        labels: task.labels.clone(),
        files: call.task_globs(&task.files)?,
        payload: payload(task),
        key: task.key.clone(),
        ..NewTask::new(id, title)
    })
}

fn title(description: &str) -> String {
    let line = description.trim_start().lines().next().unwrap_or_default().trim_end();
    match line.char_indices().nth(TITLE_MAX_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// What the worker should know, but what is not locked.
fn payload(task: &NewTaskArguments) -> Option<String> {
    let mut payload = Map::new();
    if !task.context_files.is_empty() {
        payload.insert("context_files".to_owned(), json!(task.context_files));
    }
    if let Some(hints) = &task.hints {
        payload.insert("hints".to_owned(), hints.clone());
    }
    (!payload.is_empty()).then(|| Value::Object(payload).to_string())
}
