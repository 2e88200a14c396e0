//! Keeps lists small enough for an agent's context: long values are cut, and the number of entries
//! is limited.

use serde_json::{Value, json};

/// How much of a text or of a JSON value is shown in a list.
const VALUE_CHARS_MAX: usize = 300;

/// How many items of a list inside an entry are shown.
const ITEMS_MAX: usize = 20;

/// The largest size of all entries of a list, as JSON.
const LIST_BYTES_MAX: usize = 40 * 1024;

/// The field that names the values that were cut.
const IN_PART: &str = "shown_in_part";

/// An entry of a list, with long values cut and named.
pub(super) fn entry(mut value: Value) -> Value {
    let Value::Object(fields) = &mut value else { return value };
    let mut cut = Vec::new();
    for (name, value) in fields.iter_mut() {
        if let Some(short) = shortened(value) {
            *value = short;
            cut.push(name.clone());
        }
    }
    if !cut.is_empty() {
        cut.sort();
        fields.insert(IN_PART.to_owned(), json!(cut));
    }
    value
}

/// As many entries as fit, and at least one.
pub(super) fn entries(all: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut bytes = 0;
    let mut shown = Vec::new();
    for value in all {
        let value = entry(value);
        bytes += value.to_string().len();
        if bytes > LIST_BYTES_MAX && !shown.is_empty() {
            break;
        }
        shown.push(value);
    }
    shown
}

/// Whether any of these entries was cut.
pub(super) fn is_any_in_part(entries: &[Value]) -> bool {
    entries.iter().any(|entry| entry.get(IN_PART).is_some())
}

/// The value cut short, if it is too long.
fn shortened(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => cut(text).map(Value::String),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let is_long = |item: &Value| shortened(item).is_some();
            if items.len() <= ITEMS_MAX && !items.iter().any(is_long) {
                return None;
            }
            let mut list: Vec<Value> = items
                .iter()
                .take(ITEMS_MAX)
                .map(|item| shortened(item).unwrap_or_else(|| item.clone()))
                .collect();
            if items.len() > ITEMS_MAX {
                list.push(json!(format!("… and {} more", items.len() - ITEMS_MAX)));
            }
            Some(Value::Array(list))
        }
        Value::Array(_) | Value::Object(_) => cut(&value.to_string()).map(Value::String),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn cut(text: &str) -> Option<String> {
    let (end, _) = text.char_indices().nth(VALUE_CHARS_MAX)?;
    let left = text[end..].chars().count();
    Some(format!("{}… ({left} more characters)", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_and_named() {
        let long = "é".repeat(1000);
        let whole = json!({ "id": "a", "priority": 5, "labels": ["x"], "payload": { "a": 1 } });
        assert_eq!(entry(whole.clone()), whole);
        let files: Vec<String> = (0..30).map(|n| format!("f{n}")).collect();
        let cut = entry(json!({ "id": "a", "text": long, "data": { "x": long }, "files": files }));
        let text = cut["text"].as_str().unwrap();
        assert!(text.starts_with("éé") && text.ends_with("… (700 more characters)"), "{text}");
        assert!(cut["data"].as_str().unwrap().starts_with("{\"x\":"), "{cut}");
        assert_eq!(cut["files"][20], "… and 10 more");
        assert_eq!(cut[IN_PART], json!(["data", "files", "text"]));
        assert!(cut.to_string().len() < 3000);
    }

    #[test]
    fn many_entries_are_as_many_as_there_is_room_for() {
        let all = (0..1000).map(|n| json!({ "id": n, "text": "x".repeat(290) }));
        let shown = entries(all);
        assert!((100..200).contains(&shown.len()), "{}", shown.len());
        assert_eq!(entries([json!({ "id": 1 })]).len(), 1);
    }
}
