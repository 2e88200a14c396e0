//! Follows what a command prints while it runs.

use super::last_line::LastLine;
use super::logs::Sink;
use crate::child::{Child, Ended, Output};
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// What a command printed before its end is in the pipe by then; what others say that it left
/// running need not be waited for. Long enough for a busy machine, short to a person.
const SILENCE: Duration = Duration::from_millis(50);

/// A left-over process that prints for ever must not keep the task.
const REST_MAX: Duration = Duration::from_secs(2);

/// What a command printed, handed on, with the last line of each stream.
pub(super) struct Printed {
    stdout: Stream,
    stderr: Stream,
    sink: Sink,
}

struct Stream {
    output: Option<Output>,
    last: LastLine,
}

impl Stream {
    /// The next piece, empty at the end. Never returns after the end. Cancel-safe.
    async fn next(&mut self) -> Vec<u8> {
        let Some(output) = &mut self.output else { return std::future::pending().await };
        let mut bytes = Vec::new();
        if !matches!(output.read(&mut bytes).await, Ok(1..)) {
            self.output = None;
        }
        self.last.push(&bytes);
        bytes
    }
}

impl Printed {
    pub(super) fn of(child: &mut Child, sink: Sink) -> Printed {
        let stream = |output| Stream { output, last: LastLine::default() };
        Printed { stdout: stream(child.take_stdout()), stderr: stream(child.take_stderr()), sink }
    }

    /// Hands on until the command has ended, and then the rest. Cancel-safe.
    pub(super) async fn follow(&mut self, child: &mut Child) -> Ended {
        let ended = loop {
            tokio::select! {
                ended = child.wait() => break ended,
                () = self.hand_on() => {}
            }
        };
        let deadline = Instant::now() + REST_MAX;
        let rest =
            async { while self.is_open() && timeout(SILENCE, self.hand_on()).await.is_ok() {} };
        let _ = timeout_at(deadline, rest).await;
        ended
    }

    /// Stops the command, reading all the while: it may have something to say about it.
    pub(super) async fn stop(&mut self, child: &mut Child, grace: Duration) -> Option<Ended> {
        let mut stopping = pin!(child.stop(grace));
        loop {
            tokio::select! {
                stopped = &mut stopping => return stopped.ended,
                () = self.hand_on() => {}
            }
        }
    }

    fn is_open(&self) -> bool {
        self.stdout.output.is_some() || self.stderr.output.is_some()
    }

    /// Hands on what comes next, nothing at the end of a stream. Never returns once both are at
    /// their end. Cancel-safe.
    async fn hand_on(&mut self) {
        tokio::select! {
            bytes = self.stdout.next() => self.sink.stdout(&bytes),
            bytes = self.stderr.next() => self.sink.stderr(&bytes),
        }
    }

    /// The last line of standard output, if it is JSON.
    pub(super) fn result(&self) -> Option<String> {
        self.stdout.last.json()
    }

    /// What the command said last, best on standard error, at most so many characters of it.
    pub(super) fn last_words(&self, limit: usize) -> Option<String> {
        self.stderr.last.words(limit).or_else(|| self.stdout.last.words(limit))
    }
}
