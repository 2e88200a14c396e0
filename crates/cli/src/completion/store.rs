//! Completions from the store: resources, tasks, sections and labels. They never create a store and
//! give up quickly.

use crate::args::Global;
use crate::context::Context;
use crate::output::Output;
use crate::show;
use clap_complete::engine::CompletionCandidate;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tenure::core::{Kind, Resource, Status, Task};
use tenure::store::TaskFilter;
use tenure::{Client, Error};
use tenure_frontend::view::spelling::show_relative_to;

/// The longest time for a completion, because the prompt blocks meanwhile.
const PATIENCE: Duration = Duration::from_millis(500);

/// The most tasks that are offered.
const TASKS_MAX: u32 = 200;

/// The options that select the store.
#[derive(Clone, Debug, Default)]
pub(super) struct Globals {
    store: Option<String>,
    directory: Option<PathBuf>,
    config: Option<PathBuf>,
}

impl Globals {
    /// Reads them from an incomplete line.
    pub(super) fn of(words: &[OsString]) -> Globals {
        let value = |option: &str| {
            let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            let joined = format!("{option}=");
            let glued = words.iter().find_map(|word| word.strip_prefix(&joined).map(str::to_owned));
            let apart = || {
                let place = words.iter().position(|word| word == option)?;
                words.get(place + 1).map(ToString::to_string)
            };
            glued.or_else(apart).filter(|value| !value.is_empty())
        };
        Globals {
            store: value("--store"),
            directory: value("-C").map(PathBuf::from),
            config: value("--config").map(PathBuf::from),
        }
    }
}

/// Queries the store; empty if there is none or it does not answer in time.
fn ask<T: Default>(globals: &Globals, look: impl AsyncFnOnce(&Client) -> Result<T, Error>) -> T {
    answer(globals, look).unwrap_or_default()
}

fn answer<T>(globals: &Globals, look: impl AsyncFnOnce(&Client) -> Result<T, Error>) -> Option<T> {
    if let Some(folder) = &globals.directory {
        std::env::set_current_dir(folder).ok()?;
    }
    let global = Global {
        store: globals.store.clone(),
        label: vec![],
        json: false,
        quiet: true,
        verbose: false,
        no_color: true,
        config: globals.config.clone(),
        directory: None,
        no_wait: true,
    };
    let command = "completions".to_owned();
    let output = Output { json: false, quiet: true, verbose: false, command, subcommand: None };
    let context = Context::new(&global, output).ok()?;
    show_relative_to(context.folder());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let answer = runtime.block_on(async {
        let asking = async {
            let client = context.watcher().await.ok()??;
            look(&client).await.ok()
        };
        tokio::time::timeout(PATIENCE, asking).await.ok()?
    });
    // A store that does not answer may keep a thread busy.
    runtime.shutdown_background();
    answer
}

fn candidate(value: impl Into<OsString>, help: Option<String>) -> CompletionCandidate {
    CompletionCandidate::new(value).help(help.map(Into::into))
}

/// All held or awaited resources, open tasks and sections.
pub(super) fn resources(globals: &Globals) -> Vec<CompletionCandidate> {
    let (held, tasks, sections) = ask(globals, async |client| {
        let tasks = open_tasks(client).await?;
        let sections = client.tasks().sections().await?;
        Ok((named(client).await?, tasks, sections))
    });
    let tasks = tasks.into_iter().map(|task| (task.id.resource(), Some(task.title)));
    let sections =
        sections.into_iter().filter_map(|seen| Some((seen.section.resource().ok()?, None)));
    let held = held.into_iter().map(|(resource, who)| (resource, Some(who)));
    let mut seen = BTreeSet::new();
    let all = tasks.chain(held).chain(sections);
    let named = all.map(|(resource, help)| (show::name(&resource), help));
    let new = named.filter(|(name, _)| seen.insert(name.clone()));
    new.map(|(name, help)| candidate(name, help)).collect()
}

/// All held or awaited resources, with their holders.
async fn named(client: &Client) -> Result<Vec<(Resource, String)>, Error> {
    let seen = client.look_everywhere().await?;
    let held = seen.holds.into_iter().map(|seen| {
        let who = format!("held by {}", seen.hold.holder.label);
        (seen.hold.want.resource, who)
    });
    let waited = seen.waiters.into_iter().flat_map(|seen| seen.waiter.wants);
    let waited = waited.map(|want| (want.resource, "waited for".to_owned()));
    Ok(held.chain(waited).collect())
}

/// All holds; tasks and sections also by their bare ids.
pub(super) fn holds(globals: &Globals) -> Vec<CompletionCandidate> {
    let held = ask(globals, async |client| named(client).await);
    let names = held.into_iter().flat_map(|(resource, who)| {
        let bare = match resource.kind() {
            Kind::Task | Kind::Section => Some(resource.name().to_owned()),
            Kind::Lock | Kind::Path => None,
        };
        [Some(show::name(&resource)), bare]
            .into_iter()
            .flatten()
            .map(move |name| (name, who.clone()))
    });
    let mut seen = BTreeSet::new();
    let new = names.filter(|(name, _)| seen.insert(name.clone()));
    new.map(|(name, who)| candidate(name, Some(who))).collect()
}

async fn open_tasks(client: &Client) -> Result<Vec<Task>, Error> {
    let filter = TaskFilter { limit: TASKS_MAX, without_history: true, ..TaskFilter::default() };
    let mut tasks = Vec::new();
    for status in Status::ALL.into_iter().filter(|status| !status.is_final()) {
        tasks.extend(
            client.tasks().list(&TaskFilter { status: Some(status), ..filter.clone() }).await?,
        );
    }
    Ok(tasks)
}

/// The ids of the open tasks.
pub(super) fn tasks(globals: &Globals) -> Vec<CompletionCandidate> {
    let tasks = ask(globals, async |client| open_tasks(client).await);
    tasks.into_iter().map(|task| candidate(task.id.to_string(), Some(task.title))).collect()
}

/// The names of all sections.
pub(super) fn sections(globals: &Globals) -> Vec<CompletionCandidate> {
    let sections = ask(globals, async |client| client.tasks().sections().await);
    sections.into_iter().map(|seen| candidate(seen.section.name, None)).collect()
}

/// The labels of all holders.
pub(super) fn holders(globals: &Globals) -> Vec<CompletionCandidate> {
    let seen = ask(globals, async |client| Ok(Some(client.look_everywhere().await?)));
    let labels: BTreeSet<String> =
        seen.into_iter().flat_map(|seen| seen.holds).map(|seen| seen.hold.holder.label).collect();
    labels.into_iter().map(|label| candidate(label, None)).collect()
}
