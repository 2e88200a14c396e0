//! Adds entries to JSON files and takes them away again, and keeps everything else as it was
//! written: comments, order, indentation, trailing commas, line breaks.
//!
//! Texts are parsed for positions only; an edit inserts or cuts pieces. Taking away is the exact
//! inverse of adding, without a record of what was added. Two rules make that possible:
//!
//! - Entries are added at the end of their container, and taken away last first.
//! - An entry that is added to an empty container follows its bracket directly (`{"tenure": …}`).
//!   A container that is created has a space or a line break there. So a container that becomes
//!   empty is known to have been created for the entry, and goes with it.

use super::plan::Malformed;
use super::section::line_break;
use jsonc_parser::ast::{self, ObjectProp, Value as Node};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

/// A step from a container to something in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// The byte order mark that some Windows programs write before the text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Comments and trailing commas are what the hosts' own parsers accept beyond JSON.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// The value that a text has, without comments.
pub(crate) fn value(text: &str) -> Result<Value, Malformed> {
    let text = text.trim_start_matches(BYTE_ORDER_MARK);
    with_root(text, |root| Ok(to_value(root)))
}

/// The text with this entry added: `path` leads from the root through keys to an object or array
/// and is created as far as it is missing; `key` is the entry's name in an object, `None` in an
/// array.
pub(crate) fn add(
    text: Option<&str>,
    path: &[&str],
    key: Option<&str>,
    entry: &Value,
) -> Result<String, Malformed> {
    let Some(text) = text else {
        let root = nested(path, key, entry);
        return Ok(Style::Lines { unit: "  ", line_break: "\n", base: "" }.write(&root) + "\n");
    };
    let (mark, text) = without_mark(text);
    let edited = with_root(text, |root| {
        let (container, depth) = deepest(text, root, path)?;
        let missing = &path[depth..];
        let (name, entry) = match missing {
            [] => (key, entry.clone()),
            [first, rest @ ..] => (Some(*first), nested(rest, key, entry)),
        };
        let unit = indentation_unit(text, root);
        insert(text, container, &unit, depth, name, &entry)
    })?;
    Ok(format!("{mark}{edited}"))
}

/// The text without what `path` leads to, and without containers that were created for it; `None`
/// if the whole file was.
pub(crate) fn remove(text: &str, path: &[Step<'_>]) -> Result<Option<String>, Malformed> {
    let (mark, text) = without_mark(text);
    let edited = with_root(text, |root| Ok(cut(text, root, path)))?;
    Ok(edited.map(|edited| format!("{mark}{edited}")))
}

fn without_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 })
}

/// Parses a text and hands out its root, which must be an object.
fn with_root<T>(
    text: &str,
    act: impl FnOnce(&Node<'_>) -> Result<T, Malformed>,
) -> Result<T, Malformed> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options()).map_err(|error| {
        let kind = error.kind().to_string();
        Malformed::at(text, error.range().start, format!("not valid JSON: {}", lower(&kind)))
    })?;
    match &parsed.value {
        Some(root @ Node::Object(_)) => act(root),
        Some(other) => {
            Err(Malformed::at(text, other.range().start, "the file has no JSON object at its top"))
        }
        None => Err(Malformed::at(text, 0, "the file is empty; JSON begins with {")),
    }
}

fn lower(phrase: &str) -> String {
    let mut rest = phrase.chars();
    rest.next().map(|first| first.to_lowercase().chain(rest).collect()).unwrap_or_default()
}

/// The value around an entry whose containers do not exist yet.
fn nested(path: &[&str], key: Option<&str>, entry: &Value) -> Value {
    let innermost = match key {
        Some(key) => serde_json::json!({ key: entry }),
        None => serde_json::json!([entry]),
    };
    path.iter().rev().fold(innermost, |inner, key| serde_json::json!({ *key: inner }))
}

/// The last container on the path that exists, and how many steps lead to it.
fn deepest<'n, 't>(
    text: &str,
    root: &'n Node<'t>,
    path: &[&str],
) -> Result<(&'n Node<'t>, usize), Malformed> {
    let mut container = root;
    for (depth, key) in path.iter().enumerate() {
        let Node::Object(object) = container else { unreachable!("checked below") };
        let Some(property) = property(object, key) else { return Ok((container, depth)) };
        container = &property.value;
        let is_last = depth + 1 == path.len();
        match container {
            Node::Object(_) => {}
            Node::Array(_) if is_last => {}
            other => {
                let what = if is_last { "a list or an object" } else { "an object" };
                let reason = format!("{key:?} must be {what}");
                return Err(Malformed::at(text, other.range().start, reason));
            }
        }
    }
    Ok((container, path.len()))
}

