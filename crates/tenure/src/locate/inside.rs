//! Checks whether a store is inside its project, including links.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::place::{PlaceKind, StoreLocation};
use crate::url::StoreUrl;

/// A link in a project that points out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The path in the project.
    pub path: PathBuf,
    /// Its target; as written in the link if the target does not exist.
    pub target: PathBuf,
}

/// Whether everything that the store reads and writes is inside the project.
pub(super) fn is_inside(place: &StoreLocation, url: &StoreUrl) -> bool {
    let Some(root) = root_of(place) else { return false };
    let paths = url.paths();
    let inside = |path: &PathBuf| match is_below(root, path) {
        true => link_out(root, path).is_none(),
        // Another spelling may still be inside.
        false => real(path).is_some_and(|real| real.starts_with(root)),
    };
    !paths.is_empty() && paths.iter().all(inside)
}

/// The links of the store, and of files beside the default store, that point out of the project.
pub(super) fn links_out(place: &StoreLocation, url: &StoreUrl) -> Vec<Link> {
    let Some(root) = root_of(place) else { return vec![] };
    let mut paths = url.paths();
    paths.extend(["logs", "tokens"].map(|name| place.folder.join(name)));
    let mut links: Vec<Link> = Vec::new();
    for path in paths.iter().filter(|path| is_below(root, path)) {
        if let Some(link) = link_out(root, path)
            && !links.contains(&link)
        {
            links.push(link);
        }
    }
    links
}

/// Whether the path, as written, is below the root.
fn is_below(root: &Path, path: &Path) -> bool {
    let upward = |part: Component<'_>| part == Component::ParentDir;
    path.strip_prefix(root).is_ok_and(|below| !below.components().any(upward))
}

/// The project's folder. Paths in [`StoreLocation`] have no links up to it.
fn root_of(place: &StoreLocation) -> Option<&Path> {
    match &place.kind {
        PlaceKind::Repository { root, .. } => Some(root),
        PlaceKind::Folder => place.folder.parent(),
        PlaceKind::User => None,
    }
}

/// The first link of the path that points out of the root. Every command checks its store, so a
/// path without links costs one system call.
fn link_out(root: &Path, path: &Path) -> Option<Link> {
    let mut at = root.to_owned();
    for part in path.strip_prefix(root).ok()?.components() {
        at.push(part);
        let meta = fs::symlink_metadata(&at).ok()?;
        if !meta.is_symlink() {
            continue;
        }
        match real(&at) {
            Some(real) if real.starts_with(root) => {}
            Some(real) => return Some(Link { path: at, target: real }),
            None => {
                let target = fs::read_link(&at).unwrap_or_else(|_| at.clone());
                return Some(Link { path: at, target });
            }
        }
    }
    None
}

/// The path without links, even if its end does not exist yet. `None` if it is unknown: a broken
/// link, or `..` after a missing folder.
fn real(path: &Path) -> Option<PathBuf> {
    match fs::canonicalize(path) {
        Ok(real) => Some(real),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if fs::symlink_metadata(path).is_ok() {
                return None;
            }
            let name = path.file_name()?;
            Some(real(path.parent()?)?.join(name))
        }
        Err(_) => None,
    }
}
