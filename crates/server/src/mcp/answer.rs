//! What a tool answers: an object, as structure and as text. One that says no also says what to do
//! next, and never how to end what others hold.

use rmcp::model::CallToolResult;
use serde_json::{Map, Value, json};
use tenure::core::Task;
use tenure_frontend::refusal::Refusal;

/// Why a tool did not do what it was asked, in words for an agent.
#[derive(Debug)]
pub(super) struct Refused {
    code: &'static str,
    message: String,
    next: &'static str,
    details: Value,
}

impl Refused {
    /// It was not done for this reason; `next` says what to do now.
    pub(super) fn new(
        code: &'static str,
        message: impl Into<String>,
        next: &'static str,
    ) -> Refused {
        Refused { code, message: message.into(), next, details: Value::Null }
    }

    /// The arguments make no sense.
    pub(super) fn usage(message: impl Into<String>) -> Refused {
        Refused::new("USAGE", message, next("USAGE"))
    }

    /// The call ended because its caller no longer waits for the answer.
    pub(super) fn cancelled() -> Refused {
        let message = "The wait was called off; nothing was taken";
        Refused::new("CANCELLED", message, "Call again when you need it.")
    }

    /// The session has no such task.
    pub(super) fn not_yours(task: &Task) -> Refused {
        let by = match &task.claim {
            Some(claim) => format!("{} has it", claim.by),
            None => format!("it is {}", task.status),
        };
        let message = format!("Task {} ({:?}) is not yours: {by}", task.id, task.title);
        Refused::new("NOT_YOURS", message, next("NOT_YOURS"))
    }

    /// What is sent.
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

/// What an agent can do about a refusal. The command line's hints name options that it has not.
fn next(code: &str) -> &'static str {
    match code {
        "LOCKED" | "TASK_LOCKED" | "SECTION_LOCKED" => {
            "Work on something else and ask again later, or wait for it with wait_seconds."
        }
        "DEADLOCK" => "Release what you hold first, or ask for all of it in one call.",
        "TASK_NOT_FOUND" => "Look at get_all_tasks for the tasks that there are.",
        "TASK_AMBIGUOUS" => "Give the full id.",
        "NOT_YOURS" | "LEASE_LOST" | "TOKEN_REFUSED" => {
            "Stop working on it and do not report on it; take another with claim_task."
        }
        "FORBIDDEN" => "This connection may only look. Ask the user for one that may work.",
        "OUTCOME_UNKNOWN" => "Look whether it was done before you call again.",
        "STORE_UNAVAILABLE" | "STORE_CONTENDED" => {
            "Wait a moment and call again; if that does not help, tell the user."
        }
        "STORE_CORRUPT" | "UNSUPPORTED" | "STORE_URL" => "Tell the user; calling again is no use.",
        _ => "Correct the arguments and call again.",
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        let Refusal { code, message, details, .. } = refusal;
        Refused { code, message, next: next(code), details }
    }
}

impl From<tenure::Error> for Refused {
    fn from(error: tenure::Error) -> Refused {
        Refusal::from(error).into()
    }
}

/// The answer to a call, with what its session must know besides.
pub(super) fn result(
    answer: Result<Value, Refused>,
    lost: &[String],
    found: &[String],
    session: Option<String>,
) -> CallToolResult {
    let (mut value, refused) = match answer {
        Ok(value) => (value, false),
        Err(refused) => (refused.value(), true),
    };
    if !lost.is_empty() {
        value["lost"] = json!(lost);
        value["lost_means"] = json!(
            "You no longer hold these: stop changing what they protect, and ask for them again."
        );
    }
    if !found.is_empty() {
        value["still_yours"] = json!(found);
        value["still_yours_means"] = json!(
            "The server was restarted, and you hold these as before: finish or give back each."
        );
    }
    if let Some(session) = session {
        value["session"] = json!(session);
    }
    if refused {
        CallToolResult::structured_error(value)
    } else {
        CallToolResult::structured(value)
    }
}

/// The same without what says nothing: an agent pays for each word.
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
