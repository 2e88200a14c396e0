//! Who holds, and what counts as proof that a holder is dead.

use serde::{Deserialize, Serialize};

/// Longest label in bytes: it is printed in tables and in every event.
pub const LABEL_MAX_BYTES: usize = 256;

/// Who holds or waits: a label for people, and evidence for judging whether the process lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The name shown to people.
    pub label: String,
    /// Whether the caller chose this label. Only then may it stand in for a grant on release.
    pub chosen: bool,
    /// What ties the holder to a process or at least to a boot of a machine, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// The text cannot be a label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// Nothing was given.
    #[error("a label cannot be empty")]
    Empty,
    /// It would break lines or terminals.
    #[error("the label {label:?} contains a control character")]
    ControlCharacter {
        /// The beginning of what was given.
        label: String,
    },
    /// It is longer than [`LABEL_MAX_BYTES`].
    #[error("the label {beginning:?}… has {bytes} bytes; the longest allowed is {LABEL_MAX_BYTES}")]
    TooLong {
        /// How it begins.
        beginning: String,
        /// Its length.
        bytes: usize,
    },
}

impl Holder {
    /// A holder whose label the caller chose.
    pub fn chosen(label: &str) -> Result<Holder, LabelError> {
        check_label(label)?;
        Ok(Holder { label: label.to_owned(), chosen: true, evidence: None })
    }

    /// A holder with a label made up for it, which must not repeat.
    pub fn anonymous(label: String) -> Holder {
        Holder { label, chosen: false, evidence: None }
    }

    /// The same holder, tied to this evidence.
    pub fn with_evidence(self, evidence: Evidence) -> Holder {
        Holder { evidence: Some(evidence), ..self }
    }

    /// What is known about this holder's life. Without evidence, nothing is.
    pub fn liveness(&self, witness: &dyn Witness) -> Liveness {
        self.evidence.as_ref().map_or(Liveness::Unknown, |evidence| witness.liveness(evidence))
    }
}

fn check_label(label: &str) -> Result<(), LabelError> {
    let beginning = || label.chars().take(40).collect::<String>();
    if label.trim().is_empty() {
        return Err(LabelError::Empty);
    }
    if label.len() > LABEL_MAX_BYTES {
        return Err(LabelError::TooLong { beginning: beginning(), bytes: label.len() });
    }
    if label.chars().any(char::is_control) {
        return Err(LabelError::ControlCharacter { label: beginning() });
    }
    Ok(())
}

/// Where a holder runs, precise enough that its death can be proved.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Evidence {
    /// The host's name, for showing only: names change and repeat.
    pub host: String,
    /// An id of the machine that survives reboots; empty where there is none.
    pub machine: String,
    /// The id of this boot of the kernel; empty where there is none.
    pub boot: String,
    /// The process-id name space; 0 where the system has only one.
    pub pid_namespace: u64,
    /// The process that does the work; none for a lease that no process is tied to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// The process group that also works under this hold (the command of `tenure run`), named by
    /// its leader. The holder is dead only when this group is gone as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
}

/// A process, told apart from a later one with the same number by its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in the system's own ticks.
    pub start: u64,
}

/// What is known about a holder's life. Death and life both need a match; all else is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// The very process is there.
    Alive,
    /// The very process cannot exist any more.
    Dead,
    /// Nothing can be said from here; only the lease's time counts.
    Unknown,
}

/// Tells whether a holder lives, as far as can be known from where the witness stands.
pub trait Witness {
    /// Judges this evidence.
    fn liveness(&self, evidence: &Evidence) -> Liveness;
}

/// A witness who knows nothing: only leases' times count.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWitness;

impl Witness for NoWitness {
    fn liveness(&self, _: &Evidence) -> Liveness {
        Liveness::Unknown
    }
}

/// Where the one who judges stands; compared with where the holder stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observer {
    /// See [`Evidence::machine`].
    pub machine: String,
    /// See [`Evidence::boot`].
    pub boot: String,
    /// See [`Evidence::pid_namespace`].
    pub pid_namespace: u64,
}

