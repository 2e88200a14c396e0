//! `tenure events`: shows the event log.

use crate::args;
use crate::context::Context;
use crate::failure::Failure;
use crate::show;
use clap::Args;
use serde_json::json;
use std::time::Duration;
use tenure::core::{Event, EventFilter, Resource, Revision, WallTime};
use tenure::place::{PathError, Reach};
use tenure::store::EventSearch;
use tenure::{Client, Error};
use tenure_frontend::naming::refused_lock;
use tenure_frontend::view;

/// Show the event log: acquired, released, waited, died, broken
///
/// With --follow it prints new events until Ctrl-C; with --json, one object per line.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tenure events deploy --last 5
  tenure events --kind failed --kind broken --since 1h
  tenure events task:build --actor ci     changes that came through the server token ci
  tenure events --follow --json           one object per line, as they happen")]
pub(crate) struct EventsArgs {
    /// Only events of this resource
    #[arg(value_name = "RESOURCE", value_parser = args::resource)]
    resource: Option<args::ResourceArg>,
    /// Only events of this kind, such as acquired, broken, completed or failed
    #[arg(long = "kind", value_name = "KIND", value_parser = args::event_kind)]
    kinds: Vec<String>,
    /// Only events about the holds, waits and tasks of this label, and what it broke
    #[arg(long, value_name = "LABEL")]
    by: Option<String>,
    /// Only changes that came through the server token with this name (local: the user who runs the
    /// server)
    #[arg(long, value_name = "TOKEN")]
    actor: Option<String>,
    /// Only events from this time on: a time, or a duration before now such as 1h
    #[arg(long, value_name = "TIME", value_parser = args::past_time)]
    since: Option<WallTime>,
    /// Only events before this time: a time, or a duration before now
    #[arg(long, value_name = "TIME", value_parser = args::past_time)]
    until: Option<WallTime>,
    /// Print new events until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Only events after this revision
    #[arg(long, value_name = "REVISION", conflicts_with = "last", value_parser = args::numbers::revision)]
    after: Option<u64>,
    /// Only the last N events
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = args::numbers::events)]
    last: usize,
}

/// How many events are read at once.
const PAGE: u32 = 1000;

/// The longest wait for a change before reading again.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn run(context: &Context, args: EventsArgs) -> Result<i32, Failure> {
    let client = context.reader().await?;
    let resource = match &args.resource {
        Some(written) => {
            let named = context.meant(written, Reach::AllWorktrees);
            Some(meant(&client, logged(&client, named).await?).await?)
        }
        None => None,
    };
    let filter = EventFilter {
        resource,
        kinds: args.kinds,
        label: args.by,
        actor: args.actor,
        since: args.since,
        until: args.until,
    };
    // Before the events are read: what comes meanwhile is followed.
    let now = client.changed(Revision(0), Duration::ZERO).await?;
    let (mut events, mut newest) = match args.after {
        Some(after) => {
            let (events, newest) = all(&client, &filter, Revision(after)).await?;
            (events, newest.max(now))
        }
        None => {
            let last = u32::try_from(args.last).unwrap_or(u32::MAX);
            let events = client.search_events(EventSearch::newest(filter.clone(), last)).await?;
            let newest = events.last().map_or(now, |event| event.revision.max(now));
            (events, newest)
        }
    };
    // What `--after` names may be older than all that is kept.
    let mut gap = gap_after(&client, args.after.map(Revision)).await?;
    if !args.follow {
        if let Some(gap) = gap {
            context.output.note(&gap_text(gap));
        }
        let data: Vec<view::Event> = events.iter().map(view::Event::from).collect();
        let mut answer = json!({ "events": data, "revision": newest });
        if let Some(after) = gap {
            answer["gap"] = json!({ "after": after });
        }
        context.output.done(answer, || match events.as_slice() {
            [] => "No events".to_owned(),
            events => events.iter().map(show::event_text).collect::<Vec<_>>().join("\n"),
        });
        return Ok(0);
    }
    loop {
        if let Some(after) = gap.take() {
            context.output.line(&json!({ "gap": { "after": after } }), || gap_text(after));
        }
        for event in &events {
            context.output.line(&view::json(&view::Event::from(event)), || show::event_text(event));
        }
        let reached = client.changed(newest, PATIENCE).await?;
        let seen = newest;
        (events, newest) = all(&client, &filter, newest).await?;
        if reached > seen {
            gap = gap_after(&client, Some(seen)).await?;
        }
        // All events up to there have been read, and there may be none.
        newest = newest.max(reached);
    }
}

/// The event after which some may be missing, because the store keeps none that are so old.
async fn gap_after(client: &Client, after: Option<Revision>) -> Result<Option<Revision>, Failure> {
    let Some(after) = after else { return Ok(None) };
    Ok(client.may_lack_events_after(after).await?.then_some(after))
}

fn gap_text(after: Revision) -> String {
    format!("Events after {} may be missing: the store keeps none that are so old", after.0)
}

/// Accepts a name that looks like a path if the log has a lock of that name.
async fn logged(client: &Client, named: Result<Resource, PathError>) -> Result<Resource, Failure> {
    let Some(lock) = refused_lock(&named) else { return Ok(named?) };
    if is_logged(client, &lock).await? { Ok(lock) } else { Ok(named?) }
}

/// Resolves the name of a task. A deleted task still has its events.
async fn meant(client: &Client, named: Resource) -> Result<Resource, Failure> {
    match client.resolve_one(named.clone()).await {
        Err(error @ Error::NoSuchTask { .. }) => match is_logged(client, &named).await? {
            true => Ok(named),
            false => Err(error.into()),
        },
        meant => Ok(meant?),
    }
}

async fn is_logged(client: &Client, resource: &Resource) -> Result<bool, Failure> {
    let search = EventSearch::newest(EventFilter::of(resource.clone()), 1);
    Ok(!client.search_events(search).await?.is_empty())
}

/// All events after a revision that the filter admits, and up to where that is known.
async fn all(
    client: &Client,
    filter: &EventFilter,
    after: Revision,
) -> Result<(Vec<Event>, Revision), Failure> {
    let mut newest = after;
    let mut events = Vec::new();
    loop {
        let search = EventSearch::after(filter.clone(), newest, PAGE);
        let page = client.search_events(search).await?;
        let Some(last) = page.last() else { return Ok((events, newest)) };
        newest = last.revision;
        events.extend(page);
    }
}
