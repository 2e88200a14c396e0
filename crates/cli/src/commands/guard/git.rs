//! What the guard asks the `git` program: in which state the repository is, and which paths a commit
//! or a push changes.
//!
//! Git sets variables for its hooks, such as `GIT_INDEX_FILE` for a commit of some files only. They
//! reach the `git` that is started here, so that it sees what is about to be committed.

use crate::exit::Exit;
use crate::failure::Failure;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The repository around the current folder, as git itself sees it.
#[derive(Clone, Debug)]
pub(super) struct Repository {
    /// The git directory of this worktree.
    directory: PathBuf,
    /// The root of this worktree; a bare repository has none.
    top: Option<PathBuf>,
}

/// What git leaves in its directory while it replays commits that exist already: merges (also
/// squashed ones), rebases and patches, picks and reverts.
const REPLAY_SIGNS: [&str; 6] =
    ["MERGE_HEAD", "SQUASH_MSG", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD"];

impl Repository {
    /// Finds it. A bare repository makes git fail after it has named the directory.
    pub(super) fn here() -> Result<Repository, Failure> {
        let output = run(&["rev-parse", "--absolute-git-dir", "--show-toplevel"], None)?;
        let lines: Vec<&[u8]> = output.stdout.split(|byte| *byte == b'\n').collect();
        let path = |line: &[u8]| PathBuf::from(OsStr::from_bytes(line));
        match lines.as_slice() {
            [directory, b""] => Ok(Repository { directory: path(directory), top: None }),
            [directory, top, b""] => {
                Ok(Repository { directory: path(directory), top: Some(path(top)) })
            }
            _ => Err(failed("rev-parse", &output)),
        }
    }

    /// Whether git is in the middle of replaying commits. Their files come from commits that exist
    /// already, and git itself does not ask its hook about those without a conflict.
    pub(super) fn is_replaying(&self) -> bool {
        REPLAY_SIGNS.iter().any(|name| self.directory.join(name).exists())
    }

    /// Paths relative to this worktree as paths relative to a root. Those outside it are left out.
    pub(super) fn below(&self, root: &Path, paths: Vec<PathBuf>) -> Vec<PathBuf> {
        let Some(top) = self.top.as_ref().filter(|top| *top != root) else { return paths };
        let below = |path: PathBuf| top.join(path).strip_prefix(root).ok().map(Path::to_owned);
        paths.into_iter().filter_map(below).collect()
    }
}

/// Options that make git name every changed path once, whatever the user configured: both names of a
/// renamed file, deleted files too, but not the commit of a submodule, which no path lock means.
const NAMES: [&str; 5] = ["--name-only", "-z", "--no-renames", "--no-color", "--no-ext-diff"];

/// The paths that the commit changes. Before the first commit these are all that are staged.
pub(super) fn staged_paths() -> Result<Vec<PathBuf>, Failure> {
    let mut arguments = vec!["diff", "--cached", "--no-relative", "--ignore-submodules=all"];
    arguments.extend(NAMES);
    let output = succeeded("diff", run(&arguments, None)?)?;
    Ok(names(&output.stdout))
}

/// A line of what git tells a pre-push hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PushedReference {
    local: String,
    remote: String,
}

impl PushedReference {
    /// Reads `LOCAL-REF LOCAL-OBJECT REMOTE-REF REMOTE-OBJECT`. A deletion is not read: it changes
    /// no file.
    pub(super) fn parse(line: &str) -> Option<PushedReference> {
        let words: Vec<&str> = line.split(' ').collect();
        let &[_, local, _, remote] = words.as_slice() else { return None };
        let is_object = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_object(local) || !is_object(remote) || is_absent(local) {
            return None;
        }
        Some(PushedReference { local: local.to_owned(), remote: remote.to_owned() })
    }
}

/// Whether this is what git writes where there is no object.
fn is_absent(object: &str) -> bool {
    object.bytes().all(|byte| byte == b'0')
}

/// Most commits of a push that are looked at, the newest first: the first push of a long history must
/// not take minutes, and this only warns.
const COMMITS_MAX: &str = "--max-count=1000";

/// The paths that the pushed commits change, apart from merges and from commits that a remote has.
pub(super) fn pushed_paths(references: &[PushedReference]) -> Result<Vec<PathBuf>, Failure> {
    if references.is_empty() {
        return Ok(vec![]);
    }
    let mut revisions = String::new();
    for reference in references {
        revisions += &format!("{}\n", reference.local);
        if !is_absent(&reference.remote) {
            revisions += &format!("^{}\n", reference.remote);
        }
    }
    revisions += "--not\n--remotes\n";
    let mut arguments = vec!["log", "--format=", "--no-merges", COMMITS_MAX, "--no-relative"];
    arguments.extend(NAMES);
    // What the remote has may not have been fetched here.
    arguments.extend(["--ignore-submodules=all", "--ignore-missing", "--stdin"]);
    let output = succeeded("log", run(&arguments, Some(&revisions))?)?;
    let mut paths = names(&output.stdout);
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

fn names(listed: &[u8]) -> Vec<PathBuf> {
    let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| PathBuf::from(OsStr::from_bytes(name))).collect()
}

/// Runs git in the current folder.
fn run(arguments: &[&str], input: Option<&str>) -> Result<Output, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Exit::Error, "GIT", format!("cannot run git: {error}"))
    };
    let mut command = Command::new("git");
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    // It only looks: the index must not be written, which another git may be doing.
    command.env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command.spawn().map_err(failed)?;
    if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
        // Git says itself why it did not read.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output().map_err(failed)
}

fn succeeded(verb: &str, output: Output) -> Result<Output, Failure> {
    if output.status.success() { Ok(output) } else { Err(failed(verb, &output)) }
}

fn failed(verb: &str, output: &Output) -> Failure {
    let text = String::from_utf8_lossy(&output.stderr);
    let first = text.lines().next().unwrap_or("it said nothing");
    Failure::new(Exit::Error, "GIT", format!("git {verb} failed: {first}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pushed_reference_has_four_words_and_an_object() {
        let (some, none) = ("a".repeat(40), "0".repeat(40));
        let read = |line: String| PushedReference::parse(&line);
        let both = |local: &str, remote: &str| {
            Some(PushedReference { local: local.to_owned(), remote: remote.to_owned() })
        };
        for (line, expected) in [
            (format!("refs/heads/x {some} refs/heads/x {none}"), both(&some, &none)),
            (format!("HEAD~1 {some} refs/heads/x {some}"), both(&some, &some)),
            (format!("(delete) {none} refs/heads/x {some}"), None),
            (format!("refs/heads/x --all refs/heads/x {none}"), None),
            (format!("refs/heads/x {some}"), None),
            (String::new(), None),
        ] {
            assert_eq!(read(line.clone()), expected, "{line}");
        }
    }

    #[test]
    fn paths_of_a_worktree_are_made_relative_to_the_root() {
        let repository = |top: Option<&str>| Repository {
            directory: "/r/.git".into(),
            top: top.map(PathBuf::from),
        };
        let paths = || vec![PathBuf::from("a"), PathBuf::from("sub/b")];
        let below = |top, root: &str| repository(top).below(Path::new(root), paths());
        assert_eq!(below(Some("/r"), "/r"), paths());
        assert_eq!(below(None, "/r"), paths());
        assert_eq!(below(Some("/r/in"), "/r"), [Path::new("in/a"), Path::new("in/sub/b")]);
        assert_eq!(below(Some("/r"), "/r/sub"), [Path::new("b")]);
    }
}
