//! Maps files and typed paths to resources. This reads the file system; the rules only compare
//! texts.

use super::{PathError, PlaceError, PlaceKind, StoreLocation, git, real_path};
use std::path::{Component, Path, PathBuf};
use tenure_core::glob::Glob;
use tenure_core::path_like::OUTSIDE_FILE_PREFIX;
use tenure_core::resource::check_name;
use tenure_core::{Kind, PathSign, Resource, ResourceError};

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
            None => {
                Ok(Resource::new(Kind::Lock, &(OUTSIDE_FILE_PREFIX.to_owned() + &shown(real)))?)
            }
        }
    }

    /// The resource that a text names, with a path relative to the root: in a task's record, over
    /// HTTP and for agents. Otherwise as [`StoreLocation::resource_from`].
    pub fn resource(&self, written: &str, reach: Reach) -> Result<Resource, PathError> {
        self.named(written, None, reach)
    }

    /// The resource that a text names, with a path relative to `directory`: on a command line.
    ///
    /// The literal beginning of a path is looked up: links are followed, so that a file has one
    /// name, and refused if they point out of the root. An absolute path in the root is made
    /// relative to it. Wildcards are not expanded. A name without a kind is refused if it looks like
    /// a path, or if its first part exists in `directory` or in the root.
    ///
    /// In a directory that is in no worktree, such as that of a bare repository, and where there is
    /// no root, paths are taken as they are.
    pub fn resource_from(
        &self,
        directory: &Path,
        written: &str,
        reach: Reach,
    ) -> Result<Resource, PathError> {
        self.named(written, Some(directory), reach)
    }

    /// The path from the root to a directory, in the syntax of globs; empty for the root itself.
    /// `None` if paths are not relative to this directory.
    pub fn folder_of(&self, directory: &Path) -> Option<String> {
        let real = std::fs::canonicalize(directory).ok()?;
        let mut roots = self.roots(Reach::AllWorktrees).into_iter();
        let below = roots.find_map(|root| real.strip_prefix(root).ok())?;
        match below.as_os_str().is_empty() {
            true => Some(String::new()),
            false => literal(below).ok(),
        }
    }

    fn named(
        &self,
        written: &str,
        directory: Option<&Path>,
        reach: Reach,
    ) -> Result<Resource, PathError> {
        let glob = match Kind::split(written) {
            Some((Kind::Path, glob)) if !glob.starts_with("//") => glob,
            Some((kind, name)) => return Ok(Resource::new(kind, name)?),
            None => return self.plain_name(written, directory),
        };
        check_name(Kind::Path, glob)?;
        let glob = Glob::parse(&self.below_a_root(glob, directory, reach)?)?;
        let glob = glob.with_real_prefixes(|prefix| self.real_prefix(prefix, reach))?;
        self.reaching(glob, reach)
    }

    /// A lock, unless the name looks like a path here.
    fn plain_name(&self, name: &str, directory: Option<&Path>) -> Result<Resource, PathError> {
        let resource = Resource::requested(name)?;
        let Some((first, _)) = name.split_once('/') else { return Ok(resource) };
        let exists = |folder: &Path| std::fs::symlink_metadata(folder.join(first)).is_ok();
        let is_outside = first.starts_with(OUTSIDE_FILE_PREFIX);
        let root = self.root();
        let mut folders = directory.filter(|_| root.is_some()).into_iter().chain(root);
        match !is_outside && !first.is_empty() && folders.any(exists) {
            true => {
                let (name, sign) = (name.to_owned(), PathSign::Exists);
                Err(ResourceError::LooksLikePath { name, sign }.into())
            }
            false => Ok(resource),
        }
    }

    /// The text of a glob, relative to the root.
    fn below_a_root(
        &self,
        glob: &str,
        directory: Option<&Path>,
        reach: Reach,
    ) -> Result<String, PathError> {
        if glob == "~" || glob.starts_with("~/") {
            return Err(PathError::Home { path: glob.to_owned() });
        }
        if glob.starts_with('/') {
            return self.relative(Path::new("/"), glob, glob, reach);
        }
        let directory = directory.and_then(|directory| std::fs::canonicalize(directory).ok());
        let is_in_root = |directory: &PathBuf| {
            self.roots(Reach::AllWorktrees).into_iter().any(|root| directory.starts_with(root))
        };
        let Some(directory) = directory.filter(is_in_root) else { return Ok(glob.to_owned()) };
        let mut steps = Steps::of(glob, &directory);
        let mut base = directory.as_path();
        for _ in 0..steps.up {
            base = base.parent().unwrap_or(base);
        }
        if steps.rest.is_empty() {
            steps.rest.push('.');
        }
        // Judged before it is part of a longer path, in which a drive would be a name.
        Glob::parse(&steps.rest)?;
        let mut roots = self.roots(reach).into_iter();
        match roots.find_map(|root| base.strip_prefix(root).ok()) {
            Some(below) if below.as_os_str().is_empty() => Ok(steps.rest),
            Some(below) => Ok(format!("{}/{}", literal(below)?, steps.rest)),
            None => self.relative(base, &steps.rest, glob, reach),
        }
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

    /// A glob relative to the root, from one that is relative to `base`. `written` is for the error.
    fn relative(
        &self,
        base: &Path,
        glob: &str,
        written: &str,
        reach: Reach,
    ) -> Result<String, PathError> {
        let outside =
            || PathError::Outside { path: written.into(), root: self.root().map(Into::into) };
        let segments: Vec<&str> =
            glob.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
        if segments.contains(&"..") {
            return Err(outside());
        }
        let plain = segments.iter().take_while(|name| is_plain(name)).count();
        // The longest existing prefix decides whether it is in the root, even through links; the
        // rest is kept as typed.
        for there in (0..=plain).rev() {
            let folder = base.join(segments[..there].join("/"));
            let Ok(real) = std::fs::canonicalize(folder) else { continue };
            let root = self.roots(reach).into_iter().find(|root| real.starts_with(root));
            let below = root.and_then(|root| real.strip_prefix(root).ok()).ok_or_else(outside)?;
            let mut names = Vec::new();
            if !below.as_os_str().is_empty() {
                names.push(literal(below)?);
            }
            names.extend(segments[there..].iter().map(|name| (*name).to_owned()));
            let is_folder = matches!(glob.rsplit('/').next(), Some("" | "."));
            if names.is_empty() || is_folder {
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

/// A relative glob without the `.` and `..` at its beginning.
struct Steps {
    /// How many folders it goes up.
    up: usize,
    /// What follows, without `..` as far as that can be told from the names.
    rest: String,
}

impl Steps {
    /// `a/..` goes nowhere, unless `a` is a link: then it stays, and is refused.
    fn of(glob: &str, directory: &Path) -> Steps {
        let (mut up, mut names) = (0, Vec::new());
        let mut segments = glob.split('/');
        let mut ends_at_folder = false;
        while let Some(segment) = segments.next() {
            ends_at_folder = matches!(segment, "" | "." | "..");
            let ancestor = || directory.ancestors().nth(up).unwrap_or(directory);
            match segment {
                "" | "." => {}
                ".." if names.is_empty() => up += 1,
                ".." if names.last() != Some(&"..")
                    && !ancestor().join(names.join("/")).is_symlink() =>
                {
                    names.pop();
                }
                name => names.push(name),
            }
            if !is_plain(segment) {
                // Behind a wildcard nothing can be told.
                names.extend(segments.by_ref());
                ends_at_folder = false;
            }
        }
        let mut rest = names.join("/");
        if ends_at_folder && !rest.is_empty() {
            rest.push('/');
        }
        Steps { up, rest }
    }
}

/// Whether a segment has no wildcard and no escape.
fn is_plain(segment: &str) -> bool {
    !segment.contains(['*', '?', '[', '{', '}', '\\'])
}

/// The glob that matches this relative path alone.
fn literal(path: &Path) -> Result<String, PathError> {
    Ok(Glob::literal(&text(path)?)?.as_str().to_owned())
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