impl Observer {
    /// Judges evidence by the two facts that a system can tell: when the process with a number
    /// started (`None`: there is no such process; `Some(None)`: there is, but not more can be
    /// read), and whether a process group has any member left.
    pub fn judge(
        &self,
        evidence: &Evidence,
        start_of: &dyn Fn(u32) -> Option<Option<u64>>,
        group_exists: &dyn Fn(u32) -> bool,
    ) -> Liveness {
        if evidence.boot.is_empty() || self.boot.is_empty() {
            return Liveness::Unknown;
        }
        if evidence.boot != self.boot {
            // The same machine under another boot: whatever ran before the reboot is gone. Two
            // machines without an id could be any two machines.
            let same_machine = !evidence.machine.is_empty() && evidence.machine == self.machine;
            return if same_machine { Liveness::Dead } else { Liveness::Unknown };
        }
        let Some(process) = evidence.process else { return Liveness::Unknown };
        if evidence.pid_namespace != self.pid_namespace {
            return Liveness::Unknown;
        }
        match start_of(process.pid) {
            Some(None) => Liveness::Unknown,
            Some(Some(start)) if start == process.start => Liveness::Alive,
            _ if evidence.group.is_some_and(group_exists) => Liveness::Alive,
            _ => Liveness::Dead,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observer() -> Observer {
        Observer { machine: "m".into(), boot: "b".into(), pid_namespace: 7 }
    }

    fn evidence() -> Evidence {
        Evidence {
            host: "h".into(),
            machine: "m".into(),
            boot: "b".into(),
            pid_namespace: 7,
            process: Some(Process { pid: 10, start: 99 }),
            group: None,
        }
    }

    fn judge(evidence: &Evidence, start: Option<Option<u64>>, group: bool) -> Liveness {
        observer().judge(evidence, &|_| start, &|_| group)
    }

    #[test]
    fn the_same_number_and_start_is_alive_and_any_other_start_is_a_reused_number() {
        assert_eq!(judge(&evidence(), Some(Some(99)), false), Liveness::Alive);
        assert_eq!(judge(&evidence(), Some(Some(100)), false), Liveness::Dead);
        assert_eq!(judge(&evidence(), None, false), Liveness::Dead);
        assert_eq!(judge(&evidence(), Some(None), false), Liveness::Unknown);
    }

    #[test]
    fn a_group_that_still_works_keeps_the_holder_alive() {
        let with_group = Evidence { group: Some(11), ..evidence() };
        assert_eq!(judge(&with_group, None, true), Liveness::Alive);
        assert_eq!(judge(&with_group, None, false), Liveness::Dead);
    }

    #[test]
    fn another_boot_of_the_same_machine_is_dead_whatever_its_host_name() {
        let before = Evidence { boot: "a".into(), host: "renamed".into(), ..evidence() };
        assert_eq!(judge(&before, Some(Some(99)), true), Liveness::Dead);
        let no_process = Evidence { process: None, ..before };
        assert_eq!(judge(&no_process, None, false), Liveness::Dead);
    }

    #[test]
    fn what_cannot_be_matched_is_unknown() {
        let unknowns = [
            Evidence { pid_namespace: 8, ..evidence() },
            Evidence { boot: "a".into(), machine: "other".into(), ..evidence() },
            Evidence { boot: "a".into(), machine: String::new(), ..evidence() },
            Evidence { boot: String::new(), ..evidence() },
            Evidence { process: None, ..evidence() },
        ];
        for evidence in unknowns {
            assert_eq!(judge(&evidence, None, false), Liveness::Unknown, "{evidence:?}");
        }
    }

    #[test]
    fn labels_are_checked() {
        assert!(Holder::chosen("alice 🚀").is_ok());
        assert_eq!(Holder::chosen(" "), Err(LabelError::Empty));
        assert!(matches!(Holder::chosen("a\nb"), Err(LabelError::ControlCharacter { .. })));
        assert!(matches!(Holder::chosen(&"x".repeat(300)), Err(LabelError::TooLong { .. })));
    }
}
