//! The JSON API under `/v1`.

pub mod store;
mod veil;
