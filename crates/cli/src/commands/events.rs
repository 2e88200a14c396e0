//! `tenure events`: shows the event log.

use crate::args;
use crate::context::Context;
use crate::failure::Failure;
use crate::show;
use clap::Args;
use serde_json::json;
use std::time::Duration;
use tenure::core::{Event, Resource, Revision};
use tenure::place::{PathError, Reach};
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
  tenure events --follow --json           one object per line, as they happen")]
pub(crate) struct EventsArgs {
    /// Only events of this resource
    #[arg(value_name = "RESOURCE", value_parser = args::resource)]
    resource: Option<args::ResourceArg>,
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
    let begin = Revision(args.after.unwrap_or(0));
    let (mut events, mut newest) = all(&client, begin).await?;
    events.retain(|event| concerns(event, resource.as_ref()));
    if args.after.is_none() {
        events.drain(..events.len().saturating_sub(args.last));
    }
    if !args.follow {
        let data: Vec<view::Event> = events.iter().map(view::Event::from).collect();
        context.output.done(json!({ "events": data, "revision": newest }), || {
            match events.as_slice() {
                [] => "No events".to_owned(),
                events => events.iter().map(show::event_text).collect::<Vec<_>>().join("\n"),
            }
        });
        return Ok(0);
    }
    loop {
        for event in &events {
            context.output.line(&view::json(&view::Event::from(event)), || show::event_text(event));
        }
        let reached = client.changed(newest, PATIENCE).await?;
        (events, newest) = all(&client, newest).await?;
        // All events up to there have been read, and there may be none.
        newest = newest.max(reached);
        events.retain(|event| concerns(event, resource.as_ref()));
    }
}

/// Accepts a name that looks like a path if the log has a lock of that name.
async fn logged(client: &Client, named: Result<Resource, PathError>) -> Result<Resource, Failure> {
    let Some(lock) = refused_lock(&named) else { return Ok(named?) };
    let (events, _) = all(client, Revision::default()).await?;
    let is_logged = events.iter().any(|event| event.event.resource.as_ref() == Some(&lock));
    if is_logged { Ok(lock) } else { Ok(named?) }
}

/// Resolves the name of a task. A deleted task still has its events.
async fn meant(client: &Client, named: Resource) -> Result<Resource, Failure> {
    match client.resolve_one(named.clone()).await {
        Err(error @ Error::NoSuchTask { .. }) => {
            let (events, _) = all(client, Revision::default()).await?;
            match events.iter().any(|event| concerns(event, Some(&named))) {
                true => Ok(named),
                false => Err(error.into()),
            }
        }
        meant => Ok(meant?),
    }
}

fn concerns(event: &Event, resource: Option<&Resource>) -> bool {
    resource.is_none_or(|wanted| {
        event.event.resource.as_ref().is_some_and(|resource| resource.overlaps(wanted))
    })
}

async fn all(client: &Client, after: Revision) -> Result<(Vec<Event>, Revision), Failure> {
    let mut newest = after;
    let mut events = Vec::new();
    loop {
        let page = client.events(newest, PAGE).await?;
        let Some(last) = page.last() else { return Ok((events, newest)) };
        newest = last.revision;
        events.extend(page);
    }
}
