//! The one path by which a file is known, however it was named.

use super::FileError;
use std::io;
use std::path::{Path, PathBuf};

/// As many links as the kernel follows before it gives up.
const LINKS_MAX: usize = 40;

/// The absolute path without links, `.` or `..` that `path` leads to. The file itself need not be
/// there yet, also not at the end of a link; its folder must.
pub fn real_path(path: &Path) -> Result<PathBuf, FileError> {
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        match std::fs::canonicalize(&at) {
            Ok(real) => return Ok(real),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(FileError::from_attempt(path, "found", error)),
        }
        let no_folder = || FileError::NoFolder { path: path.to_owned() };
        let name = at.file_name().ok_or_else(no_folder)?.to_owned();
        let folder = match at.parent() {
            Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
            Some(folder) => folder,
            None => return Err(no_folder()),
        };
        let folder = std::fs::canonicalize(folder).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => no_folder(),
            _ => FileError::from_attempt(path, "found", error),
        })?;
        let missing = folder.join(name);
        match std::fs::read_link(&missing) {
            Ok(target) => at = folder.join(target),
            Err(_) => return Ok(missing),
        }
    }
    let source = io::Error::other("too many links");
    Err(FileError::from_attempt(path, "found", source))
}
