//! What every request passes first, and how connections come in.
//!
//! In reading order: [`serve`] starts a server; `listen.rs` and `connections.rs` bring requests in;
//! `pass.rs` is the way of each request, past `hosts.rs`, `auth.rs`, `rate.rs` and `limits.rs`, and
//! of its answer (`answers.rs`). [`tokens`] is the file of tokens, `own.rs` the token that a server
//! makes for its user where there is no such file, `keyring.rs` what a running server knows of
//! both.

mod answers;
mod auth;
mod connection_limit;
mod connections;
mod error;
mod health;
mod hosts;
mod keyring;
mod limits;
mod listen;
mod own;
mod pass;
mod peer;
mod rate;
mod signals;
mod stamp;
#[cfg(test)]
mod tests;
mod tls;
pub mod tokens;
#[cfg(unix)]
mod unix_socket;

pub use error::ServeError;
pub use limits::LARGE_BODY_BYTES_MAX;
pub use listen::Address;
pub use tls::{TlsError, TlsFiles};

use crate::app::App;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use connections::Connections;
use futures_util::future::join_all;
use hosts::{Host, Hosts};
use keyring::{Keyring, Otherwise};
use own::Made;
use pass::Gate;
use rate::Rate;
use signals::Signals;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tenure::clock::SystemClock;
use tenure::local_server::ServerFolder;
use tenure::secret::Secret;
use tenure::url::StoreUrl;
use tls::Tls;
use tokens::TokenFile;
use tokio::time::{interval, sleep};

/// Tells somebody something.
pub type Note = Arc<dyn Fn(&str) + Send + Sync>;

/// Most connections at once, unless told otherwise: each may cost some ten kilobytes.
pub const CONNECTIONS_MAX: usize = 2048;

/// How often it is looked whether tokens were made or revoked, or the certificate renewed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How callers are known where there is no file of tokens.
pub enum WithoutTokens {
    /// By a token that the server makes for its user, whose commands find it by themselves.
    OwnToken {
        /// Where it is kept; none where this user has no home.
        folder: Option<ServerFolder>,
        /// The store that the server serves: each has a token of its own.
        store: StoreUrl,
        /// Whether a new one is made.
        renew: bool,
    },
    /// Not at all: everybody on this machine may do everything.
    NoAuth,
}

/// What a server tells as soon as it listens.
pub struct Listening<'a> {
    /// Where it listens.
    pub addresses: Vec<Address>,
    /// How callers are known.
    pub auth: Auth<'a>,
}

/// How callers of a running server are known.
pub enum Auth<'a> {
    /// By the tokens in this file.
    Tokens(PathBuf),
    /// By the token that the server made for its user.
    Own {
        /// The token.
        secret: &'a Secret,
        /// Where it is kept.
        file: &'a Path,
        /// The folder that it is kept in.
        folder: &'a ServerFolder,
    },
    /// Not at all.
    None,
}

/// How a server is to run.
pub struct Options {
    /// Addresses with ports; port 0 lets the system choose.
    pub listen: Vec<String>,
    /// Sockets in the file system.
    pub unix: Vec<PathBuf>,
    /// The file of tokens. Where there is none, the server listens on this machine only.
    pub tokens: PathBuf,
    /// Whether that file must be there.
    pub needs_tokens: bool,
    /// How callers are known where there is no file of tokens.
    pub without_tokens: WithoutTokens,
    /// The certificate for TCP; without one, nothing is encrypted.
    pub tls: Option<TlsFiles>,
    /// Names by which clients call the server, beside its addresses.
    pub hosts: Vec<String>,
    /// Requests per second of one caller. Without it, a generous number, and none for those on this
    /// machine who need no token.
    pub rate: Option<NonZeroU32>,
    /// The longest body that carries tasks; see [`LARGE_BODY_BYTES_MAX`].
    pub body_bytes_max: u64,
    /// Most connections at once; see [`CONNECTIONS_MAX`].
    pub connections_max: usize,
    /// What requests in flight are given to end when the server ends.
    pub grace: Duration,
    /// Whether each request is noted: method, path, status, duration and the token's name.
    pub log: bool,
    /// Where notes go.
    pub note: Note,
}

