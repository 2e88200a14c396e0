//! On whose behalf something is asked for, and which holds are that owner's already.

use crate::{GrantId, Hold, Holder};
use serde::{Deserialize, Serialize};

/// An owner of holds, known by what it can show.
///
/// A detached lease belongs to the agent that took it: to the label that the agent chose. A hold of a
/// session or a `tenure run` belongs to every caller that presents its grant. A hold that is tied to
/// a process belongs to that hold alone, whatever its label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The label that the owner chose; it owns the detached leases under this label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Grants that the owner has: those of its session, or of the commands around it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<GrantId>,
}

impl Owner {
    /// Whether there is nothing that could be owned.
    pub fn is_nobody(&self) -> bool {
        self.label.is_none() && self.grants.is_empty()
    }

    /// Whether this hold belongs to the owner.
    pub fn owns(&self, hold: &Hold) -> bool {
        self.has_grant(hold) || self.has_label(hold)
    }

    /// Whether a request of this holder may go under that hold, where the hold includes what is
    /// wanted. A detached lease does not cover what is to be tied to a process: two jobs of one
    /// label exclude each other, and none of them may end with the other's lease.
    pub fn covers(&self, hold: &Hold, asker: &Holder) -> bool {
        self.has_grant(hold) || (asker.is_detached() && self.has_label(hold))
    }

    fn has_grant(&self, hold: &Hold) -> bool {
        self.grants.contains(&hold.grant)
    }

    fn has_label(&self, hold: &Hold) -> bool {
        let holder = &hold.holder;
        holder.chosen && holder.is_detached() && self.label.as_deref() == Some(&holder.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Evidence, Process, Token, Want};
    use std::time::Duration;

    fn evidence(pid: Option<u32>) -> Evidence {
        Evidence {
            host: "host".to_owned(),
            machine: "machine".to_owned(),
            boot: "boot".to_owned(),
            pid_namespace: 1,
            process: pid.map(|pid| Process { pid, start: 1 }),
            group: None,
        }
    }

    fn hold(holder: Holder) -> Hold {
        Hold {
            want: Want::exclusive("a".parse().unwrap()),
            grant: GrantId::from_bits(1),
            token: Token(1),
            holder,
            operation: None,
            slot: None,
            ttl: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_label_owns_detached_leases_and_a_grant_owns_its_hold() {
        let alice = Holder::chosen("alice").unwrap();
        let detached = alice.clone().with_evidence(evidence(None));
        let tied = alice.clone().with_evidence(evidence(Some(7)));
        let shown = Holder::anonymous("alice".to_owned());
        let by_label = Owner { label: Some("alice".to_owned()), grants: vec![] };
        let by_grant = Owner { label: None, grants: vec![GrantId::from_bits(1)] };
        let stranger = Owner { label: Some("bob".to_owned()), grants: vec![GrantId::from_bits(2)] };
        // Who holds; then whether the label owns it, covers a detached request, covers a command.
        let cases = [
            (alice.clone(), [true, true, false]),
            (detached.clone(), [true, true, false]),
            (tied.clone(), [false, false, false]),
            (shown, [false, false, false]),
        ];
        for (holder, expected) in cases {
            let hold = hold(holder);
            let found = [
                by_label.owns(&hold),
                by_label.covers(&hold, &detached),
                by_label.covers(&hold, &tied),
            ];
            assert_eq!(found, expected, "{hold:?}");
            assert!(by_grant.owns(&hold) && by_grant.covers(&hold, &tied), "{hold:?}");
            assert!(!stranger.owns(&hold) && !stranger.covers(&hold, &detached), "{hold:?}");
            assert!(!Owner::default().owns(&hold), "{hold:?}");
        }
    }
}
