//! Answers without what may differ from store to store.

use serde_json::Value;
use tenure::core::GrantId;

/// What may differ between two stores.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum May {
    /// Only the values of numbers that a store gives out.
    DifferInNumbers,
    /// Times too, and the order of what belongs to unrelated resources: for stores with clocks of their
    /// own that number each resource by itself.
    DifferInTimesAndOrder,
}

/// Numbers that a store gives out: only that they are there is compared.
const NUMBERS: [&str; 6] = ["token", "ticket", "age", "revision", "next", "shown_until"];

/// The answer, with placeholders for what may differ.
pub fn comparable(answer: &Value, may: May) -> Value {
    field("", answer, may)
}

fn is_time(name: &str) -> bool {
    name.ends_with("_at")
        || name.ends_with("_ms")
        || [
            "at",
            "wall",
            "waiting_since",
            "not_before",
            "held_for",
            "left",
            "waited_for",
            "woken_for",
        ]
        .contains(&name)
}

fn field(name: &str, value: &Value, may: May) -> Value {
    let differs = may == May::DifferInTimesAndOrder;
    match value {
        // A refused claim names one of the holds that are in its way.
        Value::Object(_) if differs && name == "by" => "a hold".into(),
        Value::Number(_) if NUMBERS.contains(&name) => "a number".into(),
        Value::Number(_) if differs && is_time(name) => "a time".into(),
        // The public form of a grant tells as much as the grant.
        Value::String(_) => match serde_json::from_value::<GrantId>(value.clone()) {
            Ok(grant) => grant.redacted().to_string().into(),
            // The reason names the first of several that are in the way.
            Err(_) if differs && name == "why" => "a reason".into(),
            Err(_) => value.clone(),
        },
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| field(name, item, may)).collect();
            if differs {
                items.sort_by_key(ToString::to_string);
            }
            items.into()
        }
        Value::Object(fields) => {
            // A server tells through which of its tokens a change came.
            let kept =
                fields.iter().filter(|(name, _)| !["stale", "actor"].contains(&name.as_str()));
            kept.map(|(name, value)| (name.clone(), field(name, value, may))).collect()
        }
        other => other.clone(),
    }
}

/// Where two answers differ first, for a message.
pub fn difference(path: &str, one: &Value, other: &Value) -> Option<String> {
    let none = Value::Null;
    match (one, other) {
        (Value::Array(these), Value::Array(those)) => {
            let longest = these.len().max(those.len());
            (0..longest).find_map(|index| {
                let these = these.get(index).unwrap_or(&none);
                let those = those.get(index).unwrap_or(&none);
                difference(&format!("{path}/{index}"), these, those)
            })
        }
        (Value::Object(these), Value::Object(those)) => {
            let names = these.keys().chain(those.keys());
            names.into_iter().find_map(|name| {
                let these = these.get(name).unwrap_or(&none);
                let those = those.get(name).unwrap_or(&none);
                difference(&format!("{path}/{name}"), these, those)
            })
        }
        _ => (one != other).then(|| format!("{path}: {one} and {other}")),
    }
}
