//! Tools for agents, over the Model Context Protocol.
//!
//! One process per agent, over its standard streams ([`serve_stdio`]), or many agents through one
//! server ([`routes`]). Both are equally safe, because the store decides.
//!
//! 1. Protocol and sessions: `server.rs`, `session.rs`, `sessions.rs`, `session_grants.rs`,
//!    `open_sessions.rs`; which agent a session is, and what that agent holds elsewhere:
//!    `host_sessions.rs`, `agent_header.rs`, `agent_holds.rs`.
//! 2. What is offered: `tools.rs`, `resources.rs`.
//! 3. What the tools do: `tasks.rs`, `work.rs`, `locks.rs`, `queries.rs`; waiting is in `call.rs`.
//! 4. Results: `answer.rs`, `task_json.rs` for tasks, and `bounded_lists.rs` for lists. No result says how to end other
//!    holders' holds.

mod agent_header;
mod agent_holds;
mod answer;
mod bounded_lists;
mod call;
mod host_sessions;
mod locks;
mod one_task;
mod open_sessions;
mod prompts;
mod queries;
mod resources;
mod server;
mod session;
mod session_grants;
mod sessions;
mod stdio;
mod task_json;
mod tasks;
mod tools;
mod work;

#[cfg(test)]
mod tests;

pub use stdio::{StdioError, serve_stdio};

use crate::app::App;
use crate::http::limits::Limits;
use crate::routes::{Access, Routes};
use axum::routing::any_service;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use server::Server;
use sessions::Sessions;
use std::sync::Arc;
use std::time::Duration;
use tenure::agent::KnownSessions;
use tenure::core::GrantId;
use tenure::place::StoreLocation;
use tenure_frontend::naming::CallerFiles;
use tenure_frontend::rescue::Rescuer;

/// How sessions of agents hold.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of agents that give none and are not known otherwise; else the name of their program.
    pub label: Option<String>,
    /// The sessions that hooks of agents' programs recorded, if agents run on this machine.
    pub sessions: Option<KnownSessions>,
    /// Length of a lock's lease, renewed by each call of its session.
    pub lock_ttl: Duration,
    /// Length of a task's lease, renewed by each call of its session.
    pub task_ttl: Duration,
    /// Length of a section's lease, renewed by each call of its session.
    pub section_ttl: Duration,
    /// The folder of relative paths, which absolute paths must be in.
    pub place: Option<StoreLocation>,
    /// Whether agents share this machine's files.
    pub files: CallerFiles,
    /// Takes over the unfinished work of others, and knows where the agent works.
    pub rescuer: Rescuer,
    /// What an agent is told while no hook of its program was heard of, if its hooks are set up.
    pub without_hooks: Option<String>,
    /// The grants of the commands around the agent's program: what they hold is not in the agent's way.
    pub around: Vec<GrantId>,
    /// How many sessions of the protocol one token may have open over HTTP.
    pub sessions_max: usize,
}

/// Each session takes some 70 kB of the server's memory.
const SESSIONS_MAX: usize = 1000;

impl Default for Options {
    fn default() -> Options {
        Options {
            label: None,
            sessions: None,
            // Longer than most commands that an agent runs between two calls.
            lock_ttl: Duration::from_secs(10 * 60),
            task_ttl: Duration::from_secs(60 * 60),
            section_ttl: Duration::from_secs(120 * 60),
            place: None,
            files: CallerFiles::Elsewhere,
            rescuer: Rescuer::off(),
            without_hooks: None,
            around: vec![],
            sessions_max: SESSIONS_MAX,
        }
    }
}

impl Options {
    /// After this long without a call nothing is held any more.
    fn longest_ttl(&self) -> Duration {
        self.lock_ttl.max(self.task_ttl).max(self.section_ttl)
    }

    /// How long a session over HTTP lasts without a call. An agent that thinks long keeps its session
    /// at least as long as what it holds.
    fn session_keep_alive(&self) -> Duration {
        self.longest_ttl() + Duration::from_secs(60)
    }

    /// How often a waiting call renews what its session holds.
    fn renewal_interval(&self) -> Duration {
        self.lock_ttl.min(self.task_ttl).min(self.section_ttl) / 3
    }
}

/// The protocol over streamable HTTP at `/mcp`. It expects a [`Caller`](crate::caller::Caller) in
/// the extensions of each request, and refuses requests without one.
pub fn routes(app: App) -> Routes {
    let (place, rescuer) = (app.place.as_deref().cloned(), app.rescuer.clone());
    routes_with(app, Options { place, rescuer, ..Options::default() })
}

/// As [`routes`], with these options.
pub fn routes_with(app: App, options: Options) -> Routes {
    let mut manager = LocalSessionManager::default();
    manager.session_config.keep_alive = Some(options.session_keep_alive());
    let manager = Arc::new(manager);
    let sessions = Arc::new(Sessions::new(app.client, options));
    // The middleware has already checked Host and Origin.
    let mut config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    config.session_store = Some(sessions.clone());
    let gate = open_sessions::SessionGate::new(manager.clone(), sessions.clone());
    let service = StreamableHttpService::new(
        move || Ok(Server::over_http(sessions.clone())),
        manager,
        config,
    );
    Routes::new()
        // Each tool has its own role.
        .route("/mcp", Access::Known, Limits::Waits, any_service(service))
        .layer(axum::middleware::from_fn_with_state(gate, open_sessions::gate))
}
