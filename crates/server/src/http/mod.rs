//! The HTTP server: connections, authentication and limits.
//!
//! In reading order: [`serve`] starts a server; `listen.rs` and `connections.rs` accept requests, also
//! on sockets of the service manager (`passed_sockets.rs`), which `service_manager.rs` keeps informed;
//! `request_checks.rs` checks each request with `hosts.rs`, `auth.rs`, `rate.rs` and `limits.rs`, and
//! completes its response with `responses.rs` and `unread_body.rs`. [`tokens`] is the token file, `own_token.rs` the token
//! that a server creates for its user if there is no such file, `keyring.rs` the valid tokens of a
//! running server.

mod auth;
mod connection_limit;
mod connections;
mod error;
mod file_stamp;
mod health;
mod hosts;
mod keyring;
pub(crate) mod limits;
mod listen;
mod own_token;
mod passed_sockets;
mod peer;
mod rate;
mod request_checks;
mod request_id;
mod responses;
mod service_manager;
mod signals;
#[cfg(test)]
mod tests;
mod tls;
pub mod tokens;
mod unix_socket;
mod unread_body;

pub use error::ServeError;
pub use limits::LARGE_BODY_BYTES_MAX;
pub use listen::Address;
pub use passed_sockets::PassedSockets;
pub use tls::{TlsError, TlsFiles};

use crate::app::App;
use crate::log::LOG;
use crate::routes::Routes;
use crate::webhooks::{self, Webhooks};
use connections::Connections;
use futures_util::future::join_all;
use hosts::{Host, Hosts};
use keyring::{Keyring, WithoutTokenFile};
use own_token::CreatedToken;
use rate::Rate;
use request_checks::RequestChecks;
use signals::Signals;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tenure::Secret;
use tenure::server_support::local_server::ServerFolder;
use tenure::url::StoreUrl;
use tenure::world::SystemClock;
use tls::Tls;
use tokens::TokenFile;
use tokio::time::{interval, sleep};

/// The default limit of connections: each may cost some ten kilobytes.
pub const CONNECTIONS_MAX: usize = 2048;

/// How often the token file and the certificate are checked for changes.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How callers authenticate without a token file.
pub enum WithoutTokens {
    /// By a token that the server creates for its user, whose commands find it automatically.
    OwnToken {
        /// Where it is stored; `None` if this user has no home folder.
        folder: Option<ServerFolder>,
        /// The store of the server; each store has its own token.
        store: StoreUrl,
        /// Whether to create a new one.
        renew: bool,
    },
    /// Not at all: every user of this machine can do everything.
    NoAuth,
}

/// What a server reports as soon as it listens.
pub struct Listening<'a> {
    /// The addresses that it listens on.
    pub addresses: Vec<Address>,
    /// How callers authenticate.
    pub auth: Auth<'a>,
}

/// How callers of a running server authenticate.
pub enum Auth<'a> {
    /// By the tokens in this file.
    Tokens(PathBuf),
    /// By the token that the server created for its user.
    Own {
        /// The token.
        secret: &'a Secret,
        /// The file of the token.
        file: &'a Path,
        /// The folder of that file.
        folder: &'a ServerFolder,
    },
    /// Not at all.
    None,
}

/// Options of a server.
pub struct Options {
    /// Addresses with ports; with port 0 the system chooses.
    pub listen: Vec<String>,
    /// Paths of Unix sockets.
    pub unix: Vec<PathBuf>,
    /// The token file. Without it, the server listens on this machine only.
    pub tokens: PathBuf,
    /// Whether that file must exist.
    pub needs_tokens: bool,
    /// How callers authenticate without a token file.
    pub without_tokens: WithoutTokens,
    /// The certificate for TCP; without one there is no encryption.
    pub tls: Option<TlsFiles>,
    /// Host names by which clients call the server, in addition to its addresses.
    pub hosts: Vec<String>,
    /// Requests per second for one caller. By default a generous number, and no limit for callers
    /// on this machine that need no token.
    pub rate: Option<NonZeroU32>,
    /// The largest body that carries tasks; see [`LARGE_BODY_BYTES_MAX`].
    pub body_bytes_max: u64,
    /// The most connections at once; see [`CONNECTIONS_MAX`].
    pub connections_max: usize,
    /// How long to wait for requests in progress at shutdown.
    pub grace: Duration,
    /// How long the server keeps serving after it reported that it is not ready any more.
    pub drain: Duration,
    /// Listening sockets that the service manager passed on, besides the addresses above.
    pub passed: PassedSockets,
    /// Who else is told of events.
    pub webhooks: Option<Webhooks>,
}

