//! The display of a swarm: a live view on a terminal, lines elsewhere.

mod live;
mod log_lines;
mod task_totals;

pub(crate) use task_totals::TaskTotals;

use crate::output::{self, Output};
use live::{Live, Shown};
use log_lines::LogLines;
use tenure::WorkEvent;

/// Shows what the workers do.
pub(crate) enum View {
    /// A view that is redrawn in place.
    Live(Live),
    /// A line for each event.
    Lines(LogLines),
    /// Nothing until the end.
    Silent,
}

impl View {
    pub(crate) fn new(output: &Output, workers: usize) -> View {
        if output.json || output.quiet {
            View::Silent
        } else if output::can_redraw() {
            View::Live(Live::start(workers))
        } else {
            View::Lines(LogLines::new(output))
        }
    }

    /// Shows an event.
    pub(crate) fn tell(&self, event: &WorkEvent) {
        match self {
            View::Live(live) => live.show(Shown::Event(Box::new(event.clone()))),
            View::Lines(lines) => lines.tell(event),
            View::Silent => {}
        }
    }

    /// Shows a note.
    pub(crate) fn note(&self, text: &str) {
        match self {
            View::Live(live) => live.show(Shown::Note(text.to_owned())),
            View::Lines(lines) => lines.note(text),
            View::Silent => {}
        }
    }

    /// Shows the progress.
    pub(crate) fn progress(&self, totals: &TaskTotals) {
        match self {
            View::Live(live) => live.show(Shown::Progress(totals.clone())),
            View::Lines(lines) => lines.progress(totals),
            View::Silent => {}
        }
    }

    /// Removes the live view.
    pub(crate) fn end(&self) {
        if let View::Live(live) = self {
            live.end();
        }
    }
}

fn worker_of(event: &WorkEvent) -> usize {
    match event {
        WorkEvent::Idle { worker }
        | WorkEvent::Claimed { worker, .. }
        | WorkEvent::Finished { worker, .. }
        | WorkEvent::Lost { worker, .. }
        | WorkEvent::Trouble { worker, .. }
        | WorkEvent::Ended { worker } => *worker,
    }
}
