//! Tests of the HTTP layer without a network.

mod connection_limit;
mod hosts;
mod keyring;
mod request_checks;
mod responses;
mod routes;
mod tokens;
