//! The scratch folder of a selftest: a new folder beside the store, so that no existing data is
//! touched.

use super::SelftestError;
use std::io;
use std::path::{Path, PathBuf};
use tenure::url::StoreUrl;

/// A folder on the store's file system, removed on drop.
pub(crate) struct Scratch {
    folder: PathBuf,
    files: bool,
}

impl Scratch {
    /// Creates a folder where the store is or would be.
    pub(crate) fn beside(store: &StoreUrl) -> Result<Scratch, SelftestError> {
        let wanted = store.own_folder().unwrap_or_default();
        let parent = wanted.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
        let make = || {
            // Absolute, because the path is passed to other processes.
            let name = format!(".tenure-selftest-{}", std::process::id());
            let folder = std::fs::canonicalize(parent)?.join(name);
            std::fs::create_dir(&folder)?;
            Ok(folder)
        };
        let failed = |source| SelftestError::Folder { folder: parent.to_owned(), source };
        let folder = make().map_err(failed)?;
        let files = matches!(store, StoreUrl::File { .. });
        Ok(Scratch { folder, files })
    }

    /// The folder itself.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates a folder in it.
    pub(super) fn sub_folder(&self, name: &str) -> Result<PathBuf, SelftestError> {
        let folder = self.folder.join(name.replace(' ', "-"));
        let failed = |source: io::Error| SelftestError::Folder { folder: folder.clone(), source };
        std::fs::create_dir(&folder).map_err(failed)?;
        Ok(folder)
    }

    /// The URL of the store in it, of the same kind as the named one.
    pub(super) fn store(&self) -> String {
        match self.files {
            true => format!("file:{}", self.folder.join("files").display()),
            false => format!("sqlite:{}", self.folder.join("tenure.db").display()),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
