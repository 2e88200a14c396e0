//! The rows of each pane.

use super::keys::Pane;
use super::model::{ClaimedTask, Held, ViewData, Worker};
use super::text::{Theme, bar, clean};
use crate::show;
use jiff::tz::TimeZone;
use ratatui::layout::Constraint;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use std::time::Duration;
use tenure::core::{Event, EventKind, Liveness, Status, Task, WaiterSnapshot, WallTime};
use tenure_frontend::duration::format_duration;
use tenure_frontend::view::alive_word;

/// A table: its rows, each with the text for the search.
pub(crate) struct Listing {
    pub(crate) header: Vec<&'static str>,
    pub(crate) widths: Vec<Constraint>,
    pub(crate) rows: Vec<(String, Vec<Line<'static>>)>,
    /// The text for a table without rows.
    pub(crate) empty: &'static str,
}

/// What the cells depend on besides the data: width, colours, age.
#[derive(Clone, Copy)]
pub(crate) struct Drawing {
    pub(crate) theme: Theme,
    pub(crate) width: u16,
    /// How long ago the data was read.
    pub(crate) ago: Duration,
}

/// The main table of a pane.
pub(crate) fn listing(pane: Pane, data: &ViewData, drawing: Drawing) -> Listing {
    match pane {
        Pane::Locks => locks(data, drawing),
        Pane::Tasks => tasks(data, drawing),
        Pane::Workers => workers(data, drawing),
        Pane::Events => events(data, drawing),
    }
}

fn plain(text: impl Into<String>) -> Line<'static> {
    Line::from(text.into())
}

fn styled(style: Style, text: impl Into<String>) -> Line<'static> {
    Line::from(Span::styled(text.into(), style))
}

/// A duration of at most [`AGE`] characters, always of similar width, so that columns stay narrow
/// and do not flicker.
fn short(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        seconds @ 3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
        seconds => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// The width of a column of durations.
const AGE: u16 = 6;

/// From this width on, holds are shown with more columns.
const WIDE: u16 = 72;
/// From this width on, there is more than the names.
const MIDDLE: u16 = 56;

fn locks(data: &ViewData, drawing: Drawing) -> Listing {
    let (header, widths) = match drawing.width {
        WIDE.. => (
            vec!["RESOURCE", "HOLDER", "FOR", "AGE", "LEFT"],
            vec![
                Constraint::Fill(5),
                Constraint::Fill(3),
                Constraint::Fill(3),
                Constraint::Length(AGE),
                Constraint::Length(13 + AGE),
            ],
        ),
        MIDDLE.. => (
            vec!["RESOURCE", "HOLDER", "AGE", "LEFT"],
            vec![
                Constraint::Fill(3),
                Constraint::Fill(2),
                Constraint::Length(AGE),
                Constraint::Length(9 + AGE),
            ],
        ),
        _ => (
            vec!["RESOURCE", "HOLDER", "LEFT"],
            vec![Constraint::Fill(3), Constraint::Fill(2), Constraint::Length(AGE)],
        ),
    };
    let mut rows = Vec::new();
    for (index, held) in data.locks.iter().enumerate() {
        let resource = show::name(&held.seen.hold.want.resource);
        let hold = &held.seen.hold;
        let operation = hold.operation.as_deref().unwrap_or_default();
        let search = format!("{resource} {} {operation}", hold.holder.label);
        rows.push((search, hold_cells(held, &resource, drawing)));
        if has_more_holders(&data.locks[index + 1..], held) {
            continue;
        }
        for (waiter, place) in held.waiters.iter().zip(1..) {
            let search = format!("{resource} {}", waiter.waiter.holder.label);
            rows.push((search, waiter_cells(waiter, place, drawing)));
        }
    }
    Listing { header, widths, rows, empty: "nothing is held" }
}

/// Whether another hold of the same resource follows: the queue is shown once, below the last one.
pub(crate) fn has_more_holders(after: &[Held], held: &Held) -> bool {
    after.iter().any(|other| other.seen.hold.want.resource == held.seen.hold.want.resource)
}

fn hold_cells(held: &Held, resource: &str, drawing: Drawing) -> Vec<Line<'static>> {
    let seen = &held.seen;
    let theme = drawing.theme;
    let mut cells =
        vec![styled(theme.name(), clean(resource)), plain(clean(&seen.hold.holder.label))];
    if drawing.width >= WIDE {
        cells.push(plain(clean(seen.hold.operation.as_deref().unwrap_or_default())));
    }
    if drawing.width >= MIDDLE {
        cells.push(plain(short(seen.held_for + drawing.ago)));
    }
    cells.push(match &held.stale {
        // The lock file of another program gives the reason in its own words.
        Some(reason) if seen.stale.is_some() && drawing.width >= MIDDLE => {
            styled(theme.bad(), clean(reason))
        }
        Some(_) => styled(theme.bad(), held.state.word()),
        None if seen.has_no_limit() => plain("no limit".to_owned()),
        None => left(seen.left, seen.hold.ttl, drawing),
    });
    cells
}

