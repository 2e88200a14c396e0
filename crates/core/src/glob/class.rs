//! Sets of characters: what a class, a `?` or a single character accepts.

use std::fmt;

/// Characters from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CharRange {
    pub(super) first: char,
    pub(super) last: char,
}

/// Everything that a file name can hold: no NUL and no `/`.
pub(super) const ANY: &[CharRange] =
    &[CharRange { first: '\u{1}', last: '.' }, CharRange { first: '0', last: char::MAX }];

impl CharRange {
    pub(super) fn one(character: char) -> CharRange {
        CharRange { first: character, last: character }
    }

    pub(super) fn contains(self, character: char) -> bool {
        (self.first..=self.last).contains(&character)
    }
}

/// A class as written: `[a-z]`, or negated, `[!a-z]`. Its ranges are sorted and disjoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Class {
    negated: bool,
    listed: Vec<CharRange>,
}

impl Class {
    /// No range may start or end with `/`; one that spans it leaves it out.
    pub(super) fn new(negated: bool, ranges: Vec<CharRange>) -> Class {
        let around_separator = ranges
            .into_iter()
            .flat_map(|range| ANY.iter().filter_map(move |part| common(range, *part)));
        Class { negated, listed: merged(around_separator.collect()) }
    }

    /// The only character that the class accepts, if it is only one.
    pub(super) fn single(&self) -> Option<char> {
        match self.listed[..] {
            [range] if !self.negated && range.first == range.last => Some(range.first),
            _ => None,
        }
    }

    /// What the class accepts, with its negation resolved.
    pub(super) fn accepted(&self) -> Vec<CharRange> {
        if self.negated { difference(ANY, &self.listed) } else { self.listed.clone() }
    }

    pub(super) fn range_count(&self) -> usize {
        self.listed.len()
    }
}

impl fmt::Display for Class {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.negated { "[!" } else { "[" })?;
        for range in &self.listed {
            write_member(formatter, range.first)?;
            if range.first == range.last {
                continue;
            }
            if successor(range.first) != Some(range.last) {
                formatter.write_str("-")?;
            }
            write_member(formatter, range.last)?;
        }
        formatter.write_str("]")
    }
}

fn write_member(formatter: &mut fmt::Formatter<'_>, character: char) -> fmt::Result {
    if matches!(character, '[' | ']' | '\\' | '-' | '!' | '^') {
        formatter.write_str("\\")?;
    }
    write!(formatter, "{character}")
}

/// What two sorted, disjoint sets have in common, one range at a time.
pub(super) fn intersection<'a>(
    left: &'a [CharRange],
    right: &'a [CharRange],
) -> impl Iterator<Item = CharRange> + 'a {
    let (mut left, mut right) = (left, right);
    std::iter::from_fn(move || {
        while let (Some(&a), Some(&b)) = (left.first(), right.first()) {
            if a.last < b.last {
                left = &left[1..];
            } else {
                right = &right[1..];
            }
            if let Some(range) = common(a, b) {
                return Some(range);
            }
        }
        None
    })
}

fn common(a: CharRange, b: CharRange) -> Option<CharRange> {
    let range = CharRange { first: a.first.max(b.first), last: a.last.min(b.last) };
    (range.first <= range.last).then_some(range)
}

/// `whole` without `removed`, both sorted and disjoint.
fn difference(whole: &[CharRange], removed: &[CharRange]) -> Vec<CharRange> {
    let mut kept = Vec::new();
    for part in whole {
        let mut first = Some(part.first);
        for gap in removed.iter().filter_map(|gap| common(*gap, *part)) {
            if let (Some(first), Some(last)) = (first, predecessor(gap.first))
                && first <= last
            {
                kept.push(CharRange { first, last });
            }
            first = successor(gap.last);
        }
        if let Some(first) = first.filter(|first| *first <= part.last) {
            kept.push(CharRange { first, last: part.last });
        }
    }
    kept
}

fn merged(mut ranges: Vec<CharRange>) -> Vec<CharRange> {
    ranges.sort_unstable();
    let mut merged: Vec<CharRange> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(previous)
                if range.first <= previous.last
                    || successor(previous.last) == Some(range.first) =>
            {
                previous.last = previous.last.max(range.last);
            }
            _ => merged.push(range),
        }
    }
    merged
}

// Ranges of `char` step over the surrogates, which plain arithmetic would count as characters.
fn successor(character: char) -> Option<char> {
    (character..=char::MAX).nth(1)
}

fn predecessor(character: char) -> Option<char> {
    ('\0'..=character).nth_back(1)
}
