//! Servers that are killed, restarted and compacted.

use crate::load::{Load, fault_time, in_words, under};
use std::time::{Duration, Instant};
use tenure_testkit::Etcd;

/// Repeats a fault until its time is over; each returns how long the work was interrupted.
fn repeat(load: &Load<'_>, what: &str, mut fault: impl FnMut(&Load<'_>) -> Duration) {
    let begun = Instant::now();
    let mut recoveries = Vec::new();
    while begun.elapsed() < fault_time() {
        recoveries.push(fault(load));
        std::thread::sleep(Duration::from_millis(500));
    }
    println!("{what} {}", in_words(recoveries));
}

#[test]
fn the_leader_is_killed() {
    let mut cluster = Etcd::start(3);
    let url = cluster.url("s");
    under(&url, |load| {
        repeat(load, "leader killed", |load| {
            let leader = cluster.wait_for_leader();
            cluster.kill(leader);
            let recovery = load.go_on("after the leader was killed");
            cluster.run(leader);
            recovery
        });
    });
}

#[test]
fn one_member_after_the_other_restarts() {
    let mut cluster = Etcd::start(3);
    let url = cluster.url("s");
    let mut members = (0..3).cycle();
    under(&url, |load| {
        repeat(load, "member restarted", |load| {
            let member = members.next().expect("a cycle has no end");
            cluster.stop(member);
            cluster.run(member);
            load.go_on("after a member was restarted")
        });
    });
}

#[test]
fn all_members_restart() {
    let mut cluster = Etcd::start(3);
    let url = cluster.url("s");
    under(&url, |load| {
        repeat(load, "all members killed and restarted", |load| {
            let begun = Instant::now();
            (0..3).for_each(|member| cluster.kill(member));
            (0..3).for_each(|member| cluster.run(member));
            load.go_on("after all members were restarted");
            begun.elapsed()
        });
    });
}

#[test]
fn the_servers_compact_all_the_time() {
    let cluster = Etcd::start(3);
    let url = cluster.url("s");
    let mut compactions = 0;
    under(&url, |load| {
        repeat(load, "compacted", |load| {
            for _ in 0..10 {
                compactions += usize::from(cluster.compact().is_ok());
            }
            load.go_on("after a compaction")
        });
    });
    assert!(compactions > 0, "nothing was compacted");
    println!("{compactions} compactions");
}
