//! Handles the signals that ask a worker to stop.

use crate::child::Signals;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::aside;
use std::time::Duration;
use tenure::{Stop, Stopper};
use tenure_frontend::duration::format_duration;
use tokio::time::timeout;

const HANG_UP: i32 = 1;
const INTERRUPT: i32 = 2;
const QUIT: i32 = 3;
const TERMINATE: i32 = 15;

/// How long running commands may continue after the first signal.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StopPolicy {
    /// This long, after any signal.
    Grace(Duration),
    /// Until they end after Ctrl-C, because a person can press it again; this long after other
    /// signals.
    UntilSecondCtrlC(Duration),
}

/// Begins to listen. From now on nothing that is printed may keep the worker from stopping.
pub(crate) fn listen() -> Result<Signals, Failure> {
    aside::begin();
    Signals::listen().map_err(|error| {
        Failure::new(Exit::Error, "SIGNALS", format!("cannot listen for signals: {error}"))
    })
}

/// At the first signal it stops claiming and lets running commands finish; at a second one, or when
/// their time is over, it returns their tasks. Never resolves. Ctrl-Z has no effect, because the
/// commands would continue while their leases are not renewed.
pub(crate) async fn obey(
    signals: &mut Signals,
    stop: &Stopper,
    policy: StopPolicy,
    tell: impl Fn(&str),
) {
    let first = next(signals).await;
    aside::hurry();
    stop.stop(Stop::Drain);
    match policy {
        StopPolicy::UntilSecondCtrlC(_) if first == INTERRUPT => {
            tell(
                "Stopping: waiting for running commands; press Ctrl-C again to return their tasks",
            );
            next(signals).await;
        }
        StopPolicy::UntilSecondCtrlC(grace) | StopPolicy::Grace(grace) => {
            let grace_words = format_duration(grace);
            tell(&format!("Stopping: running commands have {grace_words} to finish"));
            let _ = timeout(grace, next(signals)).await;
        }
    }
    stop.stop(Stop::HandBack);
    loop {
        next(signals).await;
    }
}

/// The next signal that asks to stop.
async fn next(signals: &mut Signals) -> i32 {
    loop {
        let signal = signals.next().await;
        if [HANG_UP, INTERRUPT, QUIT, TERMINATE].contains(&signal) {
            return signal;
        }
    }
}
