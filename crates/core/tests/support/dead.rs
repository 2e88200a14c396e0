//! Death by hand.

use std::collections::BTreeSet;
use tenure_core::{Evidence, Liveness, Process, Witness};

/// The processes that are dead; all others live.
#[derive(Clone, Default)]
pub struct Dead(pub BTreeSet<u32>);

impl Witness for Dead {
    fn liveness(&self, evidence: &Evidence) -> Liveness {
        match &evidence.process {
            None => Liveness::Unknown,
            Some(process) if self.0.contains(&process.pid) => Liveness::Dead,
            Some(_) => Liveness::Alive,
        }
    }
}

/// What ties a holder to the process with this number.
pub fn evidence_of(pid: u32) -> Evidence {
    Evidence {
        host: "host".to_owned(),
        machine: "machine".to_owned(),
        boot: "boot".to_owned(),
        pid_namespace: 1,
        process: Some(Process { pid, start: 1 }),
        group: None,
    }
}
