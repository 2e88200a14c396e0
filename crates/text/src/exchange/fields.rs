//! Takes the fields of an object under any of their names.

use super::ExchangeError;
use super::error::quote;
use serde_json::{Map, Value};

/// An object whose fields are taken one by one; what remains is unknown.
pub(super) struct Fields {
    /// The task or section, for messages.
    place: String,
    map: Map<String, Value>,
}

impl Fields {
    /// Normalises names: `maxAttempts` and `max-attempts` become `max_attempts`. Of two that become
    /// the same, the first one wins.
    pub(super) fn new(place: String, object: Map<String, Value>) -> Fields {
        let mut map = Map::with_capacity(object.len());
        for (name, value) in object {
            let usual = snake_case(&name);
            let name = if map.contains_key(&usual) { name } else { usual };
            map.insert(name, value);
        }
        Fields { place, map }
    }

    /// The name of the object in messages.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    pub(super) fn rename(&mut self, place: String) {
        self.place = place;
    }

    /// Takes the first of these that exists and is not null.
    pub(super) fn take(&mut self, names: &[&'static str]) -> Option<(&'static str, Value)> {
        let name = names.iter().find(|name| self.map.get(**name).is_some_and(|v| !v.is_null()))?;
        self.map.shift_remove(*name).map(|value| (*name, value))
    }

    /// Adds a field that is missing.
    pub(super) fn put_if_absent(&mut self, name: &str, value: Value) {
        if !self.map.contains_key(name) {
            self.map.insert(name.to_owned(), value);
        }
    }

    /// Whether the field exists, even as null.
    pub(super) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// Takes a text; a number becomes its digits, because ids are often numbers.
    pub(super) fn text(&mut self, names: &[&'static str]) -> Result<Option<String>, ExchangeError> {
        let Some((name, value)) = self.take(names) else { return Ok(None) };
        match as_text(value) {
            Ok(text) => Ok(Some(text)),
            Err(value) => Err(self.wrong(name, expected("text", &value))),
        }
    }

    /// Takes a list of texts; a single text is a list of one, or of several if `split` by commas.
    pub(super) fn texts(
        &mut self,
        names: &[&'static str],
        split: bool,
    ) -> Result<Option<Vec<String>>, ExchangeError> {
        let Some((name, value)) = self.take(names) else { return Ok(None) };
        let list = match value {
            Value::Array(list) => list,
            Value::String(text) if split => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                parts.map(Value::from).collect()
            }
            single => vec![single],
        };
        let texts: Result<Vec<String>, Value> = list.into_iter().map(as_text).collect();
        texts.map(Some).map_err(|value| self.wrong(name, expected("a list of texts", &value)))
    }

    /// Takes a number, which may be written as text.
    pub(super) fn number(
        &mut self,
        names: &[&'static str],
    ) -> Result<Option<(&'static str, f64)>, ExchangeError> {
        let Some((name, value)) = self.take(names) else { return Ok(None) };
        let number = match &value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number.filter(|number| number.is_finite()) {
            Some(number) => Ok(Some((name, number))),
            None => Err(self.wrong(name, expected("a number", &value))),
        }
    }

    /// Takes a whole number within bounds.
    pub(super) fn whole(
        &mut self,
        names: &[&'static str],
        least: i64,
        most: i64,
    ) -> Result<Option<i64>, ExchangeError> {
        let Some((name, value)) = self.take(names) else { return Ok(None) };
        let number = match &value {
            Value::Number(number) => number.as_i64().or_else(|| {
                let number = number.as_f64().filter(|number| number.fract() == 0.0)?;
                (number.abs() < 9e15).then_some(number as i64)
            }),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let problem =
                    format!("{} is not a whole number from {least} to {most}", show(&value));
                Err(self.wrong(name, problem))
            }
        }
    }

    /// Takes true or false.
    pub(super) fn flag(&mut self, name: &'static str) -> Result<Option<bool>, ExchangeError> {
        match self.take(&[name]) {
            None => Ok(None),
            Some((_, Value::Bool(flag))) => Ok(Some(flag)),
            Some((_, value)) => Err(self.wrong(name, expected("true or false", &value))),
        }
    }

    /// An error about this field.
    pub(super) fn wrong(&self, field: &str, problem: impl Into<String>) -> ExchangeError {
        let (place, field) = (self.place.clone(), field.to_owned());
        ExchangeError::Field { place, field, problem: problem.into() }
    }

    /// The fields that were not taken, without nulls and empty lists.
    pub(super) fn rest(self) -> Map<String, Value> {
        let says_nothing = |value: &Value| match value {
            Value::Null => true,
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        self.map.into_iter().filter(|(_, value)| !says_nothing(value)).collect()
    }
}

fn as_text(value: Value) -> Result<String, Value> {
    match value {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(other),
    }
}

fn expected(what: &str, value: &Value) -> String {
    format!("expected {what}, not {}", show(value))
}

/// A value for messages; only short ones are shown.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(_) | Value::Object(_) => kind(value).to_owned(),
    }
}

/// The type of a value, for messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn snake_case(name: &str) -> String {
    let mut usual = String::with_capacity(name.len());
    let mut after_lower = false;
    for character in name.chars() {
        if character.is_ascii_uppercase() && after_lower {
            usual.push('_');
        }
        after_lower = character.is_ascii_lowercase() || character.is_ascii_digit();
        usual.push(if character == '-' { '_' } else { character.to_ascii_lowercase() });
    }
    usual
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(value: Value) -> Fields {
        let Value::Object(map) = value else { panic!("an object") };
        Fields::new("task 1".into(), map)
    }

    #[test]
    fn a_field_is_found_under_any_spelling() {
        for name in ["maxAttempts", "max_attempts", "max-attempts", "MaxAttempts"] {
            let mut fields = fields(json!({ name: 3 }));
            assert_eq!(fields.whole(&["max_attempts"], 1, 9).unwrap(), Some(3), "{name}");
            assert!(fields.rest().is_empty());
        }
    }

    #[test]
    fn nothing_disappears_when_two_spellings_meet() {
        let mut fields = fields(json!({ "not_before": 1, "notBefore": 2 }));
        assert_eq!(fields.whole(&["not_before"], 0, 9).unwrap(), Some(1));
        assert_eq!(fields.rest()["notBefore"], 2);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let mut one = fields(json!({ "p": "high", "q": 1.5, "t": [1], "l": [{}] }));
        let error = one.whole(&["p"], 0, 100).unwrap_err().to_string();
        assert_eq!(error, "task 1: p: \"high\" is not a whole number from 0 to 100");
        assert!(one.whole(&["q"], 0, 100).is_err());
        assert_eq!(
            one.text(&["t"]).unwrap_err().to_string(),
            "task 1: t: expected text, not a list"
        );
        assert!(one.texts(&["l"], false).is_err());
    }

    #[test]
    fn lists_may_be_written_as_text() {
        let mut one = fields(json!({ "deps": "a, b,", "n": 7, "f": "{a,b}" }));
        assert_eq!(one.texts(&["depends_on", "deps"], true).unwrap().unwrap(), ["a", "b"]);
        assert_eq!(one.texts(&["n"], true).unwrap().unwrap(), ["7"]);
        assert_eq!(one.texts(&["f"], false).unwrap().unwrap(), ["{a,b}"]);
    }
}
