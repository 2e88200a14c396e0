//! Reading tasks a page at a time, oldest or newest first, with conditions that stores do not index.

use std::time::Duration;
use tenure::core::{Revision, Task, WallTime};
use tenure::store::TaskFilter;
use tenure::{Client, Error};

/// How many tasks are read at once, and how many for one answer.
const READ_AT_ONCE: usize = 1000;
const READ_MAX: usize = 10_000;

/// What is asked of tasks beyond what a store selects by.
#[derive(Default)]
pub(super) struct Conditions {
    /// Text in id, title, description, labels or the names of its workers, in lower case.
    pub search: Option<String>,
    /// The worker that has it or finished it.
    pub worker: Option<String>,
    /// Only tasks without a section.
    pub no_section: bool,
    /// Only added at this time or later.
    pub added_after: Option<WallTime>,
    /// Only added before this time.
    pub added_before: Option<WallTime>,
}

impl Conditions {
    fn is_empty(&self) -> bool {
        let Conditions { search, worker, no_section, added_after, added_before } = self;
        let times = added_after.is_none() && added_before.is_none();
        search.is_none() && worker.is_none() && !no_section && times
    }

    fn admit(&self, task: &Task) -> bool {
        let claimed_by = task.claim.as_ref().map(|claim| claim.by.as_str());
        let mut workers = claimed_by.into_iter().chain(task.finished_by.as_deref());
        self.search.as_deref().is_none_or(|search| contains(task, search))
            && self.worker.as_deref().is_none_or(|worker| workers.any(|one| one == worker))
            && !(self.no_section && task.section.is_some())
            && self.added_after.is_none_or(|time| task.created_at >= time)
            && self.added_before.is_none_or(|time| task.created_at < time)
    }
}

fn contains(task: &Task, search: &str) -> bool {
    let claimed_by = task.claim.as_ref().map(|claim| claim.by.as_str());
    let texts = [task.id.as_str(), &task.title].into_iter();
    let texts = texts.chain(task.description.as_deref()).chain(claimed_by);
    let texts = texts.chain(task.finished_by.as_deref());
    let mut texts = texts.chain(task.labels.iter().map(String::as_str));
    texts.any(|text| text.to_lowercase().contains(search))
}

/// Some tasks, and where the next page begins; none after the last page.
pub(super) struct Page {
    pub tasks: Vec<Task>,
    pub next: Option<u64>,
}

/// Tasks younger than `filter.after_age`, oldest first. With conditions, a page may have fewer than
/// `limit` although there are more.
pub(super) async fn oldest(
    client: &Client,
    mut filter: TaskFilter,
    conditions: &Conditions,
    limit: usize,
) -> Result<Page, Error> {
    // One more shows whether there are more.
    let at_once = if conditions.is_empty() { limit + 1 } else { READ_AT_ONCE };
    filter.limit = at_once as u32;
    let (mut found, mut read) = (Vec::new(), 0);
    loop {
        let tasks = client.tasks().list(&filter).await?;
        let is_last = tasks.len() < at_once;
        for task in tasks {
            if found.len() == limit || read == READ_MAX {
                return Ok(Page { tasks: found, next: Some(filter.after_age) });
            }
            (filter.after_age, read) = (task.age, read + 1);
            if conditions.admit(&task) {
                found.push(task);
            }
        }
        if is_last {
            return Ok(Page { tasks: found, next: None });
        }
    }
}

/// Tasks older than `before_age`, newest first. A page may have fewer than `limit` although there are
/// more. Stores list tasks from the oldest, so this reads spans of ages, from the newest back: ages are
/// unique, so a span of `READ_AT_ONCE` ages has at most as many tasks.
pub(super) async fn newest(
    client: &Client,
    filter: &TaskFilter,
    conditions: &Conditions,
    before_age: Option<u64>,
    limit: usize,
) -> Result<Page, Error> {
    let mut end = match before_age {
        Some(age) => age,
        None => beyond_all(client).await?,
    };
    let mut width = READ_AT_ONCE as u64;
    let (mut found, mut read) = (Vec::new(), 0);
    while end > 1 {
        let begin = end.saturating_sub(width);
        let Some(tasks) = span(client, begin, end).await? else {
            width = (width / 2).max(READ_AT_ONCE as u64);
            continue;
        };
        // Ages may have wide gaps, as after a reboot.
        if tasks.len() < READ_AT_ONCE / 4 {
            width = width.saturating_mul(2);
        }
        for task in tasks.into_iter().rev() {
            if found.len() == limit || read >= READ_MAX {
                return Ok(Page { tasks: found, next: Some(end) });
            }
            (end, read) = (task.age, read + 1);
            if filter.admits(&task) && conditions.admit(&task) {
                found.push(task);
            }
        }
        end = begin + 1;
    }
    Ok(Page { tasks: found, next: None })
}

/// All tasks with an age between these two, oldest first; none if there are more than are read at once.
async fn span(client: &Client, begin: u64, end: u64) -> Result<Option<Vec<Task>>, Error> {
    let filter = TaskFilter {
        after_age: begin,
        limit: READ_AT_ONCE as u32,
        without_history: true,
        ..TaskFilter::default()
    };
    let mut tasks = client.tasks().list(&filter).await?;
    let is_full = tasks.len() == READ_AT_ONCE;
    let has_more = is_full && tasks.last().is_some_and(|task| task.age + 1 < end);
    tasks.retain(|task| task.age < end);
    Ok((!has_more).then_some(tasks))
}

/// A number above the age of every task.
async fn beyond_all(client: &Client) -> Result<u64, Error> {
    let newest = client.changed(Revision::default(), Duration::ZERO).await?;
    let mut beyond = newest.0.saturating_add(1);
    loop {
        let filter = TaskFilter {
            after_age: beyond - 1,
            limit: 1,
            without_history: true,
            ..TaskFilter::default()
        };
        match client.tasks().list(&filter).await?.first() {
            None => return Ok(beyond),
            Some(task) => beyond = task.age.saturating_mul(2),
        }
    }
}
