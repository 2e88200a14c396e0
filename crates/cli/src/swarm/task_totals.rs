//! Counts the tasks that a swarm works on, by status.

use serde_json::{Map, Value, json};
use tenure::core::{Status, Task};
use tenure::store::TaskFilter;
use tenure::{Client, Error};

/// How many of the swarm's tasks have each status.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskTotals {
    counts: [u64; Status::ALL.len()],
}

impl TaskTotals {
    /// Reads the tasks of this section, or of all, that have all of these labels.
    pub(crate) async fn look(
        client: &Client,
        section: Option<&str>,
        labels: &[String],
    ) -> Result<TaskTotals, Error> {
        let mut totals = TaskTotals::default();
        let Some(label) = labels.first() else {
            for tally in client.tasks().tallies().await? {
                if section.is_none() || section == tally.section.as_deref() {
                    totals.add(tally.status, tally.count);
                }
            }
            return Ok(totals);
        };
        let filter = TaskFilter {
            section: section.map(str::to_owned),
            label: Some(label.clone()),
            ..TaskFilter::default()
        };
        let wanted = |task: &&Task| labels.iter().all(|label| task.labels.contains(label));
        let tasks = client.tasks().list(&filter).await?;
        tasks.iter().filter(wanted).for_each(|task| totals.add(task.status, 1));
        Ok(totals)
    }

    fn add(&mut self, status: Status, count: u64) {
        let all = Status::ALL.iter().zip(&mut self.counts);
        all.filter(|(one, _)| **one == status).for_each(|(_, sum)| *sum += count);
    }

    fn count(&self, wanted: impl Fn(Status) -> bool) -> u64 {
        let all = Status::ALL.iter().zip(self.counts);
        all.filter(|(status, _)| wanted(**status)).map(|(_, count)| count).sum()
    }

    /// The number of tasks, without cancelled ones.
    pub(crate) fn total(&self) -> u64 {
        self.count(|status| status != Status::Cancelled)
    }

    /// The number of completed or skipped tasks.
    pub(crate) fn done(&self) -> u64 {
        self.count(Status::satisfies)
    }

    /// The number of tasks that wait for a person: failed, blocked, or in review.
    pub(crate) fn stuck(&self) -> u64 {
        self.count(|status| matches!(status, Status::Failed | Status::Blocked | Status::Review))
    }

    /// Whether every task is done.
    pub(crate) fn all_done(&self) -> bool {
        self.done() == self.total()
    }

    /// The tasks that are not done, counted by status, as text.
    pub(crate) fn open_text(&self) -> String {
        let open = Status::ALL.iter().zip(self.counts).filter(|(status, count)| {
            *count > 0 && !status.satisfies() && **status != Status::Cancelled
        });
        let words: Vec<String> = open.map(|(status, count)| format!("{count} {status}")).collect();
        words.join(", ")
    }

    /// A number for each status, as JSON.
    pub(crate) fn json(&self) -> Value {
        let all = Status::ALL.iter().zip(self.counts);
        let map: Map<String, Value> =
            all.map(|(status, count)| (status.word().to_owned(), json!(count))).collect();
        Value::Object(map)
    }
}
