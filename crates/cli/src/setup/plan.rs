//! What `tenure setup` would change, decided before anything is written.
//!
//! Targets edit files through a [`Plan`]. It shows each the text as earlier targets left it, so
//! that two targets can change one file. [`Plan::apply`] then writes all files or, if one of them
//! cannot be written, none.

use super::renames::{PlannedRename, Undo};
use crate::exit::Exit;
use crate::failure::Failure;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use tenure::file::{FileError, Original, Replace, Sealed};

/// Larger than any configuration file that a person writes.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Changes of files that are planned but not written yet.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Folders, without links, in which files may be changed.
    roots: Vec<PathBuf>,
    files: BTreeMap<PathBuf, PlannedFile>,
    renames: Vec<PlannedRename>,
    /// Sentences for the user, about what was found or must be done by hand.
    pub(crate) notes: Vec<String>,
}

/// A file that a target looked at.
#[derive(Debug)]
pub(crate) struct PlannedFile {
    /// The file as a user writes it: relative to the project's root if it is below it.
    pub(crate) shown: PathBuf,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
    /// Whether a file that is created must be executable.
    executable: bool,
    /// What targets keep in this file.
    pub(crate) parts: Vec<PlannedPart>,
}

/// One thing that a target keeps in a file.
#[derive(Debug)]
pub(crate) struct PlannedPart {
    /// A few words, such as "hooks" or "MCP server".
    pub(crate) what: &'static str,
    /// The word of the target.
    pub(crate) target: &'static str,
    /// Whether the file must change for it.
    pub(crate) changes: bool,
}

/// What happens to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Created,
    Changed,
    Deleted,
    Unchanged,
}

impl Fate {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Fate::Created => "created",
            Fate::Changed => "changed",
            Fate::Deleted => "deleted",
            Fate::Unchanged => "unchanged",
        }
    }
}

impl PlannedFile {
    pub(crate) fn fate(&self) -> Fate {
        match (&self.before, &self.after) {
            (None, Some(_)) => Fate::Created,
            (Some(_), None) => Fate::Deleted,
            (before, after) if before != after => Fate::Changed,
            _ => Fate::Unchanged,
        }
    }
}

