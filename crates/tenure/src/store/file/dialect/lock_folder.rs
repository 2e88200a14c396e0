//! All lock files of a folder: finding those that a rule needs, and those that are out of order.

use super::lock_file::{self, LockFile};
use super::{LockFiles, SharedFolder, Subject};
use crate::platform::access;
use crate::store::file::error::FileStoreError;
use std::path::{Path, PathBuf};
use tenure_core::{Kind, Resource, Scope, Snapshot, WallTime, format_duration};

/// Where lock files are made before they get their name: on the same file system, and where the
/// other programs do not look. Only the writer whose turn it is makes any, so all that is there at
/// another time was left behind.
const DRAFTS: &str = "drafts";

/// A folder with the lock files of one dialect.
pub(super) struct LockFolder {
    pub(super) format: &'static dyn LockFiles,
    path: PathBuf,
    /// Where files are made before they get their name.
    pub(super) drafts: PathBuf,
    /// Where files that cannot be read are kept.
    pub(super) aside: PathBuf,
}

/// Makes the folder for files that have no name yet.
pub(crate) fn make_drafts(own: &Path) -> std::io::Result<()> {
    access::make_folders(&own.join(DRAFTS))
}

impl LockFolder {
    pub(super) fn new(format: &'static dyn LockFiles, shared: &SharedFolder<'_>) -> LockFolder {
        LockFolder {
            format,
            path: shared.path.to_owned(),
            drafts: shared.own.join(DRAFTS),
            aside: shared.own.join("aside"),
        }
    }

    /// The path of the lock file that stands for a resource; none if the resource can have none.
    pub(super) fn path_of(&self, resource: &Resource) -> Option<PathBuf> {
        self.format.file_name(resource).map(|name| self.path.join(name))
    }

    /// Reads the lock file that stands for a resource; `None` if there is none.
    pub(super) fn read(&self, resource: &Resource) -> Result<Option<LockFile>, FileStoreError> {
        match self.path_of(resource) {
            Some(path) => LockFile::read(self.format, &path),
            None => Ok(None),
        }
    }

    /// The lock files that bear on what is in a scope.
    pub(super) fn in_scope(
        &self,
        scope: &Scope,
        asked: &Scope,
        snapshot: &Snapshot,
    ) -> Result<Vec<(Resource, LockFile)>, FileStoreError> {
        if matches!(scope, Scope::Everything | Scope::Waits { .. }) {
            return self.named_and(named_by(scope, asked), self.all()?);
        }
        if self.locks_paths() {
            return self.overlapping(paths_in(scope, asked, snapshot));
        }
        self.named(match scope {
            Scope::Tasks(_) => snapshot.tasks.iter().map(|task| task.id.resource()).collect(),
            _ => named_by(scope, asked),
        })
    }

    /// Whether two different resources can overlap here.
    fn locks_paths(&self) -> bool {
        self.format.subject() == Subject::Each(Kind::Path)
    }

    /// The lock files of these very resources.
    fn named(&self, resources: Vec<Resource>) -> Result<Vec<(Resource, LockFile)>, FileStoreError> {
        let mut found = Vec::new();
        for resource in resources {
            let file = self.read(&resource)?;
            found.extend(file.map(|file| (resource, file)));
        }
        Ok(found)
    }

    /// The lock files of these paths and of all that overlap with them: any two globs can, whatever
    /// their names.
    fn overlapping(
        &self,
        paths: Vec<Resource>,
    ) -> Result<Vec<(Resource, LockFile)>, FileStoreError> {
        if !paths.iter().any(|resource| resource.kind() == Kind::Path) {
            return Ok(vec![]);
        }
        let mut all = self.all()?;
        all.retain(|(resource, _)| paths.iter().any(|path| path.overlaps(resource)));
        self.named_and(paths, all)
    }

    /// The lock files of these resources, and the others among these. By its name a file is about a
    /// path, whatever it says and even if it cannot be read.
    fn named_and(
        &self,
        resources: Vec<Resource>,
        mut others: Vec<(Resource, LockFile)>,
    ) -> Result<Vec<(Resource, LockFile)>, FileStoreError> {
        let mut found = self.named(resources)?;
        others.retain(|(_, file)| !found.iter().any(|(_, named)| named.path == file.path));
        found.extend(others);
        Ok(found)
    }

