//! Naming a store by its URL, and opening it.

mod engine;

pub use engine::{EngineUrl, without_password};

use crate::error::Error;
use crate::local_server::ServerFolder;
use crate::place::{self, ExclusionRecord, PlaceError, Surroundings};
#[cfg(feature = "http")]
use crate::remote::Remote;
use crate::secret::Secret;
#[cfg(feature = "file-store")]
use crate::store::file::{Dialect, FileOptions, FileStore, TakeoverRules};
use crate::store::memory::MemoryStore;
use crate::store::{PerProcessStore, Store, StoreError};
use crate::world::World;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
#[cfg(feature = "file-store")]
use tenure_text::duration::parse_lease;

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `http://HOST:PORT` or `https://HOST:PORT`.
    Url(String),
    /// `unix:PATH`.
    Socket(PathBuf),
}

impl Address {
    /// Whether both are the same server: the same scheme, host and port, or the same socket. A path
    /// behind the port does not matter.
    pub fn is_same_server(&self, other: &Address) -> bool {
        match (self, other) {
            (Address::Url(one), Address::Url(other)) => {
                origin(one).is_some_and(|one| Some(one) == origin(other))
            }
            (Address::Socket(one), Address::Socket(other)) => one == other,
            _ => false,
        }
    }
}

/// Scheme, host and port of a server's URL.
fn origin(url: &str) -> Option<(String, String, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?.to_ascii_lowercase();
    let scheme = scheme.to_ascii_lowercase();
    // The last colon is no port inside the brackets of an IPv6 address.
    let port = authority.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
    let (host, port) = match port {
        Some((host, port)) => (host.to_owned(), port.parse().ok()?),
        None => (authority.clone(), if scheme == "https" { 443 } else { 80 }),
    };
    Some((scheme, host.trim_end_matches('.').to_owned(), port))
}

/// How to reach a server.
#[derive(Clone, Debug, Default)]
pub struct RemoteOptions {
    /// Shows the server who asks.
    pub token: Option<Secret>,
    /// Where to look for the token of a server of this user on this machine, if no token is given.
    pub local_servers: Option<ServerFolder>,
    /// A PEM file with the certificate authorities to trust; the system's if not set.
    pub ca_file: Option<PathBuf>,
    /// The label that the caller chose.
    pub label: Option<String>,
    /// Observes the requests that are sent.
    #[cfg(feature = "http")]
    pub observer: crate::remote::Observer,
}

impl RemoteOptions {
    /// Without a token, except that of a server which this user runs on this machine.
    pub fn of_user() -> RemoteOptions {
        let local_servers = ServerFolder::of(&Surroundings::of_process(PathBuf::new()));
        RemoteOptions { local_servers, ..RemoteOptions::default() }
    }
}

/// Which store is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// `memory:`, for one process.
    Memory,
    /// `sqlite:PATH`; `machine:` is the one at [`StoreUrl::machine`].
    Sqlite {
        /// The database file.
        path: PathBuf,
    },
    #[cfg(feature = "file-store")]
    /// `file:FOLDER`, with `?dialect=WORD` to share the lock files of other programs.
    File {
        /// The folder.
        folder: PathBuf,
        /// Whose lock files are in it.
        dialect: Dialect,
        /// When locks and claims of those programs may be taken over.
        takeover: TakeoverRules,
        /// Whether the user says that exclusion was shown to hold on this file system
        /// (`?exclusion=shown`), so that a network or FUSE one is not refused if the record of a
        /// check says so too: see [`check_exclusion`](crate::place::check_exclusion).
        exclusion_shown: bool,
    },
    /// `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`: a server that has a store.
    Remote(Address),
    /// `postgres://…`, a PostgreSQL database.
    Postgres(EngineUrl),
    /// `etcd://…` or `etcds://…`, an etcd cluster.
    Etcd(EngineUrl),
}

/// What a URL names, opened.
pub(crate) enum Opened {
    Store(Arc<dyn Store>),
    #[cfg(feature = "http")]
    Remote(Arc<Remote>),
}

