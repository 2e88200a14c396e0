//! What can be held.

use crate::glob::{Glob, GlobError};
use crate::path_like::{self, PathSign};
use crate::text::is_unfit_for_names;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Longest name in bytes. Long enough for any path or id; short enough to print in one line of a
/// log and to index.
pub const NAME_MAX_BYTES: usize = 1024;

/// The kinds of resource, each with a name space of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A name that callers agreed on.
    Lock,
    /// A section of the task list.
    Section,
    /// A task.
    Task,
    /// The paths that a glob matches, relative to the repository root, in all of its worktrees or in
    /// one.
    Path,
}

impl Kind {
    /// All kinds, in the order in which listings show them.
    pub const ALL: [Kind; 4] = [Kind::Task, Kind::Section, Kind::Lock, Kind::Path];

    /// The word that stands before the colon.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Lock => "lock",
            Kind::Section => "section",
            Kind::Task => "task",
            Kind::Path => "path",
        }
    }

    /// The kind that a text begins with, in any case (`path:`, `Path:`), and what follows the colon.
    /// `None` if it is a name without a kind.
    pub fn split(text: &str) -> Option<(Kind, &str)> {
        let (word, name) = text.split_once(':')?;
        let kind = Kind::ALL.into_iter().find(|kind| word.eq_ignore_ascii_case(kind.word()))?;
        Some((kind, name))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Anything that can be held: a kind and a name.
///
/// Written `NAME` for a lock and `section:NAME`, `task:ID`, `path:GLOB` for the others; `lock:NAME`
/// is the long form, for lock names that begin with one of those words or look like a path. A path
/// means the same file in each worktree of a repository; `path://WORKTREE/GLOB` means it in one of
/// them.
///
/// Parsing accepts every name, because records are read with it. What a user or a program asks for
/// goes through [`Resource::requested`].
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Resource {
    kind: Kind,
    name: String,
    paths: Option<Box<Paths>>,
}

/// What a resource of kind path covers.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Paths {
    /// The one worktree in which it does; all of them, if none is named.
    worktree: Option<String>,
    glob: Glob,
}

/// What stands before the name of a worktree. No glob begins so: it would be absolute.
const WORKTREE_MARK: &str = "//";

/// The text does not name a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResourceError {
    /// Nothing was written, or nothing after the colon.
    #[error("the name of a {kind} is empty")]
    Empty {
        /// Which kind was meant.
        kind: Kind,
    },
    /// It cannot be shown in one line.
    #[error("the name {name:?} contains the control character {character:?}")]
    ControlCharacter {
        /// The beginning of what was given.
        name: String,
        /// The first offending character.
        character: char,
    },
    /// White space at an end would make two names that look the same.
    #[error("the name {name:?} begins or ends with white space")]
    OuterSpace {
        /// What was given.
        name: String,
    },
    /// It is longer than [`NAME_MAX_BYTES`].
    #[error("the name {beginning:?}… has {bytes} bytes; the longest allowed is {NAME_MAX_BYTES}")]
    TooLong {
        /// How it begins.
        beginning: String,
        /// Its length.
        bytes: usize,
    },
    /// The name of a worktree cannot be told from the glob after it.
    #[error("{name:?} is not a path in a worktree: write //WORKTREE/GLOB")]
    Worktree {
        /// The beginning of what was given.
        name: String,
    },
    /// A name without a kind looks like a path.
    #[error("{}", two_spellings(.name, *.sign))]
    LooksLikePath {
        /// What was given.
        name: String,
        /// What makes it look so.
        sign: PathSign,
    },
    /// The glob of a path is not acceptable.
    #[error(transparent)]
    Path(#[from] GlobError),
}

/// The two ways to write a name that looks like a path.
fn two_spellings(name: &str, sign: PathSign) -> String {
    let files = match path_like::as_glob(name, sign) {
        Some(glob) => format!("path:{glob} for these files"),
        None => "path: with the path in the repository for these files".to_owned(),
    };
    format!("{name:?} looks like a path: write {files}, or lock:{name} for a lock of that name")
}

