//! Parses a settings file into a tree that remembers positions.
//!
//! Settings are mappings of keys to single values, so this accepts only that part of YAML and
//! refuses lists, aliases, tags and several documents. It uses the parser below serde-saphyr rather
//! than serde, for two reasons: a value stays the text that was written (`no` and `007` are labels
//! like any other), and its position in the file is known, which editing needs.

use std::fmt;
use std::ops::Range;

use serde_saphyr::granit_parser::{
    self, ErrorKind, Event, Marker, Parser, ScalarStyle, Span, StructureStyle,
};

/// Settings need three levels: the file, a group, and a key with its description.
const NESTING_AT_MOST: usize = 8;
const TOO_DEEP: &str = "nested too deeply";

/// There are some twenty keys. Each new one is compared with those before it, so a megabyte of keys
/// would take minutes.
const KEYS_AT_MOST: usize = 256;

/// A position in a file. Both numbers count from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.line, self.column)
    }
}

/// A file that is not YAML, or uses a part of it that settings do not use.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    pub position: Position,
    pub problem: String,
}

#[derive(Debug)]
pub(super) enum Node {
    Scalar(Scalar),
    Mapping(Mapping),
}

/// A single value.
#[derive(Debug)]
pub(super) struct Scalar {
    /// The value without its quotes.
    pub text: String,
    /// Whether it is empty, or an unquoted `~` or `null`.
    pub is_null: bool,
    /// The bytes of the value in the file, including quotes.
    pub range: Range<usize>,
}

/// Keys with their values, in the order of the file. No key occurs twice.
#[derive(Debug)]
pub(super) struct Mapping {
    pub entries: Vec<Entry>,
    /// Whether it is written in braces.
    pub is_flow: bool,
    /// The bytes of the file from brace to brace; meaningless without braces.
    pub range: Range<usize>,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub key: Name,
    pub node: Node,
}

/// A key and its position.
#[derive(Debug)]
pub(super) struct Name {
    pub text: String,
    pub position: Position,
    pub range: Range<usize>,
}

impl Mapping {
    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key.text == key)
    }
}

/// Parses a file. `None` if it has only blanks and comments.
pub(super) fn parse(text: &str) -> Result<Option<Mapping>, Malformed> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: NESTING_AT_MOST,
        block_nesting_limit: NESTING_AT_MOST,
    };
    let mut builder = Builder::default();
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| match error.kind() {
            ErrorKind::RecursionLimitExceeded => malformed(error.marker(), TOO_DEEP),
            _ => malformed(error.marker(), error.info()),
        })?;
        builder.take(event, span)?;
    }
    Ok(builder.root)
}

#[derive(Default)]
struct Builder {
    /// The mappings that are not closed yet, outermost first.
    open: Vec<OpenMapping>,
    root: Option<Mapping>,
    documents: usize,
}

struct OpenMapping {
    mapping: Mapping,
    /// A key without its value yet.
    key: Option<Name>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Malformed> {
        if event.tag().is_some() {
            return Err(malformed(&span.start, "tags are not used in settings"));
        }
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(malformed(&span.start, "only one document is allowed"));
                }
            }
            Event::MappingStart(style, ..) => self.open_mapping(style, &span)?,
            Event::MappingEnd => self.close_mapping(&span)?,
            Event::Scalar(text, style, ..) => self.take_scalar(text.into_owned(), style, &span)?,
            Event::SequenceStart(..) => {
                return Err(malformed(&span.start, "lists are not used in settings"));
            }
            Event::Alias(_) => {
                return Err(malformed(&span.start, "aliases are not used in settings"));
            }
            _ => {}
        }
        Ok(())
    }

    fn open_mapping(&mut self, style: StructureStyle, span: &Span) -> Result<(), Malformed> {
        if self.open.last().is_some_and(|parent| parent.key.is_none()) {
            return Err(malformed(&span.start, "a key must be a single word"));
        }
        if self.open.len() == NESTING_AT_MOST {
            return Err(malformed(&span.start, TOO_DEEP));
        }
        self.open.push(OpenMapping {
            mapping: Mapping {
                entries: Vec::new(),
                is_flow: style == StructureStyle::Flow,
                range: byte_range(span)?,
            },
            key: None,
        });
        Ok(())
    }

    fn close_mapping(&mut self, span: &Span) -> Result<(), Malformed> {
        let Some(OpenMapping { mut mapping, .. }) = self.open.pop() else {
            return Err(malformed(&span.start, "unexpected end of a mapping"));
        };
        mapping.range.end = byte_range(span)?.end;
        match self.open.last_mut() {
            Some(parent) => parent.attach(Node::Mapping(mapping)),
            None => self.root = Some(mapping),
        }
        Ok(())
    }

    fn take_scalar(
        &mut self,
        text: String,
        style: ScalarStyle,
        span: &Span,
    ) -> Result<(), Malformed> {
        let range = byte_range(span)?;
        let is_null = style == ScalarStyle::Plain
            && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL");
        match self.open.last_mut() {
            Some(parent) if parent.key.is_none() => parent.take_key(text, range, span),
            Some(parent) => {
                parent.attach(Node::Scalar(Scalar { text, is_null, range }));
                Ok(())
            }
            None if is_null => Ok(()),
            None => Err(malformed(&span.start, "expected `key: value` lines")),
        }
    }
}

