//! Which advisory locks a change takes.
//!
//! Locks of the database's transactions are all that orders changes: rows are read and written only
//! under them. All locks that are waited for are taken in one statement, in the order of their
//! keys; what is taken later is only tried. So no two changes wait for each other. A rule may
//! choose to write what its scope did not name; then the change begins again with more locks.
//!
//! A key is a text. For resources other than paths it is the resource itself. A path takes the
//! literal beginning of its glob exclusively, and the folders above shared: two paths that can
//! overlap then meet in the shorter of both beginnings.

use crate::store::path_prefixes;
use std::collections::BTreeMap;
use tenure_core::{Change, Kind, Resource, Scope, Task, Touched};

/// With more keys than this a change takes the whole store: PostgreSQL has room for some thousand
/// locks in all.
const KEYS_MAX: usize = 256;

/// Sections are changed by a change that has it exclusively, and read by those that share it.
const SECTIONS: &str = "sections";
/// Held by all that add tasks, so that ages rise in the order of commits.
const ADDS: &str = "adds";
/// Held by requests that would close a cycle of waits.
const WAITS: &str = "waits";

/// Which locks, and whether exclusively.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LockSet {
    /// The whole store, exclusively: no other lock is needed.
    pub(super) whole: bool,
    keys: BTreeMap<String, bool>,
}

impl LockSet {
    fn exclusive(&mut self, key: String) {
        self.keys.insert(key, true);
    }

    fn shared(&mut self, key: String) {
        self.keys.entry(key).or_insert(false);
    }

    fn resource(&mut self, resource: &Resource) {
        match path_prefixes::prefix(resource) {
            None => self.exclusive(resource.key()),
            Some(prefix) => {
                for (end, _) in prefix.match_indices('/') {
                    self.shared(path_key(&prefix[..end]));
                }
                self.exclusive(path_key(&prefix));
            }
        }
    }

    /// What a change over this scope takes before it looks, as far as the scope names it; the
    /// locks of records are added by the statement that takes them.
    pub(super) fn of_scope(scope: &Scope, slot: Option<&str>) -> LockSet {
        let mut locks = LockSet::default();
        if let Some(slot) = slot {
            locks.exclusive(slot_key(slot));
        }
        match scope {
            Scope::Everything => locks.whole = true,
            Scope::At { resources, .. } | Scope::Queues(resources) => {
                resources.iter().for_each(|resource| locks.resource(resource));
            }
            Scope::Waits { resources, .. } => {
                locks.exclusive(WAITS.to_owned());
                resources.iter().for_each(|resource| locks.resource(resource));
            }
            Scope::Tasks(scope) => {
                // To look at all tasks in progress and change some needs everything; clients look
                // first and then name the tasks.
                locks.whole = scope.in_progress;
                match scope.all_sections {
                    true => locks.exclusive(SECTIONS.to_owned()),
                    false => locks.shared(SECTIONS.to_owned()),
                }
                if scope.adds {
                    locks.exclusive(ADDS.to_owned());
                }
                for id in &scope.ids {
                    locks.exclusive(id.resource().key());
                }
                for key in &scope.keys {
                    locks.exclusive(format!("key:{key}"));
                }
            }
        }
        locks.bounded()
    }

    fn bounded(mut self) -> LockSet {
        self.whole |= self.keys.len() > KEYS_MAX;
        self
    }

    /// What this change writes and these locks do not cover; nothing if it can be written.
    pub(super) fn missing(&self, change: &Change) -> Option<LockSet> {
        if self.whole {
            return None;
        }
        let mut needed = LockSet::default();
        for write in &change.writes {
            for touched in write.touches() {
                match touched {
                    Touched::Resource(resource) => needed.resource(resource),
                    Touched::Task(id) => needed.exclusive(id.resource().key()),
                    Touched::Section(_) => needed.exclusive(SECTIONS.to_owned()),
                    Touched::Slot(slot) => needed.exclusive(slot_key(slot)),
                }
            }
        }
        self.without_held(needed)
    }

    /// Which of these, as [`encoded`](LockSet::encoded) writes them, are missing; nothing if none is.
    pub(super) fn lacking(&self, keys: &[String]) -> Option<LockSet> {
        let mut needed = LockSet::default();
        needed.took(keys);
        if self.whole { None } else { self.without_held(needed) }
    }

    fn without_held(&self, mut needed: LockSet) -> Option<LockSet> {
        needed
            .keys
            .retain(|key, exclusive| self.keys.get(key).is_none_or(|held| *exclusive && !*held));
        (!needed.keys.is_empty()).then_some(needed)
    }

