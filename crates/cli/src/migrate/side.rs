//! One of the two stores.

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use tenure::core::{Event, Revision, Scope, SectionSnapshot, Task, TaskScope};
use tenure::store::{Store, StoreError, StoreExt, TaskCounts, TaskFilter};
use tenure::url::StoreUrl;
use tenure::{Client, Error};

/// How many tasks are read at once.
const TASKS_READ: u32 = 1000;

/// How many events are read at once.
pub(super) const EVENTS_READ: u32 = 1000;

/// A store that is open.
pub(crate) struct Side {
    pub(crate) url: StoreUrl,
    pub(crate) client: Client,
    pub(crate) store: Arc<dyn Store>,
}

/// Why an operation of a store failed.
pub(super) fn failed(error: StoreError) -> Failure {
    Error::from(error).into()
}

/// The store that is named, if it can be migrated. A path is relative to the current folder.
pub(crate) fn parse(context: &Context, option: &str, text: &str) -> Result<StoreUrl, Failure> {
    let url: StoreUrl = text.parse().map_err(Error::from)?;
    Ok(copyable(option, url)?.beneath(&context.directory()))
}

/// This store, if all of it can be read and written.
pub(crate) fn copyable(option: &str, url: StoreUrl) -> Result<StoreUrl, Failure> {
    let refused = |why: &str, hint: &str| {
        let message = format!("{option} {url}: {why}");
        Failure::new(Exit::Configuration, "STORE_URL", message).hint(hint)
    };
    match &url {
        StoreUrl::Memory => Err(refused(
            "a memory store ends with this command",
            "Name a store that lasts, for example sqlite:PATH.",
        )),
        StoreUrl::Remote(_) => Err(refused(
            "a server shows no grants and takes no history",
            "Name the store behind the server; `tenure status` at the server shows it.",
        )),
        url if !url.dialect().is_native() => Err(refused(
            "another program's lock files and task lists are not a store that can be moved",
            "Use `tenure tasks export` and `tenure tasks import` for its tasks.",
        )),
        _ => Ok(url),
    }
}

/// Whether both URLs name the same store, as far as that can be seen without opening it.
pub(crate) fn is_same(one: &StoreUrl, other: &StoreUrl) -> bool {
    let file = |url: &StoreUrl| -> Option<PathBuf> {
        let path = url.paths().into_iter().next()?;
        let real = path.canonicalize().ok();
        real.or_else(|| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?)))
    };
    match (file(one), file(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one.to_string() == other.to_string(),
    }
}

impl Side {
    /// Opens the store, which must be there.
    pub(crate) async fn open(
        context: &Context,
        url: StoreUrl,
        look_only: bool,
    ) -> Result<Side, Failure> {
        // Any folder could be named; that of a store has a journal.
        let is_there = match &url {
            StoreUrl::File { .. } => {
                url.paths().iter().any(|path| path.ends_with("journal") && path.exists())
            }
            url => url.exists(),
        };
        if !is_there {
            let message = format!("no store at {url}");
            return Err(Failure::new(Exit::Configuration, "NO_STORE", message)
                .hint("Check the path: `tenure whoami` shows the store that is used here."));
        }
        Side::open_or_create(context, url, look_only).await
    }

    /// Opens the store, and creates it with its folder where it is missing.
    pub(crate) async fn open_or_create(
        context: &Context,
        url: StoreUrl,
        look_only: bool,
    ) -> Result<Side, Failure> {
        if let Some(folder) = url.folder().filter(|_| !look_only) {
            tenure::place::create_folder(folder).map_err(|error| {
                let message = format!("cannot create {}: {error}", folder.display());
                Failure::new(Exit::Configuration, "STORE_PLACE", message)
            })?;
        }
        url.check_place()?;
        let kept = Arc::new(Mutex::new(None));
        let keep = kept.clone();
        let builder = context.other_builder(super::LABEL).wrap(move |store| {
            *keep.lock() = Some(store.clone());
            store
        });
        let builder = if look_only { builder.look_only() } else { builder };
        let client = builder.open_url(url.clone()).await?;
        let store = kept.lock().take().ok_or_else(|| {
            Failure::new(Exit::Configuration, "STORE_URL", format!("{url} is not a store"))
        })?;
        // A server that cannot be reached is noticed now.
        store.read(TaskCounts).await.map_err(failed)?;
        Ok(Side { url, client, store })
    }

