//! The stored forms of domain types. They are promises: what was written must be readable later.

use serde::{Deserialize, Serialize};
use tenure_core::{EventKind, Evidence, GrantId, Mode, Part, Resource, Status, TaskId, Want};

/// A stored record that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{what} {text:?} cannot be read")]
pub struct FormatError {
    /// Which part.
    pub what: &'static str,
    /// What stands there.
    pub text: String,
}

fn unreadable<E>(what: &'static str, text: &str) -> impl FnOnce(E) -> FormatError {
    move |_| FormatError { what, text: text.chars().take(120).collect() }
}

/// `exclusive`, `shared` or `slot:N`.
pub fn mode_to_text(mode: Mode) -> String {
    mode.to_string()
}

/// Reads what [`mode_to_text`] wrote.
pub fn mode_from_text(text: &str) -> Result<Mode, FormatError> {
    text.parse().map_err(unreadable("the mode", text))
}

/// Reads what [`Resource::key`] wrote.
pub fn resource_from_key(key: &str) -> Result<Resource, FormatError> {
    key.parse().map_err(unreadable("the resource", key))
}

/// Reads a grant id.
pub fn grant_from_text(text: &str) -> Result<GrantId, FormatError> {
    text.parse().map_err(unreadable("the grant", text))
}

/// A JSON list of wants.
pub fn wants_to_json(wants: &[Want]) -> String {
    to_json(&wants)
}

/// Reads what [`wants_to_json`] wrote.
pub fn wants_from_json(json: &str) -> Result<Vec<Want>, FormatError> {
    from_json("the wants", json)
}

/// JSON of evidence.
pub fn evidence_to_json(evidence: &Evidence) -> String {
    to_json(evidence)
}

/// Reads what [`evidence_to_json`] wrote.
pub fn evidence_from_json(json: &str) -> Result<Evidence, FormatError> {
    from_json("the evidence", json)
}

/// A JSON list of grants.
pub fn grants_to_json(grants: &[GrantId]) -> String {
    to_json(&grants)
}

/// Reads what [`grants_to_json`] wrote.
pub fn grants_from_json(json: &str) -> Result<Vec<GrantId>, FormatError> {
    from_json("the grants", json)
}

/// JSON of what an event says beyond its kind.
pub fn event_kind_to_json(kind: &EventKind) -> String {
    to_json(kind)
}

/// Reads what [`event_kind_to_json`] wrote.
pub fn event_kind_from_json(json: &str) -> Result<EventKind, FormatError> {
    from_json("the event", json)
}

/// A JSON list of the parts of a claim.
pub fn parts_to_json(parts: &[Part]) -> String {
    to_json(&parts)
}

/// Reads what [`parts_to_json`] wrote.
pub fn parts_from_json(json: &str) -> Result<Vec<Part>, FormatError> {
    from_json("the parts of a claim", json)
}

/// A JSON list of texts.
pub fn texts_to_json(texts: &[String]) -> String {
    to_json(&texts)
}

/// Reads what [`texts_to_json`] wrote.
pub fn texts_from_json(json: &str) -> Result<Vec<String>, FormatError> {
    from_json("the list", json)
}

/// Reads a status.
pub fn status_from_text(text: &str) -> Result<Status, FormatError> {
    text.parse().map_err(unreadable("the status", text))
}

/// Reads a task id.
pub fn task_id_from_text(text: &str) -> Result<TaskId, FormatError> {
    text.parse().map_err(unreadable("the task id", text))
}

fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("plain records without maps always serialise")
}

fn from_json<'a, T: Deserialize<'a>>(what: &'static str, json: &'a str) -> Result<T, FormatError> {
    serde_json::from_str(json).map_err(unreadable(what, json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        for mode in [Mode::Exclusive, Mode::Shared, Mode::Slot { of: 3 }] {
            assert_eq!(mode_from_text(&mode_to_text(mode)).unwrap(), mode);
        }
        assert!(mode_from_text("slot:many").is_err());
        let wants =
            vec![Want::exclusive("a".parse().unwrap()), Want::shared("task:b".parse().unwrap())];
        assert_eq!(wants_from_json(&wants_to_json(&wants)).unwrap(), wants);
    }

    /// Samples as the first version wrote them; a later version must go on reading them, and
    /// fields that it does not know must not stop it.
    #[test]
    fn samples_of_version_one_stay_readable() {
        let evidence = r#"{"host":"h","machine":"m","boot":"b","pid_namespace":1,
            "process":{"pid":2,"start":3},"group":4,"later":true}"#;
        let group = evidence_from_json(evidence).unwrap().group;
        assert_eq!(group, Some(tenure_core::Group { leader: 4, start: None }));
        let wants = r#"[{"resource":"lock:deploy","mode":"slot:2"}]"#;
        assert_eq!(wants_from_json(wants).unwrap()[0].mode, Mode::Slot { of: 2 });
        let event = r#"{"kind":"broken","by":"ops","reason":"stuck"}"#;
        assert_eq!(event_kind_from_json(event).unwrap().word(), "broken");
    }
}
