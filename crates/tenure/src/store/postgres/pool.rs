//! The connections of one process.

use super::error::PgError;
use super::limits;
use super::names::Names;
use super::schema::{self, Found};
use super::session::{self, Session};
use super::settings::Settings;
use super::tls;
use deadpool::managed::{
    Manager, Metrics, Object, PoolError, QueueMode, RecycleError, RecycleResult,
};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A connection in use.
pub(super) type Pooled = Object<Connector>;

/// Makes connections.
pub(super) struct Connector {
    settings: Settings,
    tls: MakeRustlsConnect,
    pub(super) names: Arc<Names>,
    /// Whether connections may prepare statements: not behind a pooler, which gives a transaction any
    /// of its server connections. A name there may even stand for a statement of another process.
    may_prepare: Arc<AtomicBool>,
    /// Set as `tenure.process` when a connection is made; a pooler refuses or drops it.
    mark: String,
    /// Which store this is, from the first connection on.
    store_id: OnceLock<String>,
    /// Which host was reached last: it is tried first, so that one that is silent is waited for only once.
    last_reached: AtomicUsize,
    /// Whether a connection of this process made the tables.
    is_new: AtomicBool,
}

/// The configurations of all addresses of one host.
async fn addresses(host: &Config) -> std::io::Result<Vec<Config>> {
    let ([Host::Tcp(name)], [port]) = (host.get_hosts(), host.get_ports()) else {
        return Ok(vec![host.clone()]);
    };
    let found = tokio::net::lookup_host((name.as_str(), *port)).await?;
    let at = |address: SocketAddr| {
        let mut config = host.clone();
        config.hostaddr(address.ip());
        config
    };
    let found: Vec<Config> = found.map(at).collect();
    if found.is_empty() {
        return Err(std::io::Error::new(std::io::ErrorKind::NotFound, "it has no address"));
    }
    Ok(found)
}

/// A host with its port, as people write them.
fn spelled(host: &Config) -> String {
    let name = host.get_hosts().first().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(folder) => folder.display().to_string(),
    });
    let port = host.get_ports().first().copied().unwrap_or(5432);
    format!("{}:{port}", name.unwrap_or_default())
}

/// The pool.
pub(super) struct Pool {
    pool: deadpool::managed::Pool<Connector>,
    size: usize,
}

/// A connection that was just made, and what drives it.
type Connected =
    (Client, Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>);

impl Connector {
    /// Connects to the first host that accepts writes, without looking at the tables.
    pub(super) async fn connect(&self) -> Result<Connected, PgError> {
        self.first_host(|config| async move { self.connect_to(&config).await }).await
    }

    /// Tries one address after the other of one host after the other, from the one that was reached last, each for no longer than the time-out:
    /// a server that accepts a connection and never answers is left like one that is not there.
    async fn first_host<T, F>(&self, attempt: impl Fn(Config) -> F) -> Result<T, PgError>
    where
        F: Future<Output = Result<T, PgError>>,
    {
        let limit = self.settings.connect_timeout;
        let mut failed = None;
        let hosts = &self.settings.hosts;
        let first = self.last_reached.load(Ordering::Relaxed);
        for index in (0..hosts.len()).map(|index| (first + index) % hosts.len()) {
            let host = &hosts[index];
            let addresses = match timeout(limit, addresses(host)).await {
                Ok(Ok(addresses)) => addresses,
                Ok(Err(error)) => {
                    failed = Some(PgError::Address(spelled(host), error));
                    continue;
                }
                Err(_) => {
                    failed = Some(PgError::Silent(spelled(host), limit));
                    continue;
                }
            };
            for config in addresses {
                match timeout(limit, attempt(config)).await {
                    Ok(Ok(done)) => {
                        self.last_reached.store(index, Ordering::Relaxed);
                        return Ok(done);
                    }
                    Ok(Err(error)) => failed = Some(error),
                    Err(_) => failed = Some(PgError::Silent(spelled(host), limit)),
                }
            }
        }
        // There is always a host, and it has an address.
        Err(failed.unwrap_or(PgError::Replaced))
    }

