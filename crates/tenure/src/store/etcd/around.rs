//! What is held and waited for around some resources.

use super::compares::Compares;
use super::connection::{Ask, Page, Pages};
use super::error::Failure;
use super::guards::Guards;
use super::keys::{Family, Keys, place_at_end};
use super::look::{Look, Started};
use super::records::{Life, StoredHold, StoredPlace};
use super::shown::Shown;
use crate::store::path_prefixes::PathPrefixes;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use tenure_core::{GrantId, Kind, Resource, Snapshot, WallTime};

/// How much of a queue is shown at first: as in the other stores.
pub(super) const FRONT: usize = 8;

/// What is to be done with the answer to one read.
enum Part {
    Guard(String),
    Guards(Range<String>),
    Holds,
    Lives,
    Places,
    PlaceLives,
    /// The beginning of a queue of which only a part is read.
    Front,
}

/// Reads about resources, and what they found.
#[derive(Default)]
pub(super) struct Around {
    parts: Vec<Part>,
    pub(super) asks: Vec<Ask>,
    pub(super) guards: Guards,
    pub(super) holds: HashMap<String, StoredHold>,
    pub(super) places: HashMap<(u64, GrantId), StoredPlace>,
    /// The front of each queue of which only a part was read, and whether there is more.
    pub(super) fronts: Vec<(Vec<(u64, GrantId)>, bool)>,
    lives: HashMap<String, Life>,
    place_lives: HashMap<(u64, GrantId), Life>,
}

const FAMILIES: [Family; 4] = [Family::Holds, Family::Lives, Family::Places, Family::PlaceLives];

impl Around {
    fn ask(&mut self, part: Part, ask: Ask) {
        self.parts.push(part);
        self.asks.push(ask);
    }

    fn ask_family(&mut self, family: Family, range: Range<String>) {
        let (part, ask) = match family {
            Family::Holds => (Part::Holds, Ask::all(range)),
            Family::Lives => (Part::Lives, Ask::all(range).keys_only()),
            Family::Places => (Part::Places, Ask::all(range)),
            Family::PlaceLives => (Part::PlaceLives, Ask::all(range).keys_only()),
        };
        self.ask(part, ask);
    }

    fn ask_guard(&mut self, key: String) {
        self.ask(Part::Guard(key.clone()), Ask::one(key));
    }

