//! The events of a worker, as text and JSON.

use crate::output::{BAD, DIM, GOOD, NAME, WARN, styled};
use serde_json::{Value, json};
use std::time::Duration;
use tenure::WorkEvent;
use tenure::core::rules::tasks::Finish;
use tenure::core::{Status, Task};
use tenure_frontend::duration::format_duration;

/// A task by id and title.
pub(crate) fn name(task: &Task) -> String {
    format!("{} {:?}", styled(NAME, &task.id), task.title)
}

/// A duration, to the tenth of a second if it is short.
pub(crate) fn span(took: Duration) -> String {
    match took.as_secs() {
        0..60 => format!("{:.1}s", took.as_secs_f64()),
        _ => format_duration(Duration::from_secs(took.as_secs())),
    }
}

/// One line for people; `None` for events that are not shown.
pub(crate) fn words(event: &WorkEvent) -> Option<String> {
    Some(match event {
        WorkEvent::Idle { .. } | WorkEvent::Ended { .. } => return None,
        WorkEvent::Claimed { task, .. } if task.attempts > 1 => {
            format!("{} {} (attempt {})", styled(DIM, "claimed"), name(task), task.attempts)
        }
        WorkEvent::Claimed { task, .. } => format!("{} {}", styled(DIM, "claimed"), name(task)),
        WorkEvent::Finished { task, finish, took, .. } => {
            let (word, more) = outcome(task, finish);
            format!("{word} {} in {}{more}", name(task), span(*took))
        }
        WorkEvent::Lost { task, .. } => {
            format!("{} {}: its lease lapsed or was broken", styled(BAD, "lost"), name(task))
        }
        WorkEvent::Trouble { message, .. } => {
            format!("{}: {message}; retrying", styled(WARN, "store error"))
        }
    })
}

fn outcome(task: &Task, finish: &Finish) -> (String, String) {
    match finish {
        Finish::Complete { .. } => (styled(GOOD, "completed"), String::new()),
        Finish::Review { .. } => (styled(GOOD, "sent to review"), String::new()),
        Finish::Snooze { pause } => {
            (styled(WARN, "snoozed"), format!(", for {}", format_duration(*pause)))
        }
        Finish::Release => (styled(WARN, "returned"), String::new()),
        Finish::Fail { reason, .. } if task.status == Status::Failed => {
            (styled(BAD, "failed"), format!(": {reason}"))
        }
        Finish::Fail { reason, .. } => {
            (styled(WARN, "failed"), format!(", will be retried: {reason}"))
        }
    }
}

/// One JSON object.
pub(crate) fn json(event: &WorkEvent) -> Value {
    match event {
        WorkEvent::Idle { worker } => json!({ "event": "idle", "worker": worker + 1 }),
        WorkEvent::Ended { worker } => json!({ "event": "ended", "worker": worker + 1 }),
        WorkEvent::Claimed { worker, task } => about("claimed", *worker, task),
        WorkEvent::Lost { worker, task } => about("lost", *worker, task),
        WorkEvent::Trouble { worker, message } => {
            json!({ "event": "trouble", "worker": worker + 1, "message": message })
        }
        WorkEvent::Finished { worker, task, finish, took } => {
            let word = match finish {
                Finish::Complete { .. } => "completed",
                Finish::Review { .. } => "review",
                Finish::Snooze { .. } => "snoozed",
                Finish::Release => "handed_back",
                Finish::Fail { .. } => "failed",
            };
            let mut value = about(word, *worker, task);
            value["status"] = json!(task.status.word());
            value["seconds"] = json!(took.as_millis() as f64 / 1000.0);
            if let Finish::Fail { reason, .. } = finish {
                value["reason"] = json!(reason);
            }
            value
        }
    }
}

fn about(event: &str, worker: usize, task: &Task) -> Value {
    json!({
        "event": event,
        "worker": worker + 1,
        "task_id": task.id.as_str(),
        "title": task.title,
        "attempt": task.attempts,
    })
}
