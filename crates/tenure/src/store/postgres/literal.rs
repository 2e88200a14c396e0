//! Values written into the text of a statement, where several are sent as one message.

use super::session::Value;

/// Appends a prepared statement that is to be carried out with these values. Nothing can be written
/// if a text has a character that cannot be part of a message.
pub(super) fn push_execute(into: &mut String, name: &str, values: &[Value]) -> Option<()> {
    into.push_str("EXECUTE ");
    into.push_str(name);
    for (index, value) in values.iter().enumerate() {
        into.push(if index == 0 { '(' } else { ',' });
        push(into, value)?;
    }
    if !values.is_empty() {
        into.push(')');
    }
    Some(())
}

fn push(into: &mut String, value: &Value) -> Option<()> {
    match value {
        Value::Text(text) | Value::OptionalText(Some(text)) => push_text(into, text),
        Value::OptionalText(None) | Value::OptionalInteger(None) => {
            into.push_str("NULL");
            Some(())
        }
        Value::Texts(texts) => push_text(into, &array(texts)),
        Value::Integer(number) | Value::OptionalInteger(Some(number)) => {
            push_text(into, &number.to_string())
        }
        Value::Boolean(value) => push_text(into, if *value { "t" } else { "f" }),
    }
}

/// Appends a text in quotes. With an `E`, a backslash means the same whatever the settings of the
/// server are. It has no type of its own, so that it gets the one that the statement expects.
fn push_text(into: &mut String, text: &str) -> Option<()> {
    if text.contains('\0') {
        return None;
    }
    into.push_str("E'");
    let mut rest = text;
    while let Some(at) = rest.find(['\'', '\\']) {
        into.push_str(&rest[..at]);
        into.push_str(if rest.as_bytes()[at] == b'\'' { "''" } else { "\\\\" });
        rest = &rest[at + 1..];
    }
    into.push_str(rest);
    into.push('\'');
    Some(())
}

/// An array as the server reads it, each text in quotes.
fn array(texts: &[String]) -> String {
    let mut array = String::from("{");
    for (index, text) in texts.iter().enumerate() {
        array.push_str(if index == 0 { "\"" } else { ",\"" });
        for character in text.chars() {
            if matches!(character, '"' | '\\') {
                array.push('\\');
            }
            array.push(character);
        }
        array.push('"');
    }
    array.push('}');
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(values: &[Value]) -> Option<String> {
        let mut text = String::new();
        push_execute(&mut text, "s", values)?;
        Some(text)
    }

    #[test]
    fn nothing_in_a_value_ends_its_literal() {
        let text = |text: &str| Value::Text(text.to_owned());
        assert_eq!(written(&[]).unwrap(), "EXECUTE s");
        assert_eq!(
            written(&[text("it's"), text("a\\'b"), text("")]).unwrap(),
            r"EXECUTE s(E'it''s',E'a\\''b',E'')"
        );
        assert_eq!(
            written(&[Value::Integer(-3), Value::Boolean(true), Value::OptionalText(None)])
                .unwrap(),
            "EXECUTE s(E'-3',E't',NULL)"
        );
        let texts = Value::Texts(vec![r#"a"b\c'd,{}"#.to_owned(), String::new()]);
        assert_eq!(written(&[texts]).unwrap(), r#"EXECUTE s(E'{"a\\"b\\\\c''d,{}",""}')"#);
        assert_eq!(written(&[text("a\0b")]), None);
    }
}