    /// These and those.
    pub(super) fn add(&mut self, other: LockSet) {
        self.whole |= other.whole;
        for (key, exclusive) in other.keys {
            match exclusive {
                true => self.exclusive(key),
                false => self.shared(key),
            }
        }
        *self = std::mem::take(self).bounded();
    }

    /// Notes locks that the database took, as [`encoded`](LockSet::encoded) writes them.
    pub(super) fn took(&mut self, keys: &[String]) {
        for key in keys {
            match key.strip_prefix('x') {
                Some(key) => self.exclusive(key.to_owned()),
                None => self.shared(key[1..].to_owned()),
            }
        }
    }

    /// The keys as the database stores and takes them: `x` or `s`, and the key.
    pub(super) fn encoded(&self) -> Vec<String> {
        let letter = |exclusive: &bool| if *exclusive { 'x' } else { 's' };
        self.keys.iter().map(|(key, exclusive)| format!("{}{key}", letter(exclusive))).collect()
    }
}

fn path_key(prefix: &str) -> String {
    format!("p:{prefix}")
}

fn slot_key(slot: &str) -> String {
    format!("slot:{slot}")
}

/// What a change of this hold needs.
pub(super) fn of_resource(resource: &Resource) -> Vec<String> {
    let mut locks = LockSet::default();
    locks.resource(resource);
    locks.encoded()
}

/// What a claim or a finish of this task needs: the task, its section and its files.
pub(super) fn of_task(task: &Task) -> Vec<String> {
    let mut locks = LockSet::default();
    locks.exclusive(task.id.resource().key());
    if let Some(section) = &task.section
        && let Ok(section) = Resource::new(Kind::Section, section)
    {
        locks.resource(&section);
    }
    let files = path_prefixes::files(std::slice::from_ref(task));
    files.iter().for_each(|resource| locks.resource(resource));
    locks.encoded()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::{GrantId, Hold, Holder, Token, Want, Write};

    fn at(names: &[&str]) -> LockSet {
        let resources = names.iter().map(|name| name.parse().unwrap()).collect();
        LockSet::of_scope(&Scope::At { resources, ticket: None }, None)
    }

    /// Whether two changes with these locks cannot run at once.
    fn exclude(one: &LockSet, other: &LockSet) -> bool {
        one.whole
            || other.whole
            || one.keys.iter().any(|(key, exclusive)| {
                other.keys.get(key).is_some_and(|other| *exclusive || *other)
            })
    }

    #[test]
    fn what_overlaps_excludes_each_other_and_siblings_do_not() {
        for (one, other, expected) in [
            ("a", "a", true),
            ("a", "b", false),
            ("path:src/**", "path:src/api/x.rs", true),
            ("path:src/api/x.rs", "path:src/**", true),
            ("path:**/*.rs", "path:docs/a", true),
            ("path:src/a", "path:src/b", false),
            ("path:src/a", "path:src/a", true),
            ("path:ab/c", "path:a/c", false),
            ("lock:a", "task:a", false),
        ] {
            assert_eq!(exclude(&at(&[one]), &at(&[other])), expected, "{one} and {other}");
        }
    }

    #[test]
    fn a_write_outside_of_the_locks_is_noticed() {
        let hold = |name: &str| {
            let want = Want::exclusive(name.parse().unwrap());
            let holder = Holder::anonymous("a".to_owned());
            let (grant, token) = (GrantId::from_bits(1), Token(1));
            let ttl = std::time::Duration::from_secs(1);
            Write::Hold(Hold { want, grant, token, holder, operation: None, ttl, slot: None })
        };
        let change = |names: &[&str]| Change {
            writes: names.iter().map(|name| hold(name)).collect(),
            ..Change::default()
        };
        let mut locks = at(&["a", "path:src/api/**"]);
        assert_eq!(locks.missing(&change(&["a", "path:src/api/x*"])), None);
        let missing = locks.missing(&change(&["a", "b"])).unwrap();
        assert_eq!(missing.encoded(), ["xlock:b"]);
        locks.add(missing);
        assert_eq!(locks.missing(&change(&["a", "b"])), None);
        // A folder above is only shared.
        assert!(locks.missing(&change(&["path:src/*"])).is_some());
        locks.whole = true;
        assert_eq!(locks.missing(&change(&["z"])), None);
    }

    #[test]
    fn very_many_take_the_store() {
        let names: Vec<String> = (0..=KEYS_MAX).map(|number| number.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(at(&names).whole && !at(&names[1..]).whole);
    }

    #[test]
    fn what_was_taken_is_read_back() {
        let locks = at(&["a", "path:src/x"]);
        let mut read = LockSet::default();
        read.took(&locks.encoded());
        assert_eq!(read, locks);
    }
}
