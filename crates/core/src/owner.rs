//! On whose behalf something is asked for, and which holds are that owner's already.

use crate::{Evidence, GrantId, Hold, Holder};
use serde::{Deserialize, Serialize};

/// An owner of holds, known by what it can show.
///
/// The lease of an agent, and any lease that is tied to no process, belongs to the label that took it. A
/// hold of a session or a `tenure run` belongs to every caller that presents its grant. A hold that is
/// tied to a process of its own belongs to that hold alone, whatever its label.
///
/// A subagent is an owner of its own below its parent: what its parent holds is not in its way, and it
/// takes a hold of its own below that, which excludes its parent and its siblings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The label of the owner, chosen or the agent's; it owns the leases under this label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The label of the agent that started this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Grants that the owner has: those of its session, or of the commands around it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<GrantId>,
    /// The processes around the asker, as far as they can be seen: a shell waits for what it started, so
    /// that what the label tied to one of them stays while the asker waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub around: Vec<Evidence>,
}

impl Owner {
    /// The owner of this label, without any grants.
    pub fn of_label(label: &str) -> Owner {
        Owner { label: Some(label.to_owned()), ..Owner::default() }
    }

    /// Whether there is nothing that could be owned.
    pub fn is_nobody(&self) -> bool {
        self.label.is_none() && self.parent.is_none() && self.grants.is_empty()
    }

    /// Whether this hold belongs to the owner.
    pub fn owns(&self, hold: &Hold) -> bool {
        self.has_grant(hold) || has_label(hold, self.label.as_deref())
    }

    /// Whether a wait of the owner for this hold would be a wait for itself.
    pub fn keeps(&self, hold: &Hold) -> bool {
        self.owns(hold) || self.is_tied_around(hold)
    }

    /// Whether the owner's label tied this hold to a process around the asker.
    fn is_tied_around(&self, hold: &Hold) -> bool {
        let Some(tied) = hold.holder.evidence.as_ref().filter(|some| some.process.is_some()) else {
            return false;
        };
        let is_same = |around: &Evidence| {
            (&around.machine, &around.boot, around.pid_namespace, around.process)
                == (&tied.machine, &tied.boot, tied.pid_namespace, tied.process)
        };
        hold.holder.chosen
            && self.label.as_ref() == Some(&hold.holder.label)
            && self.around.iter().any(is_same)
    }

    /// Whether the owner itself has this hold, so that a request of this holder for the same needs no
    /// other. A subagent has only what is under its own label: the commands around it are around its
    /// siblings too.
    pub fn has(&self, hold: &Hold, asker: &Holder) -> bool {
        let is_subagent = self.parent.is_some() && asker.agent;
        has_label(hold, self.label.as_deref()) || (!is_subagent && self.has_grant(hold))
    }

    /// Whether this hold belongs to the owner or to the agent that started it.
    pub fn owns_or_inherits(&self, hold: &Hold) -> bool {
        self.owns(hold) || has_label(hold, self.parent.as_deref())
    }

