//! Path globs: which files a `path` resource covers, and whether two can cover the same file.
//!
//! A glob is relative to the repository root, uses `/` on every platform, is case-sensitive and
//! treats dotfiles like any other file.
//!
//! | written | matches |
//! |---|---|
//! | `*` | any run of characters within a segment, also none |
//! | `?` | one character |
//! | `[abc]` `[a-z]` `[!a]` `[^a]` | one character of the class, or not of it |
//! | `{a,b/c}` | any one of the alternatives, which may nest and may hold `/` |
//! | `**` as a whole segment | any number of segments, also none |
//! | `\x` | the character `x` itself |
//! | `src/`, `src/.` | everything at or below `src`: it means `src/**` |
//! | `src` | the path `src` alone, nothing below it |
//!
//! Reading order: [`Glob`] here, then `parse` (text to nodes), `normalise` (nodes to checked
//! segments), `print` (back to text), `class` (sets of characters), `segment` and `walk` (matching
//! and overlap).

mod class;
mod error;
mod normalise;
mod parse;
mod print;
mod segment;
mod walk;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use error::GlobError;
use segment::{Alternative, common_ancestor, related};

/// Longest glob in bytes, as written and as normalised; longer ones are lists in disguise.
pub const MAX_GLOB_BYTES: usize = 1024;

/// Most alternatives that braces may expand to; overlap compares every pair of them.
pub const MAX_ALTERNATIVES: usize = 256;

/// Most characters of all alternatives together, so that the worst overlap stays well below a
/// second: its work is the product of this measure of both globs.
pub const MAX_EXPANDED_CHARACTERS: usize = 8 * 1024;

/// A checked glob relative to the repository root.
///
/// A *path* here is a non-empty list of segments joined by `/`, none of them empty, `.` or `..`,
/// and without NUL. Every glob matches at least one path, so it always overlaps itself.
///
/// Two globs are equal when their normalised texts are. Spelling inside braces is kept, so
/// `{a,b}` and `{b,a}` are unequal although they match the same paths.
///
/// ```
/// use tenure_core::glob::Glob;
///
/// let sources = Glob::parse("./src//**/*.rs")?;
/// assert_eq!(sources.as_str(), "src/**/*.rs");
/// assert!(sources.matches("src/api/user.rs"));
/// assert!(sources.overlaps(&Glob::parse("src/api/")?));
/// assert!(!sources.overlaps(&Glob::parse("src/**/*.md")?));
/// # Ok::<(), tenure_core::glob::GlobError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Glob {
    text: String,
    prefix: String,
    alternatives: Vec<Alternative>,
}

impl Glob {
    /// Reads a glob, normalises it and refuses whatever could name a place outside the root.
    ///
    /// A first segment that starts like a drive (`C:`) or with a backslash counts as absolute,
    /// on every platform, so that a glob means the same everywhere.
    pub fn parse(text: &str) -> Result<Glob, GlobError> {
        // Most globs are plain, and a store reads thousands of them for one decision.
        match Glob::parse_plain(text) {
            Some(glob) => Ok(glob),
            None => Glob::parse_any(text),
        }
    }

    /// Reads a glob that is normalised already and has no wildcard but whole segments of `**`;
    /// nothing if it is not certain to be one. What it reads, [`Glob::parse_any`] reads alike.
    fn parse_plain(text: &str) -> Option<Glob> {
        let uncertain =
            |byte: u8| byte.is_ascii_control() || b"?[{}\\%:".contains(&byte) || !byte.is_ascii();
        if text.len() > MAX_GLOB_BYTES || text.bytes().any(uncertain) {
            return None;
        }
        let alternative = Alternative::plain(text)?;
        let prefix = alternative.prefix().to_owned();
        Some(Glob { text: text.to_owned(), prefix, alternatives: vec![alternative] })
    }

    fn parse_any(text: &str) -> Result<Glob, GlobError> {
        check_text(text)?;
        let nodes = parse::nodes(text)?;
        let mut alternatives = Vec::new();
        for expansion in normalise::expansions(text, &nodes)? {
            let alternative = Alternative::new(normalise::checked_segments(text, &expansion)?);
            if !alternatives.contains(&alternative) {
                alternatives.push(alternative);
            }
        }
        let normalised = print::segments(&normalise::segments(&nodes));
        check_length(&normalised)?;
        let prefix = alternatives
            .iter()
            .map(Alternative::prefix)
            .reduce(common_ancestor)
            .unwrap_or_default()
            .to_owned();
        Ok(Glob { text: normalised, prefix, alternatives })
    }

