//! What a person or a log sees of a swarm: a live view on a terminal, lines elsewhere.

mod live;
mod scope;

pub(crate) use scope::Scope;

use crate::output::{self, Output};
use crate::worker::event_lines;
use live::Live;
use tenure::WorkEvent;

/// Shows what the workers do.
pub(crate) enum View {
    /// Redrawn in place.
    Live(Box<Live>),
    /// A line for each thing that happens.
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

    /// Something happened.
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

    /// Something else that a person should know.
    pub(crate) fn note(&self, text: &str) {
        match self {
            View::Live(live) => live.note(text),
            View::Lines(output) => output.note(text),
            View::Silent => {}
        }
    }

    /// Says how much is done.
    pub(crate) fn progress(&self, scope: &Scope) {
        if let View::Live(live) = self {
            live.progress(scope);
        }
    }

    /// Takes the live view away.
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
