//! How much history is kept: which finished tasks and which events may be removed.
//!
//! A store finds what is old and removes it; what may go is decided here and, for tasks, again by
//! [`crate::rules::tasks::retire`] inside the transaction that removes them.

use crate::WallTime;
use crate::millis;
use crate::task::{Status, Task, TaskId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// So many events are kept unless told otherwise: some tens of megabytes at most.
pub const EVENTS_KEPT: u64 = 100_000;

/// So many completed tasks are kept unless told otherwise, and as many cancelled and skipped ones: a
/// few hundred megabytes at most with tasks of usual size.
pub const TASKS_KEPT: u64 = 100_000;

/// What is kept of a list in the order of time. Where both limits are set, the one that keeps less
/// counts; where none is set, everything is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// So many of the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<u64>,
    /// Those that are not older than this, by the store's time of day.
    #[serde(default, rename = "age_ms", with = "millis::optional")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age: Option<Duration>,
}

impl Keep {
    /// Keeps everything.
    pub const ALL: Keep = Keep { newest: None, age: None };

    /// Keeps so many of the newest.
    pub const fn newest(count: u64) -> Keep {
        Keep { newest: Some(count), age: None }
    }

    /// Whether nothing is ever removed.
    pub fn is_all(&self) -> bool {
        *self == Keep::ALL
    }

    /// So many of the oldest a store looks at, at most `limit`, to find those that are beyond the limits,
    /// of `total` with the `skipped` ones: none where all are kept by their number. Only where age counts
    /// must times be looked at to know that.
    pub fn candidates(&self, skipped: u64, total: u64, limit: u32) -> u32 {
        let most = match self.age {
            Some(_) => total.saturating_sub(skipped),
            None => self.beyond_newest(skipped, total),
        };
        u32::try_from(most).unwrap_or(u32::MAX).min(limit)
    }

    fn beyond_newest(&self, skipped: u64, total: u64) -> u64 {
        let beyond = self.newest.map_or(0, |newest| total.saturating_sub(newest));
        beyond.saturating_sub(skipped)
    }

    /// How many of the oldest are beyond the limits. `oldest` has the times of some of them, oldest
    /// first, which come after `skipped` older ones; there are `total` in all.
    pub fn surplus(&self, oldest: &[WallTime], skipped: u64, total: u64, now: WallTime) -> usize {
        let by_number = usize::try_from(self.beyond_newest(skipped, total)).unwrap_or(usize::MAX);
        let is_old = |time: &&WallTime| self.age.is_some_and(|age| is_older(**time, age, now));
        let by_age = oldest.iter().take_while(is_old).count();
        by_number.max(by_age).min(oldest.len())
    }

    /// The same for events, of which the newest one always stays: numbers are counted from it.
    pub fn surplus_events(&self, oldest: &[WallTime], total: u64, now: WallTime) -> usize {
        let most = usize::try_from(total.saturating_sub(1)).unwrap_or(usize::MAX);
        self.surplus(oldest, 0, total, now).min(most)
    }
}

/// Whether something of this time is older than the age.
fn is_older(time: WallTime, age: Duration, now: WallTime) -> bool {
    let age_ms = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
    time.0 < now.0.saturating_sub(age_ms)
}

/// How much history a store keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// Of events.
    pub events: Keep,
    /// Of completed tasks, and as much of cancelled and of skipped ones.
    pub tasks: Keep,
    /// Of failed tasks, which wait for a person.
    pub failed: Keep,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention {
            events: Keep::newest(EVENTS_KEPT),
            tasks: Keep::newest(TASKS_KEPT),
            failed: Keep::ALL,
        }
    }
}

impl Retention {
    /// Keeps everything.
    pub const ALL: Retention = Retention { events: Keep::ALL, tasks: Keep::ALL, failed: Keep::ALL };

    /// What is kept of the tasks with this status. A task that is not at its end always stays.
    pub fn of(&self, status: Status) -> Keep {
        match status {
            Status::Completed | Status::Cancelled | Status::Skipped => self.tasks,
            Status::Failed => self.failed,
            Status::Pending | Status::InProgress | Status::Review | Status::Blocked => Keep::ALL,
        }
    }
}

/// A task that came to its end, and when.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EndedTask {
    /// When it ended: see [`Task::ended_at`].
    pub at: WallTime,
    /// Which.
    pub id: TaskId,
}

