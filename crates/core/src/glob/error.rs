//! Why a glob was refused.

use super::{MAX_ALTERNATIVES, MAX_EXPANDED_CHARACTERS, MAX_GLOB_BYTES};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a text is not a glob: one sentence that shows the text with invisible characters escaped.
///
/// [`GlobError::hint`] says what to write instead, where that is not plain from the sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GlobError {
    /// The glob, or one of its alternatives, names nothing.
    #[error("glob `{}` is empty or has an empty alternative", shown(.glob))]
    Empty {
        /// The glob as written.
        glob: String,
    },
    /// The glob, as written or as normalised, exceeds [`MAX_GLOB_BYTES`].
    #[error("glob `{}…` is {bytes} bytes long, more than {MAX_GLOB_BYTES}", shown(.start))]
    TooLong {
        /// How the glob begins.
        start: String,
        /// How long it is.
        bytes: usize,
    },
    /// The glob starts at the root of a file system, a drive or a server.
    #[error("glob `{}` is absolute", shown(.glob))]
    Absolute {
        /// The glob as written.
        glob: String,
    },
    /// The glob has a `..` segment, plain, escaped or put together from braces.
    #[error("glob `{}` has a `..` segment", shown(.glob))]
    ParentSegment {
        /// The glob as written.
        glob: String,
    },
    /// The glob holds NUL or another control character.
    #[error("glob `{}` contains the control character `{}`", shown(.glob), .character.escape_debug())]
    ControlCharacter {
        /// The glob as written.
        glob: String,
        /// The first such character.
        character: char,
    },
    /// The glob holds a dot, slash, backslash or NUL in URL encoding.
    #[error("glob `{}` contains the URL-encoded `{escape}`", shown(.glob))]
    UrlEncoded {
        /// The glob as written.
        glob: String,
        /// The encoded character.
        escape: String,
    },
    /// A `[` has no `]`.
    #[error("glob `{}` has a `[` without a `]`", shown(.glob))]
    UnclosedClass {
        /// The glob as written.
        glob: String,
    },
    /// A class lists no character.
    #[error("glob `{}` has an empty character class", shown(.glob))]
    EmptyClass {
        /// The glob as written.
        glob: String,
    },
    /// A range in a class runs backward.
    #[error("glob `{}` has the backward range `{first}-{last}`", shown(.glob))]
    BackwardRange {
        /// The glob as written.
        glob: String,
        /// The start of the range, which is the higher one.
        first: char,
        /// The end of the range.
        last: char,
    },
    /// A class lists `/`, which no single character of a segment can be.
    #[error("glob `{}` has a `/` in a character class", shown(.glob))]
    SeparatorInClass {
        /// The glob as written.
        glob: String,
    },
    /// A class uses a POSIX name such as `[:alpha:]`.
    #[error("glob `{}` has a named character class", shown(.glob))]
    NamedClass {
        /// The glob as written.
        glob: String,
    },
    /// A `{` has no `}`, or a `}` no `{`.
    #[error("glob `{}` has an unbalanced brace", shown(.glob))]
    UnbalancedBrace {
        /// The glob as written.
        glob: String,
    },
    /// Braces nest too deep.
    #[error("glob `{}` nests braces more than {limit} deep", shown(.glob))]
    NestedTooDeep {
        /// The glob as written.
        glob: String,
        /// The deepest nesting allowed.
        limit: usize,
    },
    /// Braces expand to too much: see [`MAX_ALTERNATIVES`] and [`MAX_EXPANDED_CHARACTERS`].
    #[error(
        "glob `{}` expands to more than {MAX_ALTERNATIVES} alternatives \
         or {MAX_EXPANDED_CHARACTERS} characters in all",
        shown(.glob)
    )]
    TooManyAlternatives {
        /// The glob as written.
        glob: String,
    },
    /// An escape before a character that has no special meaning.
    #[error("glob `{}` escapes `{character}`, which needs no escape", shown(.glob))]
    NeedlessEscape {
        /// The glob as written.
        glob: String,
        /// The character after the backslash.
        character: char,
    },
    /// The glob ends in the middle of an escape.
    #[error("glob `{}` ends in `\\` with nothing to escape", shown(.glob))]
    DanglingEscape {
        /// The glob as written.
        glob: String,
    },
}

impl GlobError {
    /// What to write instead.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            GlobError::Empty { .. } => Some("Write `**` for the whole repository."),
            GlobError::TooLong { .. } => {
                Some("Name a directory, like `src/`, or hold several globs.")
            }
            GlobError::Absolute { .. } | GlobError::ParentSegment { .. } => {
                Some("Write a relative path in the repository, like `src/main.rs`.")
            }
            GlobError::UrlEncoded { .. } => Some("Write the character itself."),
            GlobError::UnclosedClass { .. } => Some("Write `\\[` for the character itself."),
            GlobError::EmptyClass { .. } => Some("Write `[\\]]` for a class that holds `]`."),
            GlobError::SeparatorInClass { .. } => {
                Some("Write alternatives instead, like `a{/,-}b`.")
            }
            GlobError::NamedClass { .. } => Some("Write ranges instead, like `[a-zA-Z]`."),
            GlobError::UnbalancedBrace { .. } => {
                Some("Write `\\{` or `\\}` for the character itself.")
            }
            GlobError::NestedTooDeep { .. } | GlobError::TooManyAlternatives { .. } => {
                Some("Use a wildcard, or hold several globs.")
            }
            GlobError::DanglingEscape { .. } | GlobError::NeedlessEscape { .. } => {
                Some("Separate segments with `/`.")
            }
            GlobError::ControlCharacter { .. } | GlobError::BackwardRange { .. } => None,
        }
    }
}

/// The text as it may be shown: on one line, nothing invisible, not endless.
fn shown(text: &str) -> String {
    const MAX_CHARACTERS: usize = 120;
    let mut shown = String::new();
    for (index, character) in text.chars().enumerate() {
        if index == MAX_CHARACTERS {
            shown.push('…');
            break;
        }
        match character {
            // People typed these, and they hide nothing.
            '\\' | '\'' | '"' => shown.push(character),
            _ => shown.extend(character.escape_debug()),
        }
    }
    shown
}
