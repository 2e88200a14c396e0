//! Runs the command of `run`, `update`, `work` and `swarm`: starts, watches, signals and stops it.
//!
//! In reading order: [`ChildSpec`] describes what to start, [`spawn`] starts it while its lease can be
//! trusted, [`Child`] is the running command, [`Ended`] is how it ended, [`Signals`] are the signals that
//! tenure receives meanwhile.
//!
//! ```ignore
//! let mut signals = Signals::listen()?;
//! let mut child = spawn(ChildSpec::new(command), lease.trust(), grace)?;
//! let ended = loop {
//!     tokio::select! {
//!         ended = child.wait() => break ended,
//!         signal = signals.next() => child.pass_on(signal),
//!         () = lease.lost() => { child.stop(grace).await; return Ok(LOST) }
//!     }
//! };
//! ```
//!
//! Promises on Linux: the command leads a process group of its own. [`Child::stop`] reaches every
//! process that the command started, including those that left the group or became daemons, unless
//! they both became daemons and cleared their environment. If tenure dies, even by SIGKILL, or cannot
//! stop the command when its lease ends, its [`guardian`] ends the group. Other Unix systems have the
//! process group only.
//!
//! Everything here must run on one thread, the main one, inside a Tokio runtime: the kernel kills
//! the command when the *thread* that started it ends.

mod error;
mod guardian;
mod output;
mod signals;
mod stop;
mod sys;
mod terminal;
#[cfg(all(test, target_os = "linux"))]
mod tests;
mod tree;
mod unix;

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;

pub use error::SpawnError;
#[cfg(test)]
pub use guardian::Trust;
pub use guardian::dismiss;
pub use output::Output;
pub use signals::{RESUME, SUSPEND, Signals, restore_signals};
pub use terminal::suspend;
pub use unix::{Child, spawn};

/// Describes a command to start.
#[derive(Debug)]
pub struct ChildSpec {
    /// The program, then its arguments. Run directly, never through a shell.
    pub command: Vec<OsString>,
    /// Variables added to tenure's own environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where to run it; tenure's own directory if absent.
    pub directory: Option<PathBuf>,
    /// Its standard input.
    pub stdin: Stdin,
    /// Where its standard output goes.
    pub stdout: Stdout,
    /// Where its standard error goes.
    pub stderr: Stdout,
    /// Whether it may use the terminal, if tenure has one. At most one child at a time may. A
    /// command that may not, and reads the terminal anyway, is stopped by the kernel.
    pub foreground: bool,
}

impl ChildSpec {
    /// A command with tenure's environment, directory, input and output, but without the terminal.
    pub fn new(command: Vec<OsString>) -> Self {
        Self {
            command,
            environment: Vec::new(),
            directory: None,
            stdin: Stdin::Inherit,
            stdout: Stdout::Inherit,
            stderr: Stdout::Inherit,
            foreground: false,
        }
    }

    /// The name of the command for messages.
    fn program(&self) -> String {
        let program = self.command.first().cloned().unwrap_or_default();
        program.to_string_lossy().into_owned()
    }
}

/// The standard input of a command.
#[derive(Debug)]
pub enum Stdin {
    /// Tenure's own input.
    Inherit,
    /// Nothing.
    Null,
    /// These bytes, then the end. A command that does not read them is not blocked.
    Bytes(Vec<u8>),
    /// This file, from its current position.
    File(File),
}

impl Stdin {
    /// Converts it for the standard library. A file is moved out.
    fn give(&mut self) -> Stdio {
        match self {
            Stdin::Inherit => Stdio::inherit(),
            Stdin::Null => Stdio::null(),
            Stdin::Bytes(_) => Stdio::piped(),
            Stdin::File(_) => match std::mem::replace(self, Stdin::Null) {
                Stdin::File(file) => Stdio::from(file),
                _ => unreachable!("it was a file a line ago"),
            },
        }
    }
}

/// The destination of a command's standard output or error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdout {
    /// Tenure's own.
    Inherit,
    /// A pipe to tenure: see [`Child::take_stdout`] and [`Child::take_stderr`]. A command blocks
    /// while its output is not read.
    Piped,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

impl Ended {
    /// The exit code that passes this on: its own, or 128 + the signal, as shells do.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// The result of [`Child::stop`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// How the command ended; absent if it could not be killed.
    pub ended: Option<Ended>,
    /// Process ids that survived SIGKILL: of another user, or stuck in the kernel.
    pub survivors: Vec<u32>,
}
