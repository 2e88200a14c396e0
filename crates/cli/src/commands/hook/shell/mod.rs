//! Reads off a shell command which files it clearly writes. It never runs anything, and what it
//! cannot tell (variables, substitutions, programs that it does not know) it leaves out.

mod commands;
mod git;
mod lexer;
#[cfg(test)]
mod tests;

use lexer::{Command, Item, Word};
use std::path::{Path, PathBuf};

/// How deep `sh -c 'sh -c …'` is followed.
const DEPTH_MAX: usize = 3;

/// A longer command is not judged: it is a program rather than a command.
const BYTES_MAX: usize = 64 * 1024;

/// What a shell command clearly changes. All paths are absolute or relative to the folder that was
/// given, and may contain `..`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Writes {
    /// Files that are written, replaced or removed.
    pub(crate) files: Vec<PathBuf>,
    /// Folders that are removed, moved or replaced with all that is in them.
    pub(crate) trees: Vec<PathBuf>,
    /// Files that a pattern of the shell names: the folder, and a glob in it.
    pub(crate) patterns: Vec<(PathBuf, String)>,
    /// Where git would throw away changes that are not committed.
    pub(crate) discards: Vec<Discard>,
}

/// What git would throw away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Discard {
    /// A folder.
    pub(crate) folder: PathBuf,
    /// Whether it happens in the whole worktree that the folder is in, not only below the folder.
    pub(crate) whole_worktree: bool,
    /// Which files it concerns.
    pub(crate) which: Discarded,
}

/// Which files git would throw away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discarded {
    /// Changes of files that git knows.
    Tracked,
    /// Files that git does not know.
    Untracked,
    /// Both.
    Both,
}

impl Writes {
    /// Whether nothing is clearly written.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Writes::default()
    }
}

/// What a file is at present. The judgement itself reads nothing.
pub(crate) trait Files {
    /// Whether this is a folder.
    fn is_folder(&self, path: &Path) -> bool;
    /// Whether there is anything at this path.
    fn exists(&self, path: &Path) -> bool;
}

/// The files of this machine.
pub(crate) struct Disk;

impl Files for Disk {
    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn exists(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }
}

/// What the command clearly writes when it runs in this folder.
pub(crate) fn writes(command: &str, folder: &Path, files: &dyn Files) -> Writes {
    let mut judge = Judge { files, folder: Some(folder.to_owned()), found: Writes::default() };
    judge.script(command, 0);
    judge.found
}

/// Goes through a script, and remembers in which folder the next command runs.
struct Judge<'a> {
    files: &'a dyn Files,
    /// The folder in which the next command runs; `None` after a `cd` to an unknown one.
    folder: Option<PathBuf>,
    found: Writes,
}

impl Judge<'_> {
    fn script(&mut self, text: &str, depth: usize) {
        if text.len() > BYTES_MAX || depth > DEPTH_MAX {
            return;
        }
        // What cannot be read is not judged at all: the rest could mean something else.
        let Some(items) = lexer::items(text) else { return };
        let mut outer = Vec::new();
        for item in &items {
            match item {
                Item::OpenSubshell => outer.push(self.folder.clone()),
                Item::CloseSubshell => self.folder = outer.pop().flatten(),
                Item::Command(command) => self.command(command, depth),
            }
        }
    }

    fn command(&mut self, command: &Command, depth: usize) {
        for target in &command.written {
            self.write(target);
        }
        let words = commands::without_prefixes(&command.words);
        let Some((name, rest)) = words.split_first() else { return };
        let Some(name) = name.text() else { return };
        match name.rsplit('/').next().unwrap_or(name) {
            "cd" | "pushd" => self.change_folder(command, rest),
            "popd" => self.folder = None,
            "sh" | "bash" | "dash" | "zsh" | "ksh" => {
                if let Some(line) = commands::inline_script(rest) {
                    let before = self.folder.clone();
                    self.script(&line, depth + 1);
                    self.folder = before;
                }
            }
            "git" => git::judge(self, rest),
            name => commands::judge(self, name, rest),
        }
    }

    fn change_folder(&mut self, command: &Command, rest: &[Word]) {
        // In a pipeline it changes the folder of its own process only.
        if command.is_piped {
            return;
        }
        let operands: Vec<&Word> = rest.iter().filter(|word| !word.is_option()).collect();
        self.folder = match operands.as_slice() {
            [folder] if !folder.has_pattern() => folder.text().and_then(|text| self.at(text)),
            _ => None,
        };
    }

    /// The path that a text means here; `None` if the folder is unknown.
    fn at(&self, text: &str) -> Option<PathBuf> {
        if text.is_empty() || text == "-" {
            return None;
        }
        match Path::new(text).is_absolute() {
            true => Some(PathBuf::from(text)),
            false => self.folder.as_ref().map(|folder| folder.join(text)),
        }
    }

    /// Notes that a word names something that is written, removed or moved away.
    fn write(&mut self, word: &Word) {
        let Some(text) = word.text() else { return };
        if word.has_pattern() {
            return self.write_pattern(text);
        }
        let Some(path) = self.at(text) else { return };
        self.write_path(path);
    }

    fn write_path(&mut self, path: PathBuf) {
        let list = match self.files.is_folder(&path) {
            true => &mut self.found.trees,
            false => &mut self.found.files,
        };
        if !list.contains(&path) {
            list.push(path);
        }
    }

    /// Notes a pattern such as `src/*.rs`; one in the name of a folder is left out.
    fn write_pattern(&mut self, text: &str) {
        let (folder, pattern) = text.rsplit_once('/').unwrap_or((".", text));
        if folder.contains(['*', '?', '[', '{']) || pattern.contains(['{', '}']) {
            return;
        }
        let folder = if folder.is_empty() { "/" } else { folder };
        if let Some(folder) = self.at(folder) {
            self.found.patterns.push((folder, pattern.to_owned()));
        }
    }

    /// Notes that git would throw away what is not committed: at this path, or below it.
    fn discard(&mut self, word: &Word, which: Discarded) {
        let Some(text) = word.text().filter(|_| !word.has_pattern()) else { return };
        let Some(path) = self.at(text) else { return };
        match self.files.is_folder(&path) {
            true => self.note_discard(Discard { folder: path, whole_worktree: false, which }),
            false => self.write_path(path),
        }
    }

    fn note_discard(&mut self, discard: Discard) {
        if !self.found.discards.contains(&discard) {
            self.found.discards.push(discard);
        }
    }
}
