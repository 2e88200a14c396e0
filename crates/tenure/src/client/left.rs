//! What is left to do when a worker got no task: so that it is told why, and who is in the way.

use super::tasks::{ClaimRequest, Tasks};
use crate::error::Error;
use crate::store::TaskFilter;
use std::time::Duration;
use tenure_core::format_duration;
use tenure_core::{Scope, Status, Task, TaskScope, WallTime};

/// Among more tasks than this it is not looked for why each one waits: that costs a look at each.
const SORTED_MAX: u64 = 10_000;

/// So many workers are named.
const NAMED_MAX: usize = 3;

/// The tasks that are not at their end, of those that a worker asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Left {
    /// Being worked on.
    pub in_progress: u64,
    /// Who works on them.
    pub workers: Vec<String>,
    /// Ready to be taken.
    pub ready: u64,
    /// Waiting for other tasks to be completed.
    pub waiting: u64,
    /// Waiting for their time.
    pub later: u64,
    /// How long until the first of these is ready.
    pub ready_in: Option<Duration>,
    /// Pending, where there are too many tasks to look why.
    pub pending: u64,
    /// To be looked at by a person.
    pub review: u64,
    /// Set aside.
    pub blocked: u64,
}

impl Left {
    /// Whether nothing is left to do.
    pub fn is_empty(&self) -> bool {
        *self == Left::default()
    }

    /// How it stands, one clause each.
    pub fn clauses(&self) -> Vec<String> {
        let mut clauses = Vec::new();
        let mut say = |count: u64, one: &str, many: &str| match count {
            0 => {}
            1 => clauses.push(format!("1 {one}")),
            _ => clauses.push(format!("{count} {many}")),
        };
        let by = match self.workers.as_slice() {
            [] => String::new(),
            few if few.len() <= NAMED_MAX => format!(" ({})", few.join(", ")),
            many => {
                let rest = many.len() - NAMED_MAX;
                format!(" ({} and {rest} more)", many[..NAMED_MAX].join(", "))
            }
        };
        let at = self.ready_in.map(|time| format!(", the first in {}", format_duration(time)));
        let at = at.unwrap_or_default();
        let one = |words: &str| format!("is {words}{by}");
        let many = |words: &str| format!("are {words}{by}");
        say(self.in_progress, &one("in progress"), &many("in progress"));
        say(self.ready, "is ready", "are ready");
        say(self.waiting, "waits for other tasks", "wait for other tasks");
        say(
            self.later,
            &format!("waits for its start time{at}"),
            &format!("wait for their start time{at}"),
        );
        say(self.pending, "is pending", "wait for other tasks or for their start time");
        say(self.review, "is in review", "are in review");
        say(self.blocked, "is blocked", "are blocked");
        clauses
    }
}

impl Tasks {
    /// What is left of the tasks that a worker asked for.
    pub async fn left(&self, request: &ClaimRequest) -> Result<Left, Error> {
        let tallies = self.tallies().await?;
        let all: u64 = tallies.iter().map(|tally| tally.count).sum();
        let of_section =
            |section: &Option<String>| request.section.is_none() || request.section == *section;
        let count = |status: Status| -> u64 {
            let some = tallies.iter().filter(|tally| tally.status == status);
            some.filter(|tally| of_section(&tally.section)).map(|tally| tally.count).sum()
        };
        let mut left = Left::default();
        if count(Status::InProgress) > 0 {
            self.note_workers(request, &mut left).await?;
        }
        let sorted = all <= SORTED_MAX;
        for status in [Status::Pending, Status::Review, Status::Blocked] {
            match count(status) {
                0 => {}
                many if !sorted => *slot(&mut left, status) = many,
                _ => self.note(request, status, &mut left).await?,
            }
        }
        Ok(left)
    }

    async fn note_workers(&self, request: &ClaimRequest, left: &mut Left) -> Result<(), Error> {
        let look = Scope::Tasks(TaskScope { in_progress: true, ..TaskScope::default() });
        let seen = self.client.inner.backend.read(&look).await?;
        let wanted = seen.tasks.iter().filter(|task| task.status == Status::InProgress);
        for task in wanted.filter(|task| is_wanted(request, task)) {
            left.in_progress += 1;
            if let Some(claim) =
                task.claim.as_ref().filter(|claim| !left.workers.contains(&claim.by))
            {
                left.workers.push(claim.by.clone());
            }
        }
        Ok(())
    }

    async fn note(
        &self,
        request: &ClaimRequest,
        status: Status,
        left: &mut Left,
    ) -> Result<(), Error> {
        let filter = TaskFilter {
            status: Some(status),
            section: request.section.clone(),
            label: request.labels.first().cloned(),
            ..TaskFilter::default()
        };
        let now = self.client.inner.clock.wall();
        for task in self.list(&filter).await?.iter().filter(|task| is_wanted(request, task)) {
            match task.not_before.filter(|time| *time > now) {
                _ if status != Status::Pending => *slot(left, status) += 1,
                _ if task.unmet > 0 => left.waiting += 1,
                Some(time) => {
                    left.later += 1;
                    let ready_in = until(time, now);
                    left.ready_in = Some(left.ready_in.map_or(ready_in, |one| one.min(ready_in)));
                }
                None => left.ready += 1,
            }
        }
        Ok(())
    }
}

fn until(time: WallTime, now: WallTime) -> Duration {
    Duration::from_millis(u64::try_from(time.0.saturating_sub(now.0)).unwrap_or(0))
}

fn slot(left: &mut Left, status: Status) -> &mut u64 {
    match status {
        Status::Review => &mut left.review,
        Status::Blocked => &mut left.blocked,
        _ => &mut left.pending,
    }
}

fn is_wanted(request: &ClaimRequest, task: &Task) -> bool {
    (request.section.is_none() || request.section == task.section)
        && request.labels.iter().all(|label| task.labels.contains(label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_a_clause() {
        let names = |count: usize| (0..count).map(|number| format!("w{number}")).collect();
        for (left, clauses) in [
            (Left::default(), vec![]),
            (
                Left { in_progress: 1, workers: names(1), ..Left::default() },
                vec!["1 is in progress (w0)"],
            ),
            (
                Left { in_progress: 9, workers: names(5), ..Left::default() },
                vec!["9 are in progress (w0, w1, w2 and 2 more)"],
            ),
            (
                Left {
                    waiting: 2,
                    later: 1,
                    ready_in: Some(Duration::from_secs(90)),
                    blocked: 1,
                    ..Left::default()
                },
                vec![
                    "2 wait for other tasks",
                    "1 waits for its start time, the first in 1m 30s",
                    "1 is blocked",
                ],
            ),
        ] {
            assert_eq!(left.clauses(), clauses);
            assert_eq!(left.is_empty(), clauses.is_empty());
        }
    }
}
