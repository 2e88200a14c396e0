//! The texts and the JSON in the columns of SQLite. The schema has a version of its own.

use super::parts::{
    EventKindRecord, EvidenceRecord, NoteRecord, PartRecord, TryRecord, WantRecord,
};
use super::record::Form;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_core::{
    EventKind, Evidence, GrantId, Mode, Note, Part, Resource, Status, TaskId, Try, Want,
};

/// A stored record that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{what} {text:?} cannot be read")]
pub(crate) struct FormatError {
    /// Which part.
    pub(crate) what: &'static str,
    /// What stands there.
    pub(crate) text: String,
}

fn unreadable<E>(what: &'static str, text: &str) -> impl FnOnce(E) -> FormatError {
    move |_| FormatError { what, text: text.chars().take(120).collect() }
}

/// `exclusive`, `shared` or `slot:N`.
pub(crate) fn mode_to_text(mode: Mode) -> String {
    mode.to_string()
}

/// Reads what [`mode_to_text`] wrote.
pub(crate) fn mode_from_text(text: &str) -> Result<Mode, FormatError> {
    text.parse().map_err(unreadable("the mode", text))
}

/// Reads what [`Resource::key`] wrote.
pub(crate) fn resource_from_key(key: &str) -> Result<Resource, FormatError> {
    key.parse().map_err(unreadable("the resource", key))
}

/// Reads a grant id.
pub(crate) fn grant_from_text(text: &str) -> Result<GrantId, FormatError> {
    text.parse().map_err(unreadable("the grant", text))
}

/// A JSON list of wants.
pub(crate) fn wants_to_json(wants: &[Want]) -> String {
    list_to_json::<Want, WantRecord>(wants)
}

/// Reads what [`wants_to_json`] wrote.
pub(crate) fn wants_from_json(json: &str) -> Result<Vec<Want>, FormatError> {
    list_from_json::<Want, WantRecord>("the wants", json)
}

/// JSON of evidence.
pub(crate) fn evidence_to_json(evidence: &Evidence) -> String {
    to_json(&EvidenceRecord::of(evidence))
}

/// Reads what [`evidence_to_json`] wrote.
pub(crate) fn evidence_from_json(json: &str) -> Result<Evidence, FormatError> {
    Ok(from_json::<EvidenceRecord>("the evidence", json)?.into_core())
}

/// A JSON list of grants.
pub(crate) fn grants_to_json(grants: &[GrantId]) -> String {
    to_json(&grants)
}

/// Reads what [`grants_to_json`] wrote.
pub(crate) fn grants_from_json(json: &str) -> Result<Vec<GrantId>, FormatError> {
    from_json("the grants", json)
}

/// JSON of what an event says beyond its kind.
pub(crate) fn event_kind_to_json(kind: &EventKind) -> String {
    to_json(&EventKindRecord::of(kind))
}

/// Reads what [`event_kind_to_json`] wrote.
pub(crate) fn event_kind_from_json(json: &str) -> Result<EventKind, FormatError> {
    Ok(from_json::<EventKindRecord>("the event", json)?.into_core())
}

/// A JSON list of the parts of a claim.
pub(crate) fn parts_to_json(parts: &[Part]) -> String {
    list_to_json::<Part, PartRecord>(parts)
}

/// Reads what [`parts_to_json`] wrote.
pub(crate) fn parts_from_json(json: &str) -> Result<Vec<Part>, FormatError> {
    list_from_json::<Part, PartRecord>("the parts of a claim", json)
}

/// A JSON list of a task's notes.
pub(crate) fn notes_to_json(notes: &[Note]) -> String {
    list_to_json::<Note, NoteRecord>(notes)
}

/// Reads what [`notes_to_json`] wrote.
pub(crate) fn notes_from_json(json: &str) -> Result<Vec<Note>, FormatError> {
    list_from_json::<Note, NoteRecord>("the notes", json)
}

/// A JSON list of a task's tries.
pub(crate) fn tries_to_json(tries: &[Try]) -> String {
    list_to_json::<Try, TryRecord>(tries)
}

