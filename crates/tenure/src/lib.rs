//! placeholder
#![allow(missing_docs)]
pub mod clock;
pub mod platform;
pub mod store;