/// The property with this name; of several the last, which is what programs use.
fn property<'n, 't>(object: &'n ast::Object<'t>, name: &str) -> Option<&'n ObjectProp<'t>> {
    object.properties.iter().rev().find(|property| property.name.as_str() == name)
}

/// Inserts an entry at the end of a container that `depth` steps lead to.
fn insert(
    text: &str,
    container: &Node<'_>,
    unit: &str,
    depth: usize,
    name: Option<&str>,
    entry: &Value,
) -> Result<String, Malformed> {
    let range = container.range();
    let items = items(container);
    let name = match (container, name) {
        (Node::Object(_), Some(name)) => Some(name),
        (Node::Array(_), None) => None,
        (Node::Object(_), None) => {
            return Err(Malformed::at(text, range.start, "this must be a list"));
        }
        _ => return Err(Malformed::at(text, range.start, "this must be an object")),
    };
    let written = |style: Style<'_>| match name {
        Some(name) => format!("{}: {}", Value::from(name), style.write(entry)),
        None => style.write(entry),
    };
    let by_depth = unit.repeat(depth + 1);
    let lines = |base| Style::Lines { unit, line_break: line_break(text), base };
    let Some(last) = items.last() else {
        // Nothing between the brackets, or only comments, which stay behind the entry. The entry
        // is on the line of its bracket.
        let at = range.start + 1;
        let base = &by_depth[..by_depth.len() - unit.len()];
        let style = if text.contains('\n') { lines(base) } else { Style::OneLine };
        return Ok(format!("{}{}{}", &text[..at], written(style), &text[at..]));
    };
    let close = range.end - 1;
    let rest = Rest::after(text, last.end, close);
    let first = items.first().unwrap_or(last);
    let style = match text[range.start..first.start].contains('\n') || rest.has_line_comment {
        // The indentation of the entry before it, which may not be what the depth says.
        true => lines(indentation(text, last.start).unwrap_or(&by_depth)),
        false => Style::OneLine,
    };
    let (gap, entry) = (style.gap(), written(style));
    let (head, middle, tail) = (&text[..last.end], &text[last.end..rest.end], &text[rest.end..]);
    Ok(match rest.comma {
        Some(_) => format!("{head}{middle}{gap}{entry},{tail}"),
        None => format!("{head},{middle}{gap}{entry}{tail}"),
    })
}

/// The indentation of an item that begins a line.
fn indentation(text: &str, item: usize) -> Option<&str> {
    let before = &text[..item];
    let line = &before[before.rfind('\n')? + 1..];
    line.trim_matches([' ', '\t']).is_empty().then_some(line)
}

/// What follows the last item of a container, up to its closing bracket.
struct Rest {
    /// Where the trailing comma is.
    comma: Option<usize>,
    /// The end of the last comma or comment, or of the item itself.
    end: usize,
    has_line_comment: bool,
}

impl Rest {
    fn after(text: &str, item_end: usize, close: usize) -> Rest {
        let mut rest = Rest { comma: None, end: item_end, has_line_comment: false };
        let mut at = item_end;
        while at < close {
            let tail = &text[at..close];
            let length = if tail.starts_with("//") {
                rest.has_line_comment = true;
                tail.find(['\n', '\r']).unwrap_or(tail.len())
            } else if tail.starts_with("/*") {
                tail.find("*/").map_or(tail.len(), |end| end + 2)
            } else if tail.starts_with(',') {
                rest.comma.get_or_insert(at);
                1
            } else {
                // White space: nothing else can be here.
                at += tail.chars().next().map_or(1, char::len_utf8);
                continue;
            };
            at += length;
            rest.end = at;
        }
        rest
    }
}

/// The ranges of the items of a container.
fn items(container: &Node<'_>) -> Vec<Range> {
    match container {
        Node::Object(object) => object.properties.iter().map(Ranged::range).collect(),
        Node::Array(array) => array.elements.iter().map(Ranged::range).collect(),
        _ => Vec::new(),
    }
}