impl Resource {
    /// A resource of this kind, if the name is acceptable.
    pub fn new(kind: Kind, name: &str) -> Result<Resource, ResourceError> {
        check_name(kind, name)?;
        match kind {
            Kind::Path => {
                let Some(rest) = name.strip_prefix(WORKTREE_MARK) else {
                    return Ok(Resource::path(Glob::parse(name)?));
                };
                let unclear = || ResourceError::Worktree { name: beginning(name) };
                let (worktree, glob) = rest.split_once('/').ok_or_else(unclear)?;
                Resource::path_in_worktree(worktree, Glob::parse(glob)?)
            }
            Kind::Lock | Kind::Section | Kind::Task => {
                Ok(Resource { kind, name: name.to_owned(), paths: None })
            }
        }
    }

    /// The resource that a user or a program asks for: as it parses, but a name without a kind that
    /// looks like a path is refused, because it would be a lock beside the path.
    pub fn requested(text: &str) -> Result<Resource, ResourceError> {
        let resource = text.parse()?;
        match path_like::path_sign(text).filter(|_| Kind::split(text).is_none()) {
            Some(sign) => Err(ResourceError::LooksLikePath { name: text.to_owned(), sign }),
            None => Ok(resource),
        }
    }

    /// The paths that a glob matches, in all worktrees.
    pub fn path(glob: Glob) -> Resource {
        let name = glob.as_str().to_owned();
        Resource { kind: Kind::Path, name, paths: Some(Box::new(Paths { worktree: None, glob })) }
    }

    /// The paths that a glob matches, in this worktree alone. The worktree's name must be one name,
    /// without `/` and white space at its ends.
    pub fn path_in_worktree(worktree: &str, glob: Glob) -> Result<Resource, ResourceError> {
        let name = format!("{WORKTREE_MARK}{worktree}/{}", glob.as_str());
        if worktree.is_empty() || worktree.contains('/') || worktree.trim() != worktree {
            return Err(ResourceError::Worktree { name: beginning(&name) });
        }
        check_name(Kind::Path, &name)?;
        let paths = Paths { worktree: Some(worktree.to_owned()), glob };
        Ok(Resource { kind: Kind::Path, name, paths: Some(Box::new(paths)) })
    }

    /// Which kind it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its name without the kind; for a path, the normalised glob.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The glob, if it is a path.
    pub fn glob(&self) -> Option<&Glob> {
        self.paths.as_ref().map(|paths| &paths.glob)
    }

    /// The one worktree that a path is meant in, if it is one.
    pub fn worktree(&self) -> Option<&str> {
        self.paths.as_ref()?.worktree.as_deref()
    }

    /// Whether holding one touches the other: the same name, or globs that share a path in a
    /// worktree that both mean.
    pub fn overlaps(&self, other: &Resource) -> bool {
        match (&self.paths, &other.paths) {
            (Some(mine), Some(theirs)) => {
                let apart = matches!(
                    (&mine.worktree, &theirs.worktree),
                    (Some(mine), Some(theirs)) if mine != theirs
                );
                !apart && mine.glob.overlaps(&theirs.glob)
            }
            _ => self.kind == other.kind && self.name == other.name,
        }
    }

    /// Whether all of the other is part of this: the same name, or a glob whose every path this
    /// one matches. Says no where that cannot be told from the form of the globs.
    pub fn includes(&self, other: &Resource) -> bool {
        match (&self.paths, &other.paths) {
            (Some(mine), Some(theirs)) => {
                (mine.worktree.is_none() || mine.worktree == theirs.worktree)
                    && mine.glob.includes(&theirs.glob)
            }
            _ => self == other,
        }
    }

    /// The long form, `kind:name`, which is unique; for stores.
    pub fn key(&self) -> String {
        format!("{}:{}", self.kind, self.name)
    }
}

fn beginning(name: &str) -> String {
    name.chars().take(40).collect()
}

