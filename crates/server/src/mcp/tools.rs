//! The list of tools, with short descriptions, because they are part of every prompt.

use super::answer::Refused;
use super::call::Call;
use super::{locks, one_task, queries, tasks, work};
use crate::caller::Role;
use crate::json_errors;
use rmcp::handler::server::common::schema_for_input;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};

/// A tool as it is offered.
struct ToolSpec {
    name: &'static str,
    description: &'static str,
    /// The role that a caller needs.
    role: Role,
    /// Whether it takes the agent's name.
    named: bool,
    schema: fn() -> Result<Arc<JsonObject>, String>,
}

const TOOLS: [ToolSpec; 17] = [
    ToolSpec {
        name: "create_task",
        description: "Add a task for some agent to claim.",
        role: Role::Work,
        named: false,
        schema: schema_for_input::<tasks::NewTaskArguments>,
    },
    ToolSpec {
        name: "create_tasks_batch",
        description: "Add several tasks, all or none.",
        role: Role::Work,
        named: false,
        schema: schema_for_input::<tasks::BatchArguments>,
    },
    ToolSpec {
        name: "claim_task",
        description: "Claim the next ready task, or a named one. It is yours alone, with the files \
            and section that it names, until complete_task or fail_task. If none is ready: \
            success false, with when to call again.",
        role: Role::Work,
        named: true,
        schema: schema_for_input::<work::ClaimArguments>,
    },
    ToolSpec {
        name: "complete_task",
        description: "Complete a task that you claimed.",
        role: Role::Work,
        named: true,
        schema: schema_for_input::<work::CompleteArguments>,
    },
    ToolSpec {
        name: "fail_task",
        description: "Report that a task you claimed failed.",
        role: Role::Work,
        named: true,
        schema: schema_for_input::<work::FailArguments>,
    },
    ToolSpec {
        name: "get_task",
        description: "One task in full: what it waits for and what waits for it, notes, earlier \
            tries, who works on it.",
        role: Role::Read,
        named: false,
        schema: schema_for_input::<one_task::TaskArguments>,
    },
    ToolSpec {
        name: "add_note",
        description: "Write something down on a task for its next worker.",
        role: Role::Work,
        named: true,
        schema: schema_for_input::<one_task::NoteArguments>,
    },
    ToolSpec {
        name: "update_task",
        description: "Change fields of a task; what you leave out stays.",
        role: Role::Admin,
        named: true,
        schema: schema_for_input::<one_task::UpdateArguments>,
    },
    ToolSpec {
        name: "review_task",
        description: "Send a task that you claimed to review, or approve or reject one in review.",
        role: Role::Work,
        named: true,
        schema: schema_for_input::<one_task::ReviewArguments>,
    },
    ToolSpec {
        name: "retry_task",
        description: "Put a failed, blocked, cancelled or skipped task back on the list.",
        role: Role::Admin,
        named: true,
        schema: schema_for_input::<one_task::TaskArguments>,
    },
    ToolSpec {
        name: "heartbeat",
        description: "Renew everything that you hold, as every other call does too. Call it now and \
            then during long work. Returns what you hold, and in `lost` what you no longer hold.",
        role: Role::Work,
        named: true,
        schema: schema_for_input::<queries::NoArguments>,
    },
    ToolSpec {
        name: "get_status",
        description: "The number of tasks by status, and who holds what.",
        role: Role::Read,
        named: false,
        schema: schema_for_input::<queries::NoArguments>,
    },
    ToolSpec {
        name: "get_all_tasks",
        description: "List tasks, oldest first.",
        role: Role::Read,
        named: false,
        schema: schema_for_input::<queries::ListArguments>,
    },
    ToolSpec {
        name: "get_results",
        description: "The results of finished tasks.",
        role: Role::Read,
        named: false,
        schema: schema_for_input::<queries::ResultsArguments>,
    },
    ToolSpec {
        name: "acquire_lock",
        description: "Lock something before you change it. If another agent holds it: success \
            false, with the holder and the time left; then do not touch it.",
        role: Role::Work,
        named: true,
        schema: schema_for_input::<locks::AcquireArguments>,
    },
    ToolSpec {
        name: "release_lock",
        description: "Release what you hold, as soon as you are done with it.",
        role: Role::Work,
        named: false,
        schema: schema_for_input::<locks::ReleaseArguments>,
    },
    ToolSpec {
        name: "who_holds",
        description: "Who holds and who waits, for how long and what for.",
        role: Role::Read,
        named: false,
        schema: schema_for_input::<locks::WhoHoldsArguments>,
    },
];

/// The tools for agents whose requests belong to a session.
pub(super) static IN_SESSION: LazyLock<Vec<Tool>> = LazyLock::new(|| tools(false));

/// The tools for agents that pass their session as an argument.
pub(super) static SESSIONLESS: LazyLock<Vec<Tool>> = LazyLock::new(|| tools(true));

/// Tools that agents of other servers know and that need not be called here: they work, and are not
/// listed, because every listed tool is part of every prompt.
const UNLISTED: [&str; 2] = ["start_task", "register_agent"];

