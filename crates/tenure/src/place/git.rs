//! Finds the git repository around a folder, without running git.
//!
//! All worktrees of a repository share its *common git directory*. Every decision here depends on
//! that directory only, never on the worktree from which it was reached: otherwise two worktrees of
//! one repository could have two stores.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{PlaceError, canonical};

/// Larger than any path; a larger `.git` or `commondir` file is something else.
const POINTER_BYTES_AT_MOST: u64 = 64 * 1024;

/// A git repository, as seen from a folder in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Repository {
    /// What all worktrees share: `.git` of the main worktree, or the bare repository.
    pub common_directory: PathBuf,
    /// The root of the main worktree, if the common directory tells it.
    pub main_worktree: Option<PathBuf>,
    /// The root of the worktree that the folder is in, unless it is in a git directory.
    pub worktree: Option<PathBuf>,
    /// Git's name of the worktree, if it is a linked one. It stays when the worktree is moved.
    pub linked_name: Option<String>,
}

/// Finds the repository that `directory` is in. `directory` must be canonical.
pub(super) fn find(directory: &Path) -> Result<Option<Repository>, PlaceError> {
    for folder in directory.ancestors() {
        if let Some(git_directory) = git_directory_of(folder)? {
            return repository(&git_directory, Some(folder)).map(Some);
        }
        if is_git_directory(folder)? {
            return repository(folder, None).map(Some);
        }
    }
    Ok(None)
}

/// Makes the repository around a folder ignore files in it that exist only while programs run.
///
/// The patterns go to `info/exclude`, which belongs to this clone alone: the user's own
/// `.gitignore` files are not changed. Outside a repository, or if the file cannot be written, it
/// does nothing.
pub(super) fn exclude(folder: &Path, names: &[&str]) -> Option<()> {
    let repository = find(folder).ok()??;
    let inside = folder.strip_prefix(repository.worktree?).ok()?.to_str()?.to_owned();
    let file = repository.common_directory.join("info").join("exclude");
    let before = match fs::read(&file) {
        Ok(before) => before,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(file.parent()?).ok()?;
            Vec::new()
        }
        Err(_) => return None,
    };
    let known: Vec<&[u8]> = before.split(|byte| *byte == b'\n').collect();
    let mut text = String::new();
    for name in names {
        let line = match inside.is_empty() {
            true => format!("/{name}"),
            false => format!("/{}/{name}", escaped(&inside)),
        };
        if !known.contains(&line.as_bytes()) {
            text += &format!("{line}\n");
        }
    }
    if text.is_empty() {
        return Some(());
    }
    if !before.is_empty() && !before.ends_with(b"\n") {
        text.insert(0, '\n');
    }
    let mut file = fs::File::options().create(true).append(true).open(&file).ok()?;
    // In one write, so that the lines of two programs do not mix.
    io::Write::write_all(&mut file, text.as_bytes()).ok()
}

/// A pattern that matches only this path.
fn escaped(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for character in path.chars() {
        if matches!(character, '*' | '?' | '[' | '\\' | '!' | '#' | ' ') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

fn repository(git_directory: &Path, worktree: Option<&Path>) -> Result<Repository, PlaceError> {
    let common_directory = common_directory(git_directory)?;
    let linked = (git_directory != common_directory).then(|| git_directory.file_name()).flatten();
    Ok(Repository {
        main_worktree: main_worktree(&common_directory)?,
        linked_name: linked.map(|name| name.to_string_lossy().into_owned()),
        common_directory,
        worktree: worktree.map(Path::to_owned),
    })
}

/// The git directory that `folder/.git` is or points to.
fn git_directory_of(folder: &Path) -> Result<Option<PathBuf>, PlaceError> {
    let dot_git = folder.join(".git");
    match kind_of(&dot_git)? {
        Kind::Nothing => Ok(None),
        Kind::Folder => {
            let git_directory = canonical(&dot_git)?;
            // Like git, skip a folder that is merely named `.git`.
            Ok(is_git_directory(&git_directory)?.then_some(git_directory))
        }
        Kind::File => follow_dot_git_file(&dot_git, folder).map(Some),
    }
}

fn follow_dot_git_file(dot_git: &Path, folder: &Path) -> Result<PathBuf, PlaceError> {
    let content = read_pointer(dot_git)?;
    let Some(target) = content.strip_prefix(b"gitdir:") else {
        return Err(broken(dot_git, "it does not begin with `gitdir:`"));
    };
    let target = folder.join(path_from_bytes(target, dot_git)?);
    let is_linked_worktree = exists(&target.join("commondir"))?;
    if !is_linked_worktree && !is_git_directory(&target)? {
        let problem = format!("it points to {}, which is not a git directory", target.display());
        return Err(broken(dot_git, &problem));
    }
    canonical(&target)
}

/// The directory that all worktrees share. A linked worktree names it in its file `commondir`.
fn common_directory(git_directory: &Path) -> Result<PathBuf, PlaceError> {
    let file = git_directory.join("commondir");
    if !exists(&file)? {
        return Ok(git_directory.to_owned());
    }
    let target = git_directory.join(path_from_bytes(&read_pointer(&file)?, &file)?);
    if !is_git_directory(&target)? {
        let problem = format!("it points to {}, which is not a git directory", target.display());
        return Err(broken(&file, &problem));
    }
    canonical(&target)
}

/// The root of the main worktree.
///
/// A submodule has its git directory inside that of the outer repository and names its worktree in
/// the configuration. A bare repository has no main worktree, and one with a separate git directory
/// has one that is not known there.
fn main_worktree(common_directory: &Path) -> Result<Option<PathBuf>, PlaceError> {
    if common_directory.file_name().is_some_and(|name| name == ".git") {
        return Ok(common_directory.parent().map(Path::to_owned));
    }
    // Git moves the setting to the second file when worktrees have their own settings.
    for name in ["config", "config.worktree"] {
        let file = common_directory.join(name);
        if !exists(&file)? {
            continue;
        }
        let content = fs::read(&file).map_err(|source| PlaceError::from_reading(&file, source))?;
        if let Some(value) = core_worktree(&String::from_utf8_lossy(&content)) {
            let worktree = common_directory.join(value);
            return Ok(fs::canonicalize(worktree).ok().filter(|path| path.is_dir()));
        }
    }
    Ok(None)
}

/// The value of `core.worktree` in a git configuration file.
fn core_worktree(config: &str) -> Option<String> {
    let mut in_core = false;
    let mut worktree = None;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            in_core = line.to_ascii_lowercase().starts_with("[core]");
        } else if let Some((name, value)) = line.split_once('=')
            && in_core
            && name.trim().eq_ignore_ascii_case("worktree")
        {
            worktree = Some(unquote(value.trim()));
        }
    }
    worktree
}