/// A file whose text a target cannot edit.
#[derive(Debug)]
pub(crate) struct Malformed {
    /// What is wrong, without the file's name.
    pub(crate) reason: String,
    /// Where it is, counted from 1.
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Malformed {
    /// An error at this position of the text.
    pub(crate) fn at(text: &str, offset: usize, reason: impl Into<String>) -> Malformed {
        let before = &text[..offset.min(text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Malformed { reason: reason.into(), line, column }
    }
}

impl Plan {
    /// A plan for files below this folder.
    pub(crate) fn new(root: &Path) -> Plan {
        let roots = vec![root.to_owned()];
        Plan { roots, files: BTreeMap::new(), renames: Vec::new(), notes: Vec::new() }
    }

    /// Also allows changes below another folder, such as the git directory of a linked worktree.
    pub(crate) fn allow(&mut self, root: &Path) {
        self.roots.push(root.to_owned());
    }

    /// Plans a change of a file: the function gets its text and returns the new one; `None` means
    /// that there is no file.
    pub(crate) fn edit(
        &mut self,
        target: &'static str,
        what: &'static str,
        path: &Path,
        edit: impl FnOnce(Option<&str>) -> Result<Option<String>, Malformed>,
    ) -> Result<(), Failure> {
        let file = self.file(path)?;
        let after = edit(file.after.as_deref()).map_err(|error| malformed(&file.shown, &error))?;
        let changes = after != file.after;
        file.after = after;
        file.parts.push(PlannedPart { what, target, changes });
        Ok(())
    }

    /// Makes a file executable if it is created.
    pub(crate) fn executable(&mut self, path: &Path) -> Result<(), Failure> {
        self.file(path)?.executable = true;
        Ok(())
    }

    /// Plans to keep a file under another name in its folder, unread. A link is not followed. For
    /// later changes in the same plan there is no file any more.
    pub(crate) fn set_aside(&mut self, from: &Path, name: &str) -> Result<(), Failure> {
        let rename = PlannedRename::of(self.unlinked(from)?, name)?;
        let (key, shown) = (rename.from.clone(), self.shown(from));
        let absent =
            PlannedFile { shown, before: None, after: None, executable: false, parts: Vec::new() };
        self.files.insert(key, absent);
        self.renames.push(rename);
        Ok(())
    }

    /// Plans to give a file that was set aside its name again, in the place of a file that goes.
    pub(crate) fn bring_back(&mut self, aside: &Path, name: &str) -> Result<(), Failure> {
        let mut rename = PlannedRename::of(self.unlinked(aside)?, name)?;
        rename.replaced = read(&rename.to, &self.shown(&rename.to))?;
        self.renames.push(rename);
        Ok(())
    }

    /// All files that get another name.
    pub(crate) fn renames(&self) -> &[PlannedRename] {
        &self.renames
    }

    /// The path without links but for its last part.
    fn unlinked(&self, path: &Path) -> Result<PathBuf, Failure> {
        let folder = path.parent().unwrap_or(path);
        let name = path.file_name().unwrap_or_default();
        Ok(real_path(folder, &self.roots)?.join(name))
    }

    /// The path as messages name it.
    fn shown(&self, path: &Path) -> PathBuf {
        let shown = self.roots.first().and_then(|root| path.strip_prefix(root).ok());
        shown.unwrap_or(path).to_owned()
    }

    /// All files that targets looked at, in the order of their paths.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PlannedFile> {
        self.files.values()
    }

    /// Whether a file would change.
    pub(crate) fn changes(&self) -> bool {
        !self.renames.is_empty() || self.files().any(|file| file.fate() != Fate::Unchanged)
    }

    fn file(&mut self, path: &Path) -> Result<&mut PlannedFile, Failure> {
        let unlinked = self.unlinked(path)?;
        let is_set_aside = self.renames.iter().any(|rename| rename.from == unlinked);
        let real = if is_set_aside { unlinked } else { real_path(path, &self.roots)? };
        if !self.files.contains_key(&real) {
            let shown = self.shown(path);
            let before = read(&real, &shown)?;
            let after = before.clone();
            let planned =
                PlannedFile { shown, before, after, executable: false, parts: Vec::new() };
            self.files.insert(real.clone(), planned);
        }
        Ok(self.files.get_mut(&real).expect("it was just inserted"))
    }

    /// Writes everything. All new contents are on disk before the first file is replaced, so that
    /// a read-only file, a full disk or a file that changed meanwhile stops it before that.
    pub(crate) fn apply(&self) -> Result<(), Failure> {
        let changed: Vec<_> =
            self.files.iter().filter(|(_, file)| file.fate() != Fate::Unchanged).collect();
        let (back, aside): (Vec<_>, Vec<_>) =
            self.renames.iter().partition(|rename| rename.replaced.is_some());
        let mut undo = Undo::default();
        for rename in aside {
            undo.add(rename.apply()?);
        }
        let mut folders = Folders::default();
        let mut originals = Vec::new();
        for (path, file) in changed {
            if file.after.is_some() {
                folders.create_parent(path)?;
            }
            if is_write_protected(path) {
                return Err(FileError::ReadOnly { path: path.clone() }.into());
            }
            let original = Original::open(path)?;
            if content(&original)?.as_deref() != file.before.as_deref().map(str::as_bytes) {
                return Err(FileError::Changed { path: path.clone() }.into());
            }
            originals.push((original, path, file));
        }
        let mut sealed: Vec<(Option<Sealed<'_>>, &PathBuf, &PlannedFile)> = Vec::new();
        for (original, path, file) in &originals {
            let Some(after) = &file.after else {
                sealed.push((None, path, file));
                continue;
            };
            let mut draft = original.draft()?;
            draft.write(after.as_bytes())?;
            sealed.push((Some(draft.seal(Replace::default())?), path, file));
        }
        folders.keep();
        for (sealed, path, file) in sealed {
            match sealed {
                Some(sealed) => {
                    sealed.replace()?;
                    if file.executable && file.before.is_none() {
                        make_executable(path)?;
                    }
                }
                None => delete(path)?,
            }
        }
        undo.keep();
        back.into_iter().try_for_each(|rename| rename.apply().map(drop))
    }

    /// Removes folders that are empty, each if its parent folders may be changed at all.
    pub(crate) fn remove_empty_folders(&self, folders: &[PathBuf]) {
        for folder in folders {
            if self.roots.iter().any(|root| folder != root && folder.starts_with(root)) {
                // A folder with content stays: then this fails.
                let _ = std::fs::remove_dir(folder);
            }
        }
    }
}

/// Folders that were created, removed again on drop unless they are kept.
#[derive(Default)]
struct Folders {
    created: Vec<PathBuf>,
}

impl Folders {
    fn create_parent(&mut self, path: &Path) -> Result<(), Failure> {
        let Some(parent) = path.parent() else { return Ok(()) };
        let missing: Vec<_> = parent.ancestors().take_while(|folder| !folder.exists()).collect();
        for folder in missing.into_iter().rev() {
            std::fs::create_dir(folder).map_err(|error| {
                refused(format!("cannot create the folder {}: {error}", folder.display()))
            })?;
            self.created.push(folder.to_owned());
        }
        Ok(())
    }

    fn keep(mut self) {
        self.created.clear();
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        for folder in self.created.iter().rev() {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

pub(super) fn refused(message: String) -> Failure {
    Failure::new(Exit::Configuration, "SETUP_FILE", message)
}

/// A file that cannot be edited because of its text.
fn malformed(shown: &Path, error: &Malformed) -> Failure {
    let Malformed { reason, line, column } = error;
    let shown = shown.display();
    Failure::new(
        Exit::Configuration,
        "MALFORMED",
        format!("{shown}: {reason} (line {line}, column {column})"),
    )
    .hint("Mend the file and run the command again. Nothing was written.")
    .details(serde_json::json!({ "file": shown.to_string(), "line": line, "column": column }))
}

/// The path without links; it need not exist. It must be below one of the roots and belong to this
/// user.
fn real_path(path: &Path, roots: &[PathBuf]) -> Result<PathBuf, Failure> {
    let mut existing = path;
    while existing.symlink_metadata().is_err() {
        existing = existing
            .parent()
            .ok_or_else(|| refused(format!("cannot find a folder for {}", path.display())))?;
    }
    let real = existing.canonicalize().map_err(|error| {
        refused(format!("{} is a link that leads nowhere: {error}", existing.display()))
    })?;
    if !roots.iter().any(|root| real.starts_with(root)) {
        return Err(refused(format!(
            "{} is a link out of the project, to {}",
            existing.display(),
            real.display()
        ))
        .hint("Replace the link with a file, or edit the file that it leads to yourself."));
    }
    check_owner(&real)?;
    let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
    Ok(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
}

/// Refuses files and folders of other users.
fn check_owner(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path)
        .map_err(|error| refused(format!("{} cannot be read: {error}", path.display())))?;
    let user = rustix::process::geteuid().as_raw();
    match metadata.uid() == user {
        true => Ok(()),
        false => Err(refused(format!(
            "{} belongs to another user (id {})",
            path.display(),
            metadata.uid()
        ))
        .hint("Run this as its owner.")),
    }
}

/// The text of a file, if there is one.
fn read(path: &Path, shown: &Path) -> Result<Option<String>, Failure> {
    let unreadable = |error| refused(format!("{} cannot be read: {error}", shown.display()));
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    if !metadata.is_file() {
        return Err(refused(format!("{} is not a file", shown.display())));
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(refused(format!("{} is larger than 4 MiB", shown.display())));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned();
        malformed(shown, &Malformed::at(&text, text.len(), "this is not UTF-8 text"))
    })
}

fn content(original: &Original) -> Result<Option<Vec<u8>>, Failure> {
    let Some(file) = original.content()? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| {
        refused(format!("{} cannot be read: {error}", original.path().display()))
    })?;
    Ok(Some(bytes))
}

/// Whether the file says that its owner does not write it. The system would allow root to.
fn is_write_protected(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().readonly())
}

fn make_executable(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |error| refused(format!("{} cannot be made executable: {error}", path.display()));
    let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
    // Users who may read it may run it.
    let mode = mode | (mode & 0o444) >> 2;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(failed)
}

fn delete(path: &Path) -> Result<(), Failure> {
    std::fs::remove_file(path)
        .map_err(|error| refused(format!("{} cannot be deleted: {error}", path.display())))
}
