//! Which files of a worktree differ from its last commit.

use super::program::{Git, GitError};
use super::repository::path_of;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use tenure::core::glob::Glob;

/// Which files are rescued.
#[derive(Clone, Debug)]
pub enum Files {
    /// All that are not ignored: the worktree was made for this worker alone.
    All,
    /// Those that match one of these globs, relative to the root of the worktree.
    Matching(Vec<Glob>),
}

impl Files {
    fn include(&self, path: &[u8]) -> bool {
        match self {
            Files::All => true,
            Files::Matching(globs) => {
                let path = String::from_utf8_lossy(path);
                globs.iter().any(|glob| glob.matches(&path))
            }
        }
    }
}

/// The files that differ, relative to the root of the worktree.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Changed and new ones.
    pub(super) present: Vec<Vec<u8>>,
    /// Deleted ones.
    pub(super) gone: Vec<Vec<u8>>,
    /// The size of all that are present.
    pub(super) bytes: u64,
    /// Files that cannot be rescued.
    pub(super) left_out: usize,
}

impl Changes {
    pub(super) fn count(&self) -> usize {
        self.present.len() + self.gone.len()
    }
}

/// Finds the changes. `git` runs at the root of the worktree with a private copy of its index, which
/// knows what was looked at already, so that not every file is read.
pub(super) fn find(git: &Git, files: &Files) -> Result<Changes, GitError> {
    let arguments = [
        "status",
        "--porcelain=v2",
        "-z",
        "--untracked-files=all",
        "--ignore-submodules=all",
        "--no-renames",
        "--no-ahead-behind",
    ];
    let filters = Filters::configured(git)?;
    let printed = filters.without(git).run(&arguments)?;
    let mut changes = Changes::default();
    let mut seen = Vec::new();
    for entry in printed.split(|byte| *byte == 0) {
        match listed(entry) {
            Some(Entry::Path(path)) if files.include(path) => seen.push(path.to_vec()),
            Some(Entry::Repository(path)) if files.include(path) => changes.left_out += 1,
            Some(_) | None => {}
        }
    }
    let filtered = filters.apply_to(git, &seen)?;
    for path in seen {
        match look(git.folder(), &path) {
            Look::Gone => changes.gone.push(path),
            Look::Readable(bytes) if !filtered.contains(&path) => {
                changes.bytes = changes.bytes.saturating_add(bytes);
                changes.present.push(path);
            }
            Look::Readable(_) | Look::Unreadable => changes.left_out += 1,
        }
    }
    Ok(changes)
}

enum Entry<'a> {
    Path(&'a [u8]),
    /// A repository inside the worktree: a submodule, or one that is not tracked.
    Repository(&'a [u8]),
}

/// One entry of `git status --porcelain=v2 -z --no-renames`.
fn listed(entry: &[u8]) -> Option<Entry<'_>> {
    let field = |number: usize| entry.splitn(number + 1, |byte| *byte == b' ').nth(number);
    let path = match entry.first()? {
        b'1' => field(8)?,
        b'u' => field(10)?,
        b'?' => field(1)?,
        _ => return None,
    };
    let is_tracked = !entry.starts_with(b"?");
    let is_submodule = is_tracked && field(2)?.starts_with(b"S");
    Some(match path.strip_suffix(b"/") {
        Some(path) => Entry::Repository(path),
        None if is_submodule => Entry::Repository(path),
        None => Entry::Path(path),
    })
}

enum Look {
    Readable(u64),
    Unreadable,
    Gone,
}

/// What there is at a path. A file below a link is gone: the link is what took its place.
fn look(root: &Path, path: &[u8]) -> Look {
    let relative = path_of(path);
    let mut folder = root.to_owned();
    for name in relative.parent().into_iter().flat_map(Path::components) {
        folder.push(name);
        match fs::symlink_metadata(&folder) {
            Ok(found) if found.is_dir() => {}
            _ => return Look::Gone,
        }
    }
    let path = root.join(&relative);
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_symlink() => Look::Readable(found.len()),
        Ok(found) if found.is_file() => {
            // Opening is the only sure answer to whether it can be read. It could have become a
            // pipe, on which opening would wait.
            let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
            let flags = flags.bits().cast_signed();
            match OpenOptions::new().read(true).custom_flags(flags).open(&path) {
                Ok(_) => Look::Readable(found.len()),
                Err(_) => Look::Unreadable,
            }
        }
        // A folder took the place of the file, or something that git does not know.
        Ok(_) | Err(_) => Look::Gone,
    }
}

/// The filters that settings name: programs that change a file on its way into the repository.
///
/// None is run: a rescue happens by itself. A file that one would change is left where it is,
/// because as it lies there it may be huge, or a secret in the clear.
struct Filters {
    names: Vec<Vec<u8>>,
}

impl Filters {
    fn configured(git: &Git) -> Result<Filters, GitError> {
        let asked =
            ["config", "--null", "--name-only", "--get-regexp", r"^filter\..*\.(clean|process)$"];
        let printed = git.ask(&asked)?.unwrap_or_default();
        let mut names: Vec<Vec<u8>> = Vec::new();
        for key in printed.split(|byte| *byte == 0) {
            let Some(key) = key.strip_prefix(b"filter.") else { continue };
            let Some(dot) = key.iter().rposition(|byte| *byte == b'.') else { continue };
            let name = key[..dot].to_vec();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(Filters { names })
    }

    /// Git that runs none of them.
    fn without(&self, git: &Git) -> Git {
        let mut git = git.clone();
        for name in &self.names {
            for (what, value) in [("clean", ""), ("process", ""), ("required", "false")] {
                let key = [b"filter.", name.as_slice(), b".", what.as_bytes()].concat();
                git = git.with_setting(OsString::from_vec(key), value);
            }
        }
        git
    }

    /// Which of these files one of them would change.
    fn apply_to(&self, git: &Git, paths: &[Vec<u8>]) -> Result<HashSet<Vec<u8>>, GitError> {
        if self.names.is_empty() || paths.is_empty() {
            return Ok(HashSet::new());
        }
        let input = with_ends(paths);
        let printed = git.feed(&["check-attr", "-z", "--stdin", "filter"], input)?;
        let fields: Vec<&[u8]> = printed.split(|byte| *byte == 0).collect();
        let found = fields
            .chunks_exact(3)
            .filter(|found| self.names.iter().any(|name| name.as_slice() == found[2]));
        Ok(found.map(|found| found[0].to_vec()).collect())
    }
}

/// Git that runs no filters, for adding files that none of them would change.
pub(super) fn without_filters(git: &Git) -> Result<Git, GitError> {
    Ok(Filters::configured(git)?.without(git))
}

/// Paths as git reads them with `-z`.
pub(super) fn with_ends(paths: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for path in paths {
        bytes.extend_from_slice(path);
        bytes.push(0);
    }
    bytes
}
