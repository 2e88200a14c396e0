//! The MCP resources: what can be read without calling a tool.

use super::queries;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents};
use serde_json::Value;
use tenure::{Client, Error};

/// The status of tasks and holds.
const STATUS: &str = "coordination://status";

/// The tasks.
const TASKS: &str = "coordination://tasks";

/// More would fill an agent's context; `get_all_tasks` continues from there.
const TASKS_MAX: u32 = 200;

/// All resources.
pub(super) fn all() -> Vec<Resource> {
    let resource = |uri: &str, name: &str, description: &str| {
        let mut resource = Resource::new(uri, name);
        resource.description = Some(description.to_owned());
        resource.mime_type = Some("application/json".to_owned());
        resource
    };
    vec![
        resource(STATUS, "status", "The number of tasks by status, and who holds what"),
        resource(TASKS, "tasks", "The tasks, open ones first"),
    ]
}

/// The present content; `None` if there is no such resource.
pub(super) async fn read(client: &Client, uri: &str) -> Result<Option<ReadResourceResult>, Error> {
    let value: Value = match uri {
        STATUS => queries::status(client).await?,
        TASKS => queries::overview(client, TASKS_MAX).await?,
        _ => return Ok(None),
    };
    let contents =
        ResourceContents::text(value.to_string(), uri).with_mime_type("application/json");
    Ok(Some(ReadResourceResult::new(vec![contents])))
}
