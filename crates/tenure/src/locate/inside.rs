//! Whether a store lies inside its project, links and all.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::place::{PlaceKind, StoreLocation};
use crate::url::StoreUrl;

/// A path in a project that leads out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The path in the project.
    pub path: PathBuf,
    /// What it leads to; as the link says it, if that is not there.
    pub target: PathBuf,
}

/// Whether all that the store reads and writes is inside the project.
pub(super) fn is_inside(place: &StoreLocation, url: &StoreUrl) -> bool {
    let Some(root) = root_of(place) else { return false };
    let paths = url.paths();
    let inside = |path: &PathBuf| match is_below(root, path) {
        true => link_out(root, path).is_none(),
        // Another way to write it may still lead there.
        false => real(path).is_some_and(|real| real.starts_with(root)),
    };
    !paths.is_empty() && paths.iter().all(inside)
}

/// What of the store, and of what commands keep beside the default one, begins inside the project
/// and ends outside.
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

/// Whether the path, as it is written, is below the root.
fn is_below(root: &Path, path: &Path) -> bool {
    let upward = |part: Component<'_>| part == Component::ParentDir;
    path.strip_prefix(root).is_ok_and(|below| !below.components().any(upward))
}

/// The folder that is the project's. Paths in [`StoreLocation`] have no links up to it.
fn root_of(place: &StoreLocation) -> Option<&Path> {
    match &place.kind {
        PlaceKind::Repository { root, .. } => Some(root),
        PlaceKind::Folder => place.folder.parent(),
        PlaceKind::User => None,
    }
}

/// The first link of the path that leads out of the root. Every command asks this of its store, so
/// what is no link costs one look.
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

/// The path without links, also where its end is not there yet. `None` where it cannot be told: a
/// link that leads nowhere, or `..` after what is not there.
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
