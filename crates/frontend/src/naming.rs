//! Which resource a caller of a server names, and names that were taken before names that look like a
//! path were refused.

use tenure::core::{Kind, Resource, ResourceError};
use tenure::place::{PathError, Reach, StoreLocation};
use tenure::store::Dialect;
use tenure::{Client, Error};

/// Where a caller of a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerFiles {
    /// It shares this machine's files: absolute paths and links are looked up.
    Here,
    /// Its files may be on another machine: a path is only a text.
    Elsewhere,
}

/// The resource that a caller of a server asks for. A path is relative to the root. A name without a
/// kind that looks like a path is refused, also one whose first part exists under the server's own
/// root; in a folder of another program's lock files it is as that program writes it.
pub fn requested(
    place: Option<&StoreLocation>,
    files: CallerFiles,
    dialect: Dialect,
    text: &str,
) -> Result<Resource, PathError> {
    let kind = Kind::split(text);
    if kind.is_none() && !dialect.is_native() {
        return Ok(text.parse::<Resource>()?);
    }
    match place {
        Some(place) if kind.is_none() || files == CallerFiles::Here => {
            place.resource(text, Reach::AllWorktrees)
        }
        _ => Ok(Resource::requested(text)?),
    }
}

/// The glob of a path, which was given as a glob or as a resource.
pub fn without_kind(text: &str) -> &str {
    match Kind::split(text) {
        Some((Kind::Path, glob)) => glob,
        _ => text,
    }
}

/// A glob of a task's files as it is stored: relative to the root, also if it was given as a resource
/// (`path:src/**`).
pub fn task_glob(
    place: Option<&StoreLocation>,
    files: CallerFiles,
    text: &str,
) -> Result<String, PathError> {
    let glob = without_kind(text);
    match place.filter(|_| files == CallerFiles::Here) {
        Some(place) => {
            let path = place.resource(&format!("{}:{glob}", Kind::Path), Reach::AllWorktrees)?;
            Ok(path.name().to_owned())
        }
        None => Ok(glob.to_owned()),
    }
}

/// Accepts a name that looks like a path after all if a lock of exactly this name is held or awaited:
/// what is held must stay visible, and its holder must be able to release it. To take a new lock of
/// such a name its kind must be given.
pub async fn accept_in_use(
    client: &Client,
    named: Result<Resource, PathError>,
) -> Result<Result<Resource, PathError>, Error> {
    let Some(lock) = refused_lock(&named) else { return Ok(named) };
    let seen = client.look(std::slice::from_ref(&lock)).await?;
    Ok(match seen.holds.is_empty() && seen.waiters.is_empty() {
        true => named,
        false => Ok(lock),
    })
}

/// The lock that was refused because its name looks like a path.
pub fn refused_lock(named: &Result<Resource, PathError>) -> Option<Resource> {
    match named {
        Err(PathError::Resource(ResourceError::LooksLikePath { name, .. })) => {
            Resource::new(Kind::Lock, name).ok()
        }
        _ => None,
    }
}
