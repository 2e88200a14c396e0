//! This test binary as a program: a process that uses the library, to be killed or stopped.

use crate::{crowds, killed_workers, several_resources, stopped_writer};

/// Not a test but a program when `FAULTS_ROLE` says which; see `StoreLocation::role`.
#[test]
fn role() {
    let Ok(role) = std::env::var("FAULTS_ROLE") else { return };
    match role.as_str() {
        "crowd" => crowds::crowd(),
        "increment" => killed_workers::increment(),
        "sit" => stopped_writer::sit(),
        "take-several" => several_resources::take_several(),
        unknown => panic!("there is no role {unknown}"),
    }
}

/// A variable that the test sets for the role.
pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|error| panic!("{name}: {error}"))
}