/// The text does not name a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It begins with no word that we know.
    #[error("{url:?} is not the URL of a store")]
    Unknown {
        /// What was given.
        url: String,
    },
    /// It names a store that this build does not have.
    #[error("{url:?} is a kind of store that this tenure was built without")]
    Absent {
        /// What was given.
        url: String,
    },
    /// It is not the address of a server.
    #[error("{url:?} is not the address of a server")]
    Server {
        /// What was given.
        url: String,
    },
    /// It is not the address of a database server.
    #[error("{url:?} is not the address of a database server")]
    Engine {
        /// What was given, without its password.
        url: String,
    },
    /// There is nothing after the colon.
    #[error("{url:?} has no path")]
    NoPath {
        /// What was given.
        url: String,
    },
    /// What stands after the question mark means nothing.
    #[error("{option:?} is not an option of {url:?}")]
    Option {
        /// What was given.
        url: String,
        /// The part that was not understood.
        option: String,
    },
}

impl UrlError {
    /// What to do about it, in one sentence.
    pub fn hint(&self) -> String {
        match self {
            UrlError::Absent { .. } => {
                "Build tenure with the Cargo feature of that store, such as `--features etcd`, or use another store.".to_owned()
            }
            UrlError::Unknown { .. } => {
                "Use sqlite:PATH, file:FOLDER, machine: (for all users of this machine), postgres://HOST/DATABASE, etcd://HOST:PORT, http://HOST:PORT, unix:SOCKET or memory: (for one process)."
                    .to_owned()
            }
            UrlError::Server { .. } => {
                "Write http://HOST:PORT or https://HOST; a token goes into TENURE_SERVER_TOKEN.".to_owned()
            }
            UrlError::Engine { .. } => {
                "Write postgres://USER@HOST:PORT/DATABASE or etcd://HOST:PORT,HOST:PORT/PREFIX."
                    .to_owned()
            }
            UrlError::NoPath { .. } => {
                "Write sqlite:PATH or file:FOLDER, for example sqlite:locks.db.".to_owned()
            }
            #[cfg(not(feature = "file-store"))]
            UrlError::Option { .. } => "Leave the option out.".to_owned(),
            #[cfg(feature = "file-store")]
            UrlError::Option { .. } => {
                let words = Dialect::FOREIGN.map(Dialect::name).join(", ");
                format!(
                    "Options of file: are dialect= (one of {words}), exclusion=shown, \
                     break_stale=no and, with dialect=coordination, claim_limit=DURATION."
                )
            }
        }
    }
}

impl FromStr for StoreUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<StoreUrl, UrlError> {
        let url = || without_password(text);
        let (scheme, rest) =
            text.split_once(':').ok_or_else(|| UrlError::Unknown { url: url() })?;
        match scheme {
            "memory" => Ok(StoreUrl::Memory),
            "machine" if rest.is_empty() => Ok(StoreUrl::machine()),
            "sqlite" | "file" if rest.is_empty() => Err(UrlError::NoPath { url: url() }),
            "sqlite" => Ok(StoreUrl::Sqlite { path: rest.into() }),
            "file" => parse_file(text, rest),
            "http" | "https" => parse_http(text, rest),
            "unix" if rest.is_empty() => Err(UrlError::NoPath { url: url() }),
            "unix" => Ok(StoreUrl::Remote(Address::Socket(rest.into()))),
            "postgres" | "postgresql" => EngineUrl::parse(text).map(StoreUrl::Postgres),
            "etcd" | "etcds" => EngineUrl::parse(text).map(StoreUrl::Etcd),
            _ => Err(UrlError::Unknown { url: url() }),
        }
    }
}

