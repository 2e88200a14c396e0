//! Tools for agents, over the Model Context Protocol.
//!
//! One process per agent, over its standard streams ([`serve_stdio`]), or many agents through one
//! server ([`router`]): both are as safe as each other, for all of it is decided in the store.
//!
//! 1. What the protocol asks, `server.rs`, and who it is that asks: `session.rs`, `sessions.rs`, `family.rs`;
//!    how a session is closed: `closing.rs`.
//! 2. What is offered: `tools.rs`, `resources.rs`.
//! 3. What the tools do: `tasks.rs`, `work.rs`, `locks.rs`, `look.rs`; waiting in `call.rs`.
//! 4. How they answer: `answer.rs`, and `brief.rs` for lists. No answer says how to end what others hold.

mod answer;
mod bounded_lists;
mod call;
mod closing;
mod locks;
mod look;
mod resources;
mod server;
mod session;
mod session_grants;
mod sessions;
mod stdio;
mod tasks;
mod tools;
mod work;

#[cfg(test)]
mod tests;

pub use stdio::{StdioError, serve_stdio};

use crate::app::App;
use axum::Router;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use server::Server;
use sessions::Sessions;
use std::sync::Arc;
use std::time::Duration;
use tenure::place::StoreLocation;

/// How sessions of agents hold.
#[derive(Clone, Debug)]
pub struct Options {
    /// What agents are called that give no name; else what their program calls itself.
    pub label: Option<String>,
    /// Lease of a lock, from each call of its session.
    pub lock_ttl: Duration,
    /// Lease of a task, from each call of its session.
    pub task_ttl: Duration,
    /// Lease of a section, from each call of its session.
    pub section_ttl: Duration,
    /// Where relative paths begin and absolute ones must lead, if agents share this machine's files.
    pub place: Option<StoreLocation>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            label: None,
            // Longer than most commands that an agent runs between two calls.
            lock_ttl: Duration::from_secs(10 * 60),
            task_ttl: Duration::from_secs(60 * 60),
            section_ttl: Duration::from_secs(120 * 60),
            place: None,
        }
    }
}

impl Options {
    /// After so long without a call nothing is held any more.
    fn longest_ttl(&self) -> Duration {
        self.lock_ttl.max(self.task_ttl).max(self.section_ttl)
    }

    /// Whoever waits renews so often what it holds meanwhile.
    fn renewal_interval(&self) -> Duration {
        self.lock_ttl.min(self.task_ttl).min(self.section_ttl) / 3
    }
}

/// The protocol over streamable HTTP at `/mcp`. Expects a [`Caller`](crate::caller::Caller) in the
/// extensions of each request, and refuses those that have none.
pub fn router(app: App) -> Router {
    router_with(app, Options::default())
}

/// The same, holding as these options say.
pub fn router_with(app: App, options: Options) -> Router {
    let mut manager = LocalSessionManager::default();
    // An agent that thinks for long keeps its session at least as long as what it holds.
    manager.session_config.keep_alive = Some(options.longest_ttl() + Duration::from_secs(60));
    let manager = Arc::new(manager);
    let sessions = Arc::new(Sessions::new(app.client, options));
    // The gate has checked Host and Origin already, and knows which ones are meant.
    let mut config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    config.session_store = Some(sessions.clone());
    let close = closing::Closing::new(manager.clone(), sessions.clone());
    let service = StreamableHttpService::new(
        move || Ok(Server::over_http(sessions.clone())),
        manager,
        config,
    );
    Router::new()
        .route_service("/mcp", service)
        .layer(axum::middleware::from_fn_with_state(close, closing::close))
}