    /// Connects to one address.
    async fn connect_to(&self, plain: &Config) -> Result<Connected, PgError> {
        if !self.may_prepare.load(Ordering::Relaxed) {
            return Ok(plain.connect(self.tls.clone()).await?);
        }
        let mut marked = plain.clone();
        marked.options(session::options(&self.mark));
        match marked.connect(self.tls.clone()).await {
            // How pgbouncer refuses what it cannot pass on.
            Err(error) if error.code() == Some(&SqlState::PROTOCOL_VIOLATION) => {
                let connected = plain.connect(self.tls.clone()).await?;
                self.may_prepare.store(false, Ordering::Relaxed);
                Ok(connected)
            }
            connected => Ok(connected?),
        }
    }

    /// Connects to one address, and looks at the tables, which may be missing.
    async fn open(&self, config: &Config) -> Result<(Session, Result<Found, PgError>), PgError> {
        let session = self.session(self.connect_to(config).await?);
        let found = schema::look(&session).await;
        match found {
            // The connection itself may be good for nothing.
            Err(error) if error.is_lost_connection() => Err(error),
            found => Ok((session, found)),
        }
    }

    fn session(&self, (client, connection): Connected) -> Session {
        tokio::spawn(connection);
        Session::new(client, self.names.clone(), self.may_prepare.clone())
    }

    /// A connection for what does not need the tables.
    pub(super) async fn session_without_look(&self) -> Result<Session, PgError> {
        Ok(self.session(self.connect().await?))
    }

    /// Whether a connection of this process made the tables.
    pub(super) fn is_new(&self) -> bool {
        self.is_new.load(Ordering::Relaxed)
    }

    /// The id of the store; empty until the first connection.
    pub(super) fn store_id(&self) -> &str {
        self.store_id.get().map_or("", String::as_str)
    }
}

impl Manager for Connector {
    type Type = Session;
    type Error = PgError;

    async fn create(&self) -> Result<Session, PgError> {
        let (session, found) =
            self.first_host(|config| async move { self.open(&config).await }).await?;
        let found = schema::ensure(&session, found, self.store_id.get().is_none()).await?;
        self.is_new.fetch_or(found.made, Ordering::Relaxed);
        match found.process.as_ref() == Some(&self.mark) {
            true => session.keep_settings(found.commits_early).await?,
            false => self.may_prepare.store(false, Ordering::Relaxed),
        }
        let known = self.store_id.get_or_init(|| found.store_id.clone());
        match *known == found.store_id {
            true => Ok(session),
            false => Err(PgError::Replaced),
        }
    }

    async fn recycle(&self, session: &mut Session, _: &Metrics) -> RecycleResult<PgError> {
        match session.is_usable() {
            true => Ok(()),
            false => Err(RecycleError::message("it ended")),
        }
    }
}

impl Pool {
    pub(super) fn new(settings: Settings, names: Arc<Names>) -> Result<Pool, PgError> {
        let size = settings.pool;
        let connector = Connector {
            tls: tls::connector(&settings.tls)?,
            may_prepare: Arc::new(AtomicBool::new(!settings.pooled)),
            mark: uuid::Uuid::new_v4().simple().to_string(),
            settings,
            names,
            store_id: OnceLock::new(),
            last_reached: AtomicUsize::new(0),
            is_new: AtomicBool::new(false),
        };
        let pool = deadpool::managed::Pool::builder(connector)
            .max_size(size)
            // The one that was used last: what its server process needs is still at hand.
            .queue_mode(QueueMode::Lifo)
            .wait_timeout(Some(limits::FREE_CONNECTION))
            .runtime(deadpool::Runtime::Tokio1)
            .build();
        let pool = pool.map_err(|error| PgError::Settings {
            what: error.to_string(),
            hint: "Leave ?pool= out.".to_owned(),
        })?;
        Ok(Pool { pool, size })
    }

    pub(super) fn connector(&self) -> &Connector {
        self.pool.manager()
    }

    /// A connection, as soon as one is free.
    pub(super) async fn get(&self) -> Result<Pooled, PgError> {
        self.pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) => error,
            _ => PgError::Exhausted(self.size),
        })
    }

    /// Closes the connections that are not in use. Where one has died without a word, as when a firewall
    /// forgot it, so have those beside it.
    pub(super) fn forget_idle(&self) {
        self.pool.retain(|_, _| false);
    }

    /// From now on no prepared statements are used, because something between does not keep them.
    pub(super) fn stop_preparing(&self) {
        self.connector().may_prepare.store(false, Ordering::Relaxed);
    }
}
