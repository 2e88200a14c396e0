//! Keys of paths in the order of their literal prefixes.

use crate::store::path_prefixes::{PathPrefixes, prefix};
use std::collections::{BTreeMap, BTreeSet};
use tenure_core::Resource;

/// Finds the keys of those paths that can overlap others. Resources of other kinds are ignored.
#[derive(Debug, Default)]
pub(super) struct PathIndex {
    by_prefix: BTreeMap<String, BTreeSet<String>>,
}

impl PathIndex {
    pub(super) fn insert(&mut self, resource: &Resource) {
        if let Some(prefix) = prefix(resource) {
            self.by_prefix.entry(prefix).or_default().insert(resource.key());
        }
    }

    pub(super) fn remove(&mut self, resource: &Resource) {
        let Some(prefix) = prefix(resource) else { return };
        if let Some(keys) = self.by_prefix.get_mut(&prefix) {
            keys.remove(&resource.key());
            if keys.is_empty() {
                self.by_prefix.remove(&prefix);
            }
        }
    }

    pub(super) fn near<'a>(&'a self, near: &'a PathPrefixes) -> impl Iterator<Item = &'a String> {
        let at = near.at.iter().filter_map(|prefix| self.by_prefix.get(prefix));
        let below = near.below.iter().flat_map(|range| self.by_prefix.range(range.clone()));
        at.chain(below.map(|(_, keys)| keys)).flatten()
    }
}
