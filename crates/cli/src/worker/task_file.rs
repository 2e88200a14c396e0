//! Adding the tasks of a file. To be replaced by the library's own reader of task files.

use crate::exit::Exit;
use crate::failure::Failure;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use tenure::Client;
use tenure::core::TaskId;
use tenure::core::rules::tasks::{Added, NewTask};
use tenure::core::task::{MAX_ATTEMPTS_DEFAULT, PRIORITY_DEFAULT};

#[derive(Deserialize)]
struct File {
    tasks: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    title: String,
    description: Option<String>,
    section: Option<String>,
    priority: Option<u8>,
    #[serde(default)]
    depends_on: Vec<String>,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    files: Vec<String>,
    payload: Option<Value>,
    max_attempts: Option<u32>,
    timeout_seconds: Option<f64>,
    key: Option<String>,
}

/// Adds the tasks of the file that are not there yet; says how many.
pub(super) async fn import(client: &Client, path: &Path) -> Result<usize, Failure> {
    let mut tasks = Vec::new();
    for task in read(path)? {
        if client.tasks().get(&task.id).await?.is_none() {
            tasks.push(task);
        }
    }
    let added = client.tasks().add(tasks).await?;
    Ok(added.iter().filter(|added| matches!(added, Added::New(_))).count())
}

fn read(path: &Path) -> Result<Vec<NewTask>, Failure> {
    let refuse = |message: String| {
        Failure::new(Exit::Usage, "TASK_FILE", format!("{}: {message}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|error| refuse(error.to_string()))?;
    let file: File = serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))?;
    let tasks = file.tasks.into_iter().map(|entry| new_task(entry).map_err(&refuse));
    tasks.collect()
}

fn new_task(entry: Entry) -> Result<NewTask, String> {
    let id = |text: &String| {
        text.parse::<TaskId>().map_err(|error| format!("the task {text:?}: {error}"))
    };
    let timeout = entry.timeout_seconds.map(Duration::try_from_secs_f64).transpose();
    Ok(NewTask {
        description: entry.description,
        section: entry.section,
        priority: entry.priority.unwrap_or(PRIORITY_DEFAULT),
        depends_on: entry.depends_on.iter().map(id).collect::<Result<_, _>>()?,
        labels: entry.labels,
        files: entry.files,
        payload: entry.payload.map(|payload| payload.to_string()),
        max_attempts: entry.max_attempts.unwrap_or(MAX_ATTEMPTS_DEFAULT),
        timeout: timeout.map_err(|error| format!("the timeout of {:?}: {error}", entry.id))?,
        key: entry.key,
        ..NewTask::new(id(&entry.id)?, entry.title)
    })
}
