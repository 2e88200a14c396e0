//! What a person or a log sees while a command waits.

use crate::output::{NAME, Output, styled};
use crate::show;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tenure::core::{Blocker, Resource};
use tenure::duration::format_duration;
use tenure::{Wait, Waiting};

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(200);

/// What a full bar means when there is no limit.
const BAR_SPAN: Duration = Duration::from_secs(10 * 60);

/// What a person who waits must know first.
const WAITING: &str = "Waiting for lock... (Ctrl+C to cancel)";

/// Shows who is waited for. Says nothing until a first try failed.
#[derive(Clone)]
pub(crate) struct WaitDisplay {
    output: Output,
    resources: Vec<Resource>,
    span: Duration,
    /// Whether the end is told even where there is no bar.
    tells_end: bool,
    state: Arc<State>,
}

struct State {
    begun: AtomicBool,
    ended: AtomicBool,
    bar: Option<ProgressBar>,
}

impl WaitDisplay {
    pub(crate) fn new(output: &Output, resources: &[Resource], wait: Wait) -> WaitDisplay {
        let live = !output.json && !output.quiet && std::io::stderr().is_terminal();
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
        let state = State { begun: AtomicBool::new(false), ended: AtomicBool::new(false), bar };
        WaitDisplay {
            output: output.clone(),
            resources: resources.to_vec(),
            span,
            tells_end: false,
            state: Arc::new(state),
        }
    }

    /// For waiting for tasks: what is waited for is said with each look.
    pub(crate) fn for_tasks(output: &Output, wait: Wait) -> WaitDisplay {
        WaitDisplay { tells_end: !output.json, ..WaitDisplay::new(output, &[], wait) }
    }

    /// To be called after each look that ended with waiting.
    pub(crate) fn tell(&self, waiting: &Waiting) {
        let turn = match waiting.ahead {
            Some(0) => "; you are next".to_owned(),
            Some(1) => "; 1 waits before you".to_owned(),
            Some(ahead) => format!("; {ahead} wait before you"),
            None => "; many wait before you".to_owned(),
        };
        self.show(&waiting.blockers, &turn, json!(waiting.ahead));
    }

    /// The same for a command that only watches, and so has no turn.
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
        let sentence = sentence(&self.resources, blockers) + turn;
        match &self.state.bar {
            None if first => self.output.note(&sentence),
            None => {}
            Some(bar) => {
                if first {
                    self.output.note(WAITING);
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    self.animate(bar.clone());
                }
                bar.set_message(sentence);
            }
        }
    }

    /// The same for tasks: what is in the way in short, in full, and for scripts.
    pub(crate) fn tell_of(&self, headline: &str, sentence: &str, event: &serde_json::Value) {
        let first = !self.state.begun.swap(true, Ordering::Relaxed);
        if first && self.output.json {
            self.output.note(&event.to_string());
        } else if first {
            self.output.note(headline);
            self.output.note(WAITING);
        }
        if let Some(bar) = &self.state.bar {
            if first {
                bar.set_draw_target(ProgressDrawTarget::stderr());
                self.animate(bar.clone());
            }
            bar.set_message(sentence.to_owned());
        }
    }

    /// To be called when the wait is over.
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

    fn animate(&self, bar: ProgressBar) {
        let (state, span, begun) = (self.state.clone(), self.span, Instant::now());
        std::thread::spawn(move || {
            while !state.ended.load(Ordering::Relaxed) {
                let elapsed = begun.elapsed().min(span);
                bar.set_position(elapsed.as_millis().try_into().unwrap_or(u64::MAX));
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

fn sentence(resources: &[Resource], blockers: &[Blocker]) -> String {
    let names = styled(NAME, show::names(resources));
    match blockers.first() {
        Some(Blocker::Hold(seen)) => {
            let operation = seen.hold.operation.as_ref();
            let operation = operation.map(|text| format!(" for {:?}", show::one_line(text)));
            format!(
                "Waiting for {names}, held by {}{} since {} ago",
                styled(NAME, &seen.hold.holder.label),
                operation.unwrap_or_default(),
                format_duration(seen.held_for)
            )
        }
        _ => format!("Waiting for {names}"),
    }
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
        "expiresAt": holder.map(|seen| show::time(seen.expires_at)),
    })
}