/// Reads what [`tries_to_json`] wrote.
pub(crate) fn tries_from_json(json: &str) -> Result<Vec<Try>, FormatError> {
    list_from_json::<Try, TryRecord>("the tries", json)
}

/// A JSON list of texts.
pub(crate) fn texts_to_json(texts: &[String]) -> String {
    to_json(&texts)
}

/// Reads what [`texts_to_json`] wrote.
pub(crate) fn texts_from_json(json: &str) -> Result<Vec<String>, FormatError> {
    from_json("the list", json)
}

/// Reads a status.
pub(crate) fn status_from_text(text: &str) -> Result<Status, FormatError> {
    text.parse().map_err(unreadable("the status", text))
}

/// Reads a task id.
pub(crate) fn task_id_from_text(text: &str) -> Result<TaskId, FormatError> {
    text.parse().map_err(unreadable("the task id", text))
}

fn list_to_json<Core, Record: Form<Core> + Serialize>(list: &[Core]) -> String {
    let records: Vec<Record> = list.iter().map(Record::of).collect();
    to_json(&records)
}

fn list_from_json<Core, Record: Form<Core> + DeserializeOwned>(
    what: &'static str,
    json: &str,
) -> Result<Vec<Core>, FormatError> {
    let records: Vec<Record> = from_json(what, json)?;
    Ok(records.into_iter().map(Record::into_core).collect())
}

fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("plain records without maps always serialise")
}

fn from_json<T: DeserializeOwned>(what: &'static str, json: &str) -> Result<T, FormatError> {
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

    /// Each text is read, and written back as it was: a name on disk does not change unnoticed.
    #[test]
    fn every_column_is_read_and_written_as_it_was() {
        let evidence = concat!(
            r#"{"host":"h","machine":"m","boot":"b","pid_namespace":1,"#,
            r#""process":{"pid":2,"start":3},"group":{"leader":4,"start":5}}"#,
        );
        assert_eq!(evidence_to_json(&evidence_from_json(evidence).unwrap()), evidence);
        let bare = r#"{"host":"h","machine":"m","boot":"b","pid_namespace":0}"#;
        assert_eq!(evidence_to_json(&evidence_from_json(bare).unwrap()), bare);
        let wants =
            r#"[{"resource":"lock:a","mode":"slot:2"},{"resource":"path:b","mode":"shared"}]"#;
        assert_eq!(wants_to_json(&wants_from_json(wants).unwrap()), wants);
        let grants = r#"["00000001-0000-4000-8000-000000000001"]"#;
        assert_eq!(grants_to_json(&grants_from_json(grants).unwrap()), grants);
        let parts = concat!(
            r#"[{"resource":"path:src/**","grant":"00000001-0000-4000-8000-000000000001","#,
            r#""token":7}]"#,
        );
        assert_eq!(parts_to_json(&parts_from_json(parts).unwrap()), parts);
        for event in [
            r#"{"kind":"acquired","operation":"o"}"#,
            r#"{"kind":"lapsed","ended_at":5}"#,
            r#"{"kind":"lapsed","ended_at":5,"reason":"lock is 45.2s old (>30s)"}"#,
            r#"{"kind":"died"}"#,
            r#"{"kind":"died","reason":"process 7 on host is dead"}"#,
            r#"{"kind":"broken","by":"ops","reason":"stuck"}"#,
            r#"{"kind":"left","why":"gave_up"}"#,
            r#"{"kind":"failed","reason":"r","retry":true}"#,
            r#"{"kind":"rejected","feedback":"f"}"#,
        ] {
            assert_eq!(event_kind_to_json(&event_kind_from_json(event).unwrap()), event);
        }
    }

    #[test]
    fn fields_of_later_versions_are_passed_over() {
        let evidence = r#"{"host":"h","machine":"m","boot":"b","pid_namespace":1,
            "process":{"pid":2,"start":3},"group":{"leader":4},"later":true}"#;
        let group = evidence_from_json(evidence).unwrap().group;
        assert_eq!(group, Some(tenure_core::Group { leader: 4, start: None }));
    }
}
