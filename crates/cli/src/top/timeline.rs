//! The timeline: who held which resource when, as bars.

use super::model::ViewData;
use super::text::{Theme, clean};
use crate::show;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use std::collections::HashMap;
use std::time::Duration;
use tenure::core::{EventKind, HoldState, Resource, Token, WallTime};

/// One hold of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stretch {
    from: WallTime,
    /// `None` while it lasts.
    to: Option<WallTime>,
    label: String,
    /// Whether it ended by death, lapse or break.
    taken: bool,
}

/// All known holds of a resource.
#[derive(Debug)]
struct Lane {
    resource: String,
    stretches: Vec<Stretch>,
}

/// The shortest and the longest span that is shown, in milliseconds.
const SPAN_MS: (i64, i64) = (60_000, 3_600_000);

/// The lanes, most recent change first.
fn lanes(data: &ViewData) -> Vec<Lane> {
    let mut open: HashMap<(Resource, Token), Stretch> = HashMap::new();
    let mut all: HashMap<Resource, Vec<Stretch>> = HashMap::new();
    for held in &data.locks {
        let hold = &held.seen.hold;
        // The time of death is unknown; in any case the lease excludes no one after its end.
        let to = match held.state {
            HoldState::Held => None,
            HoldState::Lapsed | HoldState::Dead => Some(held.seen.expires_at.min(data.now)),
        };
        let stretch = Stretch {
            from: held.seen.acquired_at,
            to,
            label: hold.holder.label.clone(),
            taken: to.is_some(),
        };
        open.insert((hold.want.resource.clone(), hold.token), stretch);
    }
    for event in &data.events {
        let (Some(resource), Some(token)) = (&event.event.resource, event.event.token) else {
            continue;
        };
        let key = (resource.clone(), token);
        match &event.event.kind {
            EventKind::Acquired { .. } => {
                open.entry(key).or_insert_with(|| Stretch {
                    from: event.at,
                    to: None,
                    label: event.event.label.clone(),
                    taken: false,
                });
            }
            kind => {
                if let Some(mut stretch) = open.remove(&key) {
                    stretch.to = Some(match kind {
                        EventKind::Lapsed { ended_at: Some(ended_at), .. } => *ended_at,
                        _ => event.at,
                    });
                    stretch.taken = matches!(
                        kind,
                        EventKind::Died { .. }
                            | EventKind::Lapsed { .. }
                            | EventKind::Broken { .. }
                    );
                    all.entry(key.0).or_default().push(stretch);
                }
            }
        }
    }
    for ((resource, _), stretch) in open {
        all.entry(resource).or_default().push(stretch);
    }
    let mut lanes: Vec<Lane> = all
        .into_iter()
        .map(|(resource, mut stretches)| {
            stretches.sort_by_key(|stretch| stretch.from);
            Lane { resource: show::name(&resource), stretches }
        })
        .collect();
    let newest = |lane: &Lane| {
        let ends = lane.stretches.iter().map(|stretch| stretch.to.map_or(i64::MAX, |to| to.0));
        ends.max().unwrap_or(0)
    };
    lanes.sort_by(|a, b| newest(b).cmp(&newest(a)).then_with(|| a.resource.cmp(&b.resource)));
    lanes
}

/// Draws at most this many lines of this width, and returns the span that they cover. `ago` is how
/// long ago the data was read: present holds extend until now.
pub(crate) fn draw(
    data: &ViewData,
    theme: Theme,
    width: usize,
    height: usize,
    ago: Duration,
) -> (Vec<Line<'static>>, String) {
    let lanes = lanes(data);
    let shown = &lanes[..lanes.len().min(height)];
    let first = shown.iter().flat_map(|lane| &lane.stretches).map(|stretch| stretch.from.0).min();
    let now = data.now.0.saturating_add(ago.as_millis() as i64);
    let span = (now - first.unwrap_or(now)).clamp(SPAN_MS.0, SPAN_MS.1);
    let longest = shown.iter().map(|lane| lane.resource.chars().count()).max().unwrap_or(0);
    let name_width = longest.min(width / 3);
    let cells = width.saturating_sub(name_width + 1);
    let lines = shown.iter().map(|lane| {
        let name: String = clean(&lane.resource).chars().take(name_width).collect();
        let name = Span::raw(name);
        let gap = (name_width + 1).saturating_sub(name.width());
        let mut spans = vec![name, Span::raw(" ".repeat(gap))];
        spans.extend(lane_cells(lane, now, span, cells, theme));
        Line::from(spans)
    });
    let words = match span {
        span if span >= 120_000 => format!("last {} min", span / 60_000),
        span => format!("last {} s", span / 1000),
    };
    (lines.collect(), words)
}

fn lane_cells(lane: &Lane, now: i64, span: i64, width: usize, theme: Theme) -> Vec<Span<'static>> {
    let mut cells = vec![('·', theme.dim()); width];
    if width == 0 {
        return vec![];
    }
    let column = |at: i64| {
        let part = (at - (now - span)) as f64 / span as f64;
        ((part * width as f64) as isize).clamp(-1, width as isize - 1)
    };
    for stretch in &lane.stretches {
        let to = stretch.to.map_or(now, |to| to.0);
        if to < now - span {
            continue;
        }
        let (first, last) = (column(stretch.from.0).max(0) as usize, column(to).max(0) as usize);
        let look = theme.of_name(&stretch.label);
        for cell in &mut cells[first..=last.max(first)] {
            *cell = ('█', look);
        }
        // A letter identifies the holder without colours.
        if last > first {
            let letter = clean(&stretch.label).chars().next().filter(char::is_ascii_graphic);
            cells[first] = (letter.unwrap_or('█'), look);
        }
        if stretch.taken {
            cells[last.max(first)] = ('!', theme.bad());
        }
    }
    joined(&cells)
}

fn joined(cells: &[(char, Style)]) -> Vec<Span<'static>> {
    cells
        .chunk_by(|a, b| a.1 == b.1)
        .map(|run| Span::styled(run.iter().map(|(c, _)| *c).collect::<String>(), run[0].1))
        .collect()
}
