//! Holders that live, lapsed and died; waiters that live, died, and died with their server.

use crate::http::{Ask, ask};
use crate::server::Server;
use crate::support::{Running, Signal, StoreLocation, until};
use serde_json::json;
use std::io::Write as _;
use std::net::TcpStream;
use tenure::core::{Change, Decision, EventKind, NewEvent, Resource, Scope, Snapshot, Write};
use tenure::store::{SqliteStore, Store, Transaction};

pub struct Scene {
    pub place: StoreLocation,
    pub server: Server,
    waiters: Vec<Running>,
    _connections: Vec<TcpStream>,
}

impl Scene {
    pub fn set_up() -> Scene {
        let place = StoreLocation::new();
        hold(&place);
        work(&place);
        let waiters = wait(&place);
        let connections = die_waiting(&place);
        let server = Server::start(&place, &["--no-auth"]);
        Scene { place, server, waiters, _connections: connections }
    }

    /// Stops one that waits for a slot, then frees a slot: it is its turn, and it cannot take it.
    pub fn stop_a_waiter_and_free_what_it_wants(&self) {
        let whys = self.place.why("gpu");
        let first = whys["waiters"][0]["pid"].as_u64().expect("a process") as u32;
        let stopped = self.waiters.iter().find(|waiter| waiter.id() == first);
        stopped.expect("a waiter of this test").signal(Signal::STOP);
        for worker in ["slot-1", "slot-2", "slot-3"] {
            let released = self.place.run(&["release", "gpu", "--as", worker]);
            assert_eq!(released.code, 0, "{released:?}");
        }
        until("a free slot that is waited for", || {
            let why = self.place.why("gpu");
            (why["next_in_line"].is_string() && why["free"] == true).then_some(())
        });
    }
}

/// Six that count, one that lapsed, one whose process was killed.
fn hold(place: &StoreLocation) {
    for (resource, label) in [("alpha", "alice"), ("path:src/**", "alice")] {
        place.acquire(&[resource, "--as", label, "--ttl", "10m"]);
    }
    for label in ["slot-1", "slot-2", "slot-3"] {
        place.acquire(&["gpu", "--slots", "3", "--as", label, "--ttl", "10m"]);
    }
    place.acquire(&["lapsed", "--as", "late", "--ttl", "1s"]);
    let mut command = place.command("sleep");
    command.arg("1000");
    let process = Running::start(command);
    let pid = process.id().to_string();
    place.acquire(&["doomed", "--as", "mallory", "--ttl", "10m", "--pid", &pid]);
    process.kill();
}

/// A task to be done, one that is worked on with its section and its files, one whose worker lost the
/// section, and one whose worker fell silent. The workers are told apart from other holders by their
/// labels.
fn work(place: &StoreLocation) {
    for add in [
        &["tasks", "add", "Lay out the pages", "--id", "layout"][..],
        &[
            "tasks",
            "add",
            "Write the store",
            "--id",
            "store",
            "--section",
            "back end",
            "--file",
            "db/**",
        ],
        &["tasks", "add", "Sweep the floor", "--id", "swept", "--section", "house"],
        &["tasks", "add", "Forget about it", "--id", "forgotten"],
    ] {
        let added = place.run(add);
        assert_eq!(added.code, 0, "{added:?}");
    }
    for claim in [
        &["tasks", "claim", "store", "--as", "worker", "--ttl", "10m"][..],
        &["tasks", "claim", "swept", "--as", "sweeper", "--ttl", "10m"],
        &["tasks", "claim", "forgotten", "--as", "sleeper", "--ttl", "1s"],
    ] {
        let claimed = place.run(claim);
        assert_eq!(claimed.code, 0, "{claimed:?}");
    }
    end_hold(place, "section:house");
    let has_lapsed = |resource: &str| place.why(resource)["free"] == true;
    until("the end of two leases", || {
        let ended = has_lapsed("lapsed") && place.json(&["locks"])["counts"]["lapsed"] == 2;
        ended.then_some(())
    });
}

/// Ends a hold and nothing else. Commands that end a part of a claim take its task back at once; a
/// part that another process takes over is lost before the task is taken back.
fn end_hold(place: &StoreLocation, resource: &str) {
    let store = SqliteStore::open(&place.database()).expect("a store");
    let resource: Resource = resource.parse().expect("a name");
    let decide = move |seen: &Snapshot| {
        let held = seen.holds.iter().find(|seen| seen.hold.want.resource == resource);
        let hold = &held.expect("it is held").hold;
        let drop = Write::DropHold { resource: resource.clone(), grant: hold.grant };
        let event = NewEvent::new(Some(resource.clone()), "", None, EventKind::Released);
        let (writes, events) = (vec![drop], vec![event]);
        Decision::Write(Change { writes, events, ..Change::default() })
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let written = runtime.block_on(store.transact(Transaction::new(Scope::Everything, decide)));
    written.expect("it is written");
}

/// Three that wait for a slot, and one that waits for two locks of which one is free.
fn wait(place: &StoreLocation) -> Vec<Running> {
    let mut waiters: Vec<Running> =
        (0..3).map(|_| place.start(&["run", "gpu", "--slots", "3", "--", "true"])).collect();
    waiters.push(place.start(&["run", "alpha", "beta", "--", "true"]));
    is_waiting(place, 4);
    waiters
}

/// One that is killed while it waits, and three that wait at a server that is killed. The places
/// stay in the store.
fn die_waiting(place: &StoreLocation) -> Vec<TcpStream> {
    let doomed = place.start(&["run", "alpha", "--", "true"]);
    is_waiting(place, 5);
    doomed.kill();
    let gone = place.acquire(&["gone", "--as", "brief", "--ttl", "10m"]);
    let server = Server::start(place, &["--no-auth"]);
    let connections = ["alpha", "gpu", "gone"].map(|resource| {
        let mut connection = server.connect();
        let body = json!({ "resources": [resource], "as": "caller", "wait_ms": 60_000 });
        let ask: Ask = ask("POST", "/v1/locks/acquire").body(body.to_string());
        connection.write_all(ask.text(server.address()).as_bytes()).expect("it is sent");
        connection
    });
    is_waiting(place, 4 + 3);
    server.signal(Signal::KILL);
    server.end();
    let released = place.run(&["release", "gone", "--grant", &gone.1]);
    assert_eq!(released.code, 0, "{released:?}");
    connections.into()
}

fn is_waiting(place: &StoreLocation, number: u64) {
    until(&format!("{number} that wait"), || {
        (place.json(&["status"])["waiting"] == number).then_some(())
    });
}
