//! Compiled globs: one alternative is a list of segments, one segment a list of characters.

use super::class::{ANY, CharRange, intersection};
use super::normalise::is_any_depth;
use super::parse::Node;
use super::walk;

/// One glob without braces.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Alternative {
    segments: Vec<Segment>,
    prefix: String,
    is_literal: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Segment {
    /// `**`
    AnyDepth,
    Literal(String),
    Pattern(Vec<Symbol>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Symbol {
    /// `*`
    Run,
    One(Vec<CharRange>),
}

impl Alternative {
    /// Compiles normalised segments, which hold neither groups nor separators.
    pub(super) fn new(segments: Vec<Vec<Node>>) -> Alternative {
        let segments: Vec<Segment> = segments.iter().map(|nodes| Segment::new(nodes)).collect();
        let literals: Vec<&str> = segments.iter().map_while(Segment::literal).collect();
        Alternative {
            prefix: literals.join("/"),
            is_literal: literals.len() == segments.len(),
            segments,
        }
    }

    /// The same from a text of names and `**` alone, if it is normalised; nothing if it is not.
    pub(super) fn plain(text: &str) -> Option<Alternative> {
        let mut segments = Vec::new();
        for name in text.split('/') {
            let segment = match name {
                "" | "." | ".." => return None,
                "**" if segments.last() == Some(&Segment::AnyDepth) => return None,
                "**" => Segment::AnyDepth,
                name if name.contains('*') => return None,
                name => Segment::Literal(name.to_owned()),
            };
            segments.push(segment);
        }
        let depth = segments.iter().position(Segment::is_any_depth);
        let prefix = match depth {
            None => text,
            Some(0) => "",
            // Up to the separator before the first `**`.
            Some(_) => text.split_once("/**")?.0,
        };
        Some(Alternative { prefix: prefix.to_owned(), is_literal: depth.is_none(), segments })
    }

    /// Whether every path that the other matches is matched by this one; a no is not certain.
    pub(super) fn includes(&self, other: &Alternative) -> bool {
        // By how much is left of each: the work is the product of both lengths.
        let (mine, theirs) = (&self.segments, &other.segments);
        let mut rows = vec![vec![false; theirs.len() + 1]; mine.len() + 1];
        for left in (0..=mine.len()).rev() {
            for right in (0..=theirs.len()).rev() {
                rows[left][right] = match (mine.get(left), theirs.get(right)) {
                    (None, None) => true,
                    (None, Some(_)) => false,
                    (Some(Segment::AnyDepth), rest) => {
                        rows[left + 1][right] || (rest.is_some() && rows[left][right + 1])
                    }
                    (Some(_), None) => false,
                    (Some(one), Some(other)) => one.includes(other) && rows[left + 1][right + 1],
                };
            }
        }
        rows[0][0]
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// How many segments the prefix is made of.
    pub(super) fn literal_segments(&self) -> usize {
        self.segments.iter().map_while(Segment::literal).count()
    }

    pub(super) fn matches(&self, path: &str) -> bool {
        if self.is_literal {
            return self.prefix == path;
        }
        walk::matches(&self.segments, path.split('/'), Segment::is_any_depth, Segment::accepts)
    }

    pub(super) fn overlaps(&self, other: &Alternative) -> bool {
        if self.is_literal && other.is_literal {
            return self.prefix == other.prefix;
        }
        let marks = || {
            walk::common_marks(
                &self.segments,
                &other.segments,
                Segment::is_any_depth,
                |left, right, marks| if left.meets(right) { marks } else { 0 },
            )
        };
        related(&self.prefix, &other.prefix) && marks() != 0
    }
}

impl Segment {
    fn new(nodes: &[Node]) -> Segment {
        if is_any_depth(nodes) {
            return Segment::AnyDepth;
        }
        let literal: Option<String> = nodes
            .iter()
            .map(|node| match node {
                Node::Character(character) => Some(*character),
                _ => None,
            })
            .collect();
        match literal {
            Some(name) => Segment::Literal(name),
            None => Segment::Pattern(nodes.iter().map(Symbol::new).collect()),
        }
    }

    fn literal(&self) -> Option<&str> {
        match self {
            Segment::Literal(name) => Some(name),
            _ => None,
        }
    }

    fn is_any_depth(&self) -> bool {
        *self == Segment::AnyDepth
    }

    fn accepts(&self, name: &str) -> bool {
        match self {
            Segment::AnyDepth => true,
            Segment::Literal(literal) => literal == name,
            Segment::Pattern(symbols) => {
                walk::matches(symbols, name.chars(), Symbol::is_run, Symbol::accepts)
            }
        }
    }

    /// Whether this takes every file name that the other takes; a no is not certain.
    fn includes(&self, other: &Segment) -> bool {
        match other {
            Segment::AnyDepth => false,
            Segment::Literal(name) => self.accepts(name),
            pattern => self == pattern || *self == Segment::Pattern(vec![Symbol::Run]),
        }
    }

    /// Whether some file name matches both.
    fn meets(&self, other: &Segment) -> bool {
        match (self, other) {
            (Segment::Literal(name), segment) | (segment, Segment::Literal(name)) => {
                segment.accepts(name)
            }
            (Segment::Pattern(left), Segment::Pattern(right)) => {
                let marks = walk::common_marks(left, right, Symbol::is_run, Symbol::step);
                marks & PROPER_NAME != 0
            }
            (Segment::AnyDepth, _) | (_, Segment::AnyDepth) => true,
        }
    }
}

// What a name read so far can be, as marks of a walk: bit 0 is empty, bit 1 `.`, bit 2 `..`, and
// none of these three names a file. Whatever goes on from there, or starts otherwise, does.
const PROPER_NAME: u8 = 1 << 3;

impl Symbol {
    fn new(node: &Node) -> Symbol {
        match node {
            Node::AnyRun => Symbol::Run,
            Node::AnyCharacter => Symbol::One(ANY.to_vec()),
            Node::Character(character) => Symbol::One(vec![CharRange::one(*character)]),
            Node::Class(class) => Symbol::One(class.accepted()),
            Node::Separator | Node::Group(_) => {
                unreachable!("segments of an expansion hold neither separators nor groups")
            }
        }
    }

    fn is_run(&self) -> bool {
        *self == Symbol::Run
    }

    fn characters(&self) -> &[CharRange] {
        match self {
            Symbol::Run => ANY,
            Symbol::One(ranges) => ranges,
        }
    }

    fn accepts(&self, character: char) -> bool {
        self.characters().iter().any(|range| range.contains(character))
    }

    fn step(&self, other: &Symbol, marks: u8) -> u8 {
        let mut stepped = 0;
        for range in intersection(self.characters(), other.characters()) {
            if range.contains('.') {
                stepped |= (marks << 1 | marks & PROPER_NAME) & 0b1111;
            }
            if range != CharRange::one('.') {
                stepped |= PROPER_NAME;
            }
        }
        stepped
    }
}

/// Whether one literal prefix is the other one or an ancestor of it; otherwise nothing below the
/// one can be below the other.
pub(super) fn related(left: &str, right: &str) -> bool {
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    long.strip_prefix(short)
        .is_some_and(|rest| short.is_empty() || rest.is_empty() || rest.starts_with('/'))
}

/// The deepest directory or path that both prefixes start with.
pub(super) fn common_ancestor<'a>(left: &'a str, right: &str) -> &'a str {
    let mut length = 0;
    for (index, (ours, theirs)) in left.split('/').zip(right.split('/')).enumerate() {
        if ours != theirs {
            break;
        }
        length += ours.len() + usize::from(index > 0);
    }
    &left[..length]
}
