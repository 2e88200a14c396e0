//! Resolves a path to the one path by which a file is known.

use std::io;
use std::path::{Path, PathBuf};

/// As many links as the kernel follows.
const LINKS_MAX: usize = 40;

/// The absolute path of `path` without links, `.` or `..`. The file itself need not exist, also not
/// at the end of a link; its folder must.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_owned();
    for _ in 0..LINKS_MAX {
        match std::fs::canonicalize(&at) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
        let no_folder = || io::Error::from(io::ErrorKind::NotFound);
        let name = at.file_name().ok_or_else(no_folder)?.to_owned();
        let folder = match at.parent() {
            Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
            Some(folder) => folder,
            None => return Err(no_folder()),
        };
        let folder = std::fs::canonicalize(folder)?;
        let missing = folder.join(name);
        match std::fs::read_link(&missing) {
            Ok(target) => at = folder.join(target),
            Err(_) => return Ok(missing),
        }
    }
    Err(io::Error::other("too many links"))
}
