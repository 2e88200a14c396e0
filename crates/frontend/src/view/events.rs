//! Events as JSON.

use super::{time, why_left};
use serde::{Deserialize, Serialize};
use tenure::core::{self, EventKind, Resource};
use utoipa::ToSchema;

/// An event. Some have more fields: `operation`, `by`, `reason` and others by kind, and `actor`, the name
/// of the server token through which the change came.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Its number in the store's history.
    pub revision: u64,
    /// The time.
    pub at: String,
    /// The kind of event, as one word.
    pub event: String,
    /// The resource.
    #[schema(required)]
    pub resource: Option<String>,
    /// The label of the holder or waiter.
    pub holder: String,
    /// The token of the hold.
    #[schema(required)]
    pub token: Option<u64>,
    /// The name of the server token through which the change came; `local` for the user who runs the
    /// server; missing where a program used the store itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub actor: Option<String>,
    /// The operation of the hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub operation: Option<String>,
    /// When a lapsed lease ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub ended_at: Option<String>,
    /// The operator who broke a hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub by: Option<String>,
    /// Why a hold was broken, lapsed or was freed because its holder died, or a task failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub reason: Option<String>,
    /// Why a waiter left its queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub why: Option<String>,
    /// Whether a failed task is retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub retry: Option<bool>,
    /// The reviewer's comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub feedback: Option<String>,
    /// What was noted about a task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub text: Option<String>,
}

impl From<&core::Event> for Event {
    fn from(event: &core::Event) -> Event {
        let takeover_words = event.takeover_words();
        let core::Event { revision, at, event, .. } = event;
        let mut shown = Event {
            revision: revision.0,
            at: time(*at),
            event: event.kind.word().to_owned(),
            resource: event.resource.as_ref().map(Resource::to_string),
            holder: event.label.clone(),
            token: event.token.map(|token| token.0),
            actor: event.actor.clone(),
            operation: None,
            ended_at: None,
            by: None,
            reason: None,
            why: None,
            retry: None,
            feedback: None,
            text: None,
        };
        match &event.kind {
            EventKind::Acquired { operation } => shown.operation = operation.clone(),
            EventKind::Died { .. } => shown.reason = takeover_words,
            EventKind::Lapsed { ended_at, .. } => {
                shown.ended_at = ended_at.map(time);
                shown.reason = takeover_words;
            }
            EventKind::Broken { by, reason } => {
                shown.by = Some(by.clone());
                shown.reason = Some(reason.clone());
            }
            EventKind::Left { why } => shown.why = Some(why_left(*why).to_owned()),
            EventKind::Failed { reason, retry } => {
                shown.reason = Some(reason.clone());
                shown.retry = Some(*retry);
            }
            EventKind::Rejected { feedback } => shown.feedback = Some(feedback.clone()),
            EventKind::Noted { text } => shown.text = Some(text.clone()),
            _ => {}
        }
        shown
    }
}