    /// All that is held and waited for on these resources and on paths that can overlap them, with the
    /// whole queues.
    pub(super) fn ask_all<'r>(
        &mut self,
        keys: &Keys,
        resources: impl Iterator<Item = &'r Resource> + Clone,
    ) {
        let named: BTreeMap<String, &Resource> = resources
            .clone()
            .filter(|one| one.kind() != Kind::Path)
            .map(|one| (one.key(), one))
            .collect();
        for resource in named.into_values() {
            self.ask_guard(keys.guard(resource));
            for family in FAMILIES {
                self.ask_family(family, keys.at(family, resource));
            }
        }
        self.ask_paths(keys, &PathPrefixes::to(resources));
    }

    fn ask_paths(&mut self, keys: &Keys, prefixes: &PathPrefixes) {
        for prefix in &prefixes.at {
            self.ask_guard(keys.guard_of_prefix(prefix));
            for family in FAMILIES {
                self.ask_family(family, keys.at_prefix(family, prefix));
            }
        }
        for below in &prefixes.below {
            let guards = keys.guards_below(below);
            self.ask(Part::Guards(guards.clone()), Ask::all(guards));
            for family in FAMILIES {
                self.ask_family(family, keys.below(family, below));
            }
        }
    }

    /// The same with only the fronts of queues, and a place further back.
    pub(super) fn ask_fronts(&mut self, keys: &Keys, resources: &[Resource], ticket: Option<u64>) {
        let named: BTreeMap<String, &Resource> = resources
            .iter()
            .filter(|one| one.kind() != Kind::Path)
            .map(|one| (one.key(), one))
            .collect();
        for resource in named.into_values() {
            self.ask_guard(keys.guard(resource));
            self.ask_family(Family::Holds, keys.at(Family::Holds, resource));
            self.ask_family(Family::Lives, keys.at(Family::Lives, resource));
            let front = |family| Ask::all(keys.at(family, resource)).first(FRONT + 1);
            let end = |family| Ask::all(keys.places_until(family, resource, ticket)).last(2);
            self.ask(Part::Front, front(Family::Places));
            self.ask(Part::PlaceLives, front(Family::PlaceLives).keys_only());
            self.ask(Part::Places, end(Family::Places));
            self.ask(Part::PlaceLives, end(Family::PlaceLives).keys_only());
        }
        self.ask_paths(keys, &PathPrefixes::to(resources));
    }

    /// Everything that is held and waited for.
    pub(super) fn ask_everything(&mut self, keys: &Keys, with_guards: bool) {
        for family in FAMILIES {
            self.ask_family(family, keys.family(family));
        }
        if with_guards {
            self.ask(Part::Guards(keys.guards()), Ask::all(keys.guards()));
        }
    }

    /// Only the guards of these resources and of those that can overlap them.
    pub(super) fn ask_guards(&mut self, keys: &Keys, resources: &[Resource]) {
        for resource in resources.iter().filter(|one| one.kind() != Kind::Path) {
            self.ask_guard(keys.guard(resource));
        }
        let prefixes = PathPrefixes::to(resources);
        for prefix in &prefixes.at {
            self.ask_guard(keys.guard_of_prefix(prefix));
        }
        for below in &prefixes.below {
            let guards = keys.guards_below(below);
            self.ask(Part::Guards(guards.clone()), Ask::all(guards));
        }
    }

    /// Takes the answers.
    pub(super) fn take(&mut self, pages: &mut Pages, store: &str) -> Result<(), Failure> {
        for part in std::mem::take(&mut self.parts) {
            let page = pages.next();
            match part {
                Part::Guard(key) => self.guards.read_one(key, &page),
                Part::Guards(range) => self.guards.read_range(range, &page),
                Part::Holds => {
                    for entry in &page.entries {
                        let key = String::from_utf8_lossy(entry.key()).into_owned();
                        self.holds.insert(key, StoredHold::of(entry, store)?);
                    }
                }
                Part::Lives => {
                    let lives = page.entries.iter().map(|entry| {
                        (String::from_utf8_lossy(entry.key()).into_owned(), Life::of(entry))
                    });
                    self.lives.extend(lives);
                }
                Part::Places => drop(self.take_places(&page, store)?),
                Part::PlaceLives => {
                    let lives = page.entries.iter();
                    let lives = lives
                        .filter_map(|entry| Some((place_at_end(entry.key())?, Life::of(entry))));
                    self.place_lives.extend(lives);
                }
                Part::Front => {
                    let shown = self.take_places(&page, store)?;
                    let more = page.count > i64::try_from(FRONT).unwrap_or(i64::MAX);
                    self.fronts.push((shown, more));
                }
            }
        }
        self.asks.clear();
        Ok(())
    }

    fn take_places(&mut self, page: &Page, store: &str) -> Result<Vec<(u64, GrantId)>, Failure> {
        let mut taken = Vec::new();
        for entry in &page.entries {
            let place = StoredPlace::of(entry, store)?;
            let key = (place.waiter.ticket, place.waiter.grant);
            taken.push(key);
            self.places.insert(key, place);
        }
        Ok(taken)
    }

    /// Joins the records with what says whether their leases live.
    pub(super) fn join(&mut self, keys: &Keys) {
        for stored in self.holds.values_mut() {
            let life = keys.hold(Family::Lives, &stored.hold.want.resource, stored.hold.grant);
            stored.life = self.lives.get(&life).copied();
        }
        for (key, place) in &mut self.places {
            place.life = self.place_lives.get(key).copied();
        }
    }
}

impl Around {
    pub(super) fn snapshot_of_all(&mut self, keys: &Keys, now: WallTime) -> Snapshot {
        self.join(keys);
        Shown::all(self).snapshot(now)
    }

    pub(super) fn into_look(
        self,
        started: Started,
        snapshot: Snapshot,
        revision: i64,
        now: WallTime,
        compares: Compares,
    ) -> Look {
        let Started { base, reply, reply_revision } = started;
        let ages = snapshot.tasks.iter().map(|task| task.age).max().unwrap_or(0);
        let number = self.guards.highest().max(base.numbers_floor).max(ages);
        let snapshot = Snapshot {
            next: snapshot.next.max(number + 1),
            revision: base.head,
            wall: now,
            answered: reply,
            ..snapshot
        };
        Look {
            revision,
            base,
            snapshot,
            guards: self.guards,
            holds: self.holds,
            places: self.places,
            tasks: HashMap::new(),
            used_sections: BTreeSet::new(),
            reply_revision,
            compares,
            asks: vec![],
            is_remembered: false,
        }
    }
}