impl OpenMapping {
    fn take_key(
        &mut self,
        text: String,
        range: Range<usize>,
        span: &Span,
    ) -> Result<(), Malformed> {
        if self.mapping.entries.len() == KEYS_AT_MOST {
            return Err(malformed(&span.start, format!("more than {KEYS_AT_MOST} keys")));
        }
        if let Some(first) = self.mapping.get(&text) {
            let problem =
                format!("duplicate key {text:?}, first on line {}", first.key.position.line);
            return Err(malformed(&span.start, problem));
        }
        self.key = Some(Name { text, position: position(&span.start), range });
        Ok(())
    }

    fn attach(&mut self, node: Node) {
        if let Some(key) = self.key.take() {
            self.mapping.entries.push(Entry { key, node });
        }
    }
}

fn byte_range(span: &Span) -> Result<Range<usize>, Malformed> {
    span.byte_range().ok_or_else(|| malformed(&span.start, "its place in the file is unknown"))
}

fn position(marker: &Marker) -> Position {
    Position { line: marker.line(), column: marker.col() + 1 }
}

fn malformed(marker: &Marker, problem: impl Into<String>) -> Malformed {
    Malformed { position: position(marker), problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        let Malformed { position, problem } = parse(text).expect_err(text);
        format!("{position}: {problem}")
    }

    #[test]
    fn values_keep_their_text_and_their_place() {
        let text = "# note\nlocking:\n  a: 007 # why\n  \"b\": 'no ''1'''\nc: {d: yes}\n";
        let root = parse(text).expect("valid").expect("not empty");
        let Node::Mapping(locking) = &root.entries[0].node else {
            panic!("locking is a mapping");
        };
        let scalars = locking.entries.iter().map(|entry| match &entry.node {
            Node::Scalar(scalar) => (scalar.text.as_str(), &text[scalar.range.clone()]),
            Node::Mapping(_) => panic!("a and b are scalars"),
        });
        assert_eq!(scalars.collect::<Vec<_>>(), [("007", "007"), ("no '1'", "'no ''1'''")]);
        assert_eq!(&text[locking.entries[1].key.range.clone()], "\"b\"");
        let position = locking.entries[1].key.position;
        assert_eq!((position.line, position.column), (4, 3));
        let Node::Mapping(flow) = &root.entries[1].node else {
            panic!("c is a mapping");
        };
        assert!(flow.is_flow);
        assert_eq!(&text[flow.range.clone()], "{d: yes}");
    }

    #[test]
    fn files_without_content_are_empty() {
        for text in ["", "\n\n", "# only a comment\n", "---\n", "---\n...\n", "~\n"] {
            assert!(parse(text).expect(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_content() {
        let root = parse("\u{feff}store: x\n").expect("valid").expect("not empty");
        let Node::Scalar(scalar) = &root.entries[0].node else {
            panic!("store is a scalar");
        };
        assert_eq!(root.entries[0].key.text, "store");
        assert_eq!(&"\u{feff}store: x\n"[scalar.range.clone()], "x");
    }

    #[test]
    fn what_settings_do_not_use_is_refused_with_its_place() {
        for (text, expected) in [
            ("a: 1\nb: 2\na: 3\n", "3:1: duplicate key \"a\", first on line 1"),
            ("{a: 1, a: 2}", "1:8: duplicate key \"a\", first on line 1"),
            ("a:\n  - 1\n", "2:3: lists are not used in settings"),
            ("a: &x 1\nb: *x\n", "2:4: aliases are not used in settings"),
            ("a: !!str 1\n", "1:10: tags are not used in settings"),
            ("a: 1\n---\nb: 2\n", "2:1: only one document is allowed"),
            ("hello\n", "1:1: expected `key: value` lines"),
            ("{a: 1}: 2\n", "1:1: a key must be a single word"),
        ] {
            assert_eq!(problem(text), expected, "{text:?}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_without_a_stack_overflow() {
        let flow = "{a: ".repeat(10_000);
        let lists = "[".repeat(10_000);
        let block: String = (0..10_000).map(|depth| " ".repeat(depth) + "a:\n").collect();
        let explicit = "? ".repeat(10_000);
        for text in [&flow, &lists, &block, &explicit] {
            let message = problem(text);
            assert!(message.len() < 200, "{message}");
        }
    }
}
