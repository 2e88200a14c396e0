//! This test binary as a program: a process that uses the library on a shared folder.

use crate::{swarm, takeover};
use std::fmt::Write as _;
use std::time::Duration;
use tenure::ReleaseOutcome;
use tenure::blocking::{Attempt, Client};

/// So long that a test which waited for it would fail.
pub const LEASE: Duration = Duration::from_secs(3600);

/// Not a test but a program when `FAULTS_ROLE` says which; see `Folder::role`.
#[test]
fn role() {
    let Ok(role) = std::env::var("FAULTS_ROLE") else { return };
    match role.as_str() {
        "hold" => hold(),
        "take-one" => takeover::take_one(),
        "refresh" => swarm::refresh(),
        unknown => panic!("there is no role {unknown}"),
    }
}

/// A variable that the test sets for the role.
pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Nanoseconds on the clock that all processes share.
pub fn stamp() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Takes the lock `ROUNDS` times and writes to `LOG` when it had it and what it took over.
fn hold() {
    let client = Client::open(&variable("URL")).expect("the store");
    let resource = variable("RESOURCE");
    let rounds: u32 = variable("ROUNDS").parse().expect("a number");
    let mut log = String::new();
    for round in 0..rounds {
        let request = client.request(resource.as_str()).ttl(LEASE);
        let Attempt::Held(guard) = client.hold(request).expect("an answer") else {
            panic!("a request without a limit was given up");
        };
        let enter = stamp();
        let takeovers = &guard.lease().takeovers;
        std::thread::sleep(Duration::from_micros(50));
        let leave = stamp();
        let _ = writeln!(log, "enter {enter}");
        for takeover in takeovers {
            let _ = writeln!(log, "took {}", takeover.from.hold.holder.label);
        }
        let _ = writeln!(log, "leave {leave}");
        let ending = guard.release().expect("an answer");
        if ending != ReleaseOutcome::Released {
            let _ = writeln!(log, "lost {leave}");
        }
        // Others are to get their chance, at different moments.
        std::thread::sleep(Duration::from_micros(u64::from(round * 7919 % 1800) + 200));
    }
    std::fs::write(variable("LOG"), log).expect("a log");
}