    /// The glob that matches this one path, whatever characters its names hold; refused like
    /// [`Glob::parse`] refuses.
    pub fn literal(path: &str) -> Result<Glob, GlobError> {
        let mut text = String::new();
        for character in path.chars() {
            if matches!(character, '*' | '?' | '[' | '{' | '}' | '\\') {
                text.push('\\');
            }
            text.push(character);
        }
        Glob::parse(&text)
    }

    /// The same glob with the literal beginning of each alternative put through `real`, which says
    /// what to write instead, or nothing to leave it alone. What it says is a path, not a glob.
    ///
    /// For callers that resolve links in the file system, which a glob knows nothing of.
    pub fn with_real_prefixes<E: From<GlobError>>(
        &self,
        mut real: impl FnMut(&str) -> Result<Option<String>, E>,
    ) -> Result<Glob, E> {
        let prefixes: Vec<Option<String>> = self
            .alternatives
            .iter()
            .map(|alternative| real(alternative.prefix()))
            .collect::<Result<_, E>>()?;
        if prefixes.iter().all(Option::is_none) {
            return Ok(self.clone());
        }
        let nodes = parse::nodes(&self.text)?;
        let mut texts: Vec<String> = Vec::new();
        let expansions = normalise::expansions(&self.text, &nodes)?;
        for expansion in &expansions {
            let segments = normalise::checked_segments(&self.text, expansion)?;
            let alternative = Alternative::new(segments.clone());
            let index = self.alternatives.iter().position(|known| *known == alternative);
            let text = match index.and_then(|index| prefixes[index].as_deref()) {
                None => print::segments(&segments),
                Some(real) => {
                    let literal = Glob::literal(real)?.text;
                    let rest = &segments[alternative.literal_segments()..];
                    [literal, print::segments(rest)].join(if rest.is_empty() { "" } else { "/" })
                }
            };
            texts.push(text);
        }
        match texts.as_slice() {
            [one] => Ok(Glob::parse(one)?),
            several => {
                let several: Vec<String> =
                    several.iter().map(|text| text.replace(',', "\\,")).collect();
                Ok(Glob::parse(&format!("{{{}}}", several.join(",")))?)
            }
        }
    }

    /// The normalised text, which parses to an equal glob.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the glob matches this path.
    ///
    /// `path` must already be normalised: what is not a path, such as `/a`, `a/`, `a//b` or
    /// `../a`, is matched by no glob.
    pub fn matches(&self, path: &str) -> bool {
        let is_path =
            !path.contains('\0') && !path.split('/').any(|name| matches!(name, "" | "." | ".."));
        is_path && self.alternatives.iter().any(|alternative| alternative.matches(path))
    }

    /// Whether some path matches both globs: symmetric and exact.
    pub fn overlaps(&self, other: &Glob) -> bool {
        related(&self.prefix, &other.prefix)
            && self
                .alternatives
                .iter()
                .any(|left| other.alternatives.iter().any(|right| left.overlaps(right)))
    }

    /// Whether this glob matches every path that the other matches, as far as can be told segment
    /// by segment: a yes is certain, a no is not.
    pub fn includes(&self, other: &Glob) -> bool {
        self == other
            || other
                .alternatives
                .iter()
                .all(|theirs| self.alternatives.iter().any(|mine| mine.includes(theirs)))
    }

    /// The longest leading run of whole literal segments, unescaped: `src/api` for
    /// `src/api/**/*.rs`, the whole path for a literal one, empty if the first segment varies.
    ///
    /// With braces it is what all alternatives share. Two globs can only overlap if one's prefix
    /// is the other's, or an ancestor directory of it.
    pub fn literal_prefix(&self) -> &str {
        &self.prefix
    }
}

fn check_text(text: &str) -> Result<(), GlobError> {
    check_length(text)?;
    match text.chars().find(|character| character.is_control()) {
        Some(character) => Err(GlobError::ControlCharacter { glob: text.to_owned(), character }),
        None => Ok(()),
    }
}

fn check_length(text: &str) -> Result<(), GlobError> {
    if text.len() <= MAX_GLOB_BYTES {
        return Ok(());
    }
    Err(GlobError::TooLong { start: text.chars().take(40).collect(), bytes: text.len() })
}
