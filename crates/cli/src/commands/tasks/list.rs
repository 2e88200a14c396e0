//! `tenure tasks list`, `show` and `stats`: prints tasks and counts.

use super::{find, show, values};
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{NAME, styled};
use crate::show::table;
use clap::Args;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tenure::core::{EventFilter, Status, Task};
use tenure::store::{EventSearch, Tally, TaskFilter};
use tenure_frontend::view::{self, spelling};

/// So many tasks are listed unless told otherwise.
const LISTED: u32 = 200;

/// List tasks, oldest first (the default)
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only tasks with this status
    #[arg(long, value_name = "STATUS", value_parser = values::status)]
    status: Option<Status>,
    /// Only tasks of this section
    #[arg(long, value_name = "SECTION")]
    section: Option<String>,
    /// Only tasks with this label
    #[arg(long = "label", value_name = "LABEL")]
    with_label: Option<String>,
    /// List at most N tasks
    #[arg(long, value_name = "N", default_value_t = LISTED, value_parser = crate::args::numbers::listed)]
    limit: u32,
}

impl Default for ListArgs {
    fn default() -> ListArgs {
        ListArgs { status: None, section: None, with_label: None, limit: LISTED }
    }
}

pub(super) async fn run(context: &Context, args: ListArgs) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let filter = TaskFilter {
        status: args.status,
        section: args.section,
        label: args.with_label,
        // One more tells whether there are more.
        limit: args.limit.saturating_add(1),
        without_history: true,
        ..TaskFilter::default()
    };
    let mut tasks = client.tasks().list(&filter).await?;
    let more = tasks.len() > args.limit as usize;
    tasks.truncate(args.limit as usize);
    let seen = client.tasks().claims_of(&tasks).await?;
    let claims = view::Claims::of(&seen, client.witness());
    let one = |task: &Task| claims.task(task);
    let data = json!({ "tasks": tasks.iter().map(one).collect::<Vec<_>>(), "more": more });
    context.output.done(data, || match tasks.is_empty() {
        true => "No tasks".to_owned(),
        false => show::task_table(&tasks, &claims),
    });
    if more && !context.output.json {
        context.output.note("There are more tasks: raise --limit.");
    }
    Ok(0)
}

/// Show one task in full, with its notes, its tries and what it waits for
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Id, unique beginning of an id, or exact title
    #[arg(value_name = "TASK")]
    task: String,
    /// Also show its events, oldest first
    #[arg(long)]
    history: bool,
}

/// How many events of a task are shown; `tenure events` shows more.
const HISTORY_MAX: u32 = 200;

pub(super) async fn show_one(context: &Context, args: &ShowArgs) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let task = find(&client, &args.task).await?;
    let events = match args.history {
        true => {
            let filter = EventFilter::of(task.id.resource());
            Some(client.search_events(EventSearch::newest(filter, HISTORY_MAX)).await?)
        }
        false => None,
    };
    let attempts = client.tasks().attempts_with_output(&task.id).await?;
    let seen = client.tasks().claims_of(std::slice::from_ref(&task)).await?;
    let claims = view::Claims::of(&seen, client.witness());
    let why = match task.status {
        Status::Pending => client.tasks().why(&task.id).await?,
        _ => vec![],
    };
    let shown = claims.task(&task).with_outputs(&attempts);
    let mut data = json!({ "task": shown, "waits_for": why });
    if let Some(events) = &events {
        data["history"] =
            events.iter().map(|event| view::json(&view::Event::from(event))).collect();
    }
    context.output.done(data, || {
        let mut text = show::task_text(&task, &claims);
        if !attempts.is_empty() {
            text += &format!("\n  output       tenure tasks log {}", task.id);
        }
        for sentence in &why {
            text += &format!("\n  waits        {}", spelling::sentence(sentence));
        }
        for event in events.iter().flatten() {
            text += &format!("\n  history      {}", crate::show::event_text(event));
        }
        text
    });
    Ok(0)
}

pub(super) async fn stats(context: &Context) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let tallies = client.tasks().tallies().await?;
    let seen = client.tasks().in_progress().await?;
    let lost = view::Claims::of(&seen, client.witness()).lost().len();
    let mut by_section: BTreeMap<Option<&str>, Vec<&Tally>> = BTreeMap::new();
    for tally in &tallies {
        by_section.entry(tally.section.as_deref()).or_default().push(tally);
    }
    let all: Vec<&Tally> = tallies.iter().collect();
    let sections = by_section.iter().map(|(section, tallies)| {
        let mut counts = counts(tallies);
        counts.insert("section".to_owned(), json!(section));
        Value::Object(counts)
    });
    let data = json!({
        "total": counts(&all),
        "sections": sections.collect::<Vec<_>>(),
        "lost_claims": lost,
    });
    context.output.done(data, || {
        let header = std::iter::once("SECTION".to_owned());
        let header = header.chain(Status::ALL.map(|status| status.word().to_uppercase()));
        let mut rows = vec![row(header)];
        let line = |name: &str, tallies: &[&Tally]| {
            let counts = Status::ALL.map(|status| count(tallies, status).to_string());
            row(std::iter::once(name.to_owned()).chain(counts))
        };
        for (section, tallies) in &by_section {
            rows.push(line(section.unwrap_or("-"), tallies));
        }
        rows.push(line("all", &all));
        let text = table(&rows);
        let mut text = match text.rsplit_once('\n') {
            Some((above, total)) => format!("{above}\n{}", styled(NAME, total)),
            None => text,
        };
        if lost > 0 {
            text += &format!("\n{lost} in progress with a lost claim: the next claim takes over");
        }
        text
    });
    Ok(0)
}

fn row(cells: impl Iterator<Item = String>) -> [String; 9] {
    let mut row: [String; 9] = Default::default();
    for (place, cell) in row.iter_mut().zip(cells) {
        *place = cell;
    }
    row
}

fn count(tallies: &[&Tally], status: Status) -> u64 {
    tallies.iter().filter(|tally| tally.status == status).map(|tally| tally.count).sum()
}

fn counts(tallies: &[&Tally]) -> Map<String, Value> {
    let counts =
        Status::ALL.map(|status| (status.word().to_owned(), json!(count(tallies, status))));
    counts.into_iter().collect()
}
