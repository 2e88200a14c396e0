//! The PostgreSQL store against real servers.

#![expect(clippy::disallowed_methods, reason = "tests stand outside the layers")]
#![expect(clippy::print_stdout, reason = "measured times are for people")]

mod conformance;
mod costs;
mod failover;
mod faults;
mod opening;
mod own_rows;
mod pooler;
mod restores;
mod silence;
mod strangers;
mod traps;

use std::sync::Arc;
use tenure::store::{PostgresOptions, PostgresStore, Store};
use tenure::url::{EngineUrl, StoreUrl};
use tenure_testkit::postgres::shared_url;

fn parsed(url: &str) -> EngineUrl {
    match url.parse() {
        Ok(StoreUrl::Postgres(url)) => url,
        other => panic!("{url}: {other:?}"),
    }
}

fn open(url: &str) -> Arc<dyn Store> {
    Arc::new(PostgresStore::open_with(&parsed(url), PostgresOptions::default()).unwrap())
}

/// The schema that a URL names.
fn schema_of(url: &str) -> String {
    url.split("schema=").nth(1).unwrap().split('&').next().unwrap().to_owned()
}

/// The port of the server that all tests share.
fn shared_port() -> u16 {
    shared_url().rsplit_once(':').unwrap().1.split('/').next().unwrap().parse().unwrap()
}
