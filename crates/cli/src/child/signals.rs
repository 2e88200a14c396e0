//! Receives signals while a command runs.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use super::sys;
use super::{Child, Ended};

/// Ctrl-Z: the user wants to pause tenure and its command.
pub const SUSPEND: i32 = Signal::TSTP.as_raw();

/// Tenure was paused and continues; its leases may have lapsed meanwhile.
pub const RESUME: i32 = Signal::CONT.as_raw();

/// The signals to pass on. The last three matter because the command has its own process group,
/// which a terminal's Ctrl-Z, `fg` and resizing do not reach.
const WATCHED: [Signal; 9] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
    Signal::TSTP,
    Signal::CONT,
];

/// A stream of the signals that tenure receives, instead of their default effects.
///
/// It disables the default effects for the rest of the process, so keep reading: otherwise tenure
/// cannot be interrupted. Signals that were ignored when tenure started stay ignored by tenure and
/// its commands, as `nohup` requires.
#[derive(Debug)]
pub struct Signals {
    streams: Vec<(Signal, Stream)>,
}

impl Signals {
    /// Starts to listen. Call it before [`spawn`](super::spawn), so that no signal is missed.
    pub fn listen() -> io::Result<Self> {
        let watched = WATCHED.into_iter().filter(|&which| !sys::is_ignored(which));
        let streams = watched
            .map(|which| Ok((which, signal(SignalKind::from_raw(which.as_raw()))?)))
            .collect::<io::Result<_>>()?;
        Ok(Self { streams })
    }

    /// The next signal. Cancel-safe. Several signals of one kind may arrive as one.
    pub async fn next(&mut self) -> i32 {
        poll_fn(|context| {
            for (which, stream) in &mut self.streams {
                if stream.poll_recv(context).is_ready() {
                    return Poll::Ready(which.as_raw());
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Has signals that ask this process to end do so at once, after [`Signals`] were read.
pub fn restore_signals() {
    for which in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        if !sys::is_ignored(which) {
            sys::restore_default(which);
        }
    }
}

impl Child {
    /// As [`Child::wait`], and passes every signal on to the command.
    pub async fn wait_passing_on(&mut self, signals: &mut Signals) -> Ended {
        loop {
            tokio::select! {
                ended = self.wait() => return ended,
                signal = signals.next() => self.pass_on(signal),
            }
        }
    }
}
