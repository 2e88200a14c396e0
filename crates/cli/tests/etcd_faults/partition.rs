//! A member that is cut off from the others: what it says is not trusted, and clients that asked it ask
//! another.

use crate::engine_support::machines::Machine;
use crate::load::{fault_time, in_words, under};
use std::time::{Duration, Instant};
use tenure_testkit::Etcd;
use tenure_testkit::etcd::Place;
use tenure_testkit::process::free_port;

/// Neither the other members nor clients reach it.
#[test]
fn a_minority_is_cut_off() {
    let [machine] = Machine::some();
    let clients = machine.address();
    cut_off(&machine, &clients);
}

/// Only clients reach it, and it cannot know that others are elected and change things.
#[test]
fn a_minority_that_clients_still_reach_is_cut_off() {
    let [machine] = Machine::some();
    let clients = machine.add_cable();
    cut_off(&machine, &clients);
}

/// One member runs on a machine whose cable is cut again and again. Clients reach it at `clients`.
fn cut_off(machine: &Machine, clients: &str) {
    let (here, there) = (machine.gateway(), machine.address());
    let place = |clients: &str, peers: &str, wrapper| Place {
        wrapper,
        client: format!("{clients}:{}", free_port()),
        peer: format!("{peers}:{}", free_port()),
    };
    let places = vec![
        place(clients, &there, machine.wrapper()),
        place(&here, &here, vec![]),
        place(&here, &here, vec![]),
    ];
    let mut cluster = Etcd::at(places, &[], "http");
    (0..3).for_each(|member| cluster.run(member));
    cluster.wait_for_leader();
    let url = cluster.url("s");
    under(&url, |load| {
        let begun = Instant::now();
        let (mut cut, mut back, mut leaders) = (Vec::new(), Vec::new(), 0);
        while begun.elapsed() < fault_time() {
            // Every second time it leads when it is cut off.
            if cut.len() % 2 == 0 {
                cluster.make_leader(0, fault_time());
            }
            leaders += usize::from(cluster.leader() == Some(0));
            machine.cut();
            cut.push(load.go_on("after a member was cut off"));
            std::thread::sleep(Duration::from_secs(1));
            machine.mend();
            back.push(load.go_on("after a member was back"));
        }
        assert!(leaders > 0, "the member never led");
        println!("cut off, {leaders} times as the leader, {}", in_words(cut));
        println!("back {}", in_words(back));
    });
}
