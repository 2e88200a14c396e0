//! The connections of one process.

use super::error::PgError;
use super::names::Names;
use super::schema;
use super::session::{self, Session};
use super::settings::Settings;
use super::tls;
use deadpool::managed::{
    Manager, Metrics, Object, PoolError, QueueMode, RecycleError, RecycleResult,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long a change waits for a free connection.
const WAIT: Duration = Duration::from_secs(10);

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
}

/// The pool.
pub(super) struct Pool {
    pool: deadpool::managed::Pool<Connector>,
    size: usize,
}

impl Connector {
    /// Connects, without looking at the tables.
    pub(super) async fn connect(
        &self,
    ) -> Result<
        (
            tokio_postgres::Client,
            tokio_postgres::Connection<
                tokio_postgres::Socket,
                <MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<
                    tokio_postgres::Socket,
                >>::Stream,
            >,
        ),
        PgError,
    > {
        let plain = &self.settings.config;
        if !self.may_prepare.load(Ordering::Relaxed) {
            return Ok(plain.connect(self.tls.clone()).await?);
        }
        let mut marked = plain.clone();
        marked.options(format!("-c tenure.process={}{}", self.mark, session::SETTINGS));
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

    /// The id of the store; empty until the first connection.
    pub(super) fn store_id(&self) -> &str {
        self.store_id.get().map_or("", String::as_str)
    }
}

impl Manager for Connector {
    type Type = Session;
    type Error = PgError;

    async fn create(&self) -> Result<Session, PgError> {
        let (client, connection) = self.connect().await?;
        tokio::spawn(connection);
        let session = Session::new(client, self.names.clone(), self.may_prepare.clone());
        let found = schema::ensure(&session, self.store_id.get().is_none()).await?;
        match found.process.as_ref() == Some(&self.mark) {
            true => session.keep_settings(found.commits_without_flush).await?,
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
        };
        let pool = deadpool::managed::Pool::builder(connector)
            .max_size(size)
            // The one that was used last: what its server process needs is still at hand.
            .queue_mode(QueueMode::Lifo)
            .wait_timeout(Some(WAIT))
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

    /// From now on no prepared statements are used, because something between does not keep them.
    pub(super) fn stop_preparing(&self) {
        self.connector().may_prepare.store(false, Ordering::Relaxed);
    }
}
