//! What is sent to tenure while a command runs.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use super::sys;
use super::{Child, Ended};

/// Ctrl-Z: the user wants tenure and everything under it to pause.
pub const SUSPEND: i32 = Signal::TSTP.as_raw();

/// Tenure was paused and runs again; its leases may have lapsed meanwhile.
pub const RESUME: i32 = Signal::CONT.as_raw();

/// Those that a command may want to know of. The last three matter because it is in a process
/// group of its own, where a terminal's Ctrl-Z, `fg` and resizing do not reach it by themselves.
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

/// The signals sent to tenure, as a stream, instead of their default effects.
///
/// Once made, those effects are gone for the rest of the process, so keep reading: a tenure that
/// stops reading cannot be interrupted. Signals that were ignored when tenure started stay
/// ignored, by it and by its commands, as `nohup` wants.
#[derive(Debug)]
pub struct Signals {
    streams: Vec<(Signal, Stream)>,
}

impl Signals {
    /// Starts to listen. Call it before [`spawn`](super::spawn), so that none is missed.
    pub fn listen() -> io::Result<Self> {
        let watched = WATCHED.into_iter().filter(|&which| !sys::is_ignored(which));
        let streams = watched
            .map(|which| Ok((which, signal(SignalKind::from_raw(which.as_raw()))?)))
            .collect::<io::Result<_>>()?;
        Ok(Self { streams })
    }

    /// The next signal. Cancel-safe. Several of one kind may arrive as one, as is usual.
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

impl Child {
    /// [`Child::wait`], handing every signal to the command meanwhile.
    pub async fn wait_passing_on(&mut self, signals: &mut Signals) -> Ended {
        loop {
            tokio::select! {
                ended = self.wait() => return ended,
                signal = signals.next() => self.pass_on(signal),
            }
        }
    }
}