/// The time left, as a bar that drains.
fn left(left: Duration, ttl: Duration, drawing: Drawing) -> Line<'static> {
    let left = left.saturating_sub(drawing.ago);
    let part = left.as_secs_f64() / ttl.as_secs_f64().max(0.001);
    let width = match drawing.width {
        WIDE.. => 12,
        MIDDLE.. => 8,
        _ => 0,
    };
    let time = short(left);
    let look = drawing.theme.draining(part);
    match width {
        0 => styled(look, time),
        width => {
            Line::from(vec![Span::styled(bar(part, width), look), Span::raw(format!(" {time}"))])
        }
    }
}

fn waiter_cells(seen: &WaiterSnapshot, place: usize, drawing: Drawing) -> Vec<Line<'static>> {
    let dim = drawing.theme.dim();
    let mut cells = vec![
        styled(dim, format!("  {place}. waits")),
        styled(dim, clean(&seen.waiter.holder.label)),
    ];
    if drawing.width >= WIDE {
        let operation = seen.waiter.operation.as_deref().unwrap_or_default();
        cells.push(styled(dim, clean(operation)));
    }
    if drawing.width >= MIDDLE {
        cells.push(styled(dim, short(seen.waited_for + drawing.ago)));
    }
    cells
}

fn tasks(data: &ViewData, drawing: Drawing) -> Listing {
    let wide = drawing.width >= MIDDLE;
    let (header, widths) = if wide {
        (
            vec!["TASK", "IN PROGRESS", "SECTION", "WORKER", "AGE"],
            vec![
                Constraint::Fill(2),
                Constraint::Fill(4),
                Constraint::Fill(2),
                Constraint::Fill(3),
                Constraint::Length(AGE),
            ],
        )
    } else {
        (vec!["IN PROGRESS", "WORKER"], vec![Constraint::Fill(3), Constraint::Fill(2)])
    };
    let row = |claimed: &ClaimedTask| {
        let task = &claimed.task;
        let by = task.claim.as_ref().map(|claim| claim.by.clone()).unwrap_or_default();
        let section = task.section.clone().unwrap_or_default();
        let search = format!("{} {} {section} {by}", task.id, task.title);
        let title = clean(&task.title);
        let begun = task.claimed_at.unwrap_or(data.now);
        let age = Duration::from_millis(data.now.0.saturating_sub(begun.0).max(0) as u64);
        let cells = if wide {
            vec![
                styled(drawing.theme.name(), clean(task.id.as_str())),
                plain(title),
                plain(clean(&section)),
                plain(clean(&by)),
                match claimed.stale {
                    Some(_) => styled(drawing.theme.bad(), "lost"),
                    None => plain(short(age + drawing.ago)),
                },
            ]
        } else {
            let worker = match claimed.stale {
                Some(_) => styled(drawing.theme.bad(), format!("{} (lost)", clean(&by))),
                None => plain(clean(&by)),
            };
            vec![styled(drawing.theme.name(), title), worker]
        };
        (search, cells)
    };
    let stuck = |task: &Task| {
        let section = task.section.clone().unwrap_or_default();
        let status = styled(drawing.theme.bad(), task.status.word());
        let cells = if wide {
            vec![
                styled(drawing.theme.name(), clean(task.id.as_str())),
                plain(clean(&task.title)),
                plain(clean(&section)),
                status,
                plain(String::new()),
            ]
        } else {
            vec![styled(drawing.theme.name(), clean(&task.title)), status]
        };
        (format!("{} {} {section} {}", task.id, task.title, task.status), cells)
    };
    let rows = data.tasks.iter().map(row).chain(data.stuck.iter().map(stuck)).collect();
    Listing { header, widths, rows, empty: "no task is in progress" }
}