impl Task {
    /// When it came to its end; none while it has not. Of a task that was imported without that time,
    /// it is when the task was created.
    pub fn ended_at(&self) -> Option<WallTime> {
        self.status.is_final().then(|| self.finished_at.unwrap_or(self.created_at))
    }

    /// The same with its id.
    pub fn ended(&self) -> Option<EndedTask> {
        Some(EndedTask { at: self.ended_at()?, id: self.id.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 24 * 60 * 60 * 1000;

    fn days(days: &[i64]) -> Vec<WallTime> {
        days.iter().map(|day| WallTime(day * DAY_MS)).collect()
    }

    #[test]
    fn the_limit_that_keeps_less_counts() {
        let now = WallTime(100 * DAY_MS);
        let age = Some(Duration::from_secs(10 * 24 * 60 * 60));
        let oldest = days(&[1, 2, 90, 91]);
        for (keep, skipped, total, surplus) in [
            (Keep::ALL, 0, 1_000_000, 0),
            (Keep::newest(10), 0, 10, 0),
            (Keep::newest(10), 0, 9, 0),
            (Keep::newest(10), 0, 13, 3),
            (Keep::newest(10), 2, 13, 1),
            (Keep::newest(10), 3, 13, 0),
            (Keep::newest(0), 0, 100, 4),
            (Keep { newest: None, age }, 0, 4, 2),
            (Keep { newest: Some(3), age }, 0, 4, 2),
            (Keep { newest: Some(1), age }, 0, 4, 3),
        ] {
            assert_eq!(keep.surplus(&oldest, skipped, total, now), surplus, "{keep:?} {skipped}");
            let candidates = keep.candidates(skipped, total, u32::MAX) as usize;
            assert!(candidates >= surplus, "{keep:?} {skipped}: {candidates}");
        }
    }

    #[test]
    fn no_more_is_looked_at_than_may_go() {
        let age = Some(Duration::from_secs(1));
        for (keep, skipped, total, limit, candidates) in [
            (Keep::ALL, 0, 1_000_000, 100, 0),
            (Keep::newest(10), 0, 10, 100, 0),
            (Keep::newest(10), 0, 13, 100, 3),
            (Keep::newest(10), 2, 13, 100, 1),
            (Keep::newest(10), 0, u64::MAX, 100, 100),
            (Keep { newest: Some(10), age }, 0, 13, 100, 13),
            (Keep { newest: Some(10), age }, 5, 13, 100, 8),
            (Keep { newest: None, age }, 0, 0, 100, 0),
        ] {
            assert_eq!(keep.candidates(skipped, total, limit), candidates, "{keep:?} {skipped}");
        }
    }

    /// What is exactly as old as the limit stays.
    #[test]
    fn an_age_is_exceeded_only_beyond_it() {
        let keep = Keep { newest: None, age: Some(Duration::from_millis(10)) };
        let now = WallTime(100);
        assert_eq!(keep.surplus(&[WallTime(90)], 0, 1, now), 0);
        assert_eq!(keep.surplus(&[WallTime(89)], 0, 1, now), 1);
        // An age beyond the beginning of time, and a clock before 1970.
        let keep = Keep { newest: None, age: Some(Duration::MAX) };
        assert_eq!(keep.surplus(&[WallTime(i64::MIN)], 0, 1, WallTime(-5)), 0);
    }

    #[test]
    fn the_newest_event_stays() {
        let now = WallTime(100 * DAY_MS);
        let oldest = days(&[1, 2, 3]);
        let none = Keep { newest: Some(0), age: Some(Duration::ZERO) };
        assert_eq!(none.surplus_events(&oldest, 3, now), 2);
        assert_eq!(none.surplus_events(&oldest, 4, now), 3);
        assert_eq!(none.surplus_events(&[], 0, now), 0);
        assert_eq!(Keep::newest(2).surplus_events(&oldest, 3, now), 1);
    }

    #[test]
    fn what_needs_a_person_or_a_worker_stays() {
        let strict = Retention { tasks: Keep::newest(0), ..Retention::default() };
        for status in Status::ALL {
            let goes = matches!(status, Status::Completed | Status::Cancelled | Status::Skipped);
            assert_eq!(!strict.of(status).is_all(), goes, "{status}");
        }
        let failed = Keep::newest(0);
        assert_eq!(Retention { failed, ..strict }.of(Status::Failed), failed);
        assert_eq!(Retention { failed, ..strict }.of(Status::Blocked), Keep::ALL);
    }
}
