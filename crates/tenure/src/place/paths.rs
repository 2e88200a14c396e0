//! Maps files and typed paths to resources. This reads the file system; the rules only compare
//! texts.

use super::{PathError, PlaceError, PlaceKind, StoreLocation, git, real_path};
use std::path::{Component, Path, PathBuf};
use tenure_core::glob::Glob;
use tenure_core::{Kind, Resource};

/// The worktrees of a repository that a path stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// All: the same path is one resource in every worktree.
    #[default]
    AllWorktrees,
    /// The worktree that the location was found from. It still excludes holders of the path in all
    /// worktrees.
    ThisWorktree,
}

/// The name of the main worktree. No linked worktree can have it.
const MAIN_WORKTREE: &str = ".";

/// The prefix of a lock's name for a file outside any root.
const FILE_PREFIX: &str = "file:";

impl StoreLocation {
    /// The folder that paths are relative to: the root of the worktree, or outside a repository the
    /// folder with the `.tenure`. The per-user location has none.
    pub fn root(&self) -> Option<&Path> {
        self.roots(Reach::ThisWorktree).into_iter().next()
    }

    /// The name of the worktree that the location was found from, if it is in a git repository.
    pub fn worktree(&self) -> Result<Option<String>, PlaceError> {
        let PlaceKind::Repository { worktree_root, .. } = &self.kind else { return Ok(None) };
        let linked = git::find(worktree_root)?.and_then(|repository| repository.linked_name);
        Ok(Some(linked.unwrap_or_else(|| MAIN_WORKTREE.to_owned())))
    }

    /// The resource of a file, by its real path (see [`real_path`]). Below the root it is a path,
    /// elsewhere a lock named after the real path.
    pub fn resource_of(&self, real: &Path, reach: Reach) -> Result<Resource, PathError> {
        match self.below_root(real, reach) {
            Some(path) => self.reaching(Glob::literal(&text(path)?)?, reach),
            None => Ok(Resource::new(Kind::Lock, &(FILE_PREFIX.to_owned() + &shown(real)))?),
        }
    }

    /// The resource that a typed text names.
    ///
    /// The literal beginning of a path is looked up: links are followed, so that a file has one
    /// name, and refused if they point out of the root. An absolute path in the root is made
    /// relative to it. Wildcards are not expanded.
    pub fn resource(&self, written: &str, reach: Reach) -> Result<Resource, PathError> {
        let glob = written.strip_prefix("path:");
        let absolute = glob.filter(|glob| glob.starts_with('/') && !glob.starts_with("//"));
        let resource = match absolute {
            Some(glob) => Resource::new(Kind::Path, &self.relative(glob, reach)?)?,
            None => written.parse::<Resource>()?,
        };
        let (Some(glob), None) = (resource.glob(), resource.worktree()) else {
            return Ok(resource);
        };
        let glob = glob.with_real_prefixes(|prefix| self.real_prefix(prefix, reach))?;
        self.reaching(glob, reach)
    }

    fn reaching(&self, glob: Glob, reach: Reach) -> Result<Resource, PathError> {
        match reach {
            Reach::AllWorktrees => Ok(Resource::path(glob)),
            Reach::ThisWorktree => {
                let worktree = self.worktree()?.ok_or(PathError::NoWorktree)?;
                Ok(Resource::path_in_worktree(&worktree, glob)?)
            }
        }
    }

    /// The folders that paths may be in: this worktree and, if all worktrees are meant, the main
    /// one, which has the same paths.
    fn roots(&self, reach: Reach) -> Vec<&Path> {
        match &self.kind {
            PlaceKind::Repository { root, worktree_root } => match reach {
                Reach::AllWorktrees => vec![worktree_root, root],
                Reach::ThisWorktree => vec![worktree_root],
            },
            PlaceKind::Folder => self.folder.parent().into_iter().collect(),
            PlaceKind::User => vec![],
        }
    }

    fn below_root<'a>(&self, real: &'a Path, reach: Reach) -> Option<&'a Path> {
        let below = self.roots(reach).into_iter().find_map(|root| real.strip_prefix(root).ok());
        below.filter(|path| !path.as_os_str().is_empty())
    }

    /// An absolute glob, relative to the root.
    fn relative(&self, glob: &str, reach: Reach) -> Result<String, PathError> {
        let outside =
            || PathError::Outside { path: glob.into(), root: self.root().map(Into::into) };
        let segments: Vec<&str> = glob.split('/').filter(|name| !name.is_empty()).collect();
        if segments.contains(&"..") {
            return Err(outside());
        }
        let plain = |name: &&&str| !name.contains(['*', '?', '[', '{', '}', '\\']);
        let literal = segments.iter().take_while(plain).count();
        // The longest existing prefix decides whether it is in the root, even through links; the
        // rest is kept as typed.
        for there in (0..=literal).rev() {
            let folder = PathBuf::from(format!("/{}", segments[..there].join("/")));
            let Ok(real) = std::fs::canonicalize(folder) else { continue };
            let root = self.roots(reach).into_iter().find(|root| real.starts_with(root));
            let below = root.and_then(|root| real.strip_prefix(root).ok()).ok_or_else(outside)?;
            let mut names = Vec::new();
            if !below.as_os_str().is_empty() {
                names.push(Glob::literal(&text(below)?)?.as_str().to_owned());
            }
            names.extend(segments[there..].iter().map(|name| (*name).to_owned()));
            if names.is_empty() || glob.ends_with('/') {
                names.push("**".to_owned());
            }
            return Ok(names.join("/"));
        }
        Err(outside())
    }

    /// The literal beginning of a glob without links; `None` if it has none.
    fn real_prefix(&self, prefix: &str, reach: Reach) -> Result<Option<String>, PathError> {
        let Some(root) = self.root() else { return Ok(None) };
        let (mut at, mut followed) = (root.to_owned(), None);
        for name in prefix.split('/').filter(|name| !name.is_empty()) {
            let next = at.join(name);
            if std::fs::symlink_metadata(&next).is_ok_and(|found| found.is_symlink()) {
                let target = real_path(&next).or_else(|_| std::fs::read_link(&next));
                at = target.unwrap_or_else(|_| next.clone());
                followed = Some(next);
            } else {
                at = next;
            }
        }
        let Some(link) = followed else { return Ok(None) };
        match self.below_root(&at, reach) {
            Some(path) => text(path).map(Some),
            // Out of the root, nowhere, or to the root itself, which no literal path names.
            None => Err(PathError::LeadsOut { path: prefix.to_owned(), link, target: at }),
        }
    }
}

/// A relative path in the syntax of globs.
fn text(path: &Path) -> Result<String, PathError> {
    let names = path.components().map(|component| match component {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let names: Option<Vec<&str>> = names.collect();
    let names = names.ok_or_else(|| PathError::NotText { path: path.to_owned() })?;
    Ok(names.join("/"))
}

/// A path as the name of a lock. Characters that do not fit on one line are escaped, and so is the
/// escape character, so that no two paths get the same name.
fn shown(path: &Path) -> String {
    let mut text = String::new();
    let escape = |text: &mut String, bytes: &[u8]| {
        text.extend(bytes.iter().map(|byte| format!("%{byte:02X}")));
    };
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() || character == '%' {
                escape(&mut text, character.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(character);
            }
        }
        escape(&mut text, chunk.invalid());
    }
    let kept = text.trim_end().len();
    let space = text.split_off(kept);
    escape(&mut text, space.as_bytes());
    text
}
