//! Where everything is: the keys of a store, all below its prefix.
//!
//! ```text
//! store/meta        what the store is           store/epoch     set by an operator after a restore
//! store/floor       compared by all changes; put when guards are tidied away
//! store/log         the segment of the history that is written now
//! store/head        put by every change that records events: the change signal
//! store/waits       put by every change that looked at all waits
//! store/adds        put by every change that adds tasks: the highest age
//! store/sections    put by every change of a section
//! store/drops       put by every change that deletes a task
//! store/stop        of a change that lost too often: all others wait for it
//! g/SPOT            guard: put by EVERY change of the holds or the queue; the highest number
//! h/SPOT GRANT      a hold                      l/SPOT GRANT    attached to its lease
//! q/SPOT TICKET GRANT  a place in a queue       k/…             attached to its lease
//! w/MAILBOX/GRANT   a wake for the handle that has this mailbox
//! t/ID              a task                      d/ID DEPENDENT  which task waits for it
//! y/KEY             the task with this key      s/NAME          a section
//! u/NAME            a section that has or had tasks
//! r/SECTION ORDER ID   a task that is ready     b/TIME ID       one that is ready at a time
//! i/SECTION ID      a task in progress          x/SECTION STATUS ID  for counting
//! f/STATUS TIME ID  a task that ended, by when it did
//! a/SLOT            the stored reply of a slot   m/KIND/KEY  a small record
//! e/SEGMENT/CHANGE  the events of a change
//! ```
//!
//! Parts are separated by a NUL, which no name has. SPOT is `n/KIND:NAME`; for paths it begins with
//! their literal prefix, `pPREFIX` and `path:GLOB`, so that those that can overlap lie together. The
//! guard of a path is that of its literal prefix.

use crate::store::path_prefixes::prefix;
use std::ops::Range;
use tenure_core::{EndedTask, GrantId, RecordKind, Resource, Status, Task, TaskId, WallTime};

/// Makes the keys of one store.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    /// The prefix with a slash at its end.
    root: String,
}

/// All keys that begin so. The last character of `start` must be below 127.
pub(super) fn all_below(start: &str) -> Range<String> {
    let mut end = start.to_owned();
    let last = end.pop().unwrap_or('\0');
    end.push(char::from(last as u8 + 1));
    start.to_owned()..end
}

/// The part of a key that says which resource it is about.
fn spot(resource: &Resource) -> String {
    match prefix(resource) {
        Some(prefix) => format!("p{prefix}\0{}", resource.key()),
        None => format!("n/{}", resource.key()),
    }
}

/// A section in a key; tasks without one have a word of their own.
fn section_part(section: Option<&str>) -> String {
    section.map_or_else(|| "-".to_owned(), |name| format!("+{name}"))
}

/// The families of keys that a queue or the holds of a resource have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Holds,
    Lives,
    Places,
    PlaceLives,
}

