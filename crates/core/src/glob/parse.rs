//! From text to nodes: the syntax alone, before any rule about paths.

use super::GlobError;
use super::class::{CharRange, Class};

/// Deepest nesting of braces; it bounds recursion here and wherever nodes are walked.
const MAX_NESTING: usize = 16;

/// One piece of a glob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Separator,
    Character(char),
    AnyCharacter,
    AnyRun,
    Class(Class),
    /// At least two alternatives.
    Group(Vec<Vec<Node>>),
}

/// Reads the syntax of a glob.
pub(super) fn nodes(text: &str) -> Result<Vec<Node>, GlobError> {
    Parser { text, rest: text }.sequence(0)
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl Parser<'_> {
    /// Reads up to the end of the text or, inside braces, up to the next `,` or `}`.
    fn sequence(&mut self, depth: usize) -> Result<Vec<Node>, GlobError> {
        let mut nodes = Vec::new();
        while !(depth > 0 && self.rest.starts_with([',', '}'])) {
            let Some(character) = self.next() else { break };
            match character {
                '/' => nodes.push(Node::Separator),
                '?' => nodes.push(Node::AnyCharacter),
                '*' => nodes.push(Node::AnyRun),
                '[' => nodes.push(self.class()?),
                '{' => nodes.extend(self.group(depth + 1)?),
                '}' => return Err(GlobError::UnbalancedBrace { glob: self.glob() }),
                // An escaped separator still separates: no file name can hold it.
                '\\' => nodes.push(match self.escaped()? {
                    '/' => Node::Separator,
                    escaped => Node::Character(escaped),
                }),
                _ => nodes.push(Node::Character(character)),
            }
        }
        Ok(nodes)
    }

    /// Reads alternatives after their `{`; braces around a single one vanish.
    fn group(&mut self, depth: usize) -> Result<Vec<Node>, GlobError> {
        if depth > MAX_NESTING {
            return Err(GlobError::NestedTooDeep { glob: self.glob(), limit: MAX_NESTING });
        }
        let mut alternatives = vec![self.sequence(depth)?];
        while self.eat(',') {
            alternatives.push(self.sequence(depth)?);
        }
        if !self.eat('}') {
            return Err(GlobError::UnbalancedBrace { glob: self.glob() });
        }
        if alternatives.len() == 1 {
            return Ok(alternatives.swap_remove(0));
        }
        Ok(vec![Node::Group(alternatives)])
    }

    /// Reads a class after its `[`.
    fn class(&mut self) -> Result<Node, GlobError> {
        let negated = self.eat('!') || self.eat('^');
        let mut ranges = Vec::new();
        while !self.eat(']') {
            ranges.push(self.class_range()?);
        }
        if ranges.is_empty() {
            return Err(GlobError::EmptyClass { glob: self.glob() });
        }
        let class = Class::new(negated, ranges);
        // `[.][.]` must not hide from the rule against `..`, nor `[%]2f` from its own.
        Ok(match class.single() {
            Some(character) => Node::Character(character),
            None => Node::Class(class),
        })
    }

    fn class_range(&mut self) -> Result<CharRange, GlobError> {
        let first = self.class_character()?;
        let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]");
        if !is_range {
            return Ok(CharRange::one(first));
        }
        self.next();
        let last = self.class_character()?;
        if first > last {
            return Err(GlobError::BackwardRange { glob: self.glob(), first, last });
        }
        Ok(CharRange { first, last })
    }

    fn class_character(&mut self) -> Result<char, GlobError> {
        if self.rest.starts_with("[:") {
            return Err(GlobError::NamedClass { glob: self.glob() });
        }
        let character = match self.next() {
            None => return Err(GlobError::UnclosedClass { glob: self.glob() }),
            Some('\\') => self.escaped()?,
            Some(character) => character,
        };
        if character == '/' {
            return Err(GlobError::SeparatorInClass { glob: self.glob() });
        }
        Ok(character)
    }

    fn escaped(&mut self) -> Result<char, GlobError> {
        match self.next() {
            None => Err(GlobError::DanglingEscape { glob: self.glob() }),
            // `src\main.rs` is meant as a path. Read as an escape, it would silently lock the wrong
            // file.
            Some(character) if character.is_alphanumeric() => {
                Err(GlobError::NeedlessEscape { glob: self.glob(), character })
            }
            Some(character) => Ok(character),
        }
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let character = characters.next();
        self.rest = characters.as_str();
        character
    }

    fn eat(&mut self, expected: char) -> bool {
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn glob(&self) -> String {
        self.text.to_owned()
    }
}
