//! Explains in one sentence what is wrong with JSON input: the field, the given value, and what is
//! expected.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

/// How much of a given value is shown.
const SHOWN_CHARS_MAX: usize = 40;

/// How similar a known name must be to be suggested.
const ALIKE_MIN: f64 = 0.6;

/// Reads JSON, or explains what is wrong with it.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).or_else(|_| {
        // Finding the position costs time, so it is done only after a failure.
        let mut input = serde_json::Deserializer::from_slice(bytes);
        match serde_path_to_error::deserialize(&mut input) {
            Ok(value) => input.end().map(|()| value).map_err(|error| not_json(&error)),
            Err(error) => {
                let (path, error) = (error.path().clone(), error.into_inner());
                match error.classify() {
                    serde_json::error::Category::Data => {
                        let given = serde_json::from_slice(bytes).unwrap_or_default();
                        Err(sentence(&path, &given, &error.to_string(), &[]))
                    }
                    _ => Err(not_json(&error)),
                }
            }
        }
    })
}

/// As [`read`], for a parsed value. `beside` names fields that are known as well, and were taken out of
/// the value before.
pub(crate) fn read_value<T: DeserializeOwned>(given: Value, beside: &[&str]) -> Result<T, String> {
    let kept = given.clone();
    serde_path_to_error::deserialize(given)
        .map_err(|error| sentence(&error.path().clone(), &kept, &error.inner().to_string(), beside))
}

/// Explains what is wrong with a query, from the library's message.
pub(crate) fn of_query(said: &str) -> String {
    let said = said.strip_prefix("Failed to deserialize query string: ").unwrap_or(said);
    let (name, said) = match said.split_once(": ") {
        Some((name, said)) if !name.contains(' ') => (name, said),
        _ => ("the query", said),
    };
    if let Some(field) = quoted_after(said, "missing field ") {
        return format!("{field} is missing");
    }
    if let Some(field) = quoted_after(said, "duplicate field ") {
        return format!("{field} is given twice");
    }
    if let Some(field) = quoted_after(said, "unknown field ") {
        return unknown(field, &known_names(said));
    }
    match said.strip_prefix("this ") {
        Some(rest) => format!("{name} {rest}"),
        None if said.contains("invalid digit") => format!("{name} must be a whole number"),
        None => format!("{name}: {said}"),
    }
}

fn not_json(error: &serde_json::Error) -> String {
    format!("this is not JSON: {error}")
}

/// Explains what is wrong with the value at this path. `beside` names further fields of the whole.
fn sentence(path: &Path, given: &Value, said: &str, beside: &[&str]) -> String {
    let said = without_place(said);
    let name = match name(path) {
        name if name.is_empty() => "the body".to_owned(),
        name => name,
    };
    if let Some(field) = quoted_after(said, "missing field ") {
        return match path_is_whole(path) {
            true => format!("{field} is missing"),
            false => format!("{field} of {name} is missing"),
        };
    }
    if let Some(field) = quoted_after(said, "duplicate field ") {
        return format!("{field} is given twice");
    }
    if let Some(field) = quoted_after(said, "unknown field ") {
        let mut known = known_names(said);
        if path.iter().count() <= 1 {
            known.extend(beside);
        }
        return unknown(field, &known);
    }
    if let Some(rest) = said.strip_prefix("this ") {
        return format!("{name} {rest}");
    }
    let value = value_at(path, given).map(shown);
    match (said.split_once(", expected "), value) {
        (Some((_, wanted)), Some(value)) if said.starts_with("invalid ") => {
            format!("{name} must be {}, not {value}", in_words(wanted))
        }
        (_, Some(value)) if !value.is_empty() => format!("{name}: {said} (given: {value})"),
        _ => format!("{name}: {said}"),
    }
}

/// Reports an unknown name, with a suggestion.
pub(crate) fn unknown(field: &str, known: &[&str]) -> String {
    let field: String = field.chars().take(SHOWN_CHARS_MAX).collect();
    let alike = |name: &&&str| strsim::jaro_winkler(name, &field).max(contained(name, &field));
    let nearest = known.iter().max_by(|one, other| alike(one).total_cmp(&alike(other)));
    match nearest.filter(|name| alike(name) >= ALIKE_MIN) {
        Some(nearest) => format!("unknown field {field:?}; did you mean {nearest:?}?"),
        None if known.is_empty() => format!("unknown field {field:?}; no fields are expected"),
        None => format!("unknown field {field:?}; known fields are {}", known.join(", ")),
    }
}

/// Recognises `wait` for `wait_seconds`.
fn contained(name: &str, field: &str) -> f64 {
    let is_part =
        field.len() >= 3 && name.contains(field) || name.len() >= 3 && field.contains(name);
    if is_part { 0.9 } else { 0.0 }
}

