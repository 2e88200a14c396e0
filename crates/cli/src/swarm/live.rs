//! The live view of a swarm: a line for each worker and a bar, redrawn in place.

use super::{TaskTotals, worker_of};
use crate::output::{self, DIM, WARN, styled};
use crate::worker::event_lines;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use tenure::WorkEvent;
use tenure::core::rules::tasks::Finish;
use tenure::core::text::without_reordering;

/// How often elapsed times are redrawn.
const TICK: Duration = Duration::from_millis(200);

/// The most lines; more do not fit on a terminal. The bar counts all workers.
const LINES_MAX: usize = 40;

/// What to show.
pub(super) enum Shown {
    Event(Box<WorkEvent>),
    Note(String),
    Progress(TaskTotals),
}

/// The view. A thread draws it, because a terminal can be stopped, which must not stop the workers.
pub(crate) struct Live {
    next: Mutex<Option<mpsc::Sender<Shown>>>,
    cleared: Mutex<mpsc::Receiver<()>>,
}

impl Live {
    pub(super) fn start(workers: usize) -> Live {
        let (next, shown) = mpsc::channel();
        let (clear, cleared) = mpsc::channel();
        let draw = move || {
            let mut drawing = Drawing::new(workers);
            loop {
                match shown.recv_timeout(TICK) {
                    Ok(Shown::Event(event)) => drawing.tell(&event),
                    Ok(Shown::Note(text)) => drawing.note(&text),
                    Ok(Shown::Progress(totals)) => drawing.progress(&totals),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                drawing.leave_terminal_to_others();
            }
            drawing.end();
            let _ = clear.send(());
        };
        // Without a thread nothing is shown until the end.
        let _ = std::thread::Builder::new().name("tenure-live".to_owned()).spawn(draw);
        Live { next: Mutex::new(Some(next)), cleared: Mutex::new(cleared) }
    }

    pub(super) fn show(&self, shown: Shown) {
        if let Some(next) = &*self.next.lock() {
            let _ = next.send(shown);
        }
    }

    /// Removes the view, unless its terminal is stopped.
    pub(super) fn end(&self) {
        self.next.lock().take();
        let _ = self.cleared.lock().recv_timeout(CLEARING);
    }
}

/// How long to wait for the view to be removed.
const CLEARING: Duration = Duration::from_secs(1);

/// How many notes are kept while another job has the terminal.
const NOTES_MAX: usize = 1000;

struct Drawing {
    all: MultiProgress,
    workers: Vec<ProgressBar>,
    total: ProgressBar,
    /// Whether another job has the terminal, over which nothing may be drawn.
    is_hidden: bool,
    /// Notes to show when it is back.
    notes: Vec<String>,
}

impl Drawing {
    fn new(workers: usize) -> Drawing {
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
        Drawing { all, workers, total, is_hidden: false, notes: vec![] }
    }

    /// Draws nothing while this process is in the background of its terminal, as after Ctrl-Z and `bg`.
    fn leave_terminal_to_others(&mut self) {
        let is_hidden = !output::is_in_foreground();
        if is_hidden == self.is_hidden {
            return;
        }
        self.is_hidden = is_hidden;
        if is_hidden {
            self.all.set_draw_target(ProgressDrawTarget::hidden());
        } else {
            self.all.set_draw_target(ProgressDrawTarget::stderr());
            for text in std::mem::take(&mut self.notes) {
                self.note(&text);
            }
        }
    }

    fn tell(&mut self, event: &WorkEvent) {
        let Some(bar) = self.workers.get(worker_of(event)) else { return self.keep(event) };
        match event {
            WorkEvent::Claimed { task, .. } => {
                bar.reset_elapsed();
                let attempt = match task.attempts {
                    0 | 1 => String::new(),
                    attempts => format!(" (attempt {attempts})"),
                };
                bar.set_style(style("{prefix:.dim} {elapsed:>4} {wide_msg}"));
                let name = event_lines::name(task);
                bar.set_message(format!("{}{attempt}", without_reordering(&name)));
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
    fn keep(&mut self, event: &WorkEvent) {
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

    fn note(&mut self, text: &str) {
        if !self.is_hidden {
            let _ = self.all.println(without_reordering(text));
        } else if self.notes.len() < NOTES_MAX {
            self.notes.push(text.to_owned());
        }
    }

    fn progress(&self, totals: &TaskTotals) {
        self.total.set_length(totals.total());
        self.total.set_position(totals.done());
        let bad = totals.stuck();
        let message = if bad > 0 { styled(WARN, format!("({bad} stuck)")) } else { String::new() };
        self.total.set_message(message);
    }

    fn end(&self) {
        self.workers.iter().chain([&self.total]).for_each(ProgressBar::finish_and_clear);
        let _ = self.all.clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    let plain = ProgressStyle::default_bar();
    plain.clone().template(template).unwrap_or(plain)
}
