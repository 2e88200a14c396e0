//! How a resource is written so that it can be typed back.
//!
//! Records, JSON, HTTP and agents' tools write paths relative to the root. On a command line a path is
//! relative to the current folder, so the command line also shows it that way: from `src`, a hold of
//! `path:src/auth/**` is shown as `path:auth/**`.

use std::sync::OnceLock;
use tenure::core::glob::Glob;
use tenure::core::{Kind, Resource};

/// The path from the root to the current folder; unset in programs that show paths relative to the
/// root.
static FOLDER: OnceLock<String> = OnceLock::new();

/// From now on, shows paths relative to this folder, given by its path from the root in the syntax of
/// globs. Only the first call counts: it is for a command that answers one person in one folder.
pub fn show_relative_to(folder: String) {
    let _ = FOLDER.set(folder);
}

fn folder() -> &'static str {
    FOLDER.get().map_or("", String::as_str)
}

/// The resource, for people.
pub fn name(resource: &Resource) -> String {
    name_in(folder(), resource)
}

/// The resource as it can be typed in this folder.
pub fn name_in(folder: &str, resource: &Resource) -> String {
    match resource.glob() {
        Some(glob) if resource.worktree().is_none() && !folder.is_empty() => {
            format!("{}:{}", Kind::Path, from_folder(folder, glob.as_str()))
        }
        _ => resource.to_string(),
    }
}

/// A task's glob, for people.
pub fn glob(glob: &str) -> String {
    match Glob::parse(glob) {
        Ok(glob) if !folder().is_empty() => from_folder(folder(), glob.as_str()),
        _ => glob.to_owned(),
    }
}

/// A sentence of the rules about a held path, for people. Other sentences stay as they are.
pub fn sentence(text: &str) -> String {
    let held = text.split_once(" is held by ").filter(|(path, _)| path.starts_with("path:"));
    match held.and_then(|(path, holder)| Some((path.parse::<Resource>().ok()?, holder))) {
        Some((path, holder)) => format!("{} is held by {holder}", name(&path)),
        None => text.to_owned(),
    }
}

/// A glob relative to the folder, from one that is relative to the root. Both are normalised.
fn from_folder(folder: &str, glob: &str) -> String {
    let (ours, theirs): (Vec<&str>, Vec<&str>) =
        (folder.split('/').collect(), glob.split('/').collect());
    let common = ours.iter().zip(&theirs).take_while(|(our, their)| our == their).count();
    // One segment stays: the folder itself is `../NAME`.
    let common = common.min(theirs.len() - 1);
    let rest = theirs[common..].join("/");
    let is_home = rest == "~" || rest.starts_with("~/");
    // What would be read as a drive or a home is named from the root.
    match !is_home && Glob::parse(&rest).is_ok() {
        true => "../".repeat(ours.len() - common) + &rest,
        false => "../".repeat(ours.len()) + glob,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_shown_as_it_can_be_typed_in_the_folder() {
        for (folder, resource, expected) in [
            ("", "path:src/main.rs", "path:src/main.rs"),
            ("src", "path:src/main.rs", "path:main.rs"),
            ("src", "path:src/auth/**", "path:auth/**"),
            ("src", "path:src/**", "path:**"),
            ("src", "path:**", "path:../**"),
            ("src", "path:src", "path:../src"),
            ("src", "path:docs/x", "path:../docs/x"),
            ("src/api", "path:src/main.rs", "path:../main.rs"),
            ("src/api", "path:src/*/x", "path:../*/x"),
            ("src/api", "path:{src,docs}/x", "path:../../{src,docs}/x"),
            ("src/api", "path:src/{api/a,b}", "path:../{api/a,b}"),
            ("src", "path:src/C:/x", "path:../src/C:/x"),
            ("src", "path:src/~/x", "path:../src/~/x"),
            (r"\[a]", r"path:\[a]/x", "path:x"),
            ("src", "path://side/src/x", "path://side/src/x"),
            ("src", "deploy", "deploy"),
            ("src", "lock:src/main.rs", "lock:src/main.rs"),
        ] {
            let resource: Resource = resource.parse().unwrap();
            assert_eq!(name_in(folder, &resource), expected, "{resource} in {folder:?}");
        }
    }
}
