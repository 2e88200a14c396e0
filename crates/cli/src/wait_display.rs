//! The progress display of a command that waits: a bar on a terminal, one line in a log.

use crate::output::{self, NAME, Output, styled};
use crate::show;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tenure::core::text::without_reordering;
use tenure::core::{Blocker, HoldSnapshot, Mode, Resource};
use tenure::{Wait, Waiting};
use tenure_frontend::duration::format_duration;
use tenure_frontend::view;

/// How often the bar is redrawn.
const TICK: Duration = Duration::from_millis(200);

/// How long a full bar stands for when there is no wait limit.
const BAR_SPAN: Duration = Duration::from_secs(10 * 60);

/// The first line of every wait.
const WAITING: &str = "Waiting for lock... (Ctrl+C to cancel)";

/// Shows who is waited for. It prints nothing until a first attempt failed.
#[derive(Clone)]
pub(crate) struct WaitDisplay {
    output: Output,
    resources: Vec<Resource>,
    span: Duration,
    /// The requested mode.
    mode: Mode,
    /// Whether the end of the wait is printed even without a bar.
    tells_end: bool,
    state: Arc<State>,
}

struct State {
    begun: AtomicBool,
    ended: AtomicBool,
    bar: Option<ProgressBar>,
    /// Renders the line below the bar, again and again as time passes.
    sentence: Mutex<Sentence>,
}

/// Renders a line with the ages as of now.
type Sentence = Box<dyn Fn() -> String + Send>;

impl State {
    /// Sets the line below the bar.
    fn say(&self, sentence: impl Fn() -> String + Send + 'static) {
        *self.lock() = Box::new(sentence);
        self.refresh();
    }