fn parse_http(url: &str, rest: &str) -> Result<StoreUrl, UrlError> {
    let host = rest.strip_prefix("//").filter(|rest| !rest.is_empty() && !rest.starts_with('/'));
    match host {
        // A secret in an address would be shown wherever the address is.
        Some(host) if !host.contains(['@', '?', '#', ' ']) => {
            Ok(StoreUrl::Remote(Address::Url(url.trim_end_matches('/').to_owned())))
        }
        _ => Err(UrlError::Server { url: url.to_owned() }),
    }
}

#[cfg(not(feature = "file-store"))]
fn parse_file(url: &str, _: &str) -> Result<StoreUrl, UrlError> {
    Err(UrlError::Absent { url: url.to_owned() })
}

#[cfg(feature = "file-store")]
fn parse_file(url: &str, rest: &str) -> Result<StoreUrl, UrlError> {
    let (folder, options) = rest.split_once('?').unwrap_or((rest, ""));
    // `file:///a/b` is how others write the path `/a/b`.
    let folder = folder.strip_prefix("//").filter(|path| path.starts_with('/')).unwrap_or(folder);
    if folder.is_empty() {
        return Err(UrlError::NoPath { url: url.to_owned() });
    }
    let (mut dialect, mut exclusion_shown) = (Dialect::NATIVE, false);
    let mut takeover = TakeoverRules::default();
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let wrong = || UrlError::Option { url: url.to_owned(), option: option.to_owned() };
        match option.split_once('=') {
            Some(("dialect", word)) => dialect = word.parse().map_err(|_| wrong())?,
            Some(("exclusion", "shown")) => exclusion_shown = true,
            Some(("break_stale", "no" | "false" | "off" | "0")) => takeover.break_stale = false,
            Some(("break_stale", "yes" | "true" | "on" | "1")) => takeover.break_stale = true,
            Some(("claim_limit", span)) => {
                takeover.claim_limit = Some(parse_lease(span).map_err(|_| wrong())?);
            }
            _ => return Err(wrong()),
        }
    }
    let misplaced = if dialect.is_native() {
        (takeover != TakeoverRules::default()).then_some("break_stale and claim_limit")
    } else {
        takeover.claim_limit.filter(|_| !dialect.has_endless_claims()).map(|_| "claim_limit")
    };
    if let Some(option) = misplaced {
        return Err(UrlError::Option { url: url.to_owned(), option: option.to_owned() });
    }
    Ok(StoreUrl::File { folder: folder.into(), dialect, takeover, exclusion_shown })
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Memory => f.write_str("memory:"),
            StoreUrl::Sqlite { path } => write!(f, "sqlite:{}", path.display()),
            StoreUrl::Remote(Address::Url(url)) => f.write_str(url),
            StoreUrl::Remote(Address::Socket(path)) => write!(f, "unix:{}", path.display()),
            StoreUrl::Postgres(url) | StoreUrl::Etcd(url) => url.fmt(f),
            #[cfg(feature = "file-store")]
            StoreUrl::File { folder, dialect, takeover, exclusion_shown } => {
                write!(f, "file:{}", folder.display())?;
                let dialect = (!dialect.is_native()).then(|| format!("dialect={}", dialect.name()));
                let kept = (!takeover.break_stale).then(|| "break_stale=no".to_owned());
                let limit = takeover.claim_limit;
                let limit = limit.map(|limit| format!("claim_limit={}ms", limit.as_millis()));
                let shown = exclusion_shown.then(|| "exclusion=shown".to_owned());
                let options: Vec<String> =
                    [dialect, kept, limit, shown].into_iter().flatten().collect();
                match options.is_empty() {
                    true => Ok(()),
                    false => write!(f, "?{}", options.join("&")),
                }
            }
        }
    }
}

impl StoreUrl {
    /// `machine:`, the store for all users of this machine. Its folder is
    /// [`machine_folder`](crate::place::machine_folder).
    pub fn machine() -> StoreUrl {
        StoreUrl::Sqlite { path: place::machine_folder().join("tenure.db") }
    }