    /// Whether this holder is the agent that started the owner, or another of its subagents, whose
    /// labels are below its own.
    pub fn is_of_one_family(&self, holder: &Holder) -> bool {
        let head = self.parent.as_deref().or(self.label.as_deref()).filter(|_| holder.agent);
        let below = head.and_then(|head| holder.label.strip_prefix(head));
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Whether a request of this holder may go under that hold, where the hold includes what is
    /// wanted. The lease of a label does not cover what is to be tied to a process: two jobs of one
    /// label exclude each other, and none of them may end with the other's lease.
    pub fn covers(&self, hold: &Hold, asker: &Holder) -> bool {
        let is_lease = asker.agent || asker.is_detached();
        self.has_grant(hold) || (is_lease && self.owns_or_inherits(hold))
    }

    fn has_grant(&self, hold: &Hold) -> bool {
        self.grants.contains(&hold.grant)
    }
}

/// Whether this hold belongs to this label.
fn has_label(hold: &Hold, label: Option<&str>) -> bool {
    hold.holder.is_owned_by_label() && label == Some(&hold.holder.label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Process, Token, Want};
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
        let by_label = Owner::of_label("alice");
        let by_grant = Owner { grants: vec![GrantId::from_bits(1)], ..Owner::default() };
        let stranger = Owner { grants: vec![GrantId::from_bits(2)], ..Owner::of_label("bob") };
        // Who holds; then whether the label owns it, covers a detached request, covers a command.
        let cases = [
            (alice.clone(), [true, true, false]),
            (detached.clone(), [true, true, false]),
            (tied.clone(), [false, false, false]),
            (Holder { agent: true, ..tied.clone() }, [true, true, false]),
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

    #[test]
    fn what_a_label_tied_to_a_process_around_the_asker_is_kept_and_not_owned() {
        let alice = Holder::chosen("alice").unwrap();
        let around = vec![evidence(Some(6)), evidence(Some(7))];
        let owner = Owner { around, ..Owner::of_label("alice") };
        let elsewhere = Evidence { boot: "other".to_owned(), ..evidence(Some(7)) };
        for (holder, kept) in [
            (alice.clone().with_evidence(evidence(Some(7))), true),
            (alice.clone().with_evidence(evidence(Some(8))), false),
            (alice.clone().with_evidence(elsewhere), false),
            (Holder::chosen("bob").unwrap().with_evidence(evidence(Some(7))), false),
            (Holder::anonymous("alice".to_owned()).with_evidence(evidence(Some(7))), false),
        ] {
            let hold = hold(holder);
            assert_eq!((owner.keeps(&hold), owner.owns(&hold)), (kept, false), "{hold:?}");
        }
        assert!(owner.keeps(&hold(alice)), "a lease of the label");
    }

    #[test]
    fn a_family_is_an_agent_and_what_is_below_it() {
        let child = Owner { parent: Some("claude-1".to_owned()), ..Owner::of_label("claude-1/a") };
        let agent = |label: &str| Holder::agent(label).unwrap();
        for (label, expected) in
            [("claude-1", true), ("claude-1/b", true), ("claude-12", false), ("claude-2/a", false)]
        {
            assert_eq!(child.is_of_one_family(&agent(label)), expected, "{label}");
            assert_eq!(Owner::of_label("claude-1").is_of_one_family(&agent(label)), expected);
        }
        assert!(!child.is_of_one_family(&Holder::chosen("claude-1/b").unwrap()), "no agent");
    }

    #[test]
    fn a_subagent_goes_under_what_its_parent_holds_and_excludes_it() {
        let agent = |label: &str| Holder::agent(label).unwrap().with_evidence(evidence(Some(7)));
        let parent = Owner::of_label("claude-1");
        let child =
            |label: &str| Owner { parent: Some("claude-1".to_owned()), ..Owner::of_label(label) };
        let (one, two) = (child("claude-1/a"), child("claude-1/b"));
        // Who asks, who holds, and whether the hold is the asker's and whether it covers the asker.
        let cases = [
            (&parent, "claude-1", [true, true]),
            (&parent, "claude-1/a", [false, false]),
            (&one, "claude-1/a", [true, true]),
            (&one, "claude-1", [false, true]),
            (&two, "claude-1/a", [false, false]),
            (&one, "claude-2", [false, false]),
        ];
        for (owner, holder, expected) in cases {
            let asker = agent(owner.label.as_deref().unwrap());
            let hold = hold(agent(holder));
            let found = [owner.owns(&hold), owner.covers(&hold, &asker)];
            assert_eq!(found, expected, "{owner:?} and what {holder} holds");
            let command = Holder { agent: false, ..asker };
            assert!(!owner.covers(&hold, &command), "a command of {owner:?} under {holder}");
        }
    }
}
