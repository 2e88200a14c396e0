//! The display of a swarm: a live view on a terminal, lines elsewhere.

mod live;
mod task_totals;

pub(crate) use task_totals::TaskTotals;

use crate::output::{self, Output};
use crate::worker::event_lines;
use live::Live;
use tenure::WorkEvent;

/// Shows what the workers do.
pub(crate) enum View {
    /// A view that is redrawn in place.
    Live(Box<Live>),
    /// A line for each event.
    Lines(Output),
    /// Nothing until the end.
    Silent,
}

impl View {
    pub(crate) fn new(output: &Output, workers: usize) -> View {
        if output.json || output.quiet {
            View::Silent
        } else if output::can_redraw() {
            View::Live(Box::new(Live::new(workers)))
        } else {
            View::Lines(output.clone())
        }
    }

    /// Shows an event.
    pub(crate) fn tell(&self, event: &WorkEvent) {
        match self {
            View::Live(live) => live.tell(event),
            View::Lines(output) => {
                if let Some(words) = event_lines::words(event) {
                    output.note(&format!("[worker {}] {words}", worker_of(event) + 1));
                }
            }
            View::Silent => {}
        }
    }

    /// Shows a note.
    pub(crate) fn note(&self, text: &str) {
        match self {
            View::Live(live) => live.note(text),
            View::Lines(output) => output.note(text),
            View::Silent => {}
        }
    }

    /// Shows the progress.
    pub(crate) fn progress(&self, totals: &TaskTotals) {
        if let View::Live(live) = self {
            live.progress(totals);
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
