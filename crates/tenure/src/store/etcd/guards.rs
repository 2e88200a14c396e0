//! The guards of resources, as they were at a look.

use super::base::text;
use super::compares::{About, Compares};
use super::connection::Page;
use super::keys::Keys;
use crate::store::path_prefixes::PathPrefixes;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use tenure_core::{Kind, Resource};

/// The guards that were read.
#[derive(Debug, Default)]
pub(super) struct Guards {
    known: HashMap<String, Guard>,
    exact: HashSet<String>,
    ranges: Vec<Range<String>>,
}

/// A guard: when the holds or the queue of a resource changed last, and the highest number there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Guard {
    pub(super) revision: i64,
    pub(super) number: u64,
}

impl Guards {
    /// The guard as it was; none if it was not read.
    pub(super) fn get(&self, key: &str) -> Option<Guard> {
        let was_read =
            self.exact.contains(key) || self.ranges.iter().any(|range| contains(range, key));
        was_read.then(|| self.known.get(key).copied().unwrap_or_default())
    }

    /// The highest number that was given out.
    pub(super) fn highest(&self) -> u64 {
        self.known.values().map(|guard| guard.number).max().unwrap_or(0)
    }

    pub(super) fn read_one(&mut self, key: String, page: &Page) {
        self.take(page);
        self.exact.insert(key);
    }

    pub(super) fn read_range(&mut self, range: Range<String>, page: &Page) {
        self.take(page);
        self.ranges.push(range);
    }

    fn take(&mut self, page: &Page) {
        for entry in &page.entries {
            let number = text(entry).and_then(|text| text.parse().ok()).unwrap_or(0);
            let guard = Guard { revision: entry.mod_revision(), number };
            self.known.insert(String::from_utf8_lossy(entry.key()).into_owned(), guard);
        }
    }

    /// That the guards of these resources, and of all that can overlap them, are as they were, as far as
    /// they were read.
    pub(super) fn unchanged<'r>(
        &self,
        keys: &Keys,
        resources: impl Iterator<Item = &'r Resource> + Clone,
        revision: i64,
        compares: &mut Compares,
    ) {
        let named = resources.clone().filter(|one| one.kind() != Kind::Path);
        let prefixes = PathPrefixes::to(resources);
        let paths = prefixes.at.iter().map(|prefix| keys.guard_of_prefix(prefix));
        let exact: BTreeSet<String> = named.map(|one| keys.guard(one)).chain(paths).collect();
        for key in exact {
            if let Some(guard) = self.get(&key) {
                compares.same(About::Guards, key, guard.revision);
            }
        }
        for below in &prefixes.below {
            compares.unput(About::Guards, keys.guards_below(below), revision);
        }
    }
}

fn contains(range: &Range<String>, key: &str) -> bool {
    range.start.as_str() <= key && key < range.end.as_str()
}
