//! The result of a tool: an object, as structure and as text. A refusal also says what to do next,
//! and never how to end other holders' holds.

use crate::problem::Problem;
use rmcp::model::CallToolResult;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use tenure::core::Task;
use tenure_frontend::refusal::Refusal;

/// Why a tool refused, in words for an agent.
#[derive(Debug)]
pub(super) struct Refused {
    code: &'static str,
    message: String,
    next: Cow<'static, str>,
    details: Value,
}

impl Refused {
    /// A refusal with a reason; `next` says what to do now.
    pub(super) fn new(
        code: &'static str,
        message: impl Into<String>,
        next: &'static str,
    ) -> Refused {
        Refused { code, message: message.into(), next: next.into(), details: Value::Null }
    }

    /// The arguments are invalid.
    pub(super) fn usage(message: impl Into<String>) -> Refused {
        Refused::new("USAGE", message, next("USAGE"))
    }

    /// The call ended because its caller no longer waits for the result.
    pub(super) fn cancelled() -> Refused {
        let message = "The wait was cancelled; nothing was taken";
        Refused::new("CANCELLED", message, "Call again when you need it.")
    }

    /// The task is not the session's.
    pub(super) fn not_yours(task: &Task) -> Refused {
        let by = match &task.claim {
            Some(claim) => format!("{} has it", claim.by),
            None => format!("it is {}", task.status),
        };
        let message = format!("Task {} ({:?}) is not yours: {by}", task.id, task.title);
        Refused::new("NOT_YOURS", message, next("NOT_YOURS"))
    }

    /// The refusal as JSON.
    pub(super) fn value(&self) -> Value {
        let mut value = json!({
            "success": false,
            "code": self.code,
            "message": self.message,
            "next": self.next,
        });
        if !self.details.is_null() {
            value["details"] = self.details.clone();
        }
        value
    }
}

/// What an agent can do about a refusal. The hints of the command line name options that an agent
/// does not have.
fn next(code: &str) -> &'static str {
    match code {
        "LOCKED" | "TASK_LOCKED" | "SECTION_LOCKED" => {
            "Work on something else and call again later, or wait for it with wait_seconds."
        }
        "DEADLOCK" => "Release what you hold first, or ask for all of it in one call.",
        "TASK_NOT_FOUND" => "List the tasks with get_all_tasks.",
        "TASK_AMBIGUOUS" => "Give the full id.",
        "NOT_YOURS" | "LEASE_LOST" | "TOKEN_REFUSED" => {
            "Stop working on it and do not report on it; claim another with claim_task."
        }
        "FORBIDDEN" => "Ask the user for a token with that role, or leave it to the user.",
        "OUTCOME_UNKNOWN" => "Check whether it was done before you call again.",
        "STORE_UNAVAILABLE" | "STORE_CONTENDED" => {
            "Wait a moment and call again; if that does not help, tell the user."
        }
        "STORE_CORRUPT" | "UNSUPPORTED" | "STORE_URL" => {
            "Tell the user; calling again does not help."
        }
        _ => "Correct the arguments and call again.",
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Refused {
        let Problem { code, message, details, .. } = problem;
        Refused { code, message, next: next(code).into(), details }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        let Refusal { code, message, details, hint, .. } = refusal;
        let next = match hint {
            // Which labels the token may use; the tools call a label `agent_id`.
            Some(labels) if code == "FORBIDDEN" => format!("{labels} (as agent_id)").into(),
            _ => next(code).into(),
        };
        Refused { code, message, next, details }
    }
}

impl From<tenure::Error> for Refused {
    fn from(error: tenure::Error) -> Refused {
        Refusal::from(error).into()
    }
}

/// What a result says besides its answer.
#[derive(Default)]
pub(super) struct Aside<'a> {
    /// What the session no longer holds.
    pub(super) lost: &'a [String],
    /// What it still holds after a restart of the server.
    pub(super) found: &'a [String],
    /// The name that the session got.
    pub(super) session: Option<String>,
    /// What to do without hooks.
    pub(super) hooks: Option<&'a str>,
}

/// The result of a call, with what its session must know besides.
pub(super) fn result(answer: Result<Value, Refused>, aside: &Aside<'_>) -> CallToolResult {
    let Aside { lost, found, session, hooks } = aside;
    let (mut value, refused) = match answer {
        Ok(value) => (value, false),
        Err(refused) => (refused.value(), true),
    };
    if !lost.is_empty() {
        value["lost"] = json!(lost);
        value["lost_means"] = json!(
            "You no longer hold these: stop changing what they protect, and acquire them again."
        );
    }
    if !found.is_empty() {
        value["still_yours"] = json!(found);
        value["still_yours_means"] =
            json!("The server was restarted, and you still hold these: finish or release each.");
    }
    if let Some(session) = session {
        value["session"] = json!(session);
        value["session_means"] = json!(
            "Pass this as `session` in every call from now on: it shows that what you hold is yours."
        );
    }
    if let Some(hooks) = hooks {
        value["no_hooks"] = json!(hooks);
    }
    if refused {
        CallToolResult::structured_error(value)
    } else {
        CallToolResult::structured(value)
    }
}

/// Removes empty values: an agent pays for each word.
pub(super) fn terse(value: Value) -> Value {
    let says_something = |value: &Value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        _ => true,
    };
    match value {
        Value::Object(fields) => Value::Object(
            fields.into_iter().filter(|(_, value)| says_something(value)).collect::<Map<_, _>>(),
        ),
        other => other,
    }
}
