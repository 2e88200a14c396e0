//! The tenure server: HTTP, MCP and a dashboard over any store.
//!
//! It translates: what may be held by whom is decided by the rules in [`tenure::core`], and waited
//! for by [`tenure::Client`].
//!
//! 1. [`caller`]: who asks, and what it may do.
//! 2. [`gate`]: what every request passes first, and how connections come in.
//! 3. [`api`]: the JSON API; [`problem`]: how it says no, and `plain` what is wrong with JSON.
//! 4. [`metrics`], [`dashboard`], [`mcp`].

pub mod api;
pub mod app;
pub mod caller;
pub mod dashboard;
pub mod http;
pub mod mcp;
pub mod metrics;
mod plain;
pub mod problem;
