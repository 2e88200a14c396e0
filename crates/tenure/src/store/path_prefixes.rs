//! Which paths can overlap which, so that a store finds them without looking at all it has.
//!
//! Two globs overlap only if the literal prefix of one is that of the other, or an ancestor of it.
//! So stores keep paths in the order of their prefixes, and a look at `src/api/*.rs` covers
//! the prefixes (none), `src` and `src/api`, and all below `src/api`. Worktrees do not matter
//! here: a path in one of them meets those in all.

use std::collections::BTreeSet;
use std::ops::Range;
use tenure_core::{Kind, Resource, Task};

/// Of more different prefixes than this, all paths are looked at: each costs some lookups, and a
/// lookup costs as much as reading a few records.
const PREFIXES_MAX: usize = 256;

/// By what a path is found: its literal prefix with a `/` before each segment, so that all that are
/// not empty lie below the empty one. Nothing for other resources.
pub(crate) fn prefix(resource: &Resource) -> Option<String> {
    let prefix = resource.glob()?.literal_prefix();
    Some(if prefix.is_empty() { String::new() } else { format!("/{prefix}") })
}

/// The paths that these tasks need, and those that their workers took.
pub(crate) fn files(tasks: &[Task]) -> Vec<Resource> {
    let globs = tasks.iter().flat_map(|task| &task.files);
    let needed = globs.filter_map(|glob| Resource::new(Kind::Path, glob).ok());
    let claims = tasks.iter().filter_map(|task| task.claim.as_ref());
    let taken = claims.flat_map(|claim| &claim.parts).map(|part| part.resource.clone());
    needed.chain(taken).collect()
}

/// The prefixes of all paths that can overlap some wanted ones; no prefix is named twice.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PathPrefixes {
    /// Exactly these.
    pub(crate) at: BTreeSet<String>,
    /// All that lie in these ranges, in the order of their bytes.
    pub(crate) below: Vec<Range<String>>,
}

impl PathPrefixes {
    /// What can overlap one of these; only paths among them count.
    pub(crate) fn to<'a>(wanted: impl IntoIterator<Item = &'a Resource>) -> PathPrefixes {
        let mut wanted: BTreeSet<String> = wanted.into_iter().filter_map(prefix).collect();
        if wanted.len() > PREFIXES_MAX {
            wanted = BTreeSet::from([String::new()]);
        }
        // An ancestor comes before what is below it, which then is part of its range.
        let mut roots: BTreeSet<String> = BTreeSet::new();
        for prefix in wanted {
            if !ancestors(&prefix).any(|ancestor| roots.contains(ancestor)) {
                roots.insert(prefix);
            }
        }
        // The character after `/` is `0`.
        let below = roots.iter().map(|root| format!("{root}/")..format!("{root}0")).collect();
        let mut at: BTreeSet<String> =
            roots.iter().flat_map(|root| ancestors(root)).map(str::to_owned).collect();
        at.extend(roots);
        PathPrefixes { at, below }
    }
}

/// Those above a prefix, from the empty one downwards.
fn ancestors(prefix: &str) -> impl Iterator<Item = &str> {
    prefix.match_indices('/').map(|(end, _)| &prefix[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(names: &[&str]) -> PathPrefixes {
        let wanted: Vec<Resource> = names.iter().map(|name| name.parse().unwrap()).collect();
        PathPrefixes::to(&wanted)
    }

    fn expect(at: &[&str], below: &[(&str, &str)]) -> PathPrefixes {
        let below = below.iter().map(|(from, to)| (*from).to_owned()..(*to).to_owned());
        PathPrefixes {
            at: at.iter().map(|text| (*text).to_owned()).collect(),
            below: below.collect(),
        }
    }

    #[test]
    fn ancestors_one_by_one_and_all_below() {
        let found = near(&["path:src/api/*.rs"]);
        assert_eq!(found, expect(&["", "/src", "/src/api"], &[("/src/api/", "/src/api0")]));
        assert_eq!(near(&["path://tree/src/api/*.rs"]), found, "a worktree does not matter");
        assert_eq!(near(&["path:**/*.rs"]), expect(&[""], &[("/", "0")]));
        assert_eq!(near(&["lock:src", "task:src"]), expect(&[], &[]));
    }

    #[test]
    fn nothing_is_named_twice() {
        let found = near(&["path:a/b", "path:a/**", "path:a-b/c", "path:a/b/c/d", "path:a-b/*"]);
        let below = [("/a/", "/a0"), ("/a-b/", "/a-b0")];
        assert_eq!(found, expect(&["", "/a", "/a-b"], &below));
        assert_eq!(near(&["path:a", "path:*"]), near(&["path:**"]));
    }

    #[test]
    fn many_prefixes_are_all() {
        let names: Vec<String> = (0..=PREFIXES_MAX).map(|n| format!("path:{n}/x")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(near(&names), near(&["path:**"]));
    }

    fn path() -> impl Strategy<Value = Resource> {
        let segment = prop::sample::select(vec![
            "a", "b", "ab", "A", "ä", "a b", "a-b", "a.b", "a0", "*", "**", "?", "a*", "[ab]",
            "[a]", "{a,b}", "{a/b,a}", "\\*", "\\[a", "!",
        ]);
        let worktree = prop::sample::select(vec!["", "//one/", "//two/"]);
        (worktree, prop::collection::vec(segment, 1..5), any::<bool>()).prop_map(
            |(worktree, segments, folder)| {
                let end = if folder { "/" } else { "" };
                format!("path:{worktree}{}{end}", segments.join("/")).parse().unwrap()
            },
        )
    }

    proptest! {
        #[test]
        fn all_that_overlaps_is_near_once(
            wanted in prop::collection::vec(path(), 1..4),
            other in path(),
        ) {
            let near = PathPrefixes::to(&wanted);
            let prefix = prefix(&other).unwrap();
            let below = near.below.iter().filter(|range| range.contains(&prefix)).count();
            let times = below + usize::from(near.at.contains(&prefix));
            prop_assert!(times <= 1, "{other} is named {times} times for {wanted:?}");
            if wanted.iter().any(|wanted| wanted.overlaps(&other)) {
                prop_assert_eq!(times, 1, "{} overlaps {:?}", other, wanted);
            }
        }
    }
}