/// The local time of day; in tests that of UTC, wherever they run.
fn time_of_day(at: WallTime) -> String {
    let zone = if cfg!(test) { TimeZone::UTC } else { TimeZone::system() };
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(time) => time.to_zoned(zone).strftime("%H:%M:%S").to_string(),
        Err(_) => String::new(),
    }
}

/// Sections with their progress.
pub(crate) fn sections(data: &ViewData, drawing: Drawing) -> Listing {
    let wide = drawing.width >= MIDDLE;
    let bar_width = if drawing.width >= WIDE { 16 } else { 8 };
    let mut header = vec!["SECTION", "DONE", "OPEN"];
    let mut widths =
        vec![Constraint::Fill(1), Constraint::Length(bar_width as u16 + 5), Constraint::Length(7)];
    if wide {
        header.extend(["WORKING", "STUCK", ""]);
        widths.extend([Constraint::Length(8), Constraint::Length(7), Constraint::Length(6)]);
    }
    let mut names: Vec<Option<&str>> = vec![None];
    names.extend(data.sections.iter().map(|seen| Some(seen.section.name.as_str())));
    let row = |name: Option<&str>| {
        let count = |status| data.count(status, name);
        let done = count(Status::Completed) + count(Status::Skipped);
        let total: u64 = Status::ALL.into_iter().map(count).sum();
        let stuck = count(Status::Failed) + count(Status::Blocked);
        let open = count(Status::Pending) + count(Status::InProgress) + count(Status::Review);
        let part = done as f64 / total.max(1) as f64;
        let shown = name.map_or("all tasks".to_owned(), clean);
        let theme = drawing.theme;
        let mut cells = vec![
            styled(if name.is_none() { theme.name() } else { Style::new() }, shown),
            Line::from(vec![
                Span::styled(bar(part, bar_width), theme.good()),
                Span::raw(format!(" {:>3}%", (part * 100.0) as u64)),
            ]),
            plain(open.to_string()),
        ];
        if wide {
            let paused = data
                .sections
                .iter()
                .any(|seen| Some(seen.section.name.as_str()) == name && seen.section.paused);
            let bad = if stuck > 0 { theme.bad() } else { theme.dim() };
            cells.push(plain(count(Status::InProgress).to_string()));
            cells.push(styled(bad, stuck.to_string()));
            cells.push(styled(theme.warn(), if paused { "paused" } else { "" }));
        }
        (name.unwrap_or_default().to_owned(), cells)
    };
    let rows = names.into_iter().map(row).collect();
    Listing { header, widths, rows, empty: "" }
}

