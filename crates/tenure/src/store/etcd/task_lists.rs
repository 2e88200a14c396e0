//! Lists and counts of tasks.

use super::connection::Ask;
use super::error::Failure;
use super::handle::Handle;
use super::keys::{ended_at_end, task_at_end};
use super::look::Start;
use super::records::StoredTask;
use crate::store::ledger::surplus_of;
use crate::store::{SurplusTasks, Tally, TaskFilter};
use std::ops::Range;
use tenure_core::{EndedTask, Status, Task, TaskId};

/// How many tasks are read at once.
const PAGE: usize = 1000;

impl Handle {
    /// Tasks that a filter admits, oldest first, up to its limit.
    pub(super) async fn list_tasks(&self, filter: &TaskFilter) -> Result<Vec<Task>, Failure> {
        self.base().await?;
        let mut tasks = match (&filter.section, filter.status, &filter.id_prefix) {
            (_, _, Some(beginning)) => {
                self.scan(self.keys.tasks_beginning(beginning), filter).await?
            }
            (Some(section), Some(status), None) => {
                self.listed(self.keys.counted(Some(section), status), filter).await?
            }
            (Some(section), None, None) => {
                self.listed(self.keys.of_section(Some(section)), filter).await?
            }
            _ => self.scan(self.keys.tasks(), filter).await?,
        };
        tasks.sort_by(|one, other| (one.age, &one.id).cmp(&(other.age, &other.id)));
        tasks.truncate(filter.limit as usize);
        Ok(tasks.into_iter().map(|task| filter.listed(task)).collect())
    }

    /// Reads the tasks in a range of keys, page by page, all at one revision.
    async fn scan(
        &self,
        mut range: Range<String>,
        filter: &TaskFilter,
    ) -> Result<Vec<Task>, Failure> {
        let (mut tasks, mut revision) = (Vec::new(), None);
        loop {
            let asks = [Ask::all(range.clone()).first(PAGE)];
            let mut pages = self.connection.read(&asks, revision).await?;
            revision = Some(pages.revision);
            let page = pages.next();
            for entry in &page.entries {
                let stored = StoredTask::of(entry, self.url())?;
                tasks.extend(Some(stored.task).filter(|task| filter.admits(task)));
            }
            match page.entries.last() {
                Some(last) if page.entries.len() >= PAGE => {
                    range.start = format!("{}\0", String::from_utf8_lossy(last.key()));
                }
                _ => return Ok(tasks),
            }
        }
    }

    /// Reads the tasks that an index names.
    async fn listed(
        &self,
        index: Range<String>,
        filter: &TaskFilter,
    ) -> Result<Vec<Task>, Failure> {
        let mut pages = self.connection.read(&[Ask::all(index).keys_only()], None).await?;
        let revision = pages.revision;
        let page = pages.next();
        let ids: Vec<TaskId> =
            page.entries.iter().filter_map(|entry| task_at_end(entry.key())).collect();
        let mut tasks = Vec::new();
        for ids in ids.chunks(PAGE) {
            let asks: Vec<Ask> = ids.iter().map(|id| Ask::one(self.keys.task(id))).collect();
            let mut pages = self.connection.read(&asks, Some(revision)).await?;
            for _ in ids {
                if let Some(entry) = pages.next().first() {
                    let stored = StoredTask::of(entry, self.url())?;
                    tasks.extend(Some(stored.task).filter(|task| filter.admits(task)));
                }
            }
        }
        Ok(tasks)
    }

    /// Finished tasks that are beyond what is kept, oldest first.
    pub(super) async fn surplus_tasks(
        &self,
        asked: &SurplusTasks,
    ) -> Result<Vec<EndedTask>, Failure> {
        self.base().await?;
        let range = || Ask::all(self.keys.ended_with(asked.status));
        let first = (asked.skip as usize).saturating_add(asked.limit as usize);
        let asks = [range().first(first).keys_only(), range().count()];
        let mut pages = self.connection.read(&asks, None).await?;
        let (listed, total) = (pages.next(), pages.next().count.unsigned_abs());
        let ended = listed.entries.iter().filter_map(|entry| ended_at_end(entry.key()));
        Ok(surplus_of(ended, total, asked, self.now()))
    }

    /// The number of tasks of each section and status.
    pub(super) async fn count_tasks(&self) -> Result<Vec<Tally>, Failure> {
        self.open().await?;
        let mut asks = Vec::new();
        let start = Start::ask(&self.keys, None, &mut asks);
        asks.push(Ask::all(self.keys.used_sections()).keys_only());
        let mut pages = self.connection.read(&asks, None).await?;
        let revision = pages.revision;
        start.take(self, &mut pages)?;
        let page = pages.next();
        let used = page.entries.iter().filter_map(|entry| self.keys.rest("u", entry.key()));
        let sections: Vec<Option<String>> =
            std::iter::once(None).chain(used.map(|name| Some(name.to_owned()))).collect();
        let asked = sections.iter().flat_map(|section| Status::ALL.map(|status| (section, status)));
        let asked: Vec<(&Option<String>, Status)> = asked.collect();
        let asks = asked.iter().map(|(section, status)| {
            Ask::all(self.keys.counted(section.as_deref(), *status)).count()
        });
        let asks: Vec<Ask> = asks.collect();
        let mut pages = self.connection.read(&asks, Some(revision)).await?;
        let mut tallies = Vec::new();
        for (section, status) in asked {
            let count = pages.next().count.unsigned_abs();
            if count > 0 {
                tallies.push(Tally { section: section.clone(), status, count });
            }
        }
        Ok(tallies)
    }
}
