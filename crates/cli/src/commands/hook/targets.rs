//! Which resource each file is, and in which store it is held: that of the repository that the file
//! is in.

use crate::args::Global;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;
use std::path::{Component, Path, PathBuf};
use tenure::core::glob::Glob;
use tenure::core::{Kind, Resource};
use tenure::place::{self, PlaceKind, Reach, StoreLocation, Surroundings, real_path};
use tenure_frontend::config::Key;

/// Something that is about to be changed.
#[derive(Debug)]
pub(super) struct Target {
    /// The path, as the agent would write it.
    pub(super) shown: String,
    /// What it is held as.
    pub(super) resource: Resource,
    /// Whether it is a single file, which can be taken; else it is only looked at.
    pub(super) is_file: bool,
}

/// What is about to be changed in one worktree of one repository.
pub(super) struct Group {
    /// The surroundings of that worktree.
    pub(super) context: Context,
    /// The root of the worktree.
    pub(super) root: PathBuf,
    /// What is about to be changed there.
    pub(super) targets: Vec<Target>,
}

/// Groups targets by the worktree that they are in.
pub(super) struct Targets<'a> {
    global: &'a Global,
    output: &'a Output,
    /// The folder that the agent works in, without links.
    folder: PathBuf,
    pub(super) groups: Vec<Group>,
}

impl<'a> Targets<'a> {
    /// No targets yet, of an agent that works in this folder.
    pub(super) fn new(global: &'a Global, output: &'a Output, folder: &Path) -> Targets<'a> {
        let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        Targets { global, output, folder, groups: Vec::new() }
    }

    /// Adds a file. Files outside of repositories, and what git and tenure keep for themselves,
    /// are left out.
    pub(super) fn add_file(&mut self, path: &Path) -> Result<(), Failure> {
        for real in meant(&self.folder.join(path)) {
            self.add(&real, true, |place, reach| place.resource_of(&real, reach).ok())?;
        }
        Ok(())
    }

    /// Adds a folder with all that is in it.
    pub(super) fn add_tree(&mut self, path: &Path) -> Result<(), Failure> {
        for real in meant(&self.folder.join(path)) {
            self.add(&real, false, |place, reach| below(place, &real, "**", reach))?;
        }
        Ok(())
    }

    /// Adds the files of a folder that a pattern matches.
    pub(super) fn add_pattern(&mut self, folder: &Path, pattern: &str) -> Result<(), Failure> {
        for real in meant(&self.folder.join(folder)) {
            let shown = real.join(pattern);
            self.add(&shown, false, |place, reach| below(place, &real, pattern, reach))?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        path: &Path,
        is_file: bool,
        resource: impl Fn(&StoreLocation, Reach) -> Option<Resource>,
    ) -> Result<(), Failure> {
        if is_private(path) {
            return Ok(());
        }
        let shown = self.shown(path);
        let Some(group) = self.group(path)? else { return Ok(()) };
        let reach = reach(&group.context);
        let place = group.context.place()?;
        // Outside of git there is one worktree.
        let found = resource(place, reach).or_else(|| resource(place, Reach::AllWorktrees));
        let Some(resource) = found.filter(|resource| resource.kind() == Kind::Path) else {
            return Ok(());
        };
        if group.targets.iter().all(|target| target.resource != resource) {
            group.targets.push(Target { shown, resource, is_file });
        }
        Ok(())
    }

    /// The group of the worktree around a path; `None` if it is in no project.
    pub(super) fn group(&mut self, path: &Path) -> Result<Option<&mut Group>, Failure> {
        let Some(folder) = path.ancestors().find(|folder| folder.is_dir()) else { return Ok(None) };
        let place = place::find(&Surroundings::of_process(folder.to_owned()))?;
        let Some(root) = place.root().map(Path::to_owned) else { return Ok(None) };
        let known = self.groups.iter().position(|group| group.root == root);
        let index = match known {
            Some(index) => index,
            None => {
                let context = Context::for_protection(self.global, self.output.clone(), folder)?;
                self.groups.push(Group { context, root, targets: Vec::new() });
                self.groups.len() - 1
            }
        };
        Ok(self.groups.get_mut(index))
    }

    /// A path as the agent would write it: from its folder, or absolute.
    pub(super) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.folder).unwrap_or(path).display().to_string()
    }
}

/// Whether a path means the same file in all worktrees, as the settings say.
pub(super) fn reach(context: &Context) -> Reach {
    match context.settings.text(Key::HooksScope) {
        Some("worktree") => Reach::ThisWorktree,
        _ => Reach::AllWorktrees,
    }
}

/// Whether a path belongs to git or tenure themselves.
fn is_private(path: &Path) -> bool {
    path.iter().any(|name| name == ".git" || name == ".tenure")
}

/// The resource of what a glob matches below a folder, which is a real path.
fn below(place: &StoreLocation, folder: &Path, glob: &str, reach: Reach) -> Option<Resource> {
    let is_root = match &place.kind {
        PlaceKind::Repository { worktree_root, .. } => folder == worktree_root,
        _ => place.root() == Some(folder),
    };
    let written = match is_root {
        true => glob.to_owned(),
        false => {
            let folder = place.resource_of(folder, Reach::AllWorktrees).ok()?;
            format!("{}/{glob}", folder.glob()?.as_str())
        }
    };
    match reach {
        Reach::AllWorktrees => Resource::new(Kind::Path, &written).ok(),
        Reach::ThisWorktree => {
            let worktree = place.worktree().ok()??;
            Resource::path_in_worktree(&worktree, Glob::parse(&written).ok()?).ok()
        }
    }
}

/// The files that a path can mean, without links. The system goes through a link before it goes up
/// from it; many programs take `..` out of a path first. Where both lead to the same, it is one file.
/// What cannot be resolved is the file that its text names.
fn meant(path: &Path) -> Vec<PathBuf> {
    let text = without_parents(path);
    let by_text = resolved(&text).unwrap_or(text);
    match resolved(path) {
        Some(real) if real != by_text => vec![real, by_text],
        _ => vec![by_text],
    }
}

/// An absolute path without `.` and `..`, by its text alone.
fn without_parents(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut whole, part| {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            part => whole.push(part),
        }
        whole
    })
}

/// The path without links, also of a file in folders that do not exist yet. `None` if it cannot be
/// told.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut missing = Vec::new();
    let mut at = path;
    loop {
        match real_path(at) {
            Ok(real) => return Some(missing.iter().rev().fold(real, |path, name| path.join(name))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                missing.push(at.file_name()?);
                at = at.parent()?;
            }
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_real_path_also_before_its_folders_exist() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("src/deep")).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        std::os::unix::fs::symlink("src/deep", root.join("link")).unwrap();
        std::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
        let cases: [(&str, &[&str]); 9] = [
            ("src/a.rs", &["src/a.rs"]),
            ("src/new/deep/a.rs", &["src/new/deep/a.rs"]),
            ("link/new/a.rs", &["src/deep/new/a.rs"]),
            ("src/../a.rs", &["a.rs"]),
            ("missing/../a.rs", &["a.rs"]),
            ("missing/../link/a.rs", &["src/deep/a.rs"]),
            ("file/../a.rs", &["a.rs"]),
            ("loop/a.rs", &["loop/a.rs"]),
            ("link/../a.rs", &["src/a.rs", "a.rs"]),
        ];
        for (path, expected) in cases {
            let expected: Vec<PathBuf> = expected.iter().map(|path| root.join(path)).collect();
            assert_eq!(meant(&root.join(path)), expected, "{path}");
        }
    }
}