    /// Tasks older than all others of the store that are younger than this, in order; none if there are
    /// no more. Tasks of one age are never torn apart.
    pub(super) async fn tasks_after(&self, after_age: u64) -> Result<Vec<Task>, Failure> {
        let mut limit = TASKS_READ;
        loop {
            let filter = TaskFilter { after_age, limit, ..TaskFilter::default() };
            let mut tasks = self.store.read(&filter).await.map_err(failed)?;
            let is_last = tasks.len() < limit as usize;
            tasks.sort_by(|one, other| (one.age, &one.id).cmp(&(other.age, &other.id)));
            if is_last {
                return Ok(tasks);
            }
            let last = tasks.last().map_or(0, |task| task.age);
            tasks.retain(|task| task.age < last);
            if !tasks.is_empty() {
                return Ok(tasks);
            }
            limit = limit.saturating_mul(2);
        }
    }

    /// Tasks younger than one age and not younger than another.
    pub(super) async fn tasks_between(
        &self,
        after_age: u64,
        last_age: u64,
    ) -> Result<Vec<Task>, Failure> {
        let (mut found, mut after) = (Vec::new(), after_age);
        loop {
            let page = self.tasks_after(after).await?;
            let Some(newest) = page.last().map(|task| task.age) else { return Ok(found) };
            found.extend(page.into_iter().filter(|task| task.age <= last_age));
            if newest >= last_age {
                return Ok(found);
            }
            after = newest;
        }
    }

    /// All sections, in the order of their names.
    pub(super) async fn sections(&self) -> Result<Vec<SectionSnapshot>, Failure> {
        let scope = Scope::Tasks(TaskScope { all_sections: true, ..TaskScope::default() });
        let mut sections = self.store.read(&scope).await.map_err(failed)?.sections;
        sections.sort_by(|one, other| one.section.name.cmp(&other.section.name));
        Ok(sections)
    }

    /// A page of the history after a revision; none if there is no more.
    pub(super) async fn events_after(&self, after: Revision) -> Result<Vec<Event>, Failure> {
        self.store.events(after, EVENTS_READ).await.map_err(failed)
    }

    /// Refuses a store that is used already.
    pub(super) async fn refuse_unless_empty(&self) -> Result<(), Failure> {
        let counts = self.store.read(TaskCounts).await.map_err(failed)?;
        let tasks: u64 = counts.iter().map(|tally| tally.count).sum();
        let seen = self.store.read(&Scope::Everything).await.map_err(failed)?;
        let sections = self.sections().await?.len();
        let events = self.events_after(Revision::default()).await?;
        let has_history = events.iter().any(|event| event.event.resource.is_some());
        let has = match (tasks, seen.holds.len(), seen.waiters.len(), sections) {
            (0, 0, 0, 0) if !has_history => return Ok(()),
            (0, 0, 0, 0) => "a history of its own".to_owned(),
            (0, 0, 0, sections) => format!("{sections} sections"),
            (0, 0, waiters, _) => format!("{waiters} waiting requests"),
            (0, holds, _, _) => format!("{holds} holds"),
            (tasks, ..) => format!("{tasks} tasks"),
        };
        let message = format!("the target {} is in use: it has {has}", self.url);
        Err(Failure::new(Exit::Refused, "TARGET_NOT_EMPTY", message)
            .hint("Name a store that is empty or does not exist yet."))
    }
}
