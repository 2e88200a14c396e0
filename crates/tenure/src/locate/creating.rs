//! Whether a store that was named and does not exist may be created: a mistyped path must not become
//! a separate store that excludes no other process.

use crate::url::StoreUrl;
use std::path::Path;

/// How many names of a folder are looked at.
const NAMES_MAX: usize = 10_000;

/// Why a named store is not created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotCreated {
    /// There is another store in the folder, of this name, which may have been meant.
    OtherStore(String),
    /// Only `tenure init` creates it: there is no such folder, or it is a store of another kind.
    Missing,
}

/// Says whether the store may be created: only a database, in a folder that exists and has no other.
pub fn may_create(url: &StoreUrl) -> Result<(), NotCreated> {
    let StoreUrl::Sqlite { path } = url else { return Err(NotCreated::Missing) };
    let folder = url.folder().filter(|folder| folder.is_dir());
    let folder = folder.filter(|_| *url != StoreUrl::machine()).ok_or(NotCreated::Missing)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match other_store_in(folder, &name) {
        Some(other) => Err(NotCreated::OtherStore(other)),
        None => Ok(()),
    }
}

/// The name of another store in this folder than `own`, recognised by the folder beside it. Another
/// process may have created `own` meanwhile.
fn other_store_in(folder: &Path, own: &str) -> Option<String> {
    let entries = std::fs::read_dir(folder).ok()?.take(NAMES_MAX).filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut stores = names.filter_map(|name| Some(name.strip_suffix(".side")?.to_owned()));
    stores.find(|name| name != own && folder.join(name).is_file())
}
