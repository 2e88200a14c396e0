//! Decides which store a command uses, and what a project's own files may decide about it.
//!
//! A repository often comes from another person. Its `.tenure/config.yaml` may set the length of
//! leases, but not where data and credentials go, or under which label its user acts, until the
//! user has trusted that file: see [`Trust`]. The same holds for links that point out of it, and
//! for a `.tenure` that belongs to another user.
//!
//! [`locate`] returns the store or the obstacle. It never falls back to another store.

mod creating;
mod discover;
mod inside;
mod ownership;
#[cfg(test)]
mod tests;
mod trust;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::place::{PlaceKind, StoreLocation};
use crate::url::{StoreUrl, UrlError};
pub use creating::{NotCreated, may_create};
#[cfg(feature = "file-store")]
pub use discover::single_lock_in;
pub use discover::{
    DiscoverError, GRANT_VARIABLE, KEEPS_VARIABLE, TokenError, grants_around, path_setting,
    token_for,
};
pub use inside::Link;
pub use ownership::{ForeignOwner, User};
use tenure_core::{Keep, Retention};
use tenure_text::config::{Key, Origin, Settings};
pub use trust::{Subject, TRUST_VARIABLE, Trust, TrustError, TrustRecord};

/// The input of [`locate`].
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// All settings.
    pub settings: &'a Settings,
    /// The location of the default store, if there is one.
    pub place: Option<&'a StoreLocation>,
    /// The folder that relative paths on the command line or in a variable are relative to.
    pub directory: &'a Path,
    /// What the user has trusted.
    pub trust: &'a Trust,
    /// The user of the command.
    pub user: User,
}

/// The selected store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Its URL, with an absolute path.
    pub url: StoreUrl,
    /// Why it was selected.
    pub reason: Reason,
    /// Whether it belongs to the project: the default store, or one inside the project.
    pub in_project: bool,
    /// Another user owns its folder, which is worth a warning.
    pub foreign_owner: Option<ForeignOwner>,
}

/// Why a store was selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `--store`.
    Flag,
    /// This environment variable.
    Variable(String),
    /// This file: the user's, or the one given with `--config`.
    File(PathBuf),
    /// The project's file.
    Project(PathBuf),
    /// The repository with this root.
    Repository {
        /// The root of its main worktree.
        root: PathBuf,
        /// Whether the command runs in a linked worktree.
        linked: bool,
    },
    /// The nearest `.tenure` upward, outside a repository.
    NearestFolder,
    /// There is no repository and no `.tenure` around.
    UserFolder,
}

impl Reason {
    /// One word for JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Variable(_) => "variable",
            Self::File(_) => "file",
            Self::Project(_) => "project",
            Self::Repository { .. } => "repository",
            Self::NearestFolder => "folder",
            Self::UserFolder => "user",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("named by --store"),
            Self::Variable(name) => write!(f, "named by {name}"),
            Self::File(path) => write!(f, "set in {}", path.display()),
            Self::Project(path) => write!(f, "set in the project's {}", path.display()),
            Self::Repository { root, linked: false } => {
                write!(f, "of the git repository {}", root.display())
            }
            Self::Repository { root, linked: true } => {
                write!(f, "of the git repository {}, shared by all its worktrees", root.display())
            }
            Self::NearestFolder => f.write_str("the nearest .tenure folder upward"),
            Self::UserFolder => f.write_str(
                "your own: the current folder is in no git repository and below no .tenure folder",
            ),
        }
    }
}

/// What a project asks for and its user has not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untrusted {
    /// The project's `.tenure` folder, which identifies the record of trust.
    pub folder: PathBuf,
    /// Its settings file.
    pub file: PathBuf,
    /// The settings that need trust.
    pub settings: Vec<(Key, String)>,
    /// Links of the store that point out of the project.
    pub links: Vec<Link>,
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(link) = self.links.first() {
            return write!(
                f,
                "{} points out of its project, to {}, and you have not trusted that",
                link.path.display(),
                link.target.display()
            );
        }
        let keys: Vec<&str> = self.settings.iter().map(|(key, _)| key.name()).collect();
        write!(
            f,
            "{} sets {}, and you have not trusted this file",
            self.file.display(),
            keys.join(", ")
        )
    }
}

/// Why no store can be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocateError {
    /// There is no location for the default store.
    #[error("no location for a store")]
    NoPlace,
    /// The URL is not valid.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The project asks for something that its user has not trusted.
    #[error("{0}")]
    Untrusted(Untrusted),
    /// The location belongs to another user.
    #[error("{0}")]
    Foreign(ForeignOwner),
    /// The records of trust cannot be read.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// Finds the selected store, and refuses what a project may not decide.
