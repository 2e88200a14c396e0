//! A worker is registered under its id until it ends.

use crate::support::{View, World};
use tenure_core::act::{DropWorker, PutWorker};
use tenure_core::record::RECORD_MAX_BYTES;
use tenure_core::registry::WORKER_TTL;
use tenure_core::{RecordKind, WorkerReport};

const ONE: &str = "00000000000000000000000000000001";
const TWO: &str = "0000000000000000000000000000000f";

fn put(world: &mut World, id: &str, label: &str, section: Option<String>) {
    let worker = WorkerReport { label: label.into(), section, ..WorkerReport::default() };
    world.act(&PutWorker { id: id.into(), worker, ttl: WORKER_TTL / 2 });
}

fn registered(world: &World) -> Vec<&str> {
    assert!(world.records.iter().all(|record| record.kind == RecordKind::Worker));
    world.records.iter().map(|record| record.key.as_str()).collect()
}

#[test]
fn each_worker_has_one_record_until_it_ends() {
    let mut world = World::new(View::Asked);
    put(&mut world, ONE, "alice", None);
    put(&mut world, TWO, "alice", None);
    put(&mut world, ONE, "alice", Some("api".into()));
    assert_eq!(registered(&world), [TWO, ONE]);
    assert_eq!(world.records[0].ttl, Some(WORKER_TTL / 2), "as long as it said");
    world.act(&DropWorker { id: ONE.into() });
    assert_eq!(registered(&world), [TWO]);
}

#[test]
fn a_report_that_cannot_be_shown_is_not_kept() {
    let mut world = World::new(View::Asked);
    put(&mut world, ONE, "alice\nbob", None);
    put(&mut world, "not an id", "alice", None);
    put(&mut world, &ONE[1..], "alice", None);
    assert_eq!(registered(&world), [""; 0]);
    // The longest that is kept has exactly as many bytes as a record may have.
    put(&mut world, ONE, "alice", Some(String::new()));
    let room = RECORD_MAX_BYTES - world.records[0].text.len();
    put(&mut world, TWO, "alice", Some("x".repeat(room + 1)));
    assert_eq!(registered(&world), [ONE]);
    put(&mut world, TWO, "alice", Some("x".repeat(room)));
    assert_eq!(registered(&world), [ONE, TWO]);
    assert_eq!(world.records[1].text.len(), 98_304, "as every engine takes in one value");
}