/// The role that a caller needs; `None` if there is no such tool.
pub(super) fn role(name: &str) -> Option<Role> {
    let listed = TOOLS.iter().find(|tool| tool.name == name).map(|tool| tool.role);
    listed.or_else(|| UNLISTED.contains(&name).then_some(Role::Work))
}

fn tools(sessionless: bool) -> Vec<Tool> {
    TOOLS.iter().map(|spec| tool(spec, sessionless)).collect()
}

fn tool(spec: &ToolSpec, sessionless: bool) -> Tool {
    let schema = (spec.schema)().expect("arguments are structs, so their schemas are objects");
    let mut schema = Value::Object((*schema).clone());
    slim(&mut schema);
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    let mut also = |name: &str, description: &str| {
        schema["properties"][name] = json!({ "type": "string", "description": description });
    };
    if spec.named {
        also("agent_id", "Your name, shown to others");
    }
    if sessionless {
        also("session", "The session of an earlier result; keeps what you hold yours");
    }
    let schema = match schema {
        Value::Object(schema) => schema,
        _ => unreachable!("it was made from an object"),
    };
    Tool::new(spec.name, spec.description, Arc::new(schema)).with_annotations(annotations(spec))
}

/// What hosts go by when they ask their users, or refuse. Nothing here reaches beyond the store. To
/// change the fields of a task replaces what others wrote, and is marked as destructive.
fn annotations(spec: &ToolSpec) -> ToolAnnotations {
    let reads = spec.role == Role::Read;
    ToolAnnotations::with_title(title(spec.name))
        .read_only(reads)
        .destructive(spec.name == "update_task")
        .idempotent(reads || IDEMPOTENT.contains(&spec.name))
        .open_world(false)
}

/// The tools that change something, and nothing more when they are called again with the same
/// arguments.
const IDEMPOTENT: [&str; 6] =
    ["complete_task", "fail_task", "update_task", "heartbeat", "acquire_lock", "release_lock"];

/// A name as people write it: `claim_task` is "Claim task".
fn title(name: &str) -> String {
    let text = name.replace('_', " ");
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// Removes from a schema what tells an agent nothing.
fn slim(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for name in ["$schema", "title", "format", "minimum", "maximum", "default"] {
                // A parameter may have such a name; a keyword is never an object.
                if fields.get(name).is_some_and(|value| !value.is_object()) {
                    fields.remove(name);
                }
            }
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    fields["type"] = only.clone();
                }
            }
            if fields.get("additionalProperties").is_some_and(Value::is_boolean) {
                fields.remove("additionalProperties");
            }
            fields.values_mut().for_each(slim);
        }
        Value::Array(items) => items.iter_mut().for_each(slim),
        _ => {}
    }
}

/// Runs the tool of this name.
pub(super) async fn run(call: &Call, name: &str, arguments: Value) -> Result<Value, Refused> {
    let takes_name = TOOLS.iter().find(|tool| tool.name == name).is_none_or(|tool| tool.named);
    let beside: &[&str] = if takes_name { &["agent_id"] } else { &[] };
    match name {
        "create_task" => tasks::create_task(call, read(arguments, beside)?).await,
        "create_tasks_batch" => tasks::create_tasks_batch(call, read(arguments, beside)?).await,
        "claim_task" => work::claim_task(call, read(arguments, beside)?).await,
        "complete_task" => work::complete_task(call, read(arguments, beside)?).await,
        "fail_task" => work::fail_task(call, read(arguments, beside)?).await,
        "get_task" => one_task::get_task(call, read(arguments, beside)?).await,
        "add_note" => one_task::add_note(call, read(arguments, beside)?).await,
        "update_task" => one_task::update_task(call, read(arguments, beside)?).await,
        "review_task" => one_task::review_task(call, read(arguments, beside)?).await,
        "retry_task" => one_task::retry_task(call, read(arguments, beside)?).await,
        "start_task" => one_task::start_task(call, read(arguments, beside)?).await,
        "register_agent" => Ok(one_task::register_agent(call, read(arguments, beside)?)),
        "heartbeat" => queries::heartbeat(call, read(arguments, beside)?).await,
        "get_status" => queries::get_status(call, read(arguments, beside)?).await,
        "get_all_tasks" => queries::get_all_tasks(call, read(arguments, beside)?).await,
        "get_results" => queries::get_results(call, read(arguments, beside)?).await,
        "acquire_lock" => locks::acquire_lock(call, read(arguments, beside)?).await,
        "release_lock" => locks::release_lock(call, read(arguments, beside)?).await,
        "who_holds" => locks::who_holds(call, read(arguments, beside)?).await,
        other => Err(Refused::usage(format!("no tool {other:?}"))),
    }
}

/// Reads the arguments of a tool. `beside` names those that every tool of its kind takes, which have been
/// taken out before.
fn read<T: DeserializeOwned>(arguments: Value, beside: &[&str]) -> Result<T, Refused> {
    json_errors::read_value(arguments, beside).map_err(Refused::usage)
}