/// Fails if a name of any kind cannot be shown on one line or is too long.
pub fn check_name(kind: Kind, name: &str) -> Result<(), ResourceError> {
    let beginning = || beginning(name);
    if name.is_empty() {
        return Err(ResourceError::Empty { kind });
    }
    if name.len() > NAME_MAX_BYTES {
        return Err(ResourceError::TooLong { beginning: beginning(), bytes: name.len() });
    }
    // Files have the names that they have.
    let is_unfit = if kind == Kind::Path { char::is_control } else { is_unfit_for_names };
    if let Some(character) = name.chars().find(|c| is_unfit(*c)) {
        return Err(ResourceError::ControlCharacter { name: beginning(), character });
    }
    if name.trim() != name {
        return Err(ResourceError::OuterSpace { name: beginning() });
    }
    Ok(())
}

impl FromStr for Resource {
    type Err = ResourceError;

    fn from_str(text: &str) -> Result<Resource, ResourceError> {
        let (kind, name) = Kind::split(text).unwrap_or((Kind::Lock, text));
        Resource::new(kind, name)
    }
}

impl TryFrom<String> for Resource {
    type Error = ResourceError;

    fn try_from(text: String) -> Result<Resource, ResourceError> {
        text.parse()
    }
}

impl From<Resource> for String {
    /// The long form.
    fn from(resource: Resource) -> String {
        resource.key()
    }
}

