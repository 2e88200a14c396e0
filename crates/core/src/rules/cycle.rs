//! Refusing a wait that would never end.
//!
//! A request that keeps grants while it waits closes a cycle when one of its blockers waits, directly
//! or through others, for one of those grants. A request that keeps nothing cannot close a cycle:
//! no other request can wait for it.

use crate::hold::{Hold, Want, must_exclude};
use crate::rules::acquire::Ask;
use crate::{GrantId, HoldSnapshot, Owner, Resource, Snapshot, WaiterSnapshot, Witness};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The cycle that a wait would close, from the caller's request back to what the caller keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cycle {
    /// Each step names a waiter and a resource that the next step's waiter holds, or waits for ahead
    /// of it.
    pub steps: Vec<CycleStep>,
    /// Whether a lease of the caller's own label is in the way of a hold that is to be tied to a
    /// process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_lease: bool,
}

/// One step of a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CycleStep {
    /// Who waits.
    pub waiter: String,
    /// For what.
    pub resource: Resource,
    /// Who holds it, or waits for it since longer.
    pub blocked_by: String,
}

impl Cycle {
    /// The cycle as a clause, with each resource written as `name` says.
    pub fn words(&self, name: impl Fn(&Resource) -> String) -> String {
        if let [CycleStep { waiter, resource, blocked_by }] = self.steps.as_slice()
            && blocked_by.strip_prefix("held by ") == Some(waiter.as_str())
        {
            return format!("you ({waiter}) already hold {}", name(resource));
        }
        let step = |step: &CycleStep| {
            format!("{} waits for {} ({})", step.waiter, name(&step.resource), step.blocked_by)
        };
        self.steps.iter().map(step).collect::<Vec<_>>().join(", ")
    }
}

impl std::fmt::Display for Cycle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words(Resource::to_string))
    }
}

/// The cycle that waiting for `ask` would close, if any. Needs to see what
/// [`Scope::Waits`](crate::Scope) names.
pub(super) fn closed_by(seen: &Snapshot, ask: &Ask, witness: &dyn Witness) -> Option<Cycle> {
    let search = Search { seen, ask, witness };
    let mut visited = HashSet::from([ask.grant]);
    let mut steps = Vec::new();
    search.from(&ask.holder.label, ask.grant, &ask.wants, u64::MAX, &mut visited, &mut steps).then(
        || {
            let own_lease = !(ask.holder.agent || ask.holder.is_detached())
                && search.holds_in_the_way(&ask.holder.label, ask.grant, &ask.wants).any(|seen| {
                    ask.owner.keeps(&seen.hold) && !ask.owner.grants.contains(&seen.hold.grant)
                });
            Cycle { steps, own_lease }
        },
    )
}

/// Whether the agent with this label, or the one that started it, has this hold around all of these
/// wants: it goes under it.
fn is_around(hold: &Hold, label: &str, wants: &[Want]) -> bool {
    let rest = label.strip_prefix(hold.holder.label.as_str());
    hold.holder.agent
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        && wants.iter().all(|want| hold.want.includes(want))
}

struct Search<'a> {
    seen: &'a Snapshot,
    ask: &'a Ask,
    witness: &'a dyn Witness,
}

impl Search<'_> {
    /// Whether a request of this label goes before an earlier waiter, which waits behind what the label
    /// or its parent holds around it: see [`Ask::passes`].
    fn is_passed(&self, label: &str, wants: &[Want], earlier: &WaiterSnapshot) -> bool {
        let earlier = &earlier.waiter;
        let shared: Vec<Want> = wants
            .iter()
            .filter(|want| earlier.wants.iter().any(|it| it.resource.overlaps(&want.resource)))
            .cloned()
            .collect();
        self.seen.holds.iter().map(|seen| &seen.hold).any(|hold| {
            is_around(hold, label, &shared)
                && must_exclude(&earlier.wants, std::slice::from_ref(&hold.want))
                && !Owner::of_label(&hold.holder.label).is_of_one_family(&earlier.holder)
        })
    }

    /// Depth first from one waiting request; `steps` is the path so far, and stays when found.
    fn from(
        &self,
        label: &str,
        grant: GrantId,
        wants: &[Want],
        ticket: u64,
        visited: &mut HashSet<GrantId>,
        steps: &mut Vec<CycleStep>,
    ) -> bool {
        for hold in self.holds_in_the_way(label, grant, wants) {
            steps.push(CycleStep {
                waiter: label.to_owned(),
                resource: hold.hold.want.resource.clone(),
                blocked_by: format!("held by {}", hold.hold.holder.label),
            });
            if self.is_kept(&hold.hold) {
                return true;
            }
            let keepers =
                self.live_waiters().filter(|seen| seen.waiter.keeps.contains(&hold.hold.grant));
            for keeper in keepers {
                if self.follow(keeper, visited, steps) {
                    return true;
                }
            }
            steps.pop();
        }
        let before = self.live_waiters().filter(|seen| {
            seen.waiter.ticket < ticket
                && seen.waiter.grant != grant
                && !self.is_passed(label, wants, seen)
                && must_exclude(wants, &seen.waiter.wants)
        });
        for earlier in before {
            let excluded = wants
                .iter()
                .find(|want| must_exclude(std::slice::from_ref(want), &earlier.waiter.wants));
            let Some(want) = excluded else { continue };
            steps.push(CycleStep {
                waiter: label.to_owned(),
                resource: want.resource.clone(),
                blocked_by: format!("{} waits before", earlier.waiter.holder.label),
            });
            if self.follow(earlier, visited, steps) {
                return true;
            }
            steps.pop();
        }
        false
    }

    fn follow(
        &self,
        seen: &WaiterSnapshot,
        visited: &mut HashSet<GrantId>,
        steps: &mut Vec<CycleStep>,
    ) -> bool {
        let waiter = &seen.waiter;
        visited.insert(waiter.grant)
            && self.from(
                &waiter.holder.label,
                waiter.grant,
                &waiter.wants,
                waiter.ticket,
                visited,
                steps,
            )
    }

    fn is_kept(&self, hold: &Hold) -> bool {
        self.ask.keeps.contains(&hold.grant) || self.ask.owner.keeps(hold)
    }

    /// Whether the asker goes under this hold, as far as it touches what is wanted.
    fn is_covering(&self, hold: &Hold) -> bool {
        let mut touched =
            self.ask.wants.iter().filter(|want| want.resource.overlaps(&hold.want.resource));
        self.ask.is_same_agents(hold) || touched.all(|want| self.ask.is_covered_by(hold, want))
    }

    fn holds_in_the_way<'s>(
        &'s self,
        label: &str,
        grant: GrantId,
        wants: &[Want],
    ) -> impl Iterator<Item = &'s HoldSnapshot> {
        let touched = |hold: &Hold| -> Vec<Want> {
            let touched = wants.iter().filter(|want| want.resource.overlaps(&hold.want.resource));
            touched.cloned().collect()
        };
        self.seen.holds.iter().filter(move |seen| {
            seen.hold.grant != grant
                && must_exclude(wants, std::slice::from_ref(&seen.hold.want))
                && !(grant == self.ask.grant && self.is_covering(&seen.hold))
                && !(seen.hold.holder.label != label
                    && is_around(&seen.hold, label, &touched(&seen.hold)))
                && !seen.gone(self.witness)
        })
    }

    fn live_waiters(&self) -> impl Iterator<Item = &WaiterSnapshot> {
        self.seen.waiters.iter().filter(|seen| !seen.gone(self.witness))
    }
}