pub fn locate(search: &Search<'_>) -> Result<Located, LocateError> {
    let Search { settings, place, .. } = *search;
    let (url, reason) = match settings.text(Key::Store) {
        Some(text) => (text.parse::<StoreUrl>()?.beneath(&base(search)), named_by(settings)),
        None => {
            let place = place.ok_or(LocateError::NoPlace)?;
            (StoreUrl::Sqlite { path: place.database() }, found_by(place))
        }
    };
    let project = place.filter(|place| place.kind != PlaceKind::User);
    let is_default = settings.text(Key::Store).is_none();
    // A store that the user named does not depend on the owner of the project, and its links were
    // checked.
    let by_project = is_default || settings.is_from_project(Key::Store);
    let in_project = project.is_some_and(|place| inside::is_inside(place, &url));
    let mut foreign_owner = None;
    if let Some(place) = project {
        let subject = subject(place, settings);
        let links = if by_project { subject.links.as_slice() } else { &[] };
        let untrusted = untrusted(search, place, &url, in_project, links);
        let owner = if by_project { ownership::foreign_owner(place, search.user) } else { None };
        if (untrusted.is_some() || owner.is_some()) && !search.trust.covers(&subject)? {
            if let Some(untrusted) = untrusted {
                return Err(LocateError::Untrusted(untrusted));
            }
            if let Some(owner) = owner.as_ref().filter(|owner| owner.is_refused) {
                return Err(LocateError::Foreign(owner.clone()));
            }
            foreign_owner = owner;
        }
    }
    Ok(Located { url, reason, in_project: is_default || in_project, foreign_owner })
}

/// How much history is kept, as settings say.
pub fn retention(settings: &Settings) -> Retention {
    let number = |key| Some(u64::from(settings.integer(key))).filter(|number| *number > 0);
    let age = |key| Some(settings.duration(key)).filter(|age| !age.is_zero());
    Retention {
        events: Keep { newest: number(Key::RetentionEvents), age: age(Key::RetentionEventsAge) },
        tasks: Keep { newest: number(Key::RetentionTasks), age: age(Key::RetentionTasksAge) },
        failed: Keep { newest: None, age: age(Key::RetentionFailedAge) },
    }
}

/// What trust in a project covers, whichever store this command uses.
pub fn subject(place: &StoreLocation, settings: &Settings) -> trust::Subject {
    let claims = settings.project().map(|project| project.claims.as_slice()).unwrap_or_default();
    let chosen = claims.iter().find(|(key, value)| *key == Key::Store && !value.is_empty());
    let url = match chosen {
        Some((_, text)) => {
            let base = base_of(&Origin::Project(place.config_file()), Path::new(""));
            text.parse::<StoreUrl>().ok().map(|url| url.beneath(&base))
        }
        None => Some(StoreUrl::Sqlite { path: place.database() }),
    };
    let links = url.map(|url| inside::links_out(place, &url)).unwrap_or_default();
    trust::Subject::of(place, settings, &links)
}

/// The settings and links of the project that affect this store and need trust.
fn untrusted(
    search: &Search<'_>,
    place: &StoreLocation,
    url: &StoreUrl,
    in_project: bool,
    links: &[Link],
) -> Option<Untrusted> {
    let settings = search.settings;
    let matters = |key: Key| match key {
        Key::Store => {
            #[cfg(feature = "file-store")]
            let lifts_refusal = matches!(url, StoreUrl::File { exclusion_shown: true, .. });
            #[cfg(not(feature = "file-store"))]
            let lifts_refusal = false;
            !in_project || lifts_refusal
        }
        // In its own store a project may set the label of holders; in another store the user would
        // act under a label that a stranger chose.
        Key::Agent | Key::Identity => !in_project,
        // A stranger must not have the user's history removed, not even in the project's own store,
        // where the history is the user's. A server has settings of its own.
        key if key.decides_retention() => !matches!(url, StoreUrl::Remote(_)),
        // The user decides what is told about their commands.
        Key::Telemetry => true,
        // Hooks ignore them: see `hook_context` of the command line.
        key if key.decides_hooks() => false,
        _ => matches!(url, StoreUrl::Remote(_)),
    };
    let needs = |key: &Key| key.needs_trust() && settings.is_from_project(*key) && matters(*key);
    let claims = settings.project().map(|project| project.claims.clone()).unwrap_or_default();
    let wanted: Vec<(Key, String)> = claims.into_iter().filter(|(key, _)| needs(key)).collect();
    if wanted.is_empty() && links.is_empty() {
        return None;
    }
    Some(Untrusted {
        folder: place.folder.clone(),
        file: place.config_file(),
        settings: wanted,
        links: links.to_vec(),
    })
}

fn named_by(settings: &Settings) -> Reason {
    match &settings.setting(Key::Store).origin {
        Origin::Flag | Origin::BuiltIn => Reason::Flag,
        Origin::Environment(name) => Reason::Variable(name.clone()),
        Origin::File(path) => Reason::File(path.clone()),
        Origin::Project(path) => Reason::Project(path.clone()),
    }
}

fn found_by(place: &StoreLocation) -> Reason {
    match &place.kind {
        PlaceKind::Repository { root, worktree_root } => {
            Reason::Repository { root: root.clone(), linked: root != worktree_root }
        }
        PlaceKind::Folder => Reason::NearestFolder,
        PlaceKind::User => Reason::UserFolder,
    }
}

fn base(search: &Search<'_>) -> PathBuf {
    base_of(&search.settings.setting(Key::Store).origin, search.directory)
}

/// A path in a settings file is relative to the parent of the file's folder, so to the root of a
/// project for its `.tenure/config.yaml`. Elsewhere it is relative to the current folder.
fn base_of(origin: &Origin, directory: &Path) -> PathBuf {
    let base = match origin {
        Origin::File(file) | Origin::Project(file) => file.parent().and_then(Path::parent),
        _ => None,
    };
    directory.join(base.unwrap_or(Path::new("")))
}