    fn refresh(&self) {
        if let Some(bar) = &self.bar {
            bar.set_message(without_reordering(&self.lock()()).into_owned());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sentence> {
        self.sentence.lock()
    }
}

impl WaitDisplay {
    pub(crate) fn new(output: &Output, resources: &[Resource], wait: Wait) -> WaitDisplay {
        let live = !output.json && !output.quiet && output::can_redraw();
        let span = match wait {
            Wait::UpTo(limit) => limit,
            Wait::No | Wait::Forever => BAR_SPAN,
        };
        let bar = live.then(|| {
            let bar = ProgressBar::with_draw_target(
                Some(span.as_millis().try_into().unwrap_or(u64::MAX).max(1)),
                ProgressDrawTarget::hidden(),
            );
            bar.set_style(style());
            bar
        });
        let state = State {
            begun: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            bar,
            sentence: Mutex::new(Box::new(String::new)),
        };
        WaitDisplay {
            output: output.clone(),
            resources: resources.to_vec(),
            span,
            mode: Mode::Exclusive,
            tells_end: false,
            state: Arc::new(state),
        }
    }

    /// Sets the requested mode.
    pub(crate) fn for_mode(self, mode: Mode) -> WaitDisplay {
        WaitDisplay { mode, ..self }
    }

    /// A display for waiting for tasks; each update brings its own text.
    pub(crate) fn for_tasks(output: &Output, wait: Wait) -> WaitDisplay {
        WaitDisplay { tells_end: !output.json, ..WaitDisplay::new(output, &[], wait) }
    }

    /// Updates the display after each attempt that has to wait.
    pub(crate) fn tell(&self, waiting: &Waiting) {
        let turn = match waiting.ahead {
            Some(0) => ", you are next".to_owned(),
            Some(1) => ", 1 waiter before you".to_owned(),
            Some(ahead) => format!(", {ahead} waiters before you"),
            None => ", many waiters before you".to_owned(),
        };
        self.show(&waiting.blockers, &turn, json!(waiting.ahead));
    }

    /// As [`WaitDisplay::tell`], for a command that watches without a place in the queue.
    pub(crate) fn watch(&self, blockers: &[Blocker]) {
        self.show(blockers, "", json!(null));
    }

    fn show(&self, blockers: &[Blocker], turn: &str, ahead: Value) {
        let first = !self.state.begun.swap(true, Ordering::Relaxed);
        if self.output.json {
            if first {
                self.output.note(&event(&self.resources, blockers, ahead).to_string());
            }
            return;
        }
        let mismatch = view::slots_mismatch(self.mode, blockers)
            .map(|(asked, counts)| view::mismatch_words(asked, counts));
        let holder = blockers.first().and_then(|blocker| match blocker {
            Blocker::Hold(seen) => Some(seen.clone()),
            Blocker::Waiter(_) => None,
        });
        let (names, turn, told) = (show::names(&self.resources), turn.to_owned(), Instant::now());
        let sentence = move || sentence(&names, &turn, holder.as_ref(), told.elapsed());
        if self.state.bar.is_none() {
            if first {
                let mismatch = mismatch.map(|words| format!("; {words}")).unwrap_or_default();
                self.output.note(&(sentence() + &mismatch));
            }
            return;
        }
        if first {
            if let Some(words) = mismatch {
                self.output.note(&words);
            }
            self.output.note(WAITING);
            self.animate();
        }
        self.state.say(sentence);
    }

    /// As [`WaitDisplay::tell`], for tasks: the obstacle in short, in full, and as JSON.
    pub(crate) fn tell_of(&self, headline: &str, sentence: &str, event: &serde_json::Value) {
        let first = !self.state.begun.swap(true, Ordering::Relaxed);
        if first && self.output.json {
            self.output.note(&event.to_string());
        } else if first {
            self.output.note(headline);
            self.output.note(WAITING);
        }
        if self.state.bar.is_some() {
            if first {
                self.animate();
            }
            let sentence = sentence.to_owned();
            self.state.say(move || sentence.clone());
        }
    }

    /// Ends the display when the wait is over.
    pub(crate) fn end(&self, obtained: bool) {
        if self.state.ended.swap(true, Ordering::Relaxed)
            || !self.state.begun.load(Ordering::Relaxed)
        {
            return;
        }
        if let Some(bar) = &self.state.bar {
            bar.finish_and_clear();
        }
        if obtained && (self.tells_end || self.state.bar.is_some()) {
            self.output.note("Lock released!");
        }
    }

    /// Shows the bar and redraws it until the wait is over.
    fn animate(&self) {
        let (state, span, begun) = (self.state.clone(), self.span, Instant::now());
        let Some(bar) = state.bar.clone() else { return };
        bar.set_draw_target(ProgressDrawTarget::stderr());
        std::thread::spawn(move || {
            let mut shown_secs = 0;
            while !state.ended.load(Ordering::Relaxed) {
                let elapsed = begun.elapsed();
                let is_drawn = output::is_in_foreground();
                if is_drawn == bar.is_hidden() {
                    bar.set_draw_target(match is_drawn {
                        true => ProgressDrawTarget::stderr(),
                        false => ProgressDrawTarget::hidden(),
                    });
                }
                bar.set_position(elapsed.min(span).as_millis().try_into().unwrap_or(u64::MAX));
                if elapsed.as_secs() > shown_secs {
                    shown_secs = elapsed.as_secs();
                    state.refresh();
                }
                std::thread::park_timeout(TICK);
            }
        });
    }
}

fn style() -> ProgressStyle {
    let plain = ProgressStyle::default_bar();
    let template = "[{bar:26}] {elapsed} elapsed\n{wide_msg}";
    plain.clone().template(template).map_or(plain, |style| style.progress_chars("=> "))
}

/// The line of a wait: the resource, the place in the queue, and the holder as seen `seen_ago`. The
/// least important part comes last, because a narrow terminal cuts the line.
fn sentence(names: &str, turn: &str, holder: Option<&HoldSnapshot>, seen_ago: Duration) -> String {
    let mut text = format!("Waiting for {}{turn}", styled(NAME, names));
    if let Some(seen) = holder {
        let age = Duration::from_secs((seen.held_for + seen_ago).as_secs());
        let holder = styled(NAME, &seen.hold.holder.label);
        text += &format!("; held by {holder} for {}", format_duration(age));
        if let Some(operation) = &seen.hold.operation {
            text += &format!(": {:?}", show::one_line(operation));
        }
    }
    text
}

fn event(resources: &[Resource], blockers: &[Blocker], ahead: Value) -> Value {
    let names: Vec<String> = resources.iter().map(Resource::to_string).collect();
    let holder = blockers.iter().find_map(|blocker| match blocker {
        Blocker::Hold(seen) => Some(seen),
        Blocker::Waiter(_) => None,
    });
    json!({
        "event": "waiting",
        "resources": names,
        "ahead": ahead,
        "lockedBy": holder.map(|seen| &seen.hold.holder.label),
        "operation": holder.and_then(|seen| seen.hold.operation.as_ref()),
        "expiresAt": holder.and_then(HoldSnapshot::limit).map(show::time),
    })
}
