//! Obeys the signals that ask a worker to stop.

use crate::child::Signals;
use crate::exit::Exit;
use crate::failure::Failure;
use std::time::Duration;
use tenure::Stop;
use tenure_frontend::duration::format_duration;
use tokio::sync::watch;
use tokio::time::timeout;

const HANG_UP: i32 = 1;
const INTERRUPT: i32 = 2;
const QUIT: i32 = 3;
const TERMINATE: i32 = 15;

/// How long those that run may go on after a first signal.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// So long, whatever the signal.
    Grace(Duration),
    /// To their end after Ctrl-C, where a person can ask again; so long after other signals.
    Person(Duration),
}

pub(crate) fn listen() -> Result<Signals, Failure> {
    Signals::listen().map_err(|error| {
        Failure::new(Exit::Error, "SIGNALS", format!("signals cannot be watched: {error}"))
    })
}

/// First takes no more tasks and lets what runs come to its end; at a second signal, or when
/// patience ends, hands back what runs. Never returns. Pausing with Ctrl-Z has no effect: the
/// commands would go on while nobody watches their leases.
pub(crate) async fn obey(
    signals: &mut Signals,
    stop: &watch::Sender<Stop>,
    patience: Patience,
    tell: impl Fn(&str),
) {
    let first = next(signals).await;
    stop.send_if_modified(|stop| raise(stop, Stop::Drain));
    match patience {
        Patience::Person(_) if first == INTERRUPT => {
            tell("Stopping: what runs comes to its end; again to hand it back");
            next(signals).await;
        }
        Patience::Person(grace) | Patience::Grace(grace) => {
            let grace_words = format_duration(grace);
            tell(&format!("Stopping: what runs has {grace_words} to come to its end"));
            let _ = timeout(grace, next(signals)).await;
        }
    }
    stop.send_if_modified(|stop| raise(stop, Stop::HandBack));
    loop {
        next(signals).await;
    }
}

fn raise(stop: &mut Stop, to: Stop) -> bool {
    let rises = *stop < to;
    if rises {
        *stop = to;
    }
    rises
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
