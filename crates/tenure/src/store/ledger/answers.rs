//! What was answered to requests that may be repeated.

use super::Record;
use crate::store::ANSWERS_KEPT;
use std::collections::{BTreeSet, HashMap};
use tenure_core::{Answered, WallTime};

/// The answers, by slot and by age.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    by_slot: HashMap<String, (Answered, WallTime)>,
    by_age: BTreeSet<(WallTime, String)>,
}

impl Answers {
    /// What was answered last under this slot.
    pub(crate) fn get(&self, slot: &str) -> Option<Answered> {
        self.by_slot.get(slot).map(|(answered, _)| answered.clone())
    }

    /// Remembers an answer, and forgets those that are old.
    pub(super) fn put(&mut self, answered: Answered, at: WallTime) {
        let slot = answered.slot.clone();
        if let Some((_, before)) = self.by_slot.insert(slot.clone(), (answered, at)) {
            self.by_age.remove(&(before, slot.clone()));
        }
        self.by_age.insert((at, slot));
        let old = WallTime(at.0.saturating_sub(ANSWERS_KEPT.as_millis() as i64));
        while self.by_age.first().is_some_and(|(oldest, _)| *oldest < old) {
            let slot = self.by_age.pop_first().map(|(_, slot)| slot);
            slot.and_then(|slot| self.by_slot.remove(&slot));
        }
    }

    /// Records that together make these.
    pub(super) fn records(&self) -> impl Iterator<Item = Record> {
        let all = self.by_slot.values();
        all.map(|(answered, at)| Record::Answer { answered: answered.clone(), at: *at })
    }
}
