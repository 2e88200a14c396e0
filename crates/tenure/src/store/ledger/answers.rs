//! What was answered to requests that may be repeated.

use super::Record;
use crate::store::{ANSWERS_KEPT, ANSWERS_MAX};
use std::collections::{BTreeSet, HashMap};
use tenure_core::{StoredReply, WallTime};

/// The answers, by slot and by age.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    by_slot: HashMap<String, Kept>,
    by_age: BTreeSet<(i64, String)>,
    /// When the clock began anew, if that was while these were kept.
    began_ms: Option<i64>,
}

#[derive(Debug)]
struct Kept {
    answered: StoredReply,
    /// By the machine's monotonic clock.
    at_ms: i64,
    /// For showing only.
    at: WallTime,
}

impl Answers {
    /// What was answered last under this slot.
    pub(crate) fn get(&self, slot: &str) -> Option<StoredReply> {
        self.by_slot.get(slot).map(|kept| kept.answered.clone())
    }

    /// Remembers an answer, and forgets those that are old or too many.
    pub(super) fn put(&mut self, answered: StoredReply, at: WallTime, at_ms: i64) {
        let slot = answered.slot.clone();
        if let Some(before) = self.by_slot.insert(slot.clone(), Kept { answered, at_ms, at }) {
            self.by_age.remove(&(before.at_ms, slot.clone()));
        }
        self.by_age.insert((at_ms, slot));
        let old_ms = at_ms.saturating_sub(ANSWERS_KEPT.as_millis() as i64);
        while self.by_age.len() > ANSWERS_MAX
            || self.by_age.first().is_some_and(|(oldest_ms, _)| *oldest_ms < old_ms)
        {
            let slot = self.by_age.pop_first().map(|(_, slot)| slot);
            slot.and_then(|slot| self.by_slot.remove(&slot));
        }
    }

    /// Takes in what was written before all that is known: it counts where nothing newer is.
    pub(crate) fn add_older(&mut self, records: impl Iterator<Item = Record>) {
        for record in records {
            if let Record::Answer { answered, at, at_ms } = record
                && !self.by_slot.contains_key(&answered.slot)
            {
                let slot = answered.slot.clone();
                let at_ms = self.began_ms.unwrap_or(at_ms);
                self.by_age.insert((at_ms, slot.clone()));
                self.by_slot.insert(slot, Kept { answered, at_ms, at });
            }
        }
    }

    /// What is read from here on was written after the clock began anew.
    pub(crate) fn begin_generation(&mut self) {
        self.began_ms = None;
    }

    /// The clock began anew, and with it the time for which all of them are kept.
    pub(super) fn begin_boot(&mut self, begin_ms: i64) {
        self.began_ms = Some(begin_ms);
        self.by_age.clear();
        for (slot, kept) in &mut self.by_slot {
            kept.at_ms = begin_ms;
            self.by_age.insert((begin_ms, slot.clone()));
        }
    }

    /// Records that together make these, oldest first.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> {
        let slots = self.by_age.iter().filter_map(|(_, slot)| self.by_slot.get(slot));
        slots.map(|Kept { answered, at_ms, at }| Record::Answer {
            answered: answered.clone(),
            at: *at,
            at_ms: *at_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(slot: usize) -> StoredReply {
        StoredReply { slot: slot.to_string(), number: 1, text: "done".to_owned() }
    }

    #[test]
    fn the_oldest_go_when_their_time_has_come_or_there_are_too_many() {
        let mut answers = Answers::default();
        for slot in 0..=ANSWERS_MAX {
            answers.put(answered(slot), WallTime(0), 1000);
        }
        assert_eq!((answers.by_slot.len(), answers.by_age.len()), (ANSWERS_MAX, ANSWERS_MAX));
        let kept_ms = ANSWERS_KEPT.as_millis() as i64;
        answers.put(answered(1), WallTime(0), 1000 + kept_ms);
        assert!(answers.get("2").is_some());
        answers.put(answered(1), WallTime(0), 1001 + kept_ms);
        assert_eq!(answers.by_slot.len(), 1);
    }

    #[test]
    fn a_reboot_forgets_none() {
        let mut answers = Answers::default();
        answers.put(answered(1), WallTime(0), 10_000_000);
        answers.begin_boot(5);
        answers.put(answered(2), WallTime(0), 6);
        assert!(answers.get("1").is_some() && answers.get("2").is_some());
        assert_eq!(answers.records().count(), 2);
    }
}
