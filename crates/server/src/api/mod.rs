//! The JSON API under `/v1`.

pub mod live;
pub mod workers;
