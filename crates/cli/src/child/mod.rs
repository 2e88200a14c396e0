//! The command of `run`, `update`, `work` and `swarm`: starting, watching, signalling and stopping it.
//!
//! In reading order: [`ChildSpec`] says what to start, [`spawn`] starts it, [`Child`] is the
//! running command, [`Ended`] how it ended, [`Signals`] what was sent to tenure meanwhile.
//!
//! ```ignore
//! let mut signals = Signals::listen()?;
//! let mut child = spawn(ChildSpec::new(command))?;
//! let ended = loop {
//!     tokio::select! {
//!         ended = child.wait() => break ended,
//!         signal = signals.next() => child.pass_on(signal),
//!         () = lease.lost() => { child.stop(grace).await; return Ok(LOST) }
//!     }
//! };
//! ```
//!
//! What is promised on Linux: the command is the leader of a process group of its own.
//! [`Child::stop`] reaches every process that it started, also those that left its group or
//! detached themselves, unless they both detached and wiped their environment. If tenure dies,
//! however it dies, the kernel kills the command's own process, but *not* what that started: a
//! `sh -c` that runs a program leaves it running. Other unixes have the process group only.
//! Elsewhere only the command itself is watched and killed.
//!
//! Everything here belongs on one thread, the main one, inside a Tokio runtime: the kernel ends
//! the command when the *thread* that started it ends.

mod error;
#[cfg(any(not(unix), test))]
#[cfg_attr(unix, allow(dead_code, reason = "compiled here only to see that it does"))]
mod other;
#[cfg(unix)]
mod output;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod stop;
#[cfg(unix)]
mod sys;
#[cfg(unix)]
mod terminal;
#[cfg(all(test, target_os = "linux"))]
mod tests;
#[cfg(unix)]
mod tree;
#[cfg(unix)]
mod unix;

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;

pub use error::SpawnError;
#[cfg(not(unix))]
pub use other::{Child, Output, RESUME, SUSPEND, Signals, spawn, suspend};
#[cfg(unix)]
pub use output::Output;
#[cfg(unix)]
pub use signals::{RESUME, SUSPEND, Signals};
#[cfg(unix)]
pub use terminal::suspend;
#[cfg(unix)]
pub use unix::{Child, spawn};

/// What to start and with what.
#[derive(Debug)]
pub struct ChildSpec {
    /// The program, then its arguments. Run directly, never through a shell.
    pub command: Vec<OsString>,
    /// Variables added to tenure's own environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where to run it; tenure's own directory if absent.
    pub directory: Option<PathBuf>,
    /// What it reads.
    pub stdin: Stdin,
    /// Where its standard output goes.
    pub stdout: Stdout,
    /// Where its standard error goes.
    pub stderr: Stdout,
    /// Whether it may have the terminal, if tenure has one. At most one child at a time may; one
    /// that may not, and reads the terminal all the same, is stopped by the kernel.
    pub foreground: bool,
}

impl ChildSpec {
    /// A command that shares tenure's environment, directory, input and output, with no claim on
    /// the terminal.
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

    /// The name to call the command by in messages.
    fn program(&self) -> String {
        let program = self.command.first().cloned().unwrap_or_default();
        program.to_string_lossy().into_owned()
    }
}

/// What a command reads from its standard input.
#[derive(Debug)]
pub enum Stdin {
    /// Whatever tenure itself would read.
    Inherit,
    /// Nothing.
    Null,
    /// These bytes, then the end. A command that does not read them is not held up by it.
    Bytes(Vec<u8>),
    /// This file, from where it stands.
    File(File),
}

impl Stdin {
    /// As the standard library wants it. A file is given away.
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

/// Where a command's standard output or error goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdout {
    /// Where tenure's own goes.
    Inherit,
    /// To tenure: see [`Child::take_stdout`] and [`Child::take_stderr`]. A command whose output nobody reads comes to a halt.
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
    /// The code to exit with so as to pass this on: its own, or 128 + the signal, as shells do.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// What [`Child::stop`] achieved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// How the command ended; absent if it could not be killed.
    pub ended: Option<Ended>,
    /// Process ids that outlived even SIGKILL: another user's, or stuck in the kernel.
    pub survivors: Vec<u32>,
}
