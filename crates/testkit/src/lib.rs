//! Real database servers for tests and benchmarks, on free ports of the loopback interface and in
//! temporary folders. Each ends with the process that started it.

#![expect(clippy::disallowed_methods, reason = "tests stand outside the layers")]

pub mod etcd;
pub mod postgres;
pub mod process;
pub mod proxy;

pub use etcd::Etcd;
pub use postgres::Postgres;
pub use proxy::Proxy;