/// Cuts what the path leads to, and containers that were created for it. `None` if that is the
/// root.
fn cut(text: &str, root: &Node<'_>, path: &[Step<'_>]) -> Option<String> {
    // The containers from the root to the one of the item, each with the index of its item.
    let mut chain: Vec<(&Node<'_>, usize)> = Vec::new();
    let mut node = root;
    for step in path {
        let (index, inner) = match (node, *step) {
            (Node::Object(object), Step::Key(key)) => {
                let found = |property: &ObjectProp<'_>| property.name.as_str() == key;
                match object.properties.iter().rposition(found) {
                    Some(index) => (index, &object.properties[index].value),
                    None => return Some(text.to_owned()),
                }
            }
            (Node::Array(array), Step::Index(index)) => match array.elements.get(index) {
                Some(element) => (index, element),
                None => return Some(text.to_owned()),
            },
            _ => return Some(text.to_owned()),
        };
        chain.push((node, index));
        node = inner;
    }
    while let Some((container, index)) = chain.pop() {
        if !was_created_for(text, container) {
            return Some(without_item(text, container, index));
        }
    }
    None
}

/// Whether a container has a single item and was created for it: the item does not follow the
/// bracket directly, and there are no comments.
fn was_created_for(text: &str, container: &Node<'_>) -> bool {
    let (range, items) = (container.range(), items(container));
    let [item] = items.as_slice() else { return false };
    let before = &text[range.start + 1..item.start];
    let after = &text[item.end..range.end - 1];
    !before.is_empty() && before.trim().is_empty() && after.trim().is_empty()
}

fn without_item(text: &str, container: &Node<'_>, index: usize) -> String {
    let (range, items) = (container.range(), items(container));
    let (item, close) = (items[index], range.end - 1);
    let next = items.get(index + 1).map_or(close, |next| next.start);
    let before = &text[range.start + 1..item.start];
    let start = range.start + 1 + before.trim_end().len();
    let comma = Rest::after(text, item.end, next).comma;
    let cut_item = |text: &str| match comma {
        Some(comma) => {
            format!("{}{}{}", &text[..start], &text[item.end..comma], &text[comma + 1..])
        }
        None => format!("{}{}", &text[..start], &text[item.end..]),
    };
    match (comma, index.checked_sub(1).map(|before| items[before])) {
        // The last item, without a comma: the comma before it goes.
        (None, Some(previous)) => {
            let cut = cut_item(text);
            match Rest::after(text, previous.end, item.start).comma {
                Some(comma) => format!("{}{}", &cut[..comma], &cut[comma + 1..]),
                None => cut,
            }
        }
        _ => cut_item(text),
    }
}

fn to_value(node: &Node<'_>) -> Value {
    match node {
        Node::StringLit(string) => Value::from(string.value.as_ref()),
        Node::NumberLit(number) => {
            serde_json::from_str(number.value).unwrap_or_else(|_| Value::from(number.value))
        }
        Node::BooleanLit(boolean) => Value::from(boolean.value),
        Node::NullKeyword(_) => Value::Null,
        Node::Array(array) => array.elements.iter().map(to_value).collect(),
        Node::Object(object) => {
            let properties = object.properties.iter();
            let pairs = properties.map(|it| (it.name.as_str().to_owned(), to_value(&it.value)));
            Value::Object(pairs.collect())
        }
    }
}

/// The indentation of one level: that of the first property.
fn indentation_unit(text: &str, root: &Node<'_>) -> String {
    let first = items(root).first().and_then(|first| indentation(text, first.start));
    first.filter(|unit| !unit.is_empty()).unwrap_or("  ").to_owned()
}

/// How a value is written.
#[derive(Clone, Copy)]
enum Style<'a> {
    /// With a space after each opening bracket.
    OneLine,
    /// Each item on a line of its own. `base` is the indentation of the value's first line.
    Lines { unit: &'a str, line_break: &'a str, base: &'a str },
}

impl Style<'_> {
    /// What is before the value's line, or before its closing bracket.
    fn gap(&self) -> String {
        match self {
            Style::OneLine => " ".to_owned(),
            Style::Lines { line_break, base, .. } => format!("{line_break}{base}"),
        }
    }

    fn write(self, value: &Value) -> String {
        let inner_base = match self {
            Style::OneLine => String::new(),
            Style::Lines { unit, base, .. } => format!("{base}{unit}"),
        };
        let inner = match self {
            Style::OneLine => Style::OneLine,
            Style::Lines { unit, line_break, .. } => {
                Style::Lines { unit, line_break, base: &inner_base }
            }
        };
        let (open, items, close): (_, Vec<String>, _) = match value {
            Value::Object(object) => {
                let items = object.iter();
                let items = items
                    .map(|(key, value)| format!("{}: {}", Value::from(&**key), inner.write(value)));
                ('{', items.collect(), '}')
            }
            // Words of a command belong on one line.
            Value::Array(array) if array.iter().all(|item| !item.is_object()) => {
                let items: Vec<String> = array.iter().map(Value::to_string).collect();
                return format!("[{}]", items.join(", "));
            }
            Value::Array(array) => ('[', array.iter().map(|item| inner.write(item)).collect(), ']'),
            scalar => return scalar.to_string(),
        };
        if items.is_empty() {
            return format!("{open}{close}");
        }
        let gap = inner.gap();
        let items = items.join(&format!(",{gap}"));
        format!("{open}{gap}{items}{}{close}", self.gap())
    }
}

#[cfg(test)]
mod tests;
