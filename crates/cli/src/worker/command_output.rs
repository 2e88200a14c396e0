//! Follows the output of a command while it runs.

use super::last_line::LastLine;
use super::output_target::AttemptOutput;
use crate::child::{Child, Ended, Output};
use crate::output::aside::Stream;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tenure::Work;
use tokio::time::{Instant, timeout, timeout_at};

/// How long to wait for more output after the command ended. Its own output is in the pipe by then;
/// processes that it left running need not be waited for. Long enough for a busy machine.
const SILENCE: Duration = Duration::from_millis(50);

/// A background process that prints forever must not keep the task.
const REST_MAX: Duration = Duration::from_secs(2);

/// The output of a command, passed on and kept with the attempt, with the last line of each stream.
pub(super) struct CommandOutput {
    stdout: Source,
    stderr: Source,
    sink: AttemptOutput,
    work: Arc<Work>,
}

struct Source {
    output: Option<Output>,
    last: LastLine,
}

impl Source {
    /// The next piece; empty at the end. Never resolves after the end. Cancel-safe.
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

impl CommandOutput {
    pub(super) fn of(child: &mut Child, sink: AttemptOutput, work: &Arc<Work>) -> CommandOutput {
        let source = |output| Source { output, last: LastLine::default() };
        CommandOutput {
            stdout: source(child.take_stdout()),
            stderr: source(child.take_stderr()),
            sink,
            work: work.clone(),
        }
    }

    /// Passes output on until the command has ended, then the rest. Cancel-safe.
    pub(super) async fn follow(&mut self, child: &mut Child) -> Ended {
        let ended = loop {
            tokio::select! {
                ended = child.wait() => break ended,
                () = self.hand_on() => {}
            }
        };
        let deadline = Instant::now() + REST_MAX;
        // What is in the pipes by now is taken in even where nothing reads it.
        let rest =
            async { while self.is_open() && timeout(SILENCE, self.hand_on_all()).await.is_ok() {} };
        let _ = timeout_at(deadline, rest).await;
        ended
    }

    /// Stops the command and keeps reading, because it may print something about it.
    pub(super) async fn stop(&mut self, child: &mut Child, grace: Duration) -> Option<Ended> {
        let mut stopping = pin!(child.stop(grace));
        loop {
            tokio::select! {
                stopped = &mut stopping => return stopped.ended,
                () = self.hand_on_all() => {}
            }
        }
    }

    fn is_open(&self) -> bool {
        self.stdout.output.is_some() || self.stderr.output.is_some()
    }

    /// Passes the next piece on when there is room for it; nothing at the end of a stream. Never
    /// resolves once both streams have ended. Cancel-safe.
    async fn hand_on(&mut self) {
        let CommandOutput { stdout, stderr, sink, .. } = self;
        let (stream, bytes) = tokio::select! {
            bytes = async { sink.room(Stream::Stdout).await; stdout.next().await } => {
                (Stream::Stdout, bytes)
            }
            bytes = async { sink.room(Stream::Stderr).await; stderr.next().await } => {
                (Stream::Stderr, bytes)
            }
        };
        self.take_in(stream, bytes);
    }

    /// As [`CommandOutput::hand_on`], whether there is room or not.
    async fn hand_on_all(&mut self) {
        let (stream, bytes) = tokio::select! {
            bytes = self.stdout.next() => (Stream::Stdout, bytes),
            bytes = self.stderr.next() => (Stream::Stderr, bytes),
        };
        self.take_in(stream, bytes);
    }

    fn take_in(&mut self, stream: Stream, bytes: Vec<u8>) {
        self.work.print(&bytes);
        self.sink.write(stream, bytes);
    }

    /// The last line of standard output, if it is JSON.
    pub(super) fn result(&self) -> Option<String> {
        self.stdout.last.json()
    }

    /// The last line that the command printed, preferably on stderr, at most `limit` characters of
    /// it.
    pub(super) fn last_words(&self, limit: usize) -> Option<String> {
        self.stderr.last.words(limit).or_else(|| self.stdout.last.words(limit))
    }
}