    /// The same store, with a path that does not depend on the current folder.
    pub fn beneath(self, base: &Path) -> StoreUrl {
        match self {
            StoreUrl::Memory
            | StoreUrl::Remote(Address::Url(_))
            | StoreUrl::Postgres(_)
            | StoreUrl::Etcd(_) => self,
            StoreUrl::Remote(Address::Socket(path)) => {
                StoreUrl::Remote(Address::Socket(base.join(path)))
            }
            StoreUrl::Sqlite { path } => StoreUrl::Sqlite { path: base.join(path) },
            #[cfg(feature = "file-store")]
            StoreUrl::File { folder, dialect, takeover, exclusion_shown } => {
                StoreUrl::File { folder: base.join(folder), dialect, takeover, exclusion_shown }
            }
        }
    }

    /// The folder in which its files lie.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            StoreUrl::Memory | StoreUrl::Remote(_) | StoreUrl::Postgres(_) | StoreUrl::Etcd(_) => {
                None
            }
            StoreUrl::Sqlite { path } => Some(path.parent().unwrap_or(Path::new("."))),
            #[cfg(feature = "file-store")]
            StoreUrl::File { folder, .. } => Some(folder),
        }
    }

    /// All that the store reads and writes, as far as it has names that are known beforehand: its
    /// files and folders, existing or not.
    pub fn paths(&self) -> Vec<PathBuf> {
        match self {
            StoreUrl::Sqlite { path } => {
                let beside = |suffix: &str| {
                    let mut name = path.clone().into_os_string();
                    name.push(suffix);
                    PathBuf::from(name)
                };
                ["", "-wal", "-shm", "-journal", ".side"].map(beside).to_vec()
            }
            #[cfg(feature = "file-store")]
            StoreUrl::File { folder, dialect, .. } => {
                let own = dialect.own_folder(folder);
                let mut paths = vec![folder.clone(), own.clone()];
                paths.extend(
                    ["journal", "done", "held", "side", "aside"].map(|name| own.join(name)),
                );
                paths.extend(dialect.task_files(folder));
                paths
            }
            StoreUrl::Memory | StoreUrl::Remote(_) | StoreUrl::Postgres(_) | StoreUrl::Etcd(_) => {
                vec![]
            }
        }
    }

    /// What of the store every user of this machine can read, with the grants that prove ownership.
    pub fn readable_by_all(&self) -> Option<PathBuf> {
        use std::os::unix::fs::MetadataExt;
        let path = match self {
            StoreUrl::Sqlite { path } => path.clone(),
            #[cfg(feature = "file-store")]
            StoreUrl::File { folder, dialect, .. } => dialect.own_folder(folder).join("journal"),
            StoreUrl::Memory | StoreUrl::Remote(_) | StoreUrl::Postgres(_) | StoreUrl::Etcd(_) => {
                return None;
            }
        };
        let may =
            |path: &Path, what: u32| path.metadata().is_ok_and(|meta| meta.mode() & what != 0);
        (may(&path, 0o004) && path.parent().is_some_and(|folder| may(folder, 0o001)))
            .then_some(path)
    }

    /// The folder that is tenure's own, for what lies beside the store.
    pub fn own_folder(&self) -> Option<PathBuf> {
        match self {
            #[cfg(feature = "file-store")]
            StoreUrl::File { folder, dialect, .. } => Some(dialect.own_folder(folder)),
            _ => self.folder().map(Path::to_owned),
        }
    }

    /// Whether the store, or what is left of one, is there. A server is asked only when the store is
    /// used.
    pub fn exists(&self) -> bool {
        match self {
            StoreUrl::Memory | StoreUrl::Remote(_) | StoreUrl::Postgres(_) | StoreUrl::Etcd(_) => {
                true
            }
            StoreUrl::Sqlite { path } => {
                let mut log = path.clone().into_os_string();
                log.push("-wal");
                path.exists() || Path::new(&log).exists()
            }
            #[cfg(feature = "file-store")]
            StoreUrl::File { folder, .. } => folder.exists(),
        }
    }

    /// Checks that locks can be trusted where it lies; returns the record of a check where one was
    /// needed.
    pub fn check_place(&self) -> Result<Option<ExclusionRecord>, PlaceError> {
        match (self, self.folder(), self.own_folder()) {
            #[cfg(feature = "file-store")]
            (StoreUrl::File { exclusion_shown: true, .. }, Some(folder), Some(own)) => {
                place::check_exclusion(folder, &own)
            }
            (_, Some(folder), _) => place::check_file_system(folder).map(|_| None),
            (_, None, _) => Ok(None),
        }
    }

    #[cfg(feature = "file-store")]
    /// Whose lock files are in it: [`Dialect::NATIVE`] unless it is a folder that other programs use.
    pub fn dialect(&self) -> Dialect {
        match self {
            StoreUrl::File { dialect, .. } => *dialect,
            _ => Dialect::NATIVE,
        }
    }
}