/// Runs a server until a signal ends it; tells where it listens as soon as it does.
///
/// The first SIGTERM or SIGINT takes no more requests and lets those in flight end; whoever waits
/// is told to come back. A second one ends at once.
pub async fn serve(
    app: App,
    options: Options,
    listening: impl FnOnce(&Listening<'_>),
) -> Result<(), ServeError> {
    let mut signals = Signals::listen().map_err(ServeError::Signals)?;
    let (gate, made) = gate(&app, &options)?;
    let gate = Arc::new(gate);
    let bound = listen::bind(&options, &gate).await?;
    // Before anybody can connect: clients look for it then.
    let announced = made.as_ref().map(|made| made.announce(bound.addresses())).transpose()?;
    let listeners = bound.listen(&options).await?;
    app.metrics.watch(app.client.clone());
    let router = router(app.clone(), gate.clone());
    let note = options.note;
    let connections = Connections::new(router, options.connections_max, note.clone());
    let addresses = listeners.iter().map(|listener| listener.address()).collect();
    let auth = match (&made, gate.keyring.is_in_force()) {
        (Some(made), _) => made.auth(),
        (None, true) => Auth::Tokens(gate.keyring.path()),
        (None, false) => Auth::None,
    };
    listening(&Listening { addresses, auth });
    tokio::select! {
        _ = join_all(listeners.iter().map(|listener| connections.accept(listener))) => {}
        () = keep_up(&gate, &note) => {}
        () = signals.next() => {}
    }
    drop(announced);
    drop(listeners);
    app.stop();
    tokio::select! {
        () = connections.drain() => {}
        () = sleep(options.grace) => note("Some requests did not end in time"),
        () = signals.next() => {}
    }
    Ok(())
}

fn gate(app: &App, options: &Options) -> Result<(Gate, Option<Made>), ServeError> {
    let hosts = options.hosts.iter().map(|name| {
        Host::parse(name).ok_or_else(|| ServeError::Host { name: name.chars().take(80).collect() })
    });
    let hosts = Hosts::new(hosts.collect::<Result<_, _>>()?);
    let keyring = Keyring::open(TokenFile::at(&options.tokens), Arc::new(SystemClock))?;
    if options.needs_tokens && !keyring.is_in_force() {
        return Err(ServeError::NoTokenFile { file: keyring.path() });
    }
    let (keyring, made) = otherwise(keyring, &options.without_tokens)?;
    let gate = Gate {
        app: app.clone(),
        hosts,
        keyring: Arc::new(keyring),
        tls: options.tls.as_ref().map(Tls::open).transpose()?.map(Arc::new),
        rate: Rate::new(options.rate),
        body_bytes_max: options.body_bytes_max,
        log: options.log.then(|| options.note.clone()),
    };
    Ok((gate, made))
}

/// Makes the server's own token where it is needed.
fn otherwise(
    keyring: Keyring,
    without: &WithoutTokens,
) -> Result<(Keyring, Option<Made>), ServeError> {
    let (in_force, file) = (keyring.is_in_force(), keyring.path());
    match without {
        WithoutTokens::NoAuth if in_force => Err(ServeError::NoAuthWithTokens { file }),
        WithoutTokens::OwnToken { renew: true, .. } if in_force => {
            Err(ServeError::NewTokenUnused { file })
        }
        _ if in_force => Ok((keyring, None)),
        WithoutTokens::NoAuth => Ok((keyring.otherwise(Otherwise::LetIn), None)),
        WithoutTokens::OwnToken { folder: None, .. } => Err(ServeError::NoHome),
        WithoutTokens::OwnToken { folder: Some(folder), store, renew } => {
            let made = Made::get(folder, store, *renew)?;
            Ok((keyring.otherwise(Otherwise::Own(made.token())), Some(made)))
        }
    }
}

/// All routes, behind the gate.
fn router(app: App, gate: Arc<Gate>) -> Router {
    Router::new()
        .merge(health::router(app.clone()))
        .merge(crate::api::store::router(app.clone()))
        .merge(crate::api::router(app.clone()))
        .merge(crate::dashboard::router())
        .merge(crate::mcp::router(app.clone()))
        .merge(crate::metrics::router(app.metrics.clone()))
        // The gate limits bodies itself.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(gate, pass::pass))
}

/// Follows the files of tokens and of the certificate, and forgets callers that are gone.
async fn keep_up(gate: &Gate, note: &Note) {
    let mut ticks = interval(LOOK_EVERY);
    let mut said = String::new();
    loop {
        ticks.tick().await;
        gate.rate.forget_old();
        let tls = gate.tls.as_ref().map_or(Ok(()), |tls| tls.refresh());
        let own = gate.keyring.refresh_own();
        let trouble = match (gate.keyring.refresh(), own, tls) {
            (Err(error), _, _) => format!("The tokens stay as they were: {error}"),
            (_, Err(error), _) => format!("The server's own token stays as it was: {error}"),
            (_, _, Err(error)) => format!("The certificate stays as it was: {error}"),
            (Ok(()), Ok(()), Ok(())) => String::new(),
        };
        if trouble != said && !trouble.is_empty() {
            note(&trouble);
        }
        said = trouble;
    }
}
