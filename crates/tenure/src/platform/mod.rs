//! Everything that depends on the operating system.
//!
//! Each function has the same meaning on every system. If a system cannot tell, the result claims
//! the least (an empty boot id, an unknown start time), and the rules then rely on leases alone.

pub(crate) mod fork;
mod unix;

pub(crate) use fork::process_id;
#[cfg(debug_assertions)]
pub(crate) use unix::die;
pub(crate) use unix::{
    RunningProcess, boot_id, create_whole, ended, exchange, group_exists, group_members, has_name,
    has_socket, is_ours_alone, is_stopped, listening_sockets, machine_id, monotonic,
    monotonic_with_suspend, own_listening_sockets, pid_namespace, process_info, rename_new,
    running_process, start_of,
};
pub(crate) use unix::{access, mailbox};

use crate::world::PerProcess;
use std::sync::OnceLock;
use tenure_core::{Evidence, Group, Liveness, Observer, Process, Witness};

/// The machine and boot of this process without the process itself: evidence for a lease that is
/// bound to no process.
pub fn this_boot() -> Evidence {
    static HERE: OnceLock<Evidence> = OnceLock::new();
    let look = || Evidence {
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        machine: machine_id(),
        boot: boot_id(),
        pid_namespace: pid_namespace(),
        process: None,
        group: None,
    };
    HERE.get_or_init(look).clone()
}

/// Evidence for this process. If its start time cannot be read, only for this boot.
pub fn this_process() -> Evidence {
    static PROCESS: PerProcess<Evidence> = PerProcess::new();
    let look = || process_evidence(std::process::id()).unwrap_or_else(this_boot);
    PROCESS.get_or_init(look).clone()
}

/// Evidence for a process of this machine, if one has this pid.
pub fn process_evidence(pid: u32) -> Option<Evidence> {
    let start = start_of(pid)??;
    Some(Evidence { process: Some(Process { pid, start }), ..this_boot() })
}

/// The process group of this leader, a process of this machine.
pub(crate) fn process_group(leader: u32) -> Group {
    Group { leader, start: start_of(leader).flatten() }
}

/// What still runs of a holder whose own process has ended: the members of its group, with their names.
/// Nothing where the process lives, or runs where this one cannot see it.
pub fn left_running(evidence: &Evidence) -> Vec<(u32, String)> {
    let here = this_boot();
    let is_here = evidence.boot == here.boot && evidence.pid_namespace == here.pid_namespace;
    let (Some(process), Some(group)) = (evidence.process, evidence.group) else { return vec![] };
    let lives = start_of(process.pid).flatten().is_some_and(|start| process.started_at(start));
    if !is_here || lives || group.is_reused(start_of(group.leader)) {
        return vec![];
    }
    group_members(group.leader)
}

/// A process, as far as it says who started it and what it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessInfo {
    pub(crate) pid: u32,
    /// The process that started it, or the one that took it over.
    pub(crate) parent: u32,
    /// See [`Process::start`].
    pub(crate) start: u64,
    /// Its name, as the kernel shows it: cut short, and chosen by the program.
    pub(crate) name: String,
    /// The first arguments, with the program itself before them.
    pub(crate) arguments: Vec<String>,
}

/// Judges whether holders live by looking at the processes of this machine.
#[derive(Clone, Debug)]
pub struct LocalWitness {
    observer: Observer,
}

impl LocalWitness {
    /// A witness that knows nothing of earlier boots.
    pub fn new() -> LocalWitness {
        LocalWitness::knowing(vec![])
    }

    /// A witness that also knows which boots of this machine have ended, from
    /// [`StoreInfo::ended_boots`](crate::store::StoreInfo::ended_boots).
    pub fn knowing(ended_boots: Vec<String>) -> LocalWitness {
        let observer = Observer { boot: boot_id(), pid_namespace: pid_namespace(), ended_boots };
        LocalWitness { observer }
    }
}

impl Default for LocalWitness {
    fn default() -> LocalWitness {
        LocalWitness::new()
    }
}

impl Witness for LocalWitness {
    fn liveness(&self, evidence: &Evidence) -> Liveness {
        self.observer.judge(evidence, &start_of, &group_exists)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_a_reaped_child_is_dead() {
        let witness = LocalWitness::new();
        let me = process_evidence(std::process::id()).unwrap();
        assert_eq!(witness.liveness(&me), Liveness::Alive);

        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let evidence = process_evidence(child.id()).unwrap();
        assert_eq!(witness.liveness(&evidence), Liveness::Alive);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(witness.liveness(&evidence), Liveness::Dead);
    }

    #[test]
    fn a_zombie_is_dead() {
        let witness = LocalWitness::new();
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let evidence = process_evidence(child.id()).unwrap();
        child.kill().unwrap();
        // Killed but not yet reaped: wait for the state to change without reaping it.
        while witness.liveness(&evidence) != Liveness::Dead {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_group_of_zombies_is_gone() {
        use std::os::unix::process::CommandExt;
        let mut command = std::process::Command::new("sleep");
        let mut child = command.arg("1000").process_group(0).spawn().unwrap();
        assert!(group_exists(child.id()));
        child.kill().unwrap();
        while group_exists(child.id()) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!group_exists(child.id()));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_group_that_only_has_the_number_of_the_holders_keeps_nobody_alive() {
        use std::os::unix::process::CommandExt;
        let witness = LocalWitness::new();
        let mut dead = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let gone = process_evidence(dead.id()).unwrap();
        dead.kill().unwrap();
        dead.wait().unwrap();
        let mut command = std::process::Command::new("sleep");
        let mut child = command.arg("1000").process_group(0).spawn().unwrap();
        let own = process_group(child.id());
        assert!(own.start.is_some());
        let with = |group| Evidence { group: Some(group), ..gone.clone() };
        assert_eq!(witness.liveness(&with(own)), Liveness::Alive);
        let earlier = Group { start: own.start.map(|start| start - 1000), ..own };
        assert_eq!(witness.liveness(&with(earlier)), Liveness::Dead);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[tokio::test]
    async fn the_end_of_a_process_is_noticed() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let evidence = process_evidence(child.id()).unwrap();
        let watch = tokio::spawn(ended(evidence));
        tokio::task::yield_now().await;
        child.kill().unwrap();
        watch.await.unwrap();
        child.wait().unwrap();
    }
}
