//! The folder with the tokens and records of this user's servers.

use super::record::{Announcement, LocalServer, Record};
use crate::place::Surroundings;
use crate::secret::Secret;
use crate::url::StoreUrl;
use sha2::{Digest, Sha256};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder's name in the user's state folder.
const FOLDER_NAME: &str = "servers";

/// The suffix of a token's file.
const TOKEN_SUFFIX: &str = "token";

/// The suffix of the file that names a token's store.
const STORE_SUFFIX: &str = "store";

/// A longer file was not written by this program.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// The token of a missing store is removed after this time; the store may be on a disk that is not
/// always mounted.
const UNUSED_AFTER: Duration = Duration::from_secs(30 * 24 * 3600);

/// The folder with the tokens and records of this user's servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFolder {
    path: PathBuf,
}

/// The token of a server cannot be read or stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerFolderError {
    /// Other users could read it.
    #[error("{} can be read by other users", .path.display())]
    Exposed {
        /// The file or folder.
        path: PathBuf,
    },
    /// It belongs to another user.
    #[error("{} belongs to another user", .path.display())]
    Foreign {
        /// The file or folder.
        path: PathBuf,
    },
    /// The file contains no token.
    #[error("{} contains no token", .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A system call failed.
    #[error("{} cannot be used: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl ServerFolder {
    /// This user's folder, unless there is no home folder. It need not exist.
    pub fn of(surroundings: &Surroundings) -> Option<ServerFolder> {
        Some(ServerFolder { path: surroundings.user_folder()?.join(FOLDER_NAME) })
    }

    /// This folder, which need not exist.
    pub fn at(path: impl Into<PathBuf>) -> ServerFolder {
        ServerFolder { path: path.into() }
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file with the token of this store's servers.
    pub fn token_file(&self, store: &StoreUrl) -> PathBuf {
        self.path.join(format!("{}.{TOKEN_SUFFIX}", key(store)))
    }

    /// The token of this store's servers; `None` if no server has created one yet.
    pub fn token(&self, store: &StoreUrl) -> Result<Option<Secret>, ServerFolderError> {
        self.check()?;
        read_token(&self.token_file(store))
    }

    /// Stores `new` as the token of this store's servers unless there is one, and returns the valid
    /// one.
    pub fn keep_token(&self, store: &StoreUrl, new: Secret) -> Result<Secret, ServerFolderError> {
        if let Some(kept) = self.token(store)? {
            return Ok(kept);
        }
        let file = self.token_file(store);
        self.write(&file, &line(&new), Existing::Keep)?;
        self.note_store(store);
        // Another server of this store may have been first.
        Ok(read_token(&file)?.unwrap_or(new))
    }

    /// Replaces the token of this store's servers by `new`.
    pub fn replace_token(&self, store: &StoreUrl, new: &Secret) -> Result<(), ServerFolderError> {
        self.write(&self.token_file(store), &line(new), Existing::Replace)?;
        self.note_store(store);
        Ok(())
    }

    /// Announces a server to this user's clients until the result is dropped.
    pub fn announce(&self, record: &Record) -> Result<Announcement, ServerFolderError> {
        self.tidy();
        let file = self.path.join(record.file_name());
        self.write(&file, &record.to_text(), Existing::Replace)?;
        Ok(Announcement::of(file))
    }

    /// Writes a page that redirects a browser to an address with a secret in it. The address is not
    /// passed to the browser's program directly, because all users can read the arguments of every
    /// process.
    pub fn write_page(&self, name: &str, page: &str) -> Result<Announcement, ServerFolderError> {
        let file = self.path.join(name);
        self.write(&file, page, Existing::Replace)?;
        Ok(Announcement::of(file))
    }

    /// The running server of this user at this address, if its token may be sent there. `host` is
    /// an address or `localhost`.
    pub fn find(&self, host: &str, port: u16) -> Option<LocalServer> {
        self.check().ok()?;
        self.records().find_map(|record| {
            let token = self.path.join(Path::new(&record.token_file).file_name()?);
            LocalServer::verified(record.listener(host, port)?, read_token(&token).ok()??)
        })
    }

    /// Whether a server of this user announced this address, running or not.
    pub fn is_announced(&self, host: &str, port: u16) -> bool {
        self.check().is_ok() && self.records().any(|record| record.listener(host, port).is_some())
    }

    fn records(&self) -> impl Iterator<Item = Record> + use<> {
        let files = self.files().filter(|file| Record::is_one(file));
        files.filter_map(|file| Record::parse(&read(&file).ok()??))
    }

    /// Refuses a folder that another user could have prepared. A missing one is fine.
    fn check(&self) -> Result<(), ServerFolderError> {
        match fs::symlink_metadata(&self.path) {
            Ok(metadata) => check_owner(&self.path, &metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(ServerFolderError::Io { path: self.path.clone(), source }),
        }
    }

    fn write(&self, file: &Path, text: &str, existing: Existing) -> Result<(), ServerFolderError> {
        let refused = |source| ServerFolderError::Io { path: file.to_owned(), source };
        check_ancestor(&self.path, rustix::process::geteuid().as_raw())?;
        create_folder(&self.path)
            .map_err(|source| ServerFolderError::Io { path: self.path.clone(), source })?;
        self.check()?;
        let beside = self.path.join(format!("{}.new", uuid::Uuid::new_v4().simple()));
        let written = create_private(&beside)
            .and_then(|mut new| new.write_all(text.as_bytes()).and_then(|()| new.sync_all()))
            .and_then(|()| match existing {
                Existing::Replace => fs::rename(&beside, file),
                Existing::Keep => match fs::hard_link(&beside, file) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                    _ => Ok(()),
                },
            });
        let _ = fs::remove_file(&beside);
        written.map_err(refused)
    }

    fn note_store(&self, store: &StoreUrl) {
        let file = self.path.join(format!("{}.{STORE_SUFFIX}", key(store)));
        // It is only needed for cleaning up.
        let _ = self.write(&file, &format!("{store}\n"), Existing::Replace);
    }

    /// Removes the records of servers that did not do so themselves, and the tokens of stores that
    /// have been missing for long.
    fn tidy(&self) {
        for file in self.files() {
            let is_left_over = match Record::is_one(&file) {
                true => read(&file)
                    .ok()
                    .flatten()
                    .and_then(|text| Record::parse(&text))
                    .is_none_or(|record| record.has_ended()),
                false => {
                    file.extension().is_some_and(|suffix| suffix == STORE_SUFFIX)
                        && is_of_gone_store(&file)
                }
            };
            if is_left_over {
                // A record never has the name of a store, so this removes a token only together
                // with its store.
                let _ = fs::remove_file(file.with_extension(TOKEN_SUFFIX));
                let _ = fs::remove_file(&file);
            }
        }
    }

    #[cfg(all(test, target_os = "linux"))]
    pub(super) fn files_ending(&self, suffix: &str) -> Vec<PathBuf> {
        self.files().filter(|file| file.extension().is_some_and(|it| it == suffix)).collect()
    }

    fn files(&self) -> impl Iterator<Item = PathBuf> + use<> {
        fs::read_dir(&self.path).into_iter().flatten().flatten().map(|entry| entry.path())
    }
}