/// How a store is opened; what a store cannot use it ignores.
pub(crate) struct OpenOptions {
    pub(crate) world: Arc<dyn World>,
    /// Whether the process ends soon: it then keeps the log short for the next one.
    pub(crate) one_shot: bool,
    pub(crate) poll_interval: std::time::Duration,
    /// Whether a store that may not be written to is opened all the same.
    pub(crate) look_only: bool,
    /// Is told what the user should know, a sentence each.
    pub(crate) warn: Arc<dyn Fn(&str) + Send + Sync>,
    /// How to reach a server.
    pub(crate) remote: RemoteOptions,
}

/// After so many pages a one-shot command folds the log into the database: some twenty-five commands
/// share that cost, and each reads at most so much at its start.
#[cfg(feature = "sqlite")]
const ONE_SHOT_CHECKPOINT_PAGES: u32 = 128;

pub(crate) fn open(url: StoreUrl, options: OpenOptions) -> Result<Opened, Error> {
    let store: Arc<dyn Store> = match url {
        StoreUrl::Remote(address) => return open_remote(&address, &options),
        StoreUrl::Memory => Arc::new(MemoryStore::with_clock(options.world.clock())),
        StoreUrl::Sqlite { path } => open_sqlite(&path, options)?,
        #[cfg(feature = "file-store")]
        StoreUrl::File { folder, dialect, takeover, .. } => {
            let OpenOptions { poll_interval, look_only, .. } = options;
            let clock = options.world.clock();
            let options = FileOptions { clock, poll_interval, look_only, dialect, takeover };
            let open = move || -> Result<Arc<dyn Store>, StoreError> {
                Ok(Arc::new(FileStore::open_with(&folder, options.clone())?))
            };
            Arc::new(PerProcessStore::open(open)?)
        }
        StoreUrl::Postgres(url) => open_postgres(url, options)?,
        StoreUrl::Etcd(url) => open_etcd(url, options)?,
    };
    Ok(Opened::Store(store))
}

#[cfg(feature = "http")]
fn open_remote(address: &Address, options: &OpenOptions) -> Result<Opened, Error> {
    Ok(Opened::Remote(Arc::new(Remote::new(address, &options.remote, options.world.clone())?)))
}

#[cfg(not(feature = "http"))]
fn open_remote(address: &Address, _: &OpenOptions) -> Result<Opened, Error> {
    Err(UrlError::Absent { url: StoreUrl::Remote(address.clone()).to_string() }.into())
}

#[cfg(feature = "sqlite")]
fn open_sqlite(path: &Path, options: OpenOptions) -> Result<Arc<dyn Store>, Error> {
    use crate::store::sqlite::{SqliteOptions, SqliteStore};
    let defaults = SqliteOptions::default();
    let checkpoint_pages =
        if options.one_shot { ONE_SHOT_CHECKPOINT_PAGES } else { defaults.checkpoint_pages };
    let options = SqliteOptions {
        clock: options.world.clock(),
        checkpoint_pages,
        one_shot: options.one_shot,
        poll_interval: options.poll_interval,
        look_only: options.look_only,
    };
    let path = path.to_owned();
    let open = move || -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(SqliteStore::open_with(&path, options.clone())?))
    };
    Ok(Arc::new(PerProcessStore::open(open)?))
}

