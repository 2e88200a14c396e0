//! Who holds, and what counts as proof that a holder is dead.

use crate::text::is_unfit_for_names;
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
    /// Whether the hold is the agent's that the label names, not that of the process in the evidence:
    /// the process is the agent's own program, and ends the hold when it dies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub agent: bool,
    /// What ties the holder to a process or at least to a boot of a machine, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// The text cannot be a label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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
        Ok(Holder { label: label.to_owned(), chosen: true, agent: false, evidence: None })
    }

    /// A holder with a label made up for it, which must not repeat.
    pub fn anonymous(label: String) -> Holder {
        Holder { label, chosen: false, agent: false, evidence: None }
    }

    /// An agent under the label that all its shell commands, hooks and tools share.
    pub fn agent(label: &str) -> Result<Holder, LabelError> {
        Ok(Holder { agent: true, ..Holder::chosen(label)? })
    }

    /// The same holder, tied to this evidence.
    pub fn with_evidence(self, evidence: Evidence) -> Holder {
        Holder { evidence: Some(evidence), ..self }
    }

    /// Whether the holder may work on when the machine of this boot loses its power: unless its
    /// evidence says that it runs there. What such a holder was granted must be on disk before it
    /// is told so.
    pub fn may_outlive(&self, boot: &str) -> bool {
        let own = self.evidence.as_ref().map(|evidence| evidence.boot.as_str());
        boot.is_empty() || own != Some(boot)
    }

    /// Whether this holder is tied to no process: only time, a release or a reboot ends its hold.
    pub fn is_detached(&self) -> bool {
        self.evidence.as_ref().is_none_or(|evidence| evidence.process.is_none())
    }

    /// Whether the hold belongs to the label, as the leases of an agent do, and not to a process of its
    /// own, as those of `tenure run` and of guards do.
    pub fn is_owned_by_label(&self) -> bool {
        self.chosen && (self.agent || self.is_detached())
    }

    /// What is known about this holder's life. Without evidence, nothing is.
    pub fn liveness(&self, witness: &dyn Witness) -> Liveness {
        self.evidence.as_ref().map_or(Liveness::Unknown, |evidence| witness.liveness(evidence))
    }
}

pub(crate) fn check_label(label: &str) -> Result<(), LabelError> {
    let beginning = || label.chars().take(40).collect::<String>();
    if label.trim().is_empty() {
        return Err(LabelError::Empty);
    }
    if label.len() > LABEL_MAX_BYTES {
        return Err(LabelError::TooLong { beginning: beginning(), bytes: label.len() });
    }
    if label.chars().any(is_unfit_for_names) {
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
    /// The process group that also works under this hold (the command of `tenure run`). The holder
    /// is dead only when this group is gone as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
}

/// A process group, told apart from a later one with the same number by the start of its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "StoredGroup")]
pub struct Group {
    /// The number of the group, which is that of its leader.
    pub leader: u32,
    /// When the leader started; none where that was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
}

/// A group as it is read: the first version of the format had its number alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredGroup {
    Number(u32),
    Whole {
        leader: u32,
        #[serde(default)]
        start: Option<u64>,
    },
}

impl From<StoredGroup> for Group {
    fn from(stored: StoredGroup) -> Group {
        match stored {
            StoredGroup::Number(leader) => Group { leader, start: None },
            StoredGroup::Whole { leader, start } => Group { leader, start },
        }
    }
}

impl Group {
    /// Whether the group's number belongs to another group by now. The kernel gives out the number
    /// of a leader again only after its whole group is gone, so a process that has the leader's
    /// number and another start is the proof. `start_now` is what [`Observer::judge`] gets.
    pub fn is_reused(&self, start_now: Option<Option<u64>>) -> bool {
        match (self.start, start_now) {
            (Some(start), Some(Some(now))) => !same_start(start, now),
            _ => false,
        }
    }
}

/// A process, told apart from a later one with the same number by its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in the system's own ticks since the machine was booted.
    pub start: u64,
}

/// Whether two starts of a process with one number are the same. Seen from containers whose clocks
/// differ by less than a tick, the start of one process may differ by one; a number is not given
/// out again so soon.
fn same_start(one: u64, other: u64) -> bool {
    one.abs_diff(other) <= 1
}

