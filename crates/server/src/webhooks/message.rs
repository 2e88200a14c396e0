//! What a receiver is sent, and which events are sent.

use serde_json::json;
use std::collections::BTreeSet;
use tenure::core::{Event, EventKind, Revision};
use tenure_frontend::view;

/// A message in a queue.
#[derive(Clone, Debug)]
pub(super) struct Message {
    /// The same whenever it is sent, also by other servers of the store: receivers recognise
    /// repetitions by it.
    pub(super) id: String,
    pub(super) body: String,
}

impl Message {
    /// This event.
    pub(super) fn of(event: &Event) -> Message {
        let shown = view::Event::from(event);
        let kind = event.event.resource.as_ref().map_or("store", |it| it.kind().word());
        let body = json!({
            "type": format!("{kind}.{}", event.event.kind.word()),
            "timestamp": shown.at,
            "data": shown,
        });
        Message {
            id: format!("tenure-{}-{}", event.revision.0, event.at.0),
            body: body.to_string(),
        }
    }

    /// The first message of a server: events up to this revision are not sent by it.
    pub(super) fn started(after: Revision) -> Message {
        let body = json!({ "type": "server.started", "data": { "after_revision": after.0 } });
        let random = uuid::Uuid::new_v4().simple();
        Message { id: format!("tenure-started-{random}"), body: body.to_string() }
    }

    /// Events after this revision may be missing: the store keeps none that are so old.
    pub(super) fn gap(after: Revision) -> Message {
        let body = json!({ "type": "server.gap", "data": { "after_revision": after.0 } });
        Message { id: format!("tenure-gap-{}", after.0), body: body.to_string() }
    }

    /// Messages that a receiver was too slow for.
    pub(super) fn missed(count: u64) -> Message {
        let body = json!({ "type": "server.missed", "data": { "count": count } });
        let random = uuid::Uuid::new_v4().simple();
        Message { id: format!("tenure-missed-{random}"), body: body.to_string() }
    }
}

/// Which events are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSelection {
    /// Words of kinds of events; empty for all.
    words: BTreeSet<String>,
}

/// A word that is no kind of event.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{word:?} is not an event; known are: all, {}", known().join(", "))]
pub struct UnknownEvent {
    /// The word.
    pub word: String,
}

/// Words that people use, and those of events.
const ALIASES: [(&str, &str); 2] = [("blocked", "set_aside"), ("review", "sent_to_review")];

/// What people want to be told: something needs them, or went wrong.
const DEFAULT: [&str; 5] = ["failed", "set_aside", "sent_to_review", "broken", "deadlock"];

fn known() -> Vec<&'static str> {
    EventKind::WORDS.into_iter().chain(ALIASES.map(|(alias, _)| alias)).collect()
}

impl Default for EventSelection {
    fn default() -> EventSelection {
        EventSelection { words: DEFAULT.map(str::to_owned).into() }
    }
}

impl EventSelection {
    /// Reads words that are separated by commas; `all` means all.
    pub fn parse(text: &str) -> Result<EventSelection, UnknownEvent> {
        let mut words = BTreeSet::new();
        for word in text.split(',').map(str::trim) {
            if word == "all" {
                return Ok(EventSelection { words: BTreeSet::new() });
            }
            let meant = ALIASES.iter().find(|(alias, _)| *alias == word).map_or(word, |it| it.1);
            if !EventKind::WORDS.contains(&meant) {
                return Err(UnknownEvent { word: word.chars().take(40).collect() });
            }
            words.insert(meant.to_owned());
        }
        Ok(EventSelection { words })
    }

    pub(super) fn has(&self, event: &Event) -> bool {
        match self.words.is_empty() {
            // That a machine was started anew is told where it is asked for by name only.
            true => !matches!(event.event.kind, EventKind::Rebooted),
            false => self.words.contains(event.event.kind.word()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::core::{NewEvent, WallTime};

    fn event(kind: EventKind) -> Event {
        let resource = "task:one".parse().ok();
        Event::new(Revision(7), WallTime(1000), NewEvent::new(resource, "alice", None, kind))
    }

    #[test]
    fn events_are_chosen_by_words_people_use() {
        let blocked = event(EventKind::SetAside);
        let failed = event(EventKind::Failed { reason: "no".to_owned(), retry: false });
        let added = event(EventKind::Added);
        let has = |text: &str, event: &Event| EventSelection::parse(text).unwrap().has(event);
        assert!(has("blocked", &blocked) && !has("blocked", &failed));
        assert!(has("failed, blocked", &failed) && has("all", &added));
        let usual = EventSelection::default();
        assert!(usual.has(&blocked) && usual.has(&failed) && !usual.has(&added));
        assert_eq!(EventSelection::parse("failed,bloked").unwrap_err().word, "bloked");
        assert!(EventSelection::parse("").is_err());
    }

    #[test]
    fn a_message_names_the_event_and_has_the_same_id_each_time() {
        let failed = event(EventKind::Failed { reason: "no".to_owned(), retry: true });
        let (one, other) = (Message::of(&failed), Message::of(&failed));
        assert_eq!((one.id.as_str(), one.body.clone()), ("tenure-7-1000", other.body));
        let body: serde_json::Value = serde_json::from_str(&one.body).unwrap();
        assert_eq!(body["type"], "task.failed");
        assert_eq!(
            (&body["data"]["resource"], &body["data"]["reason"]),
            (&json!("task:one"), &json!("no"))
        );
    }
}
