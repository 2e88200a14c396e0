//! The display of a swarm where nothing can be redrawn, such as in a log.

use super::{TaskTotals, worker_of};
use crate::output::Output;
use crate::worker::event_lines;
use parking_lot::Mutex;
use std::time::{Duration, Instant};
use tenure::WorkEvent;

/// How often a swarm that waits says so again.
const SAY_AGAIN: Duration = Duration::from_secs(60);

/// How long a swarm waits before it says so: most waits are a moment between two tasks.
const MOMENT: Duration = Duration::from_secs(3);

pub(crate) struct LogLines {
    output: Output,
    state: Mutex<State>,
}

struct State {
    /// How many tasks are being worked on.
    busy: usize,
    /// Since when none is.
    idle_since: Instant,
    said: Option<(Instant, String)>,
}

impl LogLines {
    pub(super) fn new(output: &Output) -> LogLines {
        let state = State { busy: 0, idle_since: Instant::now(), said: None };
        LogLines { output: output.clone(), state: Mutex::new(state) }
    }

    pub(super) fn tell(&self, event: &WorkEvent) {
        if let Some(words) = event_lines::words(event) {
            self.note(&format!("[worker {}] {words}", worker_of(event) + 1));
        }
        let mut state = self.state.lock();
        match event {
            WorkEvent::Claimed { .. } => state.busy += 1,
            WorkEvent::Finished { .. } | WorkEvent::Lost { .. } => {
                state.busy = state.busy.saturating_sub(1);
                state.idle_since = Instant::now();
                state.said = None;
            }
            _ => {}
        }
    }

    pub(super) fn note(&self, text: &str) {
        self.output.note(text);
    }

    /// Says what is left when no worker has had a task for a while.
    pub(super) fn progress(&self, totals: &TaskTotals) {
        let mut state = self.state.lock();
        if state.busy > 0 || state.idle_since.elapsed() < MOMENT {
            return;
        }
        let open = totals.open_text();
        let is_new = |(at, said): &(Instant, String)| at.elapsed() >= SAY_AGAIN || *said != open;
        if state.said.as_ref().is_none_or(is_new) {
            let what = if open.is_empty() { "new tasks".to_owned() } else { open.clone() };
            self.note(&format!(
                "Waiting for {what}; `tenure why TASK` tells what a task waits for"
            ));
            state.said = Some((Instant::now(), open));
        }
    }
}