/// The names after `expected`, which serde quotes with backticks.
fn known_names(said: &str) -> Vec<&str> {
    let list = said.split_once(", expected ").map_or("", |(_, list)| list);
    list.split('`').skip(1).step_by(2).collect()
}

fn quoted_after<'a>(said: &'a str, begin: &str) -> Option<&'a str> {
    said.strip_prefix(begin)?.strip_prefix('`')?.split('`').next()
}

/// Removes line and column: the message names the field.
fn without_place(said: &str) -> &str {
    match said.rfind(" at line ") {
        Some(end) => &said[..end],
        None => said,
    }
}

fn path_is_whole(path: &Path) -> bool {
    path.iter().all(|segment| matches!(segment, Segment::Unknown))
}

/// `priority of tasks[0]`, for a field inside something; `resources[1]`, for an item of a list.
fn name(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for segment in path.iter() {
        match segment {
            Segment::Map { key } => parts.push(key.clone()),
            Segment::Seq { index } => match parts.last_mut() {
                Some(last) => *last += &format!("[{index}]"),
                None => parts.push(format!("item {index}")),
            },
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    parts.reverse();
    parts.join(" of ")
}

fn value_at<'a>(path: &Path, given: &'a Value) -> Option<&'a Value> {
    path.iter().try_fold(given, |value, segment| match segment {
        Segment::Map { key } => value.get(key),
        Segment::Seq { index } => value.get(index),
        Segment::Enum { .. } | Segment::Unknown => Some(value),
    })
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => {
            let text = other.to_string();
            match text.char_indices().nth(SHOWN_CHARS_MAX) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
    }
}

/// A type in the words of JSON.
fn in_words(wanted: &str) -> String {
    match wanted {
        "a sequence" => "a list".to_owned(),
        "a map" => "an object".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "u8" => "a whole number from 0 to 255".to_owned(),
        "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        wanted if wanted.starts_with("struct ") => "an object".to_owned(),
        wanted if wanted.starts_with("a tuple") => "a list".to_owned(),
        wanted => wanted.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only reading is tried")]
    struct Body {
        resources: Vec<String>,
        wait_seconds: Option<f64>,
        #[serde(default)]
        tasks: Vec<Task>,
        #[serde(default)]
        review: bool,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only reading is tried")]
    struct Task {
        title: String,
        priority: Option<u8>,
    }

    #[test]
    fn each_mistake_is_one_sentence_that_names_the_field() {
        for (given, wanted) in [
            (json!({ "resources": "deploy" }), "resources must be a list, not \"deploy\""),
            (json!({ "resources": ["a", 1] }), "resources[1] must be a string, not 1"),
            (json!({}), "resources is missing"),
            (json!([]), "resources is missing"),
            (
                json!({ "resources": [], "tasks": [{ "title": "x", "priority": "high" }] }),
                "priority of tasks[0] must be a whole number from 0 to 255, not \"high\"",
            ),
            (
                json!({ "resources": [], "tasks": [{ "title": "x" }, {}] }),
                "title of tasks[1] is missing",
            ),
            (
                json!({ "resources": [], "review": "yes" }),
                "review must be true or false, not \"yes\"",
            ),
            (
                json!({ "resources": [], "wait": 1 }),
                "unknown field \"wait\"; did you mean \"wait_seconds\"?",
            ),
            (
                json!({ "resources": [], "resource": "a" }),
                "unknown field \"resource\"; did you mean \"resources\"?",
            ),
            (
                json!({ "resources": [], "zzz": 1 }),
                "unknown field \"zzz\"; known fields are resources, wait_seconds, tasks, review",
            ),
        ] {
            if given.is_object() {
                let read_with = |beside| read_value::<Body>(given.clone(), beside);
                assert_eq!(read_with(&[]).unwrap_err(), wanted, "{given}");
                let text = given.to_string();
                assert_eq!(read::<Body>(text.as_bytes()).unwrap_err(), wanted, "{given}");
            }
        }
        let twice = br#"{"resources": [], "resources": []}"#;
        assert_eq!(read::<Body>(twice).unwrap_err(), "resources is given twice");
        assert!(read::<Body>(b"{").unwrap_err().starts_with("this is not JSON: "));
        assert!(
            read::<Body>(br#"{"resources": []} x"#).unwrap_err().starts_with("this is not JSON")
        );
        let long = json!({ "resources": "x".repeat(1000) });
        assert!(read_value::<Body>(long, &[]).unwrap_err().len() < 120);
        let beside = |given: Value| read_value::<Body>(given, &["agent_id"]).unwrap_err();
        let wanted = "unknown field \"agentid\"; did you mean \"agent_id\"?";
        assert_eq!(beside(json!({ "resources": [], "agentid": "a" })), wanted);
        let within =
            beside(json!({ "resources": [], "tasks": [{ "title": "x", "agentid": "a" }] }));
        assert!(!within.contains("agent_id"), "a task has no such field: {within}");
    }
}
