//! Tasks as JSON for agents, with priorities on the scale of the task list that the store is.
//!
//! Agents that share a list of the dialect `coordination` with other programs see and give priorities as
//! those programs do, 1 to 10: an agent that gives 5 means their 5.

use super::answer::{Refused, terse};
use serde_json::Value;
use tenure::Client;
use tenure::store::Dialect;
use tenure_frontend::exchange::{priority_from_coordination, priority_to_coordination};
use tenure_frontend::view;

/// A task without its empty fields.
pub(super) fn task_json(client: &Client, task: view::Task) -> Value {
    let priority = task.priority;
    let mut value = view::json(&task);
    if client.dialect() == Dialect::COORDINATION {
        value["priority"] = priority_to_coordination(priority);
    }
    terse(value)
}

/// The priority that an agent gave, on tenure's scale.
pub(super) fn priority(client: &Client, given: Option<u8>) -> Result<Option<u8>, Refused> {
    let Some(given) = given.filter(|_| client.dialect() == Dialect::COORDINATION) else {
        return Ok(given);
    };
    if !(1..=10).contains(&given) {
        let words = format!("priority is {given}; in this task list it is 1 to 10, lower first");
        return Err(Refused::usage(words));
    }
    Ok(Some(priority_from_coordination(f64::from(given)).round() as u8))
}
