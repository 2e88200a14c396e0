//! `/v1/tasks`: what is to be done, by one worker each.

mod add;
mod claim;
mod finish;
mod graph;
mod hand;
mod list;
mod log;
mod note;
mod pages;

use super::Api;
use crate::http::limits::Limits;
use crate::routes::{Access, Routes};
use tenure::core::{Task, TaskId};
use tenure::{Client, Error};
use tenure_frontend::view;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes<Api> {
    let (read, work, admin) = (Access::READ, Access::WORK, Access::ADMIN);
    Routes::new()
        .documented(read, Limits::Large, routes!(list::tasks))
        .documented(work, Limits::Large, routes!(add::add))
        .documented(read, Limits::Quick, routes!(list::tallies))
        .documented(work, Limits::Waits, routes!(claim::claim))
        .documented(read, Limits::Quick, routes!(list::show))
        .documented(admin, Limits::Quick, routes!(hand::update, hand::delete))
        .documented(read, Limits::Quick, routes!(list::why))
        .documented(read, Limits::Quick, routes!(graph::graph))
        .documented(read, Limits::Quick, routes!(log::log))
        .documented(work, Limits::Quick, routes!(finish::start))
        .documented(work, Limits::Quick, routes!(finish::heartbeat))
        .documented(work, Limits::Quick, routes!(finish::complete))
        .documented(work, Limits::Quick, routes!(finish::fail))
        .documented(work, Limits::Quick, routes!(finish::review))
        .documented(work, Limits::Quick, routes!(finish::snooze))
        .documented(work, Limits::Quick, routes!(finish::release))
        .documented(work, Limits::Quick, routes!(note::add_note))
        .documented(work, Limits::Quick, routes!(hand::approve))
        .documented(work, Limits::Quick, routes!(hand::reject))
        .documented(admin, Limits::Quick, routes!(hand::cancel))
        .documented(admin, Limits::Quick, routes!(hand::skip))
        .documented(admin, Limits::Quick, routes!(hand::retry))
}

/// The task with exactly this id.
async fn get(client: &Client, id: &TaskId) -> Result<Task, Error> {
    let task = client.tasks().get(id).await?;
    task.ok_or_else(|| Error::NoSuchTask { text: id.to_string() })
}

/// A task as it is shown, with when its claim lapses or why it no longer counts.
async fn shown(client: &Client, task: &Task) -> Result<view::Task, Error> {
    let seen = client.tasks().claims_of(std::slice::from_ref(task)).await?;
    Ok(view::Claims::of(&seen, client.witness()).task(task))
}