impl Process {
    /// Whether the process with this number that started then is this one.
    pub fn started_at(&self, start: u64) -> bool {
        same_start(self.start, start)
    }
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
    /// See [`Evidence::boot`].
    pub boot: String,
    /// See [`Evidence::pid_namespace`].
    pub pid_namespace: u64,
    /// Boots of the store's machine that the store saw end. Another boot id alone proves nothing:
    /// it may be that of another machine, even where the machine ids are equal, since those are
    /// copied with images.
    pub ended_boots: Vec<String>,
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
        if evidence.boot.is_empty() {
            return Liveness::Unknown;
        }
        if evidence.boot != self.boot {
            let has_ended = self.ended_boots.contains(&evidence.boot);
            return if has_ended { Liveness::Dead } else { Liveness::Unknown };
        }
        let Some(process) = evidence.process else { return Liveness::Unknown };
        let group_lives =
            |group: &Group| !group.is_reused(start_of(group.leader)) && group_exists(group.leader);
        if evidence.pid_namespace != self.pid_namespace {
            return Liveness::Unknown;
        }
        match start_of(process.pid) {
            Some(None) => Liveness::Unknown,
            Some(Some(start)) if process.started_at(start) => Liveness::Alive,
            _ if evidence.group.is_some_and(|group| group_lives(&group)) => Liveness::Alive,
            _ => Liveness::Dead,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observer() -> Observer {
        Observer { boot: "b".into(), pid_namespace: 7, ended_boots: vec!["a".into()] }
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
        assert_eq!(judge(&evidence(), Some(Some(200)), false), Liveness::Dead);
        assert_eq!(judge(&evidence(), None, false), Liveness::Dead);
        assert_eq!(judge(&evidence(), Some(None), false), Liveness::Unknown);
    }

    #[test]
    fn a_group_that_still_works_keeps_the_holder_alive() {
        for start in [None, Some(50)] {
            let with_group = Evidence { group: Some(Group { leader: 11, start }), ..evidence() };
            assert_eq!(judge(&with_group, None, true), Liveness::Alive);
            assert_eq!(judge(&with_group, None, false), Liveness::Dead);
        }
    }

    #[test]
    fn a_group_whose_number_was_given_out_again_keeps_nobody_alive() {
        let group = Some(Group { leader: 11, start: Some(50) });
        let with_group = Evidence { group, ..evidence() };
        let judge = |leader_start: u64| {
            let start_of = |pid: u32| (pid == 11).then_some(Some(leader_start));
            observer().judge(&with_group, &start_of, &|_| true)
        };
        assert_eq!(judge(50), Liveness::Alive);
        assert_eq!(judge(51), Liveness::Alive, "the same, seen by a clock that differs a little");
        assert_eq!(judge(500), Liveness::Dead);
    }

    #[test]
    fn groups_of_older_records_are_read() {
        let read = |json: &str| serde_json::from_str::<Group>(json).unwrap();
        assert_eq!(read("11"), Group { leader: 11, start: None });
        let whole = Group { leader: 11, start: Some(50) };
        assert_eq!(read(&serde_json::to_string(&whole).unwrap()), whole);
    }

    #[test]
    fn a_boot_that_the_store_saw_end_is_dead_whatever_its_machine_is_called() {
        let before = Evidence { boot: "a".into(), host: "renamed".into(), ..evidence() };
        assert_eq!(judge(&before, Some(Some(99)), true), Liveness::Dead);
        let no_process = Evidence { process: None, ..before };
        assert_eq!(judge(&no_process, None, false), Liveness::Dead);
    }

    #[test]
    fn another_boot_of_what_seems_to_be_the_same_machine_proves_nothing() {
        let elsewhere = Evidence { boot: "c".into(), ..evidence() };
        assert_eq!(judge(&elsewhere, None, false), Liveness::Unknown);
    }

    #[test]
    fn what_cannot_be_matched_is_unknown() {
        let unknowns = [
            Evidence { pid_namespace: 8, ..evidence() },
            Evidence { boot: "c".into(), machine: "other".into(), ..evidence() },
            Evidence { boot: "c".into(), machine: String::new(), ..evidence() },
            Evidence { boot: String::new(), ..evidence() },
            Evidence { process: None, ..evidence() },
        ];
        for evidence in unknowns {
            assert_eq!(judge(&evidence, None, false), Liveness::Unknown, "{evidence:?}");
        }
    }

    #[test]
    fn only_who_runs_under_the_same_boot_dies_with_it() {
        let holder = Holder::anonymous("x".to_owned());
        assert!(holder.may_outlive("b"));
        let here = holder.with_evidence(evidence());
        assert!(!here.may_outlive("b"));
        assert!(here.may_outlive("other"));
        let unknown = here.with_evidence(Evidence { boot: String::new(), ..evidence() });
        assert!(unknown.may_outlive("b") && unknown.may_outlive(""));
    }

    #[test]
    fn labels_are_checked() {
        assert!(Holder::chosen("alice 🚀").is_ok());
        assert_eq!(Holder::chosen(" "), Err(LabelError::Empty));
        assert!(matches!(Holder::chosen("a\nb"), Err(LabelError::ControlCharacter { .. })));
        assert!(Holder::chosen(&"x".repeat(LABEL_MAX_BYTES)).is_ok());
        let too_long = Holder::chosen(&"x".repeat(LABEL_MAX_BYTES + 1));
        assert!(matches!(too_long, Err(LabelError::TooLong { bytes: 257, .. })), "{too_long:?}");
    }
}
