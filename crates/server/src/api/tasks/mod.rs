//! `/v1/tasks`: what is to be done, by one worker each.

mod add;
mod claim;
mod finish;
mod hand;
mod list;

use super::Api;
use tenure::core::{HoldSnapshot, Resource, Task, TaskId};
use tenure::{Client, Error};
use tenure_frontend::view::hold_of;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(list::tasks, add::add))
        .routes(routes!(list::tallies))
        .routes(routes!(claim::claim))
        .routes(routes!(list::show, hand::update, hand::delete))
        .routes(routes!(list::why))
        .routes(routes!(finish::start))
        .routes(routes!(finish::heartbeat))
        .routes(routes!(finish::complete))
        .routes(routes!(finish::fail))
        .routes(routes!(finish::review))
        .routes(routes!(finish::snooze))
        .routes(routes!(finish::release))
        .routes(routes!(hand::approve))
        .routes(routes!(hand::reject))
        .routes(routes!(hand::cancel))
        .routes(routes!(hand::skip))
        .routes(routes!(hand::retry))
}

/// The task with exactly this id.
async fn get(client: &Client, id: &TaskId) -> Result<Task, Error> {
    let task = client.tasks().get(id).await?;
    task.ok_or_else(|| Error::NoSuchTask { text: id.to_string() })
}

/// The holds by which somebody has these tasks.
async fn holds_of(client: &Client, tasks: &[Task]) -> Result<Vec<HoldSnapshot>, Error> {
    let claimed = tasks.iter().filter(|task| task.claim.is_some());
    let resources: Vec<Resource> = claimed.map(|task| task.id.resource()).collect();
    match resources.is_empty() {
        true => Ok(vec![]),
        false => Ok(client.look(&resources).await?.holds),
    }
}

/// The hold by which somebody has this task.
async fn the_hold_of(client: &Client, task: &Task) -> Result<Option<HoldSnapshot>, Error> {
    Ok(hold_of(task, &holds_of(client, std::slice::from_ref(task)).await?).cloned())
}
