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

/// The keys of the records.
fn registered(world: &World) -> Vec<String> {
    assert!(world.records.iter().all(|record| record.kind == RecordKind::Worker));
    world.records.iter().map(|record| record.key.clone()).collect()
}

#[test]
fn each_worker_has_one_record_until_it_ends() {
    let mut world = World::new(View::Asked);
    put(&mut world, ONE, "alice", None);
    let one = registered(&world).remove(0);
    put(&mut world, TWO, "alice", None);
    put(&mut world, ONE, "alice", Some("api".into()));
    let [two, last] = &registered(&world)[..] else { panic!("{:?}", world.records) };
    assert_eq!(*last, one);
    assert_eq!(world.records[0].ttl, Some(WORKER_TTL / 2), "as long as it said");
    // What is listed is not what proves that a worker is the caller's.
    world.act(&DropWorker { id: one.clone() });
    assert_eq!(registered(&world).len(), 2);
    world.act(&DropWorker { id: ONE.into() });
    assert_eq!(registered(&world), [two.as_str()]);
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
    assert_eq!(registered(&world).len(), 1);
    put(&mut world, TWO, "alice", Some("x".repeat(room)));
    assert_eq!(registered(&world).len(), 2);
    assert_eq!(world.records[1].text.len(), 98_304, "as every engine takes in one value");
}