fn workers(data: &ViewData, drawing: Drawing) -> Listing {
    let wide = drawing.width >= MIDDLE;
    let (header, widths) = if wide {
        (
            vec!["WORKER", "PROCESS", "IS", "SINCE", "LEFT", "HAS"],
            vec![
                Constraint::Fill(3),
                Constraint::Fill(2),
                Constraint::Length(7),
                Constraint::Length(AGE),
                Constraint::Length(AGE),
                Constraint::Fill(4),
            ],
        )
    } else {
        (
            vec!["WORKER", "IS", "HAS"],
            vec![Constraint::Fill(2), Constraint::Length(7), Constraint::Fill(3)],
        )
    };
    let row = |worker: &Worker| {
        let titles = worker.tasks.iter().map(|(_, title)| title.clone());
        let has: Vec<String> = titles.chain(worker.locks.iter().cloned()).collect();
        let has = has.join(", ");
        let look = match worker.liveness {
            Liveness::Alive => drawing.theme.good(),
            Liveness::Dead => drawing.theme.bad(),
            Liveness::Unknown => drawing.theme.dim(),
        };
        let process = match (&worker.host, worker.pid) {
            (Some(host), Some(pid)) => format!("{pid} on {host}"),
            (Some(host), None) => host.clone(),
            (None, _) => "elsewhere".to_owned(),
        };
        let mut cells = vec![styled(drawing.theme.name(), clean(&worker.label))];
        if wide {
            cells.push(plain(clean(&process)));
        }
        let (look, word) = match worker.liveness {
            Liveness::Alive | Liveness::Unknown if worker.is_gone => {
                (drawing.theme.bad(), "lapsed")
            }
            _ if worker.is_idle => (drawing.theme.dim(), "idle"),
            liveness => (look, alive_word(liveness)),
        };
        cells.push(styled(look, word));
        if wide {
            cells.push(plain(short(worker.held_for + drawing.ago)));
            let left = worker.left.map(|left| short(left.saturating_sub(drawing.ago)));
            cells.push(plain(left.unwrap_or_else(|| "no limit".to_owned())));
        }
        cells.push(plain(clean(&has)));
        (format!("{} {process} {has}", worker.label), cells)
    };
    let rows = data.workers.iter().map(row).collect();
    Listing { header, widths, rows, empty: "nothing is held" }
}

/// Events, newest first.
fn events(data: &ViewData, drawing: Drawing) -> Listing {
    let row = |event: &Event| {
        // The text begins with date and time in UTC; the local time of day is enough here.
        let words = anstream::adapter::strip_str(&show::event_text(event)).to_string();
        let (_, words) = words.split_once(' ').unwrap_or(("", &words));
        let time = time_of_day(event.at);
        let look = match &event.event.kind {
            EventKind::Died { .. } | EventKind::Lapsed { .. } | EventKind::Recovered => {
                drawing.theme.warn()
            }
            EventKind::Broken { .. }
            | EventKind::Deadlock
            | EventKind::SetAside
            | EventKind::Failed { .. } => drawing.theme.bad(),
            EventKind::Completed => drawing.theme.good(),
            _ => Style::new(),
        };
        (words.to_owned(), vec![styled(drawing.theme.dim(), time), styled(look, clean(words))])
    };
    Listing {
        header: vec!["TIME", "EVENT"],
        widths: vec![Constraint::Length(8), Constraint::Fill(1)],
        rows: data.events.iter().rev().map(row).collect(),
        empty: "no events yet",
    }
}

/// [`totals`], shortened to this width.
pub(crate) fn totals_within(data: &ViewData, width: u16) -> String {
    let full = totals(data);
    let shorter = full.replace("in progress", "working").replace("completed", "done");
    let shortest = shorter.replace(" · ", " ");
    let fits = |text: &&String| text.chars().count() <= usize::from(width);
    [&full, &shorter].into_iter().find(fits).unwrap_or(&shortest).clone()
}

/// The totals in the header.
pub(crate) fn totals(data: &ViewData) -> String {
    let counts = data.counts;
    let mut words = vec![format!("{} held", counts.held), format!("{} waiting", counts.waiting)];
    words.extend((counts.lapsed > 0).then(|| format!("{} lapsed", counts.lapsed)));
    words.extend((counts.dead > 0).then(|| format!("{} dead", counts.dead)));
    for status in Status::ALL {
        let count = data.count(status, None);
        let always = matches!(status, Status::Pending | Status::InProgress);
        if count > 0 || always {
            words.push(format!("{count} {}", status.word().replace('_', " ")));
        }
    }
    words.join(" · ")
}

/// How long ago the store last answered.
pub(crate) fn age_text(ago: Duration) -> String {
    format!("as of {} ago", format_duration(ago))
}