#[cfg(feature = "postgres")]
fn open_postgres(url: EngineUrl, options: OpenOptions) -> Result<Arc<dyn Store>, Error> {
    use crate::store::postgres::{PostgresOptions, PostgresStore};
    let OpenOptions { one_shot, poll_interval, warn, .. } = options;
    let options = PostgresOptions { one_shot, poll_interval, warn };
    let open = move || -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(PostgresStore::open_with(&url, options.clone())?))
    };
    Ok(Arc::new(PerProcessStore::open(open)?))
}

#[cfg(not(feature = "postgres"))]
fn open_postgres(url: EngineUrl, _: OpenOptions) -> Result<Arc<dyn Store>, Error> {
    Err(UrlError::Absent { url: url.to_string() }.into())
}

#[cfg(feature = "etcd")]
fn open_etcd(url: EngineUrl, options: OpenOptions) -> Result<Arc<dyn Store>, Error> {
    use crate::store::etcd::{EtcdOptions, EtcdStore};
    let options = EtcdOptions { poll_interval: options.poll_interval, ..EtcdOptions::default() };
    let open = move || -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(EtcdStore::open_with(&url, options.clone())?))
    };
    Ok(Arc::new(PerProcessStore::open(open)?))
}

#[cfg(not(feature = "etcd"))]
fn open_etcd(url: EngineUrl, _: OpenOptions) -> Result<Arc<dyn Store>, Error> {
    Err(UrlError::Absent { url: url.to_string() }.into())
}

#[cfg(not(feature = "sqlite"))]
fn open_sqlite(path: &Path, _: OpenOptions) -> Result<Arc<dyn Store>, Error> {
    Err(UrlError::Absent { url: format!("sqlite:{}", path.display()) }.into())
}

#[cfg(all(test, feature = "file-store"))]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_scheme_host_and_port() {
        let address = |text: &str| match text.parse() {
            Ok(StoreUrl::Remote(address)) => address,
            other => panic!("{text}: {other:?}"),
        };
        let same = |one: &str, other: &str| address(one).is_same_server(&address(other));
        assert!(same("https://Locks.example.org", "https://locks.example.org:443/prefix"));
        assert!(same("http://[::1]", "http://[::1]:80"));
        assert!(same("unix:/run/t.sock", "unix:/run/t.sock"));
        assert!(!same("https://locks.example.org", "http://locks.example.org"));
        assert!(!same("https://locks.example.org", "https://locks.example.org:8443"));
        assert!(!same("https://locks.example.org", "https://locks.example.org.evil.net"));
        assert!(!same("http://a:1", "http://a:2"));
        assert!(!same("http://a:x", "http://b:x"));
        assert!(!same("unix:/run/t.sock", "http://localhost"));
    }

    #[test]
    fn what_is_written_is_read_and_written_again() {
        for text in [
            "memory:",
            "sqlite:a b.db",
            "file:locks",
            "file:/x/y?dialect=memory",
            "file:x?dialect=worker&exclusion=shown",
            "file:x?dialect=memory&break_stale=no",
            "file:x?dialect=coordination&claim_limit=7200000ms",
        ] {
            assert_eq!(text.parse::<StoreUrl>().unwrap().to_string(), text);
        }
        let native: StoreUrl = "file:///x?dialect=native".parse().unwrap();
        assert_eq!(native.to_string(), "file:/x");
        for text in [
            "file:",
            "file:?dialect=memory",
            "file:x?dialect=klingon",
            "file:x?y",
            "nfs:x",
            "file:x?dialect=memory&break_stale=perhaps",
            "file:x?dialect=memory&claim_limit=1h",
            "file:x?dialect=coordination&claim_limit=soon",
            "file:x?break_stale=no",
        ] {
            assert!(text.parse::<StoreUrl>().is_err(), "{text}");
        }
    }
}
