//! The tenure server: HTTP, MCP and a dashboard over any store.
//!
//! It only translates: the rules in [`tenure::core`] decide who may hold what, and
//! [`tenure::Client`] waits.
//!
//! 1. [`caller`]: who sends a request, and what it may do; `clock`: whether a request comes in time.
//! 2. [`http`]: connections, authentication and limits; [`routes`]: what each route declares about
//!    itself.
//! 3. [`api`]: the JSON API; [`problem`]: its errors; `json_errors`: messages about invalid JSON.
//! 4. [`log`]: what it logs; [`traced_store`]: what it traces; [`webhooks`]: programs that it tells of events; [`metrics`], [`dashboard`], [`mcp`].

pub mod api;
pub mod app;
pub mod caller;
pub(crate) mod clock;
pub mod dashboard;
pub mod http;
mod json_errors;
pub mod log;
pub mod mcp;
pub mod metrics;
pub mod outgoing;
pub mod problem;
pub mod routes;
pub mod traced_store;
pub mod webhooks;
