//! Events: what happened, for the audit log and its followers.

use crate::rules::lapse_words;
use crate::{Kind, Resource, Revision, Token, WallTime};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Something that happened to a resource. A store adds the revision and the time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NewEvent {
    /// To what; none for what concerns the whole store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Resource>,
    /// To whose hold or place.
    pub label: String,
    /// Under which token; none for a waiter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
    /// Through which token of a server the change came, by the token's name; none for a program that
    /// uses the store itself. Rules leave it empty: it is set where acts are decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// When it happened, for an event that is older than the change that records it: history that
    /// comes from another store. Otherwise the store's time counts. An event that was read has its
    /// time in [`Event::at`] and none here, and no protocol carries this.
    #[serde(skip)]
    pub at: Option<WallTime>,
}

impl NewEvent {
    /// An event of this kind.
    pub fn new(
        resource: Option<Resource>,
        label: impl Into<String>,
        token: Option<Token>,
        kind: EventKind,
    ) -> NewEvent {
        NewEvent { resource, label: label.into(), token, kind, actor: None, at: None }
    }

    /// This event, of a change that came through the token with this name.
    pub fn through(mut self, actor: Option<String>) -> NewEvent {
        self.actor = actor;
        self
    }

    /// Whether a worker that found no task should look again after this: a task may be ready now, or
    /// none may be left. Claims need no locks, and what was taken or noted makes nothing ready.
    pub fn concerns_idle_workers(&self) -> bool {
        use EventKind::{Acquired, Deadlock, Noted, Waiting};
        let is_of_lock = |resource: &Resource| resource.kind() == Kind::Lock;
        let frees_nothing =
            matches!(self.kind, Acquired { .. } | Deadlock | Noted { .. } | Waiting);
        !frees_nothing && !self.resource.as_ref().is_some_and(is_of_lock)
    }

    /// This event, which happened then.
    pub fn happened_at(mut self, at: WallTime) -> NewEvent {
        self.at = Some(at);
        self
    }
}

/// An event as a store recorded it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Event {
    /// Its place in the store's history.
    pub revision: Revision,
    /// When, for showing.
    pub at: WallTime,
    /// What happened.
    pub event: NewEvent,
}

impl Event {
    /// What happened, with the revision that the store gave it, and the time: the event's own, or
    /// that of the change that recorded it.
    pub fn new(revision: Revision, at: WallTime, mut event: NewEvent) -> Event {
        let at = event.at.take().unwrap_or(at);
        Event { revision, at, event }
    }

    /// Why a hold ended without its holder's request, as text; none for other events, and where the
    /// holder gave up a lease that had not ended.
    pub fn takeover_words(&self) -> Option<String> {
        match &self.event.kind {
            EventKind::Died { reason } | EventKind::Lapsed { reason: reason @ Some(_), .. } => {
                reason.clone()
            }
            EventKind::Lapsed { ended_at: Some(ended_at), reason: None } => {
                let ago = u64::try_from(self.at.0.saturating_sub(ended_at.0)).ok()?;
                Some(lapse_words(Duration::from_millis(ago)))
            }
            _ => None,
        }
    }
}

/// The kinds of event. Renewals are none: they would drown the rest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A grant was made.
    Acquired {
        /// What the holder said it is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operation: Option<String>,
    },
    /// The holder gave it back.
    Released,
    /// The lease ran out, or its holder no longer trusted it, and the hold was removed.
    Lapsed {
        /// When the lease ran out, for showing: it is removed later, by the next who asks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended_at: Option<WallTime>,
        /// Of another program's lock that grew too old: why, in that program's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The holder's process was proved dead and the hold was removed.
    Died {
        /// Which process that was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// An operator ended it.
    Broken {
        /// Who did.
        by: String,
        /// Why, in the operator's words.
        reason: String,
    },
    /// A place in the queue was taken.
    Waiting,
    /// A place in the queue was given up without a grant.
    Left {
        /// Why.
        why: WhyLeft,
    },
    /// A wait was refused because it would never have ended.
    Deadlock,
    /// A task was added.
    Added,
    /// A task was changed by hand.
    Updated,
    /// A task was removed.
    Deleted,
    /// A note was added to a task.
    Noted {
        /// The note.
        text: String,
    },
    /// A task was completed by its worker.
    Completed,
    /// A task's worker could not do it.
    Failed {
        /// Why, in the worker's words.
        reason: String,
        /// Whether it will be tried again.
        retry: bool,
    },
    /// A task was sent to review.
    SentToReview,
    /// A task passed its review.
    Approved,
    /// A task was looked at and is to be done again.
    Rejected {
        /// What is to be changed, in the reviewer's words.
        feedback: String,
    },
    /// A task was put off.
    Snoozed,
    /// A task was given back untouched.
    HandedBack,
    /// A task is no longer wanted.
    Cancelled,
    /// A task was passed over.
    Skipped,
    /// A task is to be done after all.
    Retried,
    /// A task came back: its worker died or fell silent.
    Recovered,
    /// A task was set aside: its workers died or fell silent too often.
    SetAside,
    /// Nothing of a section is handed out for now.
    Paused,
    /// A section is handed out again.
    Resumed,
    /// The store was opened under a new boot of the machine, and its tokens jumped ahead.
    Rebooted,
}

/// Why a place in the queue was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyLeft {
    /// The waiter chose to, or its time limit passed.
    GaveUp,
    /// There was no sign of life in time.
    Silent,
    /// The waiter's process was proved dead.
    Died,
}

