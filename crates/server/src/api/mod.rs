//! The JSON API under `/v1`.

pub mod live;
pub mod store;
mod veil;
pub mod workers;
