//! Prints one snapshot as text, for pipes and logs.

use super::model::{ClaimedTask, ViewData};
use super::panes::{has_more_holders, totals};
use super::text::clean;
use crate::output::{DIM, NAME, styled};
use crate::show;
use tenure::Client;
use tenure::core::{HoldSnapshot, Liveness, Resource, Status};
use tenure_frontend::view::alive_word;

/// The width of columns with free text.
const BRIEF: usize = 40;

/// How many of the newest events are shown.
const EVENTS: usize = 10;

/// Everything, part by part; empty parts are omitted.
pub(crate) fn text(data: &ViewData, client: &Client) -> String {
    let store = match data.engine.as_str() {
        "memory" => "none yet".to_owned(),
        engine => format!("{} ({engine})", data.store),
    };
    let head = format!("Store  {store}\n       {}", totals(data));
    let parts = [
        Some(head),
        locks(data, client),
        sections(data),
        tasks(data),
        stuck(data),
        workers(data),
        events(data),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

/// Cuts a text so that the other columns fit on a line of 80.
fn brief(text: &str) -> String {
    match text.chars().count() > BRIEF {
        true => text.chars().take(BRIEF - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

fn part(title: &str, text: String) -> Option<String> {
    Some(format!("{}\n{text}", styled(NAME, title)))
}

fn locks(data: &ViewData, client: &Client) -> Option<String> {
    if data.locks.is_empty() && data.free_queues.is_empty() {
        return None;
    }
    let holds: Vec<&HoldSnapshot> = data.locks.iter().map(|held| &held.seen).collect();
    let all: Vec<HoldSnapshot> = data.locks.iter().map(|held| held.seen.clone()).collect();
    let waiting = |resource: &Resource| {
        let mut held = data.locks.iter();
        let held = held.find(|held| held.seen.hold.want.resource == *resource);
        held.map_or(0, |held| held.waiters.len())
    };
    let mut text = match holds.is_empty() {
        true => "Nothing is held".to_owned(),
        false => show::hold_table(&holds, &all, &waiting, client.witness()),
    };
    for (index, held) in data.locks.iter().enumerate() {
        if held.waiters.is_empty() || has_more_holders(&data.locks[index + 1..], held) {
            continue;
        }
        text += &format!("\nWaiting for {}:", show::name(&held.seen.hold.want.resource));
        for (waiter, place) in held.waiters.iter().zip(1..) {
            text += &format!("\n{}", show::waiter_text(waiter, place));
        }
    }
    for sentence in &data.free_queues {
        text += &format!("\nFree: {sentence}");
    }
    part("Locks", text)
}

fn sections(data: &ViewData) -> Option<String> {
    if data.tallies.is_empty() {
        return None;
    }
    let header = ["SECTION", "PENDING", "IN PROGRESS", "REVIEW", "DONE", "STUCK"];
    let mut rows = vec![header.map(str::to_owned)];
    let names = data.sections.iter().map(|seen| Some(seen.section.name.as_str()));
    for name in std::iter::once(None).chain(names) {
        let count = |status| data.count(status, name);
        let done = count(Status::Completed) + count(Status::Skipped);
        let stuck = count(Status::Failed) + count(Status::Blocked);
        rows.push([
            name.map_or("all tasks".to_owned(), clean),
            count(Status::Pending).to_string(),
            count(Status::InProgress).to_string(),
            count(Status::Review).to_string(),
            done.to_string(),
            stuck.to_string(),
        ]);
    }
    part("Tasks", show::table(&rows))
}

fn tasks(data: &ViewData) -> Option<String> {
    if data.tasks.is_empty() {
        return None;
    }
    let mut rows = vec![["TASK", "TITLE", "SECTION", "WORKER"].map(str::to_owned)];
    rows.extend(data.tasks.iter().map(|ClaimedTask { task, stale, .. }| {
        let by = task.claim.as_ref().map(|claim| clean(&claim.by)).unwrap_or_default();
        [
            task.id.to_string(),
            brief(&clean(&task.title)),
            clean(task.section.as_deref().unwrap_or_default()),
            stale.as_ref().map_or(by.clone(), |reason| format!("{by} ({})", clean(reason))),
        ]
    }));
    part("In progress", show::table(&rows))
}

fn stuck(data: &ViewData) -> Option<String> {
    if data.stuck.is_empty() {
        return None;
    }
    let mut rows = vec![["TASK", "TITLE", "SECTION", "STATUS"].map(str::to_owned)];
    rows.extend(data.stuck.iter().map(|task| {
        [
            task.id.to_string(),
            brief(&clean(&task.title)),
            clean(task.section.as_deref().unwrap_or_default()),
            task.status.to_string(),
        ]
    }));
    part("Failed and blocked", show::table(&rows))
}

fn workers(data: &ViewData) -> Option<String> {
    if data.workers.is_empty() {
        return None;
    }
    let mut rows = vec![["WORKER", "PROCESS", "IS", "HAS"].map(str::to_owned)];
    rows.extend(data.workers.iter().map(|worker| {
        let titles = worker.tasks.iter().map(|(_, title)| clean(title));
        let has: Vec<String> = titles.chain(worker.locks.iter().map(|lock| clean(lock))).collect();
        [
            clean(&worker.label),
            worker.pid.map(|pid| pid.to_string()).unwrap_or_default(),
            match worker.liveness {
                Liveness::Alive | Liveness::Unknown if worker.is_gone => "lapsed".to_owned(),
                _ if worker.is_idle => "idle".to_owned(),
                liveness => alive_word(liveness).to_owned(),
            },
            brief(&has.join(", ")),
        ]
    }));
    part("Workers", show::table(&rows))
}

fn events(data: &ViewData) -> Option<String> {
    let newest = &data.events[data.events.len().saturating_sub(EVENTS)..];
    if newest.is_empty() {
        return None;
    }
    let lines: Vec<String> = newest.iter().map(show::event_text).collect();
    let title = styled(DIM, format!("(the last {})", newest.len()));
    part(&format!("Events {title}"), lines.join("\n"))
}
