//! Reads and writes the text formats that people and other programs use.
//!
//! - [`duration`]: `90s`, `1h30m`.
//! - [`time`]: ISO 8601 and seconds since 1970.
//! - [`config`]: settings files and their layers.
//! - [`exchange`]: task files of other tools.
//!
//! This crate knows the types of `tenure-core` and opens no store. The library uses it for the task
//! lists of other programs and for finding the store; front ends use all of it.

pub mod config;
pub mod duration;
pub mod exchange;
pub mod time;
