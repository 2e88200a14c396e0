//! The gate, without a network.

mod answers;
mod connection_limit;
mod hosts;
mod keyring;
mod passing;
mod routes;
mod tokens;
