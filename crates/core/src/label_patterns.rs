//! Which labels a token of a server may use.

use crate::holder::{LabelError, check_label};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Patterns of labels: `*` stands for any characters, `?` for one. Without patterns every label is
/// admitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LabelPatterns(Vec<String>);

impl LabelPatterns {
    /// These patterns.
    pub fn new(patterns: Vec<String>) -> Result<LabelPatterns, LabelError> {
        patterns.iter().try_for_each(|pattern| check_label(pattern))?;
        Ok(LabelPatterns(patterns))
    }

    /// Whether every label is admitted.
    pub fn admit_all(&self) -> bool {
        self.0.is_empty()
    }

    /// The patterns.
    pub fn list(&self) -> &[String] {
        &self.0
    }

    /// Whether this label is admitted: it or what stands before a slash fits a pattern. So `alice` also
    /// admits her workers, `alice/1`.
    pub fn admits(&self, label: &str) -> bool {
        let parts = label.match_indices('/').map(|(at, _)| &label[..at]).chain([label]);
        self.admit_all() || parts.into_iter().any(|part| self.0.iter().any(|one| fits(one, part)))
    }

    /// The label, if exactly one is admitted.
    pub fn only(&self) -> Option<&str> {
        match self.0.as_slice() {
            [one] if !one.contains(['*', '?']) => Some(one),
            _ => None,
        }
    }
}

impl fmt::Display for LabelPatterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

/// Whether a text fits a pattern.
fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut in_text) = (0, 0);
    // What stands after the last star, and up to where the star stood for text: it can stand for more.
    let mut star: Option<(usize, usize)> = None;
    while in_text < text.len() {
        match pattern.get(at) {
            Some('*') => {
                at += 1;
                star = Some((at, in_text));
            }
            Some(letter) if *letter == '?' || *letter == text[in_text] => {
                at += 1;
                in_text += 1;
            }
            _ => {
                let Some((after, until)) = &mut star else { return false };
                *until += 1;
                (at, in_text) = (*after, *until);
            }
        }
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(list: &[&str]) -> LabelPatterns {
        LabelPatterns::new(list.iter().map(|one| (*one).to_owned()).collect()).unwrap()
    }

    #[test]
    fn a_label_must_fit_a_pattern() {
        let alice = patterns(&["alice", "ci-*", "b?b"]);
        for label in
            ["alice", "alice/1", "alice/x/2", "ci-", "ci-build", "ci-a/3", "bob", "b\u{fc}b"]
        {
            assert!(alice.admits(label), "{label}");
        }
        for label in ["", "alic", "alice2", "malice", "eve/alice", "ci", "bb", "alice (token x)"] {
            assert!(!alice.admits(label), "{label}");
        }
        assert!(patterns(&["*a*b*"]).admits("xxaxxaxbx") && !patterns(&["*a*b"]).admits("ba"));
        assert!(LabelPatterns::default().admits("anyone"));
    }

    #[test]
    fn patterns_are_listed_and_shown_as_they_were_given() {
        let two = patterns(&["alice", "ci-*"]);
        assert_eq!(two.list(), ["alice", "ci-*"]);
        assert_eq!(two.to_string(), "alice, ci-*");
        assert_eq!(LabelPatterns::default().list(), [""; 0]);
    }

    #[test]
    fn only_one_literal_label_is_a_default() {
        assert_eq!(patterns(&["alice"]).only(), Some("alice"));
        assert_eq!(patterns(&["ci-*"]).only(), None);
        assert_eq!(patterns(&["alice", "bob"]).only(), None);
        assert_eq!(LabelPatterns::default().only(), None);
    }

    #[test]
    fn a_pattern_is_written_as_a_label_is() {
        assert!(LabelPatterns::new(vec![String::new()]).is_err());
        assert!(LabelPatterns::new(vec!["a\nb".to_owned()]).is_err());
    }
}
