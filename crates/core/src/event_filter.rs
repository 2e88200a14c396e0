//! Which events are wanted: by resource, kind, label, token and time.

use crate::{Event, EventKind, Resource, WallTime};
use serde::{Deserialize, Serialize};

/// Admits events. What is not said admits all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventFilter {
    /// Only of this resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<Resource>,
    /// Only of these kinds, by their words; of all kinds if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// Only about the holds, waits and tasks of this label, and what was broken by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Only of changes that came through the server token with this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Only from this time on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<WallTime>,
    /// Only before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<WallTime>,
}

impl EventFilter {
    /// The events of one resource.
    pub fn of(resource: Resource) -> EventFilter {
        EventFilter { resource: Some(resource), ..EventFilter::default() }
    }

    /// Whether this event is wanted.
    pub fn admits(&self, event: &Event) -> bool {
        let Event { at, event, .. } = event;
        self.resource.as_ref().is_none_or(|one| event.resource.as_ref() == Some(one))
            && (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == event.kind.word()))
            && self.label.as_ref().is_none_or(|label| {
                event.label == *label
                    || matches!(&event.kind, EventKind::Broken { by, .. } if by == label)
            })
            && (self.actor.is_none() || self.actor == event.actor)
            && self.since.is_none_or(|since| *at >= since)
            && self.until.is_none_or(|until| *at < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NewEvent, Revision};

    fn event(label: &str, kind: EventKind) -> Event {
        let resource: Resource = "deploy".parse().unwrap();
        let event = NewEvent::new(Some(resource), label, None, kind);
        Event::new(Revision(1), WallTime(100), event.through(Some("ci".to_owned())))
    }

    #[test]
    fn each_part_of_a_filter_must_fit() {
        let by = |label: &str| Some(label.to_owned());
        let all = EventFilter::default();
        let fits = |filter: &EventFilter| filter.admits(&event("alice", EventKind::Released));
        assert!(fits(&all));
        assert!(fits(&EventFilter::of("deploy".parse().unwrap())));
        assert!(!fits(&EventFilter::of("task:deploy".parse().unwrap())));
        let kinds = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        assert!(fits(&EventFilter { kinds: kinds(&["died", "released"]), ..all.clone() }));
        assert!(!fits(&EventFilter { kinds: kinds(&["died"]), ..all.clone() }));
        assert!(fits(&EventFilter { label: by("alice"), ..all.clone() }));
        assert!(!fits(&EventFilter { label: by("ops"), ..all.clone() }));
        assert!(fits(&EventFilter { actor: by("ci"), ..all.clone() }));
        assert!(!fits(&EventFilter { actor: by("alice"), ..all.clone() }));
        let since = |ms| EventFilter { since: Some(WallTime(ms)), ..EventFilter::default() };
        let until = |ms| EventFilter { until: Some(WallTime(ms)), ..EventFilter::default() };
        assert!(fits(&since(100)) && !fits(&since(101)));
        assert!(fits(&until(101)) && !fits(&until(100)));
    }

    #[test]
    fn what_an_operator_broke_is_found_under_the_operator_too() {
        let kind = EventKind::Broken { by: "ops".to_owned(), reason: "stuck".to_owned() };
        let filter = EventFilter { label: Some("ops".to_owned()), ..EventFilter::default() };
        assert!(filter.admits(&event("alice", kind)));
    }

    #[test]
    fn every_word_names_a_kind() {
        for word in EventKind::WORDS {
            let fields = "\"by\":\"\",\"reason\":\"\",\"why\":\"silent\",\"text\":\"\",\"retry\":false,\"feedback\":\"\"";
            let kind: EventKind =
                serde_json::from_str(&format!("{{\"kind\":{word:?},{fields}}}")).expect(word);
            assert_eq!(kind.word(), word);
        }
    }
}
