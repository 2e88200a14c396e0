//! Texts that people and programs give: how long they may be, and which characters names have.
//!
//! A task's record is read and written whole with every change of the task, so its texts are bounded.
//! Lengths are counted in characters, as JSON schemas count them. What is longer belongs into a file that the text names.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt::Write;

/// The longest title of a task, in characters: it is shown in one line.
pub const TITLE_MAX: usize = 1000;

/// The longest description of a task, in characters; also of feedback.
pub const DESCRIPTION_MAX: usize = 100_000;

/// The longest reason, in characters. That of a failure is cut, because its command has ended.
pub const REASON_MAX: usize = 10_000;

/// The longest payload of a task, in characters of JSON: one task must fit into a request of every store,
/// of which etcd's is the smallest.
pub const PAYLOAD_MAX: usize = 300_000;

/// The longest text that says what something is held for, in characters: it is shown in lists.
pub const OPERATION_MAX: usize = 1000;

/// The longest label of a task, in characters.
pub const TASK_LABEL_MAX: usize = 256;

/// The longest idempotency key of a task, in characters.
pub const KEY_MAX: usize = 1024;

/// The longest label in whose name something is asked, in characters: that of a holder, of at most 256 bytes,
/// with the name of one of its workers.
pub const AUTHOR_MAX: usize = 512;

/// How many labels a task can have, how many globs of files, and for how many tasks it can wait.
pub const LIST_MAX: usize = 1000;

/// A text is too long, or a list has too many items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TextError {
    /// The text is too long.
    #[error("the {what} has {count} characters; the most allowed is {max}")]
    TooLong {
        /// What it is.
        what: String,
        /// Its length.
        count: usize,
        /// The longest that is accepted.
        max: usize,
    },
    /// A name has a character that names cannot have.
    #[error(
        "the {what} {text:?} has a control character, or one that changes the direction of text"
    )]
    Unfit {
        /// What it is.
        what: String,
        /// The name.
        text: String,
    },
    /// There are too many.
    #[error("there are {count} {what}; the most allowed is {max}")]
    TooMany {
        /// What they are.
        what: String,
        /// How many.
        count: usize,
        /// The most that are accepted.
        max: usize,
    },
}

/// Fails if a text is too long.
pub fn check_text(what: &str, text: &str, max: usize) -> Result<(), TextError> {
    // Most texts are so short that they need no count.
    let count = if text.len() <= max { 0 } else { text.chars().count() };
    if count <= max {
        return Ok(());
    }
    Err(TextError::TooLong { what: what.to_owned(), count, max })
}

/// Fails if a name is too long, or has characters that no name can have.
pub fn check_name(what: &str, name: &str, max: usize) -> Result<(), TextError> {
    if name.chars().any(is_unfit_for_names) {
        return Err(TextError::Unfit { what: what.to_owned(), text: name.to_owned() });
    }
    check_text(what, name, max)
}

/// Fails if a list is too long.
pub fn check_count(what: &str, count: usize, max: usize) -> Result<(), TextError> {
    if count <= max {
        return Ok(());
    }
    Err(TextError::TooMany { what: what.to_owned(), count, max })
}

/// Whether a character changes the direction in which the text around it is shown: with it, a name can
/// look like another one.
pub fn reorders(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Whether a character has no place in a name: a control character, or one that reorders text.
pub fn is_unfit_for_names(character: char) -> bool {
    character.is_control() || reorders(character)
}

/// The text with an escape in the place of each character that reorders text. In JSON it is the same
/// text.
pub fn without_reordering(text: &str) -> Cow<'_, str> {
    if !text.contains(reorders) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match reorders(character) {
            true => _ = write!(shown, "\\u{:04x}", u32::from(character)),
            false => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

/// The text, cut to this many characters with a mark of the cut.
pub fn shortened(text: &str, max: usize) -> Cow<'_, str> {
    const MARK: char = '…';
    match text.char_indices().nth(max) {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(text.chars().take(max.saturating_sub(1)).chain([MARK]).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_and_marked() {
        assert_eq!(shortened("aäö", 3), "aäö");
        assert_eq!(shortened("aäöü", 3), "aä…");
        assert_eq!(check_text("title", "äö", 2), Ok(()));
        let error = check_text("title", "äöü", 2).unwrap_err();
        assert_eq!(error.to_string(), "the title has 3 characters; the most allowed is 2");
    }

    #[test]
    fn characters_that_reorder_text_are_shown_as_json_writes_them() {
        assert_eq!(without_reordering("x\u{202e}evil\u{2069}"), "x\\u202eevil\\u2069");
        let quoted = serde_json::to_string("x\u{202e}y").unwrap();
        let shown = without_reordering(&quoted);
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), "x\u{202e}y");
        assert!(matches!(without_reordering("שלום"), Cow::Borrowed(_)));
    }
}
