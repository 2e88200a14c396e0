//! How far a migration is, on a terminal.

use crate::output;
use indicatif::{ProgressBar, ProgressStyle};

/// A bar that counts tasks and then events; nothing where stderr is no terminal.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// A bar for so many tasks, if it is to be shown.
    pub(crate) fn new(is_shown: bool, tasks: u64) -> Progress {
        let bar = (is_shown && output::can_redraw()).then(|| {
            let bar = ProgressBar::new(tasks);
            let style = ProgressStyle::with_template("[{bar:30}] {pos}/{len} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_message("tasks");
            bar
        });
        Progress { bar }
    }

    pub(super) fn tasks(&self, count: usize) {
        if let Some(bar) = &self.bar {
            bar.inc(count as u64);
        }
    }

    pub(super) fn events(&self, count: usize) {
        if let Some(bar) = &self.bar {
            bar.set_message("events");
            bar.inc_length(count as u64);
            bar.inc(count as u64);
        }
    }

    pub(super) fn verifying(&self) {
        if let Some(bar) = &self.bar {
            bar.set_message("copied; comparing both stores");
        }
    }

    /// Removes the bar.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
