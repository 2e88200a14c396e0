//! What a change compares, and what it compares instead where that is more than servers take.

use super::keys::{Family, Keys};
use etcd_client::{Compare, CompareOp};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// How many comparisons a change has at most. Servers take 128 operations or comparisons, and what nested
/// transactions have counts towards that too.
pub(super) const COMPARES_MAX: usize = 60;

/// What a comparison is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum About {
    /// The whole store: these few are always made one by one.
    Store,
    Guards,
    Tasks,
    Dependents,
    Working,
    Holds,
    Lives,
}

/// Comparisons, each once.
#[derive(Debug, Default)]
pub(super) struct Compares {
    by_key: BTreeMap<(About, String, String), i64>,
    others: Vec<Compare>,
}

impl Compares {
    /// A comparison that concerns the whole store.
    pub(super) fn push(&mut self, compare: Compare) {
        self.others.push(compare);
    }

    /// The key has this revision; 0 for one that is absent.
    pub(super) fn same(&mut self, about: About, key: String, revision: i64) {
        self.by_key.insert((about, key, String::new()), revision);
    }

    /// Nothing in this range was put since this revision. What was deleted is not noticed.
    pub(super) fn unput(&mut self, about: About, range: Range<String>, revision: i64) {
        self.by_key.insert((about, range.start, range.end), revision + 1);
    }

    /// All of them, and whether they cover so much that most other changes are in the way. Where there are
    /// too many, all keys of a kind are compared at once; each deletion of a task puts `store/drops`, and
    /// each deletion of another record puts a guard or its task.
    pub(super) fn list(self, keys: &Keys, revision: i64, drops: Compare) -> (Vec<Compare>, bool) {
        let mut compares = self.others;
        if compares.len() + self.by_key.len() <= COMPARES_MAX {
            compares.extend(self.by_key.into_iter().map(|((_, start, end), revision)| {
                match end.is_empty() {
                    true => Compare::mod_revision(start, CompareOp::Equal, revision),
                    false => {
                        Compare::mod_revision(start, CompareOp::Less, revision).with_range(end)
                    }
                }
            }));
            return (compares, false);
        }
        let mut kinds: BTreeSet<About> = self.by_key.keys().map(|(about, _, _)| *about).collect();
        if kinds.contains(&About::Holds) || kinds.contains(&About::Lives) {
            // A hold that was broken is not noticed otherwise.
            kinds.insert(About::Guards);
        }
        let ranges = kinds.iter().filter_map(|about| about.all(keys));
        compares.extend(ranges.map(|range| range_unput(range, revision)));
        for ((about, start, _), revision) in self.by_key {
            if about == About::Store {
                compares.push(Compare::mod_revision(start, CompareOp::Equal, revision));
            }
        }
        compares.push(drops);
        (compares, true)
    }
}

impl About {
    /// All keys of this kind.
    fn all(self, keys: &Keys) -> Option<Range<String>> {
        match self {
            About::Store => None,
            About::Guards => Some(keys.guards()),
            About::Tasks => Some(keys.tasks()),
            About::Dependents => Some(keys.all_dependents()),
            About::Working => Some(keys.working()),
            About::Holds => Some(keys.family(Family::Holds)),
            About::Lives => Some(keys.family(Family::Lives)),
        }
    }
}

/// That nothing in this range was put since this revision.
pub(super) fn range_unput(range: Range<String>, revision: i64) -> Compare {
    Compare::mod_revision(range.start, CompareOp::Less, revision + 1).with_range(range.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many comparisons a change with so many holds makes, besides that of the drops.
    fn compared(holds: usize) -> (usize, bool) {
        let keys = Keys::new("x");
        let mut compares = Compares::default();
        for number in 0..holds {
            compares.same(About::Holds, format!("x/h/{number}"), 7);
        }
        let drops = Compare::mod_revision("x/store/drops", CompareOp::Equal, 0);
        let (list, is_wide) = compares.list(&keys, 9, drops);
        (list.len() - usize::from(is_wide), is_wide)
    }

    #[test]
    fn many_holds_are_compared_with_all_guards_because_deletions_are_not_noticed() {
        assert_eq!(compared(COMPARES_MAX), (COMPARES_MAX, false));
        assert_eq!(compared(COMPARES_MAX + 1), (2, true));
    }
}
