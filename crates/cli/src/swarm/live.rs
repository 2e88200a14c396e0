//! The live view of a swarm: a line for each worker and a bar, redrawn in place.

use super::{TaskTotals, worker_of};
use crate::output::{DIM, WARN, styled};
use crate::worker::event_lines;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::time::Duration;
use tenure::WorkEvent;
use tenure::core::rules::tasks::Finish;

/// How often elapsed times are redrawn.
const TICK: Duration = Duration::from_millis(200);

/// The most lines; more do not fit on a terminal. The bar counts all workers.
const LINES_MAX: usize = 40;

pub(crate) struct Live {
    all: MultiProgress,
    workers: Vec<ProgressBar>,
    total: ProgressBar,
}

impl Live {
    pub(super) fn new(workers: usize) -> Live {
        let all = MultiProgress::new();
        let line = |worker: usize| {
            let bar = all.add(ProgressBar::new_spinner());
            bar.set_style(style("{prefix:.dim} {wide_msg}"));
            bar.set_prefix(format!("{:>3}", worker + 1));
            bar.set_message(styled(DIM, "idle"));
            bar
        };
        let workers = (0..workers.min(LINES_MAX)).map(line).collect();
        let total = all.add(ProgressBar::new(0));
        let bar = style("[{bar:30}] {pos}/{len} done, {elapsed} elapsed {wide_msg}");
        total.set_style(bar.progress_chars("=> "));
        total.enable_steady_tick(TICK);
        Live { all, workers, total }
    }

    pub(super) fn tell(&self, event: &WorkEvent) {
        let Some(bar) = self.workers.get(worker_of(event)) else { return self.keep(event) };
        match event {
            WorkEvent::Claimed { task, .. } => {
                bar.reset_elapsed();
                let attempt = match task.attempts {
                    0 | 1 => String::new(),
                    attempts => format!(" (attempt {attempts})"),
                };
                bar.set_style(style("{prefix:.dim} {elapsed:>4} {wide_msg}"));
                bar.set_message(format!("{}{attempt}", event_lines::name(task)));
                bar.enable_steady_tick(TICK);
            }
            WorkEvent::Ended { .. } => bar.finish_and_clear(),
            _ => {
                bar.disable_steady_tick();
                bar.set_style(style("{prefix:.dim} {wide_msg}"));
                bar.set_message(styled(DIM, "idle"));
            }
        }
        self.keep(event);
    }

    /// Keeps failures on the screen when the view moves on.
    fn keep(&self, event: &WorkEvent) {
        let well = match event {
            WorkEvent::Finished { finish, .. } => {
                if matches!(finish, Finish::Complete { .. }) {
                    self.total.inc(1);
                }
                !matches!(finish, Finish::Fail { .. })
            }
            WorkEvent::Lost { .. } | WorkEvent::Trouble { .. } => false,
            _ => true,
        };
        if let Some(words) = event_lines::words(event).filter(|_| !well) {
            self.note(&format!("[worker {}] {words}", worker_of(event) + 1));
        }
    }

    pub(super) fn note(&self, text: &str) {
        let _ = self.all.println(text);
    }

    pub(super) fn progress(&self, totals: &TaskTotals) {
        self.total.set_length(totals.total());
        self.total.set_position(totals.done());
        let bad = totals.stuck();
        let message = if bad > 0 { styled(WARN, format!("({bad} stuck)")) } else { String::new() };
        self.total.set_message(message);
    }

    pub(super) fn end(&self) {
        self.workers.iter().chain([&self.total]).for_each(ProgressBar::finish_and_clear);
        let _ = self.all.clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    let plain = ProgressStyle::default_bar();
    plain.clone().template(template).unwrap_or(plain)
}
