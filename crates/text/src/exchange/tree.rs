//! Parses JSON and YAML to values, strictly: a key given twice is an error.

use super::ExchangeError;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{alias_limits, budget, options};
use std::fmt;

/// The deepest nesting, for both formats. Deeper files are not task lists.
const NESTING_MAX: usize = 100;

/// How much of a YAML file may come from aliases: enough for defaults shared by many tasks, but a
/// small file cannot fill the memory.
const REPLAYED_MAX: usize = 200_000;

/// Parses JSON.
pub(super) fn json(text: &str) -> Result<Value, ExchangeError> {
    serde_json::from_str::<Strict>(text).map(|strict| strict.0).map_err(|error| {
        let problem = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let problem = match problem.strip_suffix(&place).unwrap_or(&problem) {
            "recursion limit exceeded" => "nested too deeply".to_owned(),
            problem => problem.to_owned(),
        };
        ExchangeError::Malformed { line: error.line(), column: error.column(), problem }
    })
}

/// Parses YAML, with room for a hundred thousand tasks and bounded aliases.
pub(super) fn yaml(text: &str) -> Result<Value, ExchangeError> {
    let options = options! {
        budget: budget! {
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
            max_depth: NESTING_MAX,
            flow_nesting_limit: NESTING_MAX,
        },
        alias_limits: alias_limits! { max_total_replayed_events: REPLAYED_MAX },
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options::<Strict>(text, options).map(|strict| strict.0).map_err(
        |error| {
            let (line, column) = error
                .location()
                .map_or((1, 1), |place| (place.line() as usize, place.column() as usize));
            let mut problem = error.to_string();
            if let Some(end) = problem.find(&format!(" at line {line}, column {column}")) {
                problem.truncate(end);
            }
            // Advice for programmers does not help the author of the file.
            let problem = problem.split(", set ").next().unwrap_or_default();
            let problem = problem.lines().next().unwrap_or_default().to_owned();
            ExchangeError::Malformed { line, column, problem }
        },
    )
}

/// The keys of the outermost object, as far as the text can be parsed; none for anything else.
pub(super) fn outer_keys(text: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let mut reader = serde_json::Deserializer::from_str(text.trim_start_matches('\u{feff}'));
    // An incomplete file still shows its format.
    let _ = reader.deserialize_map(OuterKeys(&mut keys));
    keys
}

struct OuterKeys<'a>(&'a mut Vec<String>);

impl<'de> Visitor<'de> for OuterKeys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.0.push(key);
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

/// A value without duplicate keys.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Strict, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                let key: String = key.chars().take(80).collect();
                return Err(A::Error::custom(format!("the key {key:?} is given twice")));
            }
            let Strict(value) = entries.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_formats_give_the_same_value() {
        let expected = json!({"a": [1, -2, 1.5, true, null, "no"], "b": {"c": "x"}});
        assert_eq!(json(&expected.to_string()).unwrap(), expected);
        let text = "a: [1, -2, 1.5, true, null, no]\nb:\n  c: x\n";
        assert_eq!(yaml(text).unwrap(), expected);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (text, place, part) in [
            ("[1,\n 2,,]", (2, 4), "expected value"),
            ("{\"a\": 1,\n\"a\": 2}", (2, 3), "\"a\" is given twice"),
            ("[{\"b\": {\"a\": 1, \"a\": 2}}]", (1, 19), "\"a\" is given twice"),
            ("[1] 2", (1, 5), "trailing characters"),
            ("", (1, 0), "EOF"),
        ] {
            let Err(ExchangeError::Malformed { line, column, problem }) = json(text) else {
                panic!("{text} is malformed");
            };
            assert!(problem.contains(part), "{text}: {problem}");
            assert_eq!((line, column), place, "{text}: {problem}");
            assert!(!problem.contains("line"), "{problem}");
        }
        for (text, place, part) in [
            ("a: 1\nb: 2\na: 3\n", (3, 1), "duplicate"),
            ("- a: [1\n- b\n", (1, 6), "unclosed bracket"),
            ("a: 1\n  b: 2\n", (2, 4), ""),
        ] {
            let Err(ExchangeError::Malformed { line, column, problem }) = yaml(text) else {
                panic!("{text} is malformed");
            };
            assert!(problem.contains(part), "{text}: {problem}");
            assert_eq!((line, column), place, "{text}: {problem}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_without_a_stack_overflow() {
        let deep = |open: &str, close: &str| open.repeat(10_000) + &close.repeat(10_000);
        for text in [deep("[", "]"), deep("{\"a\":", "}"), "[".repeat(10_000)] {
            let error = json(&text).unwrap_err().to_string();
            assert!(error.contains("nested too deeply"), "{error}");
            let error = yaml(&text).unwrap_err().to_string();
            assert!(error.len() < 300, "{error}");
        }
        let block: String = (0..1_000).map(|depth| " ".repeat(depth) + "a:\n").collect();
        assert!(yaml(&block).is_err());
    }

    #[test]
    fn aliases_cannot_explode() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = format!("*a{}, ", level - 1).repeat(10);
            text += &format!("a{level}: &a{level} [{before}]\n");
        }
        assert!(yaml(&text).is_err());
    }
}
