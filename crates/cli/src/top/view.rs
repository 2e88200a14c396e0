//! The layout of the screen.

use super::columns;
use super::keys::{Pane, State};
use super::panes::{self, Drawing, Listing};
use super::text::{Theme, clean};
use super::timeline;
use super::watch::{Health, LatestData};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Margin, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Row, Table};
use std::time::Duration;

/// From this size on, all panes are shown at once.
const ALL_AT_ONCE: (u16, u16) = (110, 32);

/// From this height on, the timeline is shown below the locks.
const WITH_TIMELINE: u16 = 18;

/// Draws everything. `ago` is how long ago the data was read.
pub(crate) fn draw(
    frame: &mut Frame<'_>,
    latest: &LatestData,
    state: &mut State,
    theme: Theme,
    ago: Duration,
) {
    let area = frame.area();
    if area.width < 10 || area.height < 4 {
        return frame.render_widget(Paragraph::new(panes::totals(&latest.data)), area);
    }
    let at_once = area.width >= ALL_AT_ONCE.0 && area.height >= ALL_AT_ONCE.1;
    let tabs = u16::from(!at_once);
    let [head, tab_line, body, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(tabs),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    header(frame, head, latest, theme, ago);
    let mut painter = Painter { frame, latest, state, theme, ago };
    if at_once {
        painter.all(body);
    } else {
        painter.tabs(tab_line);
        painter.one(body);
    }
    painter.footer(foot);
    if painter.state.help {
        painter.help(area);
    }
}

fn header(frame: &mut Frame<'_>, area: Rect, latest: &LatestData, theme: Theme, ago: Duration) {
    let data = &latest.data;
    let [first, second] = Layout::vertical([Constraint::Length(1); 2]).areas(area);
    let (word, look) = match &latest.health {
        Health::Live => ("● live".to_owned(), theme.good()),
        Health::NoStore => ("○ no store yet".to_owned(), theme.warn()),
        Health::Trouble(message) => (format!("✗ {}", clean(message)), theme.bad()),
    };
    let troubled = matches!(latest.health, Health::Trouble(_));
    // An error matters most; the store's name makes room for it.
    let most = if troubled { first.width.saturating_sub(8) } else { first.width / 2 };
    let word_width = (Span::raw(word.as_str()).width() as u16).min(most);
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Length(word_width)])
        .spacing(1)
        .areas(first);
    let engine = match data.engine.as_str() {
        "" | "memory" => String::new(),
        engine => format!(" ({})", clean(engine)),
    };
    let title = Line::from(vec![
        Span::styled("tenure ", theme.accent()),
        Span::raw(clean(&data.store)),
        Span::styled(engine, theme.dim()),
    ]);
    frame.render_widget(title, left);
    let word = Line::from(Span::styled(word, look)).alignment(Alignment::Right);
    frame.render_widget(word, right);
    let totals = match troubled {
        true => format!("{} · {}", panes::age_text(ago), panes::totals(data)),
        false => panes::totals_within(data, second.width),
    };
    frame.render_widget(Line::from(totals), second);
}

/// What is needed to draw a part.
struct Painter<'a, 'b> {
    frame: &'a mut Frame<'b>,
    latest: &'a LatestData,
    state: &'a mut State,
    theme: Theme,
    ago: Duration,
}

impl Painter<'_, '_> {
    fn tabs(&mut self, area: Rect) {
        let mut spans = Vec::new();
        for (pane, number) in Pane::ALL.into_iter().zip(1..) {
            let chosen = pane == self.state.pane;
            let look = if chosen { self.theme.chosen() } else { self.theme.dim() };
            spans.push(Span::styled(format!(" {number} {} ", pane.title()), look));
        }
        self.frame.render_widget(Line::from(spans), area);
    }

    fn one(&mut self, area: Rect) {
        let pane = self.state.pane;
        if pane == Pane::Locks && area.height >= WITH_TIMELINE {
            let [list, bars] =
                Layout::vertical([Constraint::Fill(2), Constraint::Fill(1)]).areas(area);
            self.pane(pane, list);
            return self.timeline(bars);
        }
        self.pane(pane, area);
    }

    fn all(&mut self, area: Rect) {
        let [top, bottom] =
            Layout::vertical([Constraint::Fill(3), Constraint::Fill(2)]).areas(area);
        let columns = Layout::horizontal([Constraint::Fill(11), Constraint::Fill(9)]);
        let [locks, right] = columns.areas(top);
        let [tasks, workers] =
            Layout::vertical([Constraint::Fill(3), Constraint::Fill(2)]).areas(right);
        let [bars, events] = columns.areas(bottom);
        self.framed(Pane::Locks, locks);
        self.framed(Pane::Tasks, tasks);
        self.framed(Pane::Workers, workers);
        self.framed(Pane::Events, events);
        self.timeline(bars);
    }

