//! A Unix socket for its owner only.

use super::error::ServeError;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};

/// A socket that is removed on drop, unless another server has replaced it.
pub(crate) struct OwnSocket {
    path: PathBuf,
    identity: Option<(u64, u64)>,
    pub(crate) listener: UnixListener,
}

impl OwnSocket {
    /// Creates the socket. The socket of a dead server is replaced; that of a running one is an
    /// error.
    pub(crate) async fn bind(path: &Path) -> Result<OwnSocket, ServeError> {
        let refused = |source| ServeError::Socket { path: path.to_owned(), source };
        match fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => {
                let what = "a file that is not a socket is in its place";
                return Err(refused(io::Error::new(io::ErrorKind::AlreadyExists, what)));
            }
            Ok(_) if UnixStream::connect(path).await.is_ok() => {
                return Err(ServeError::SocketInUse { path: path.to_owned() });
            }
            _ => {}
        }
        let listener = bind_private(path).map_err(refused)?;
        Ok(OwnSocket { path: path.to_owned(), identity: identity(path), listener })
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Creates the socket where no other user can reach it, restricts its permissions, and then moves
/// it into place.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let random = uuid::Uuid::new_v4().simple().to_string();
    let folder = path.with_file_name(format!(".tnr-{}", &random[..8]));
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    let inside = folder.join("s");
    let bound = UnixListener::bind(&inside).and_then(|listener| {
        fs::set_permissions(&inside, fs::Permissions::from_mode(0o600))?;
        fs::rename(&inside, path)?;
        Ok(listener)
    });
    let _ = fs::remove_file(&inside);
    let _ = fs::remove_dir(&folder);
    bound
}