/// What to do with a file of the same name.
#[derive(Clone, Copy)]
enum Existing {
    Keep,
    Replace,
}

/// The name of a store in a file name: the URL would show in listings and may be long.
fn key(store: &StoreUrl) -> String {
    let digest = Sha256::digest(canonical(store).to_string().as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The same URL for all spellings of one store's path.
fn canonical(store: &StoreUrl) -> StoreUrl {
    let whole = |path: &Path| match (path.parent().map(fs::canonicalize), path.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    };
    let mut store = store.clone();
    match &mut store {
        StoreUrl::Sqlite { path } => *path = whole(path),
        #[cfg(feature = "file-store")]
        StoreUrl::File { folder, .. } => *folder = whole(folder),
        StoreUrl::Memory | StoreUrl::Remote(_) | StoreUrl::Postgres(_) | StoreUrl::Etcd(_) => {}
    }
    store
}

fn is_of_gone_store(file: &Path) -> bool {
    let Ok(Some(text)) = read(file) else { return false };
    let is_gone = text.trim().parse::<StoreUrl>().is_ok_and(|store| !store.exists());
    let age = fs::metadata(file).ok().and_then(|metadata| metadata.modified().ok()?.elapsed().ok());
    is_gone && age.is_some_and(|age| age > UNUSED_AFTER)
}

fn line(secret: &Secret) -> String {
    format!("{}\n", secret.reveal())
}

/// The token in a file; `None` if there is no such file.
pub(super) fn read_token(file: &Path) -> Result<Option<Secret>, ServerFolderError> {
    let Some(text) = read(file)? else { return Ok(None) };
    match text.trim() {
        "" => Err(ServerFolderError::Empty { path: file.to_owned() }),
        secret => Ok(Some(Secret::new(secret))),
    }
}

/// Reads a file that only its owner, this user, can read.
fn read(path: &Path) -> Result<Option<String>, ServerFolderError> {
    let refused = |source| ServerFolderError::Io { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(refused(source)),
    };
    check_owner(path, &file.metadata().map_err(refused)?)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(refused)?;
    Ok(Some(text))
}

fn check_owner(path: &Path, metadata: &fs::Metadata) -> Result<(), ServerFolderError> {
    use std::os::unix::fs::MetadataExt;
    let path = || path.to_owned();
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(ServerFolderError::Foreign { path: path() });
    }
    match metadata.mode() & 0o077 {
        0 => Ok(()),
        _ => Err(ServerFolderError::Exposed { path: path() }),
    }
}

/// Refuses to create a folder in another user's folder: root often has the home of the user who
/// called `sudo`, who could then not use the folder any more.
fn check_ancestor(folder: &Path, own: u32) -> Result<(), ServerFolderError> {
    use std::os::unix::fs::MetadataExt;
    let nearest =
        folder.ancestors().skip(1).find_map(|path| Some((path, fs::metadata(path).ok()?)));
    match nearest.filter(|(_, metadata)| metadata.uid() != own && metadata.uid() != 0) {
        Some((path, _)) => Err(ServerFolderError::Foreign { path: path.to_owned() }),
        None => Ok(()),
    }
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_token_is_kept_for_each_store_and_private() {
        let home = tempfile::tempdir().unwrap();
        let folder = ServerFolder::at(home.path().join("state/servers"));
        let [one, other]: [StoreUrl; 2] =
            ["memory:", "sqlite:/nowhere/a.db"].map(|url| url.parse().unwrap());
        assert_eq!(folder.token(&one).unwrap(), None);
        let kept = folder.keep_token(&one, Secret::new("first")).unwrap();
        assert_eq!(kept.reveal(), "first");
        assert_eq!(folder.keep_token(&one, Secret::new("second")).unwrap(), kept);
        assert_eq!(folder.token(&other).unwrap(), None);
        assert_eq!((mode(folder.path()), mode(&folder.token_file(&one))), (0o700, 0o600));
        folder.replace_token(&one, &Secret::new("third")).unwrap();
        assert_eq!(folder.token(&one).unwrap().unwrap().reveal(), "third");
    }

    #[test]
    fn root_leaves_nothing_in_the_home_of_the_user_who_called_it() {
        let home = tempfile::tempdir().unwrap();
        let own = rustix::process::geteuid().as_raw();
        let user = if own == 0 { 65534 } else { own };
        std::os::unix::fs::chown(home.path(), Some(user), None).unwrap();
        let folder = home.path().join(".local/state/tenure/servers");
        let refused = check_ancestor(&folder, 0);
        assert!(matches!(refused, Err(ServerFolderError::Foreign { .. })), "{refused:?}");
        assert!(check_ancestor(&folder, user).is_ok());
    }

    #[test]
    fn what_others_can_read_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let folder = ServerFolder::at(home.path().join("servers"));
        let store: StoreUrl = "memory:".parse().unwrap();
        folder.keep_token(&store, Secret::new("one")).unwrap();
        let file = folder.token_file(&store);
        fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(matches!(folder.token(&store), Err(ServerFolderError::Exposed { .. })));
        fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        assert!(matches!(folder.token(&store), Err(ServerFolderError::Exposed { .. })));
    }
}