    /// All lock files that stand for something. What lies among them and is no file blocks only
    /// requests that name it.
    pub(super) fn all(&self) -> Result<Vec<(Resource, LockFile)>, FileStoreError> {
        if let Subject::Folder(only) = self.format.subject() {
            return self.named(vec![only]);
        }
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let stem = name.strip_suffix(".lock").filter(|stem| !stem.is_empty());
            let Some(stem) = stem else { continue };
            let file = match LockFile::read(self.format, &path) {
                Err(FileStoreError::Obstacle { .. }) => continue,
                file => file?,
            };
            let Some(file) = file else { continue };
            let resource = self.format.resource(stem, file.content.as_ref());
            found.extend(resource.map(|resource| (resource, file)));
        }
        Ok(found)
    }

    /// The lock files that cannot be read and may be about any path of these globs.
    pub(super) fn unreadable_within(
        &self,
        globs: &[Resource],
    ) -> Result<Vec<(Resource, LockFile)>, FileStoreError> {
        if globs.is_empty() || !self.format.hides_resource() {
            return Ok(vec![]);
        }
        let mut all = self.all()?;
        all.retain(|(_, file)| file.content.is_none());
        Ok(all)
    }

    /// What an operator should know of: locks that cannot be read, temporary files that their
    /// writers left, folders among the locks. One sentence each.
    pub(super) fn problems(&self, now: WallTime) -> Result<Vec<String>, FileStoreError> {
        let mut problems = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_lock = match self.format.subject() {
                Subject::Folder(only) => self.format.file_name(&only).as_ref() == Some(&name),
                Subject::Each(_) => name.ends_with(".lock"),
            };
            if !is_lock {
                problems.extend(self.problem_beside_locks(&path, &name, now));
                continue;
            }
            match LockFile::read(self.format, &path) {
                Err(FileStoreError::Obstacle { what }) => problems.push(what),
                Ok(Some(file)) if file.content.is_none() => {
                    problems.push(format!("{} cannot be read as a lock", path.display()));
                }
                _ => {}
            }
        }
        problems.sort();
        Ok(problems)
    }

    /// What is wrong with something that is no lock file, if anything is.
    fn problem_beside_locks(&self, path: &Path, name: &str, now: WallTime) -> Option<String> {
        let meta = std::fs::symlink_metadata(path).ok()?;
        if is_temporary(name) && meta.is_file() {
            let age = self.is_abandoned(&meta, now).then(|| lock_file::age_of(&meta, now))?;
            return Some(format!(
                "{} is a temporary file of a lock, left for {}",
                path.display(),
                format_duration(age)
            ));
        }
        let is_folder = meta.is_dir() && !name.starts_with('.');
        (is_folder && self.format.owns_folder()).then(|| {
            format!("{} is a folder among the locks; locks in it are ignored", path.display())
        })
    }

    /// Whether the writer of a temporary file must be gone: such files live for milliseconds, and a
    /// lock that stays for this long is stale.
    fn is_abandoned(&self, meta: &std::fs::Metadata, now: WallTime) -> bool {
        lock_file::age_of(meta, now) >= self.format.stale_after()
    }

    /// Temporary files of other programs' locks that were left behind.
    pub(super) fn abandoned(&self, now: WallTime) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        let abandoned = entries.filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let meta = std::fs::symlink_metadata(entry.path());
            let left = meta.is_ok_and(|meta| meta.is_file() && self.is_abandoned(&meta, now));
            is_temporary(&name) && left
        });
        abandoned.map(|entry| entry.path()).collect()
    }

    /// Moves a temporary file that was left behind to where such files are kept.
    pub(super) fn set_aside(&self, path: &Path) -> Result<(), FileStoreError> {
        access::make_folders(&self.aside)?;
        match lock_file::keep(path, Some(&self.aside)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            kept => Ok(kept?),
        }
    }

    /// Lock files that processes died over before they got their name.
    pub(super) fn leftover_drafts(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.drafts).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }
}

/// The paths that a scope names; none where it is everything.
pub(super) fn paths_in(scope: &Scope, asked: &Scope, snapshot: &Snapshot) -> Vec<Resource> {
    match scope {
        Scope::Tasks(_) => {
            let globs = snapshot.tasks.iter().flat_map(|task| &task.files);
            globs.filter_map(|glob| Resource::new(Kind::Path, glob).ok()).collect()
        }
        _ => named_by(scope, asked),
    }
}

/// The resources that a scope names; one of everything names those that were asked for at first.
fn named_by(scope: &Scope, asked: &Scope) -> Vec<Resource> {
    match scope {
        Scope::At { resources, .. } | Scope::Queues(resources) | Scope::Waits { resources, .. } => {
            resources.clone()
        }
        Scope::Everything if *asked != Scope::Everything => named_by(asked, asked),
        Scope::Everything | Scope::Tasks(_) => vec![],
    }
}

/// Whether this is a glob that matches more than one path.
pub(super) fn is_pattern(resource: &Resource) -> bool {
    resource.glob().is_some_and(|glob| glob.literal_prefix() != glob.as_str())
}

/// Whether programs give such a name to a lock file while they write it.
fn is_temporary(name: &str) -> bool {
    name.ends_with(".lock.tmp") || name.contains(".lock.") && name.ends_with(".tmp")
}
