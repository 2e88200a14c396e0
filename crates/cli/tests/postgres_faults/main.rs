//! Commands over PostgreSQL under faults: a server that goes away, clocks that are wrong, a network
//! that is cut between a holder and the store.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "tests stand outside the layers")]
#![expect(clippy::print_stdout, reason = "measured times are for people")]
#![expect(dead_code, unused_imports, reason = "other tests use the rest of the support")]

#[path = "../engine_support/mod.rs"]
mod engine_support;
#[path = "../support/mod.rs"]
mod support;

mod refused;
mod server_gone;

use engine_support::machines::{self, Machine};
use engine_support::{Engine, clocks, each_once};
use tenure_testkit::Postgres;
use tenure_testkit::postgres::fresh_url;

const POSTGRES: Engine = Engine { name: "PostgreSQL", fresh_url };

#[test]
fn eight_processes_do_each_task_once() {
    each_once::by_eight_processes(&POSTGRES, 2000);
}

#[test]
fn clocks_that_are_an_hour_off_change_nothing() {
    clocks::an_hour_off(&POSTGRES);
}

#[test]
fn a_holder_that_is_cut_off_stops_before_another_begins() {
    let [one, other] = Machine::some();
    let mut server = Postgres::start(&["listen_addresses=*"]);
    let hba = server.folder().join("data/pg_hba.conf");
    let open = std::fs::read_to_string(&hba).unwrap() + "host all all 10.213.0.0/16 trust\n";
    std::fs::write(&hba, open).unwrap();
    server.stop();
    server.run();
    let url = |host: &str| format!("postgres://postgres@{host}:{}/postgres?schema=s", server.port);
    machines::a_holder_that_is_cut_off_stops_before_another_begins(&one, &other, url);
}
