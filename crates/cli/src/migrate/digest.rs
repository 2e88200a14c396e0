//! Counts and checksums of what a store has, by which two stores are compared.
//!
//! The canonical form of a record is its JSON, in which the fields have one order. Tasks come in the
//! order of their ages, sections in that of their names, events in that of the history. Numbers that a
//! store gives to events are not part of it.

use super::LABEL;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tenure::core::{Event, Section, Task};

/// So many events are kept by every store that lasts; older ones may be forgotten.
pub(super) const EVENTS_KEPT: usize = 90_000;

/// The number of tasks by section and status.
pub(super) type Tally = BTreeMap<(Option<String>, &'static str), u64>;

/// How many records there are, and their checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) count: usize,
    pub(crate) sha256: String,
}

/// What a store has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) tasks: Count,
    pub(crate) sections: Count,
    pub(crate) events: Count,
    pub(crate) counts: Tally,
}

impl Contents {
    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let one = |count: &Count| json!({ "count": count.count, "sha256": count.sha256 });
        let counts = self.counts.iter().map(|((section, status), count)| {
            json!({ "section": section, "status": status, "count": count })
        });
        json!({
            "tasks": one(&self.tasks),
            "sections": one(&self.sections),
            "events": one(&self.events),
            "counts": counts.collect::<Vec<_>>(),
        })
    }

    /// How many records there are, in words.
    pub(crate) fn summary(&self) -> String {
        let one = |count: &Count, what: &str| match count.count {
            1 => format!("1 {what}"),
            many => format!("{many} {what}s"),
        };
        let (tasks, sections) = (one(&self.tasks, "task"), one(&self.sections, "section"));
        format!("{tasks}, {sections} and {}", one(&self.events, "event"))
    }

    /// The checksums, a line for each.
    pub(crate) fn sums(&self) -> String {
        let all = [("tasks", &self.tasks), ("sections", &self.sections), ("events", &self.events)];
        let line = |(name, count): (&str, &Count)| format!("  {name:<8} sha256 {}", count.sha256);
        all.map(line).join("\n")
    }

    /// The number of tasks of each status, in words.
    pub(crate) fn statuses(&self) -> String {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for ((_, status), count) in &self.counts {
            *sums.entry(status).or_default() += count;
        }
        let words: Vec<String> =
            sums.iter().map(|(status, count)| format!("{count} {status}")).collect();
        words.join(", ")
    }
}

/// A checksum in the making.
#[derive(Default)]
pub(super) struct Sum {
    tasks: Hashed,
    sections: BTreeMap<String, Section>,
    events: Hashed,
    counts: Tally,
}

#[derive(Default)]
struct Hashed {
    count: usize,
    hash: Sha256,
}

impl Hashed {
    fn add(&mut self, bytes: &[u8]) {
        self.count += 1;
        self.hash.update(bytes);
        self.hash.update(b"\n");
    }

    fn finish(self) -> Count {
        let mut sha256 = String::new();
        for byte in self.hash.finalize() {
            let _ = write!(sha256, "{byte:02x}");
        }
        Count { count: self.count, sha256 }
    }
}

impl Sum {
    pub(super) fn task(&mut self, task: &Task) {
        self.tasks.add(&serde_json::to_vec(task).unwrap_or_default());
        *self.counts.entry((task.section.clone(), task.status.word())).or_default() += 1;
    }

    pub(super) fn section(&mut self, section: &Section) {
        self.sections.insert(section.name.clone(), section.clone());
    }

    pub(super) fn event(&mut self, sum: &[u8; 32]) {
        self.events.add(sum);
    }

    pub(super) fn finish(mut self) -> Contents {
        // A store need not show a section that was never described and has only finished tasks.
        for name in self.counts.keys().filter_map(|(section, _)| section.as_ref()) {
            self.sections.entry(name.clone()).or_insert_with(|| Section::named(name));
        }
        let mut sections = Hashed::default();
        for section in self.sections.values() {
            sections.add(&serde_json::to_vec(section).unwrap_or_default());
        }
        Contents {
            tasks: self.tasks.finish(),
            sections: sections.finish(),
            events: self.events.finish(),
            counts: self.counts,
        }
    }
}

/// Whether a migration itself recorded this event.
pub(super) fn is_own(event: &Event) -> bool {
    event.event.label == LABEL
}

/// The checksum of an event: all of it but its revision.
pub(super) fn canonical_event(event: &Event) -> [u8; 32] {
    let text = serde_json::to_vec(&(event.at, &event.event)).unwrap_or_default();
    Sha256::digest(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::core::{EventKind, NewEvent, Revision, Status, WallTime};

    fn task(id: &str) -> Task {
        Task::new(id.parse().unwrap(), id, WallTime(1))
    }

    fn contents(tasks: &[Task]) -> Contents {
        let mut sum = Sum::default();
        tasks.iter().for_each(|task| sum.task(task));
        sum.finish()
    }

    #[test]
    fn every_field_and_the_order_of_tasks_count() {
        let (a, b) = (task("a"), task("b"));
        let both = contents(&[a.clone(), b.clone()]);
        assert_eq!(both, contents(&[a.clone(), b.clone()]));
        assert_ne!(both, contents(&[b.clone(), a.clone()]));
        let mut other = b.clone();
        other.error = Some("x".to_owned());
        assert_ne!(both, contents(&[a.clone(), other]));
        let mut done = b;
        done.status = Status::Completed;
        assert_eq!(contents(&[a, done]).statuses(), "1 completed, 1 pending");
    }

    #[test]
    fn an_event_counts_with_its_time_and_without_its_revision() {
        let event = |revision, at| {
            let event = NewEvent::new(None, "alice", None, EventKind::Released);
            canonical_event(&Event::new(Revision(revision), WallTime(at), event))
        };
        assert_eq!(event(1, 5), event(2, 5));
        assert_ne!(event(1, 5), event(1, 6));
    }
}