impl Family {
    fn word(self) -> &'static str {
        match self {
            Family::Holds => "h",
            Family::Lives => "l",
            Family::Places => "q",
            Family::PlaceLives => "k",
        }
    }
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Keys {
        Keys { root: format!("{}/", prefix.trim_end_matches('/')) }
    }

    /// Everything that the store has.
    pub(super) fn all(&self) -> Range<String> {
        all_below(&self.root)
    }

    /// One of the keys that concern the whole store.
    pub(super) fn store(&self, name: &str) -> String {
        format!("{}store/{name}", self.root)
    }

    /// All keys that concern the whole store.
    pub(super) fn stores(&self) -> Range<String> {
        all_below(&format!("{}store/", self.root))
    }

    /// What is left of a key behind the prefix and the word of its family.
    pub(super) fn rest<'k>(&self, word: &str, key: &'k [u8]) -> Option<&'k str> {
        let key = std::str::from_utf8(key).ok()?;
        key.strip_prefix(&self.root)?.strip_prefix(word)?.strip_prefix('/')
    }

    pub(super) fn guard(&self, resource: &Resource) -> String {
        match prefix(resource) {
            Some(prefix) => self.guard_of_prefix(&prefix),
            None => format!("{}g/n/{}", self.root, resource.key()),
        }
    }

    /// The guard of all paths with this literal prefix.
    pub(super) fn guard_of_prefix(&self, prefix: &str) -> String {
        format!("{}g/p{prefix}", self.root)
    }

    /// The guards of the paths whose prefixes are in this range.
    pub(super) fn guards_below(&self, below: &Range<String>) -> Range<String> {
        self.guard_of_prefix(&below.start)..self.guard_of_prefix(&below.end)
    }

    pub(super) fn guards(&self) -> Range<String> {
        all_below(&format!("{}g/", self.root))
    }

    pub(super) fn family(&self, family: Family) -> Range<String> {
        all_below(&format!("{}{}/", self.root, family.word()))
    }

    /// All of one family that a resource has.
    pub(super) fn at(&self, family: Family, resource: &Resource) -> Range<String> {
        all_below(&format!("{}{}/{}\0", self.root, family.word(), spot(resource)))
    }

    /// All of one family that paths with this literal prefix have.
    pub(super) fn at_prefix(&self, family: Family, prefix: &str) -> Range<String> {
        all_below(&format!("{}{}/p{prefix}\0", self.root, family.word()))
    }

    /// All of one family that paths have whose prefixes are in this range.
    pub(super) fn below(&self, family: Family, below: &Range<String>) -> Range<String> {
        let key = |end: &str| format!("{}{}/p{end}", self.root, family.word());
        key(&below.start)..key(&below.end)
    }

    /// A hold, or its life.
    pub(super) fn hold(&self, family: Family, resource: &Resource, grant: GrantId) -> String {
        format!("{}{}/{}\0{grant}", self.root, family.word(), spot(resource))
    }

    /// A place in the queue of a resource, or its life.
    pub(super) fn place(
        &self,
        family: Family,
        resource: &Resource,
        ticket: u64,
        grant: GrantId,
    ) -> String {
        format!("{}{}/{}\0{ticket:016x}\0{grant}", self.root, family.word(), spot(resource))
    }

    /// The places in the queue of a resource up to this ticket.
    pub(super) fn places_until(
        &self,
        family: Family,
        resource: &Resource,
        ticket: Option<u64>,
    ) -> Range<String> {
        let all = self.at(family, resource);
        match ticket {
            Some(ticket) => {
                let start = all.start;
                let end = format!("{start}{ticket:016x}\u{1}");
                start..end
            }
            None => all,
        }
    }

    pub(super) fn wake(&self, mailbox: &str, grant: GrantId) -> String {
        format!("{}w/{mailbox}/{grant}", self.root)
    }

    pub(super) fn wakes_of(&self, mailbox: &str) -> Range<String> {
        all_below(&format!("{}w/{mailbox}/", self.root))
    }

    pub(super) fn wakes(&self) -> Range<String> {
        all_below(&format!("{}w/", self.root))
    }

    pub(super) fn slot(&self, slot: &str) -> String {
        format!("{}a/{slot}", self.root)
    }

    pub(super) fn record(&self, kind: RecordKind, key: &str) -> String {
        format!("{}m/{}/{key}", self.root, kind.word())
    }

    /// The small records of a kind whose keys lie between these two, which are included.
    pub(super) fn records(&self, kind: RecordKind, first: &str, last: &str) -> Range<String> {
        self.record(kind, first)..format!("{}\0", self.record(kind, last))
    }

    pub(super) fn segment(&self, number: u64) -> Range<String> {
        all_below(&format!("{}e/{number:016x}/", self.root))
    }

    /// The segments from one number up to another, which is not part of it.
    pub(super) fn segments(&self, numbers: Range<u64>) -> Range<String> {
        self.segment(numbers.start).start..self.segment(numbers.end).start
    }

    pub(super) fn change(&self, segment: u64, change: &str) -> String {
        format!("{}e/{segment:016x}/{change}", self.root)
    }

    pub(super) fn task(&self, id: &TaskId) -> String {
        format!("{}t/{id}", self.root)
    }

    pub(super) fn tasks(&self) -> Range<String> {
        all_below(&format!("{}t/", self.root))
    }

    /// The tasks whose ids begin so.
    pub(super) fn tasks_beginning(&self, beginning: &str) -> Range<String> {
        let start = format!("{}t/{beginning}", self.root);
        // No character of a name is higher, and its UTF-8 form sorts behind all others.
        let end = format!("{start}\u{10ffff}");
        start..end
    }

    pub(super) fn all_dependents(&self) -> Range<String> {
        all_below(&format!("{}d/", self.root))
    }

    pub(super) fn dependents(&self, id: &TaskId) -> Range<String> {
        all_below(&format!("{}d/{id}\0", self.root))
    }

    pub(super) fn dependent(&self, id: &TaskId, dependent: &TaskId) -> String {
        format!("{}d/{id}\0{dependent}", self.root)
    }

    pub(super) fn key(&self, key: &str) -> String {
        format!("{}y/{key}", self.root)
    }

    pub(super) fn section(&self, name: &str) -> String {
        format!("{}s/{name}", self.root)
    }

    pub(super) fn sections(&self) -> Range<String> {
        all_below(&format!("{}s/", self.root))
    }

    pub(super) fn used_section(&self, name: &str) -> String {
        format!("{}u/{name}", self.root)
    }

    pub(super) fn used_sections(&self) -> Range<String> {
        all_below(&format!("{}u/", self.root))
    }

    pub(super) fn ready_in(&self, section: Option<&str>) -> Range<String> {
        all_below(&format!("{}r/{}\0", self.root, section_part(section)))
    }

    pub(super) fn ready(&self, task: &Task) -> String {
        let start = self.ready_in(task.section.as_deref()).start;
        // Positions may be negative: moved so that their order is that of the digits.
        let position = (task.position as u64) ^ (1 << 63);
        format!("{start}{:02x}{position:016x}{:016x}\0{}", task.priority, task.age, task.id)
    }

    pub(super) fn due(&self, time: WallTime, id: &TaskId) -> String {
        format!("{}b/{:016x}\0{id}", self.root, (time.0 as u64) ^ (1 << 63))
    }

    /// The tasks whose time has come.
    pub(super) fn due_until(&self, now: WallTime) -> Range<String> {
        let start = format!("{}b/", self.root);
        let end = format!("{start}{:016x}\u{1}", (now.0 as u64) ^ (1 << 63));
        start..end
    }

    pub(super) fn working(&self) -> Range<String> {
        all_below(&format!("{}i/", self.root))
    }

    pub(super) fn working_in(&self, section: Option<&str>) -> Range<String> {
        all_below(&format!("{}i/{}\0", self.root, section_part(section)))
    }

    pub(super) fn working_task(&self, task: &Task) -> String {
        format!("{}{}", self.working_in(task.section.as_deref()).start, task.id)
    }

    /// The tasks that ended with a status, oldest first.
    pub(super) fn ended_with(&self, status: Status) -> Range<String> {
        all_below(&format!("{}f/{}\0", self.root, status.word()))
    }

    pub(super) fn ended(&self, status: Status, ended: &EndedTask) -> String {
        let start = self.ended_with(status).start;
        format!("{start}{:016x}\0{}", (ended.at.0 as u64) ^ (1 << 63), ended.id)
    }

    /// The tasks of a section with a status, for counting.
    pub(super) fn counted(&self, section: Option<&str>, status: Status) -> Range<String> {
        let end = if status.is_final() { "f" } else { "o" };
        let section = section_part(section);
        all_below(&format!("{}x/{section}\0{end}{}\0", self.root, status.word()))
    }

    /// All tasks of a section, for counting.
    pub(super) fn of_section(&self, section: Option<&str>) -> Range<String> {
        all_below(&format!("{}x/{}\0", self.root, section_part(section)))
    }

    /// The tasks of a section that have not come to their end.
    pub(super) fn open(&self, section: Option<&str>) -> Range<String> {
        all_below(&format!("{}x/{}\0o", self.root, section_part(section)))
    }

    pub(super) fn counted_task(&self, task: &Task) -> String {
        format!("{}{}", self.counted(task.section.as_deref(), task.status).start, task.id)
    }
}