    fn framed(&mut self, pane: Pane, area: Rect) {
        let chosen = pane == self.state.pane;
        let look = if chosen { self.theme.accent() } else { self.theme.dim() };
        let title = format!(" {} {} ", pane as usize + 1, pane.title());
        let block = Block::bordered().border_style(look).title(Span::styled(title, look));
        let inner = block.inner(area);
        self.frame.render_widget(block, area);
        self.pane(pane, inner);
    }

    fn pane(&mut self, pane: Pane, area: Rect) {
        let drawing = self.drawing(area);
        let data = self.latest.data.clone();
        let listing = panes::listing(pane, &data, drawing);
        if pane != Pane::Tasks {
            return self.list(pane, listing, area);
        }
        let sections = panes::sections(&data, drawing);
        let wanted = sections.rows.len() as u16 + 2;
        let height = wanted.min((area.height / 2).max(2));
        let [above, below] =
            Layout::vertical([Constraint::Length(height), Constraint::Fill(1)]).areas(area);
        let scroll = self.state.scroll[pane as usize];
        self.list(pane, sections, above);
        self.state.scroll[pane as usize] = scroll;
        self.list(pane, listing, below);
    }

    fn drawing(&self, area: Rect) -> Drawing {
        Drawing { theme: self.theme, width: area.width, ago: self.ago }
    }

    fn list(&mut self, pane: Pane, listing: Listing, area: Rect) {
        let Listing { header, widths, rows, empty } = listing;
        let nothing = rows.is_empty();
        let rows: Vec<Vec<Line<'_>>> = rows
            .into_iter()
            .filter(|(search, _)| self.state.finds(search))
            .map(|(_, cells)| cells)
            .collect();
        let height = area.height.saturating_sub(1) as usize;
        let scroll = &mut self.state.scroll[pane as usize];
        *scroll = (*scroll).min(rows.len().saturating_sub(height));
        let widths = columns::widths(&widths, &header, &rows, area.width);
        let shown: Vec<Row<'_>> = rows
            .into_iter()
            .skip(*scroll)
            .take(height)
            .map(|cells| Row::new(columns::fitted(cells, &widths)))
            .collect();
        let empty_words = if nothing { empty } else { "no match" };
        let is_empty = shown.is_empty();
        let header = Row::new(header).style(self.theme.dim());
        let widths = widths.iter().map(|width| Constraint::Length(*width));
        let table = Table::new(shown, widths).header(header).column_spacing(columns::SPACING);
        self.frame.render_widget(table, area);
        if is_empty && area.height > 1 {
            let below = Rect { y: area.y + 1, height: 1, ..area };
            self.frame.render_widget(Line::styled(empty_words, self.theme.dim()), below);
        }
    }

    fn timeline(&mut self, area: Rect) {
        let block = Block::bordered().border_style(self.theme.dim());
        let inner = block.inner(area);
        let (width, height) = (inner.width as usize, inner.height as usize);
        let (lines, span) = timeline::draw(&self.latest.data, self.theme, width, height, self.ago);
        let title = Span::styled(format!(" Timeline, {span} "), self.theme.dim());
        self.frame.render_widget(block.title(title), area);
        let nothing = Line::styled("no holds lately", self.theme.dim());
        let lines = if lines.is_empty() { vec![nothing] } else { lines };
        self.frame.render_widget(Paragraph::new(lines), inner);
    }

    fn footer(&mut self, area: Rect) {
        let state = &*self.state;
        let line = match (state.typing, state.search.is_empty()) {
            (true, _) => Line::from(format!("/{}▏", clean(&state.search))),
            (false, false) => Line::from(vec![
                Span::styled(format!("/{}", clean(&state.search)), self.theme.accent()),
                Span::styled("  Esc shows everything", self.theme.dim()),
            ]),
            (false, true) => {
                let words = match area.width {
                    50.. => "q quit  Tab 1-4 pane  ↑↓ scroll  / search  ? help",
                    _ => "q quit  Tab pane  / search  ? help",
                };
                Line::styled(words, self.theme.dim())
            }
        };
        self.frame.render_widget(line, area);
    }

    fn help(&mut self, area: Rect) {
        let text = [
            "q, Esc, Ctrl-C  quit",
            "Tab, ← →, 1-4   next pane",
            "↑ ↓, j k        scroll by a line",
            "PgUp, PgDn      scroll by ten",
            "g, G            first, last",
            "/ TEXT Enter    show only lines with TEXT",
            "Esc             show everything again",
            "",
            "LEFT drains from one renewal to the next.",
            "In the timeline ! marks a hold that died,",
            "lapsed or was broken.",
        ];
        let (width, height) = (46.min(area.width), (text.len() as u16 + 2).min(area.height));
        let outer =
            Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
        self.frame.render_widget(Clear, outer);
        let block = Block::bordered().title(" Keys ").border_style(self.theme.accent());
        self.frame.render_widget(block, outer);
        let lines: Vec<Line<'_>> = text.into_iter().map(Line::from).collect();
        let inner = outer.inner(Margin::new(2, 1));
        self.frame.render_widget(Paragraph::new(lines), inner);
    }
}
