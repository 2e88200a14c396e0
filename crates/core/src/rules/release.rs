//! Giving back.

use crate::decision::Decision;
use crate::event::EventKind;
use crate::rules::draft::Draft;
use crate::{GrantId, HoldSnapshot, Resource, Snapshot, Want, Witness};
use serde::{Deserialize, Serialize};

/// What shows that a hold is the caller's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// The grant itself.
    Grant(GrantId),
    /// A label that the caller chose, for holds whose holder chose it too.
    Label(String),
}

impl Proof {
    /// Whether this proves ownership of that hold.
    pub fn covers(&self, seen: &HoldSnapshot) -> bool {
        match self {
            Proof::Grant(grant) => seen.hold.grant == *grant,
            Proof::Label(label) => seen.hold.holder.chosen && seen.hold.holder.label == *label,
        }
    }

    /// The same for one that only looked, and so may have seen the grant in its public form.
    pub fn recognises(&self, seen: &HoldSnapshot) -> bool {
        let is_veiled = match self {
            Proof::Grant(grant) => seen.hold.grant == grant.redacted(),
            Proof::Label(_) => false,
        };
        is_veiled || self.covers(seen)
    }
}

/// What is to be given back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReleaseAsk {
    /// Shows that it is the caller's.
    pub proof: Proof,
    /// Which resources; none given means all that the proof covers.
    pub resources: Option<Vec<Resource>>,
    /// Whether its holder counts it as lost already, and stopped what it did under it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
}

/// What came of giving back. Grants are in their public form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Released {
    /// These ended. One that had lapsed was no longer the caller's to rely on.
    Ended(Vec<HoldSnapshot>),
    /// The proof covers nothing there; this is who holds it now.
    NotHeld(Vec<HoldSnapshot>),
}

/// Ends the caller's holds and wakes the next waiters. A late release changes nothing: what the grant
/// no longer holds belongs to a successor.
pub fn release(seen: &Snapshot, ask: &ReleaseAsk, witness: &dyn Witness) -> (Decision, Released) {
    let concerned = |hold: &&HoldSnapshot| {
        ask.resources.as_ref().is_none_or(|some| some.contains(&hold.hold.want.resource))
    };
    let mine: Vec<&HoldSnapshot> =
        seen.holds.iter().filter(concerned).filter(|hold| ask.proof.covers(hold)).collect();
    if mine.is_empty() {
        // Without a named resource there is no other holder to name.
        let others = seen.holds.iter().filter(concerned).filter(|_| ask.resources.is_some());
        return (
            Decision::Nothing,
            Released::NotHeld(others.map(HoldSnapshot::redacted).collect()),
        );
    }
    let wants: Vec<Want> = mine.iter().map(|seen| seen.hold.want.clone()).collect();
    let mut draft = Draft::new(seen, witness).looking_at(&wants);
    for hold in &mine {
        let kind = if hold.lapsed() || ask.lost { EventKind::LAPSED } else { EventKind::Released };
        draft.drop_hold(hold, kind);
    }
    let ended = mine.into_iter().map(HoldSnapshot::redacted).collect();
    (draft.decide(None), Released::Ended(ended))
}