/// The ticket and the grant at the end of the key of a place.
pub(super) fn place_at_end(key: &[u8]) -> Option<(u64, GrantId)> {
    let mut parts = std::str::from_utf8(key).ok()?.rsplit('\0');
    let grant = parts.next()?.parse().ok()?;
    Some((u64::from_str_radix(parts.next()?, 16).ok()?, grant))
}

/// The last part of a key.
pub(super) fn last_part(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(key).ok()?.rsplit(['\0', '/']).next()
}

/// The task that the key of an index names at its end: an id may have slashes, but no NUL.
pub(super) fn task_at_end(key: &[u8]) -> Option<TaskId> {
    std::str::from_utf8(key).ok()?.rsplit('\0').next()?.parse().ok()
}

/// What a key of the tasks that ended says.
pub(super) fn ended_at_end(key: &[u8]) -> Option<EndedTask> {
    let id = task_at_end(key)?;
    let time = std::str::from_utf8(key).ok()?.rsplit('\0').nth(1)?;
    let at = u64::from_str_radix(time, 16).ok()? ^ (1 << 63);
    Some(EndedTask { at: WallTime(at as i64), id })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::new("team")
    }

    #[test]
    fn a_resource_is_not_mixed_with_one_whose_name_begins_alike() {
        let (a, ab): (Resource, Resource) = ("a".parse().unwrap(), "a/b".parse().unwrap());
        let grant = GrantId::from_bits(7);
        let range = keys().at(Family::Holds, &a);
        assert!(range.contains(&keys().hold(Family::Holds, &a, grant)));
        assert!(!range.contains(&keys().hold(Family::Holds, &ab, grant)));
    }

    #[test]
    fn ready_tasks_sort_by_priority_position_and_age() {
        let task = |priority, position, age| {
            let mut task = Task::new("t".parse().unwrap(), "t", WallTime(0));
            (task.priority, task.position, task.age) = (priority, position, age);
            keys().ready(&task)
        };
        let sorted = [
            task(0, 5, 9),
            task(50, i64::MIN, 3),
            task(50, -1, 3),
            task(50, 0, 2),
            task(50, 0, 10),
            task(50, 7, 1),
            task(100, 0, 1),
        ];
        assert!(sorted.is_sorted_by(|one, next| one < next), "{sorted:?}");
    }

    #[test]
    fn ended_tasks_sort_by_their_time_and_are_read_back() {
        let ended =
            [-5, 0, 9, 1_000].map(|at| EndedTask { at: WallTime(at), id: "a/b".parse().unwrap() });
        let written = ended.clone().map(|ended| keys().ended(Status::Completed, &ended));
        assert!(written.is_sorted_by(|one, next| one < next), "{written:?}");
        let read = written.map(|key| ended_at_end(key.as_bytes()));
        assert_eq!(read, ended.map(Some));
    }

    #[test]
    fn paths_lie_by_their_literal_prefixes() {
        let path: Resource = "path:src/api/*.rs".parse().unwrap();
        let key = keys().hold(Family::Holds, &path, GrantId::from_bits(1));
        assert!(keys().at_prefix(Family::Holds, "/src/api").contains(&key));
        assert!(!keys().at_prefix(Family::Holds, "/src").contains(&key));
        let below = "/src/".to_owned().."/src0".to_owned();
        assert!(keys().below(Family::Holds, &below).contains(&key));
        assert!(keys().guards_below(&below).contains(&keys().guard(&path)));
    }
}
