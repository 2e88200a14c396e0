//! What a task waits for and what waits for it, some steps in both directions.

use crate::api::values::TaskName;
use crate::api::{Api, schema};
use crate::problem::Problem;
use axum::Json;
use std::collections::BTreeMap;
use tenure::core::{Task, TaskId};
use tenure::{Client, Error};

/// How many steps away a task may be, and how many tasks are told of in each direction: more cannot be
/// read in a picture.
const STEPS_MAX: i32 = 3;
const TASKS_MAX: usize = 30;

#[derive(Clone, Copy)]
enum Direction {
    Before,
    After,
}

/// The tasks around a task: what it waits for and what waits for it.
#[utoipa::path(
    get, path = "/v1/tasks/{id}/graph", operation_id = "show_task_graph", tag = "tasks",
    params(("id" = inline(TaskName), Path, description = "Which task")),
    responses(
        (status = 200, description = "The tasks around it, at most three steps away", body = schema::TaskGraph),
        (status = 404, description = "TASK_NOT_FOUND"),
    ),
)]
pub(super) async fn graph(
    api: Api,
    TaskName(id): TaskName,
) -> Result<Json<schema::TaskGraph>, Problem> {
    let client = api.client();
    let task = super::get(client, &id).await?;
    let mut tasks = BTreeMap::from([(id.clone(), (0, task))]);
    let before_left_out = walk(client, &id, Direction::Before, &mut tasks).await?;
    let after_left_out = walk(client, &id, Direction::After, &mut tasks).await?;
    let mut tasks: Vec<schema::GraphTask> = tasks.into_values().map(shown).collect();
    tasks.sort_by_key(|task| task.step);
    Ok(Json(schema::TaskGraph { tasks, before_left_out, after_left_out }))
}

/// Adds the tasks in one direction, nearest first; gives how many were found and left out.
async fn walk(
    client: &Client,
    id: &TaskId,
    direction: Direction,
    tasks: &mut BTreeMap<TaskId, (i32, Task)>,
) -> Result<u64, Error> {
    let (mut edge, mut added, mut left_out) = (vec![id.clone()], 0, 0);
    for step in 1..=STEPS_MAX {
        let step = match direction {
            Direction::Before => -step,
            Direction::After => step,
        };
        let mut found = match direction {
            Direction::Before => client.tasks().dependencies_of(&edge).await?,
            Direction::After => client.tasks().dependents_of(&edge).await?,
        };
        found.sort_by_key(|task| task.age);
        edge = Vec::new();
        for task in found {
            if tasks.contains_key(&task.id) {
                continue;
            }
            if added == TASKS_MAX {
                left_out += 1;
                continue;
            }
            added += 1;
            edge.push(task.id.clone());
            tasks.insert(task.id.clone(), (step, task));
        }
        if edge.is_empty() {
            break;
        }
    }
    Ok(left_out)
}

fn shown((step, task): (i32, Task)) -> schema::GraphTask {
    schema::GraphTask {
        id: task.id.to_string(),
        title: task.title,
        status: task.status.word().to_owned(),
        step,
        depends_on: task.depends_on.iter().map(TaskId::to_string).collect(),
    }
}