/// The form in which a user can ask for it again: a lock has its kind only where its name alone would
/// be read as something else or refused.
impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_clear =
            || Kind::split(&self.name).is_none() && path_like::path_sign(&self.name).is_none();
        match self.kind {
            Kind::Lock if is_clear() => f.write_str(&self.name),
            kind => write!(f, "{kind}:{}", self.name),
        }
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resource({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Resource {
        text.parse().unwrap()
    }

    #[test]
    fn the_written_form_names_the_kind() {
        for (text, kind, name) in [
            ("deploy", Kind::Lock, "deploy"),
            ("lock:deploy", Kind::Lock, "deploy"),
            ("db:migrate", Kind::Lock, "db:migrate"),
            ("section:Backend", Kind::Section, "Backend"),
            ("task:a1b2", Kind::Task, "a1b2"),
            ("path:src/**", Kind::Path, "src/**"),
            ("deploy/prod..eu 🚀", Kind::Lock, "deploy/prod..eu 🚀"),
            ("Path:src/**", Kind::Path, "src/**"),
            ("TASK:a1b2", Kind::Task, "a1b2"),
            ("lock:Path:x", Kind::Lock, "Path:x"),
            ("src/main.rs", Kind::Lock, "src/main.rs"),
        ] {
            let resource = parse(text);
            assert_eq!((resource.kind(), resource.name()), (kind, name), "{text}");
        }
    }

    #[test]
    fn showing_and_reading_agree() {
        for text in [
            "deploy",
            "lock:task:1",
            "lock:Task:1",
            "section:a b",
            "path:a/*.rs",
            "x:y",
            "n.json",
            "file:/tmp/n.json",
        ] {
            let resource = parse(text);
            assert_eq!(parse(&resource.to_string()), resource, "{text}");
            assert_eq!(Resource::requested(&resource.to_string()), Ok(resource.clone()), "{text}");
            assert_eq!(parse(&resource.key()), resource, "{text}");
        }
    }

    #[test]
    fn a_request_says_which_kind_is_meant_where_a_name_looks_like_a_path() {
        for (text, message) in [
            (
                "src/auth/login.rs",
                "\"src/auth/login.rs\" looks like a path: write path:src/auth/login.rs for these \
                 files, or lock:src/auth/login.rs for a lock of that name",
            ),
            (
                r"src\auth",
                "\"src\\\\auth\" looks like a path: write path:src/auth for these files, or \
                 lock:src\\auth for a lock of that name",
            ),
            (
                "~/notes",
                "\"~/notes\" looks like a path: write path: with the path in the repository for \
                 these files, or lock:~/notes for a lock of that name",
            ),
        ] {
            let refused = Resource::requested(text).unwrap_err();
            assert_eq!(refused.to_string(), message);
        }
        for text in ["deploy/prod", "lock:src/a.rs", "path:src/a.rs", "section:a.rs", "task:a.md"] {
            assert_eq!(Resource::requested(text).unwrap(), parse(text), "{text}");
        }
        assert!(matches!(Resource::requested(""), Err(ResourceError::Empty { .. })));
    }

    #[test]
    fn a_resource_is_stored_in_its_long_form() {
        for (text, stored) in [
            ("deploy", "lock:deploy"),
            ("Section:a b", "section:a b"),
            ("task:1", "task:1"),
            ("path:./src//", "path:src/**"),
        ] {
            let resource = parse(text);
            assert_eq!(serde_json::to_string(&resource).unwrap(), format!("{stored:?}"));
            let read: Resource = serde_json::from_str(&format!("{stored:?}")).unwrap();
            assert_eq!(read, resource, "{text}");
        }
        assert_eq!(format!("{:?}", parse("section:a b")), "Resource(section:a b)");
    }

    #[test]
    fn only_a_path_has_a_glob() {
        assert_eq!(parse("path:src/").glob(), Some(&glob("src/**")));
        assert_eq!(parse("path://one/src/").glob(), Some(&glob("src/**")));
        for text in ["deploy", "section:src", "task:src"] {
            assert_eq!(parse(text).glob(), None, "{text}");
        }
    }

    #[test]
    fn a_refusal_shows_how_a_long_name_begins() {
        let longest = "é".repeat(NAME_MAX_BYTES / 2);
        assert_eq!(parse(&longest).name(), longest);
        let refused = format!("{longest}x").parse::<Resource>().unwrap_err();
        let beginning = "é".repeat(40);
        let message =
            format!("the name {beginning:?}… has 1025 bytes; the longest allowed is 1024");
        assert_eq!(refused.to_string(), message);
        let refused = format!("{beginning}x\n").parse::<Resource>().unwrap_err();
        let message = format!("the name {beginning:?} contains the control character '\\n'");
        assert_eq!(refused.to_string(), message);
    }

    #[test]
    fn bad_names_are_refused() {
        for text in ["", "task:", "a\0b", "a\nb", "\u{7}", " a", "a ", "path:../x", "path:/etc"] {
            assert!(text.parse::<Resource>().is_err(), "{text:?}");
        }
        assert!(matches!(
            "x".repeat(10_000).parse::<Resource>(),
            Err(ResourceError::TooLong { bytes: 10_000, .. })
        ));
    }

    #[test]
    fn a_path_means_all_worktrees_or_one() {
        let (one, other) = (parse("path://one/src/**"), parse("path://other/src/**"));
        assert_eq!((one.worktree(), one.name()), (Some("one"), "//one/src/**"));
        assert_eq!(parse(&one.to_string()), one);
        assert_eq!(parse("path://./x"), Resource::path_in_worktree(".", glob("x")).unwrap());
        assert!(!one.overlaps(&other) && !other.overlaps(&one));
        assert!(one.overlaps(&parse("path://one/src/a.rs")));
        assert!(!one.overlaps(&parse("path://one/docs/a")));
        for everywhere in ["path:src/a.rs", "path:**"].map(parse) {
            assert!(one.overlaps(&everywhere) && everywhere.overlaps(&other), "{everywhere}");
        }
        for text in ["path://", "path://one", "path:///a", "path://one/", "path://one/../x"] {
            assert!(text.parse::<Resource>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_name_of_a_worktree_is_one_name() {
        for name in ["", "a/b", "/", " a", "a ", "a\nb"] {
            assert!(Resource::path_in_worktree(name, glob("x")).is_err(), "{name:?}");
        }
        let spaced = Resource::path_in_worktree("a b", glob("x")).unwrap();
        assert_eq!((spaced.worktree(), spaced.name()), (Some("a b"), "//a b/x"));
    }

    fn glob(text: &str) -> Glob {
        Glob::parse(text).unwrap()
    }

    #[test]
    fn only_paths_overlap_beyond_equality() {
        assert!(parse("a").overlaps(&parse("lock:a")));
        assert!(!parse("a").overlaps(&parse("task:a")));
        assert!(parse("path:src/**").overlaps(&parse("path:src/main.rs")));
        assert!(!parse("path:src/**").overlaps(&parse("path:docs/x")));
        assert!(!parse("lock:src").overlaps(&parse("path:src")));
    }
}