/// Git quotes a value with spaces at its ends or comment signs in it, and escapes `"` and `\`.
fn unquote(value: &str) -> String {
    let mut plain = String::new();
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => {}
            '\\' => plain.extend(characters.next()),
            other => plain.push(other),
        }
    }
    plain
}

/// Whether a folder has what git itself expects in a git directory.
fn is_git_directory(folder: &Path) -> Result<bool, PlaceError> {
    Ok(exists(&folder.join("HEAD"))?
        && exists(&folder.join("objects"))?
        && exists(&folder.join("refs"))?)
}

enum Kind {
    Nothing,
    File,
    Folder,
}

fn kind_of(path: &Path) -> Result<Kind, PlaceError> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(Kind::Folder),
        Ok(metadata) if metadata.is_file() => Ok(Kind::File),
        // Opening a pipe or a device could block; git does not follow them either.
        Ok(_) => Ok(Kind::Nothing),
        Err(error) if means_absent(&error) => Ok(Kind::Nothing),
        Err(source) => Err(PlaceError::from_reading(path, source)),
    }
}

/// Whether anything exists at `path`, even a broken link: git's `HEAD` may be one.
fn exists(path: &Path) -> Result<bool, PlaceError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if means_absent(&error) => Ok(false),
        Err(source) => Err(PlaceError::from_reading(path, source)),
    }
}

fn means_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn read_pointer(file: &Path) -> Result<Vec<u8>, PlaceError> {
    let mut content = Vec::new();
    fs::File::open(file)
        .and_then(|opened| opened.take(POINTER_BYTES_AT_MOST).read_to_end(&mut content))
        .map_err(|source| PlaceError::from_reading(file, source))?;
    Ok(content)
}

fn path_from_bytes(bytes: &[u8], file: &Path) -> Result<PathBuf, PlaceError> {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::OsStr::from_bytes(bytes.trim_ascii());
    refuse_impossible(PathBuf::from(name), file)
}

fn refuse_impossible(path: PathBuf, file: &Path) -> Result<PathBuf, PlaceError> {
    let name = path.as_os_str().as_encoded_bytes();
    if name.is_empty() || name.contains(&0) {
        return Err(broken(file, "it names no path"));
    }
    Ok(path)
}

fn broken(path: &Path, problem: &str) -> PlaceError {
    PlaceError::BrokenRepository { path: path.to_owned(), problem: problem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::core_worktree;

    #[test]
    fn core_worktree_is_read_from_its_section_only() {
        for (config, expected) in [
            ("[core]\n\tbare = true\n", None),
            ("[core]\n\tworktree = ../../../sub\n", Some("../../../sub")),
            ("[CORE]\nWorkTree=\"a \\\"b\\\" c\"\n", Some("a \"b\" c")),
            ("[other]\n\tworktree = x\n", None),
            ("[core]\n[remote \"core\"]\n\tworktree = x\n", None),
            ("[core]\n\t# worktree = x\n", None),
        ] {
            assert_eq!(core_worktree(config).as_deref(), expected, "{config}");
        }
    }
}