impl EventKind {
    /// The words for all kinds.
    pub const WORDS: [&str; 27] = [
        "acquired",
        "released",
        "lapsed",
        "died",
        "broken",
        "waiting",
        "left",
        "deadlock",
        "added",
        "updated",
        "deleted",
        "noted",
        "completed",
        "failed",
        "sent_to_review",
        "approved",
        "rejected",
        "snoozed",
        "handed_back",
        "cancelled",
        "skipped",
        "retried",
        "recovered",
        "set_aside",
        "paused",
        "resumed",
        "rebooted",
    ];

    /// A lapse; when the lease ran out is filled in from the hold that is removed.
    pub const LAPSED: EventKind = EventKind::Lapsed { ended_at: None, reason: None };

    /// A death; which process died is filled in from the hold that is removed.
    pub const DIED: EventKind = EventKind::Died { reason: None };

    /// One word for it.
    pub fn word(&self) -> &'static str {
        match self {
            EventKind::Acquired { .. } => "acquired",
            EventKind::Released => "released",
            EventKind::Lapsed { .. } => "lapsed",
            EventKind::Died { .. } => "died",
            EventKind::Broken { .. } => "broken",
            EventKind::Waiting => "waiting",
            EventKind::Left { .. } => "left",
            EventKind::Deadlock => "deadlock",
            EventKind::Added => "added",
            EventKind::Updated => "updated",
            EventKind::Deleted => "deleted",
            EventKind::Noted { .. } => "noted",
            EventKind::Completed => "completed",
            EventKind::Failed { .. } => "failed",
            EventKind::SentToReview => "sent_to_review",
            EventKind::Approved => "approved",
            EventKind::Rejected { .. } => "rejected",
            EventKind::Snoozed => "snoozed",
            EventKind::HandedBack => "handed_back",
            EventKind::Cancelled => "cancelled",
            EventKind::Skipped => "skipped",
            EventKind::Retried => "retried",
            EventKind::Recovered => "recovered",
            EventKind::SetAside => "set_aside",
            EventKind::Paused => "paused",
            EventKind::Resumed => "resumed",
            EventKind::Rebooted => "rebooted",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_workers_look_again_only_for_what_may_make_a_task_ready() {
        let concerns = |resource: Option<&str>, kind: EventKind| {
            let resource = resource.map(|text| text.parse().expect("a resource"));
            NewEvent::new(resource, "a", None, kind).concerns_idle_workers()
        };
        for (resource, kind, expected) in [
            (Some("task:a"), EventKind::Added, true),
            (Some("task:a"), EventKind::Completed, true),
            (Some("task:a"), EventKind::Recovered, true),
            (Some("section:a"), EventKind::Resumed, true),
            (Some("section:a"), EventKind::Released, true),
            (Some("path:src/**"), EventKind::DIED, true),
            (None, EventKind::Rebooted, true),
            (Some("task:a"), EventKind::Acquired { operation: None }, false),
            (Some("section:a"), EventKind::Waiting, false),
            (Some("task:a"), EventKind::Noted { text: "b".to_owned() }, false),
            (Some("lock:a"), EventKind::Acquired { operation: None }, false),
            (Some("lock:a"), EventKind::Released, false),
            (Some("lock:a"), EventKind::LAPSED, false),
        ] {
            assert_eq!(concerns(resource, kind.clone()), expected, "{resource:?} {kind:?}");
        }
    }
}