/// Runs a server until a signal stops it; calls `listening` as soon as it listens.
///
/// After the first SIGTERM or SIGINT the server reports that it is not ready, serves on for
/// [`Options::drain`], then stops accepting requests and lets those in progress finish; waiting
/// requests are told to repeat. A second signal stops the server at once.
pub async fn serve(
    app: App,
    mut options: Options,
    listening: impl FnOnce(&Listening<'_>),
) -> Result<(), ServeError> {
    let mut signals = Signals::listen().map_err(ServeError::Signals)?;
    let (checks, made) = checks(&app, &options)?;
    let checks = Arc::new(checks);
    let passed = std::mem::take(&mut options.passed);
    let bound = listen::bind(&options, passed, &checks).await?;
    // Announce the token before anyone can connect: clients look for it then.
    let announced = made.as_ref().map(|made| made.announce(bound.addresses())).transpose()?;
    let listeners = bound.listen(&options).await?;
    app.metrics.watch(app.client.clone());
    let router = request_checks::router(routes(&app), checks.clone());
    let connections = Connections::new(router, options.connections_max, app.metrics.clone());
    let addresses: Vec<Address> = listeners.iter().map(|listener| listener.address()).collect();
    tracing::info!(target: LOG, addresses = %shown(&addresses), "listening");
    let status = format!("Listening on {}", shown(&addresses));
    let auth = match (&made, checks.keyring.has_token_file()) {
        (Some(made), _) => made.auth(),
        (None, true) => Auth::Tokens(checks.keyring.path()),
        (None, false) => Auth::None,
    };
    listening(&Listening { addresses, auth });
    let _webhooks = options.webhooks.take().map(|webhooks| webhooks::start(&app, webhooks));
    let _watchdog = service_manager::ready(&status);
    {
        let accepting = join_all(listeners.iter().map(|listener| connections.accept(listener)));
        let serving = async { tokio::join!(accepting, follow_files(&checks)) };
        tokio::pin!(serving);
        tokio::select! {
            _ = &mut serving => {}
            () = signals.next() => {}
        }
        service_manager::stopping();
        app.drain();
        tracing::info!(target: LOG, for_ms = options.drain.as_millis() as u64, "draining");
        tokio::select! {
            _ = &mut serving => {}
            () = sleep(options.drain) => {}
            () = signals.next() => return Ok(()),
        }
    }
    drop(announced);
    drop(listeners);
    app.stop();
    tracing::info!(target: LOG, "stopping: no more connections are accepted");
    tokio::select! {
        () = connections.drain() => {}
        () = sleep(options.grace) => {
            tracing::warn!(target: LOG, "Some requests did not finish in time");
        }
        () = signals.next() => {}
    }
    tracing::info!(target: LOG, "stopped");
    Ok(())
}

fn shown(addresses: &[Address]) -> String {
    addresses.iter().map(Address::to_string).collect::<Vec<_>>().join(" ")
}

fn checks(
    app: &App,
    options: &Options,
) -> Result<(RequestChecks, Option<CreatedToken>), ServeError> {
    let hosts = options.hosts.iter().map(|name| {
        Host::parse(name).ok_or_else(|| ServeError::Host { name: name.chars().take(80).collect() })
    });
    let hosts = Hosts::new(hosts.collect::<Result<_, _>>()?);
    let keyring = Keyring::open(TokenFile::at(&options.tokens), Arc::new(SystemClock))?;
    if options.needs_tokens && !keyring.has_token_file() {
        return Err(ServeError::NoTokenFile { file: keyring.path() });
    }
    let (keyring, made) = without_token_file(keyring, &options.without_tokens)?;
    let checks = RequestChecks {
        app: app.clone(),
        hosts,
        keyring: Arc::new(keyring),
        tls: options.tls.as_ref().map(Tls::open).transpose()?.map(Arc::new),
        rate: Rate::new(options.rate),
        body_bytes_max: options.body_bytes_max,
        times: limits::Times::default(),
    };
    Ok((checks, made))
}

/// Creates the server's own token if it is needed.
fn without_token_file(
    keyring: Keyring,
    without: &WithoutTokens,
) -> Result<(Keyring, Option<CreatedToken>), ServeError> {
    let (in_force, file) = (keyring.has_token_file(), keyring.path());
    match without {
        WithoutTokens::NoAuth if in_force => Err(ServeError::NoAuthWithTokens { file }),
        WithoutTokens::OwnToken { renew: true, .. } if in_force => {
            Err(ServeError::NewTokenUnused { file })
        }
        _ if in_force => Ok((keyring, None)),
        WithoutTokens::NoAuth => Ok((keyring.without_token_file(WithoutTokenFile::LetIn), None)),
        WithoutTokens::OwnToken { folder: None, .. } => Err(ServeError::NoHome),
        WithoutTokens::OwnToken { folder: Some(folder), store, renew } => {
            let made = CreatedToken::get(folder, store, *renew)?;
            Ok((
                keyring.without_token_file(WithoutTokenFile::Own(Box::new(made.token()))),
                Some(made),
            ))
        }
    }
}

/// All routes of a server.
fn routes(app: &App) -> Routes {
    Routes::new()
        .merge(health::routes(app.clone()))
        .merge(crate::api::store::routes(app.clone()))
        .merge(crate::api::routes(app.clone()))
        .merge(crate::dashboard::routes())
        .merge(crate::mcp::routes(app.clone()))
        .merge(crate::metrics::routes(app.metrics.clone()))
}

/// Follows changes of the token file and the certificate, and forgets old callers.
async fn follow_files(checks: &RequestChecks) {
    let mut ticks = interval(LOOK_EVERY);
    let mut said = String::new();
    loop {
        ticks.tick().await;
        checks.rate.forget_old();
        let tls = checks.tls.as_ref().map_or(Ok(()), |tls| tls.refresh());
        let own = checks.keyring.refresh_own();
        let trouble = match (checks.keyring.refresh(), own, tls) {
            (Err(error), _, _) => format!("The tokens were not reloaded: {error}"),
            (_, Err(error), _) => format!("The server's own token was not reloaded: {error}"),
            (_, _, Err(error)) => format!("The certificate was not reloaded: {error}"),
            (Ok(()), Ok(()), Ok(())) => String::new(),
        };
        if trouble != said && !trouble.is_empty() {
            tracing::warn!(target: LOG, "{trouble}");
        }
        said = trouble;
    }
}
