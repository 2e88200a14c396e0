//! What can be read without calling a tool.

use super::look;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents};
use serde_json::Value;
use tenure::{Client, Error};

/// How things stand.
const STATUS: &str = "coordination://status";

/// The tasks.
const TASKS: &str = "coordination://tasks";

/// More would fill an agent's memory; `get_all_tasks` goes on from there.
const TASKS_MAX: u32 = 200;

/// All of them.
pub(super) fn all() -> Vec<Resource> {
    let resource = |uri: &str, name: &str, description: &str| {
        let mut resource = Resource::new(uri, name);
        resource.description = Some(description.to_owned());
        resource.mime_type = Some("application/json".to_owned());
        resource
    };
    vec![
        resource(STATUS, "status", "How many tasks there are of each status, and who holds what"),
        resource(TASKS, "tasks", "The tasks, those that are not done first"),
    ]
}

/// What it says now; none if there is no such resource.
pub(super) async fn read(client: &Client, uri: &str) -> Result<Option<ReadResourceResult>, Error> {
    let value: Value = match uri {
        STATUS => look::status(client).await?,
        TASKS => look::overview(client, TASKS_MAX).await?,
        _ => return Ok(None),
    };
    let contents =
        ResourceContents::text(value.to_string(), uri).with_mime_type("application/json");
    Ok(Some(ReadResourceResult::new(vec![contents])))
}
