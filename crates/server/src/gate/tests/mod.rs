//! The gate, without a network.

mod answers;
mod hosts;
mod keyring;
mod passing;
mod room;
mod tokens;
