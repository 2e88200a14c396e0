//! Job control: passes the terminal to a command and takes it back.
//!
//! The command has its own process group, and a terminal belongs to one group at a time. A command
//! that uses tenure's terminal for both input and output gets it from the start. Otherwise tenure
//! may be part of a pipeline whose other end uses the keyboard (`… | less`), so the terminal stays
//! where it is until the kernel stops the command for using it.
//!
//! When the command is stopped with Ctrl-Z, tenure and its group stop as well, so that the shell
//! sees one stopped job, and `fg` continues both.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::process::{self, Pid, Signal};
use rustix::termios::{self, OptionalActions, Termios};

use super::{sys, tree};

/// Tenure's controlling terminal, and whether the command has it.
#[derive(Debug)]
pub(super) struct Terminal {
    device: Arc<OwnedFd>,
    /// Its modes before the command could change them.
    modes: Option<Termios>,
    lent: bool,
    /// Whether to pass the terminal to the command again after tenure is continued.
    lend_again: bool,
    /// Whether tenure itself stopped the command, and is about to stop too.
    paused: bool,
}

impl Terminal {
    /// The controlling terminal, if there is one.
    pub(super) fn open() -> Option<Self> {
        let opened = fs::File::options().read(true).write(true).open("/dev/tty");
        let device = OwnedFd::from(opened.ok()?);
        // While the command has the terminal, tenure is a background process, which the kernel
        // would stop when it changes the terminal or, depending on the terminal's modes, prints.
        sys::block(Signal::TTOU);
        Some(Self {
            modes: termios::tcgetattr(&device).ok(),
            device: Arc::new(device),
            lent: false,
            lend_again: false,
            paused: false,
        })
    }

    /// What the command has to do between fork and exec to start with the terminal; `None` if it
    /// starts without.
    pub(super) fn lend_at_start(&mut self) -> Option<impl Fn() -> io::Result<()> + use<>> {
        let shared = termios::isatty(io::stdin()) && termios::isatty(io::stdout());
        if !shared || self.holder() != Some(process::getpgrp()) {
            return None;
        }
        self.lent = true;
        let device = Arc::clone(&self.device);
        Some(move || Ok(termios::tcsetpgrp(&device, process::getpid())?))
    }

    /// The process group that has the terminal now.
    fn holder(&self) -> Option<Pid> {
        termios::tcgetpgrp(&self.device).ok()
    }

    fn lend(&mut self, group: Pid) {
        self.lent = termios::tcsetpgrp(&self.device, group).is_ok();
    }

    /// Takes the terminal back, and returns whether the command had it. A killed command may have
    /// left the terminal unusable (no echo, no line editing): with `reset`, its modes are restored.
    pub(super) fn take_back(&mut self, reset: bool) -> bool {
        if !std::mem::take(&mut self.lent) {
            return false;
        }
        let _ = termios::tcsetpgrp(&self.device, process::getpgrp());
        if let Some(modes) = self.modes.as_ref().filter(|_| reset) {
            let _ = termios::tcsetattr(&self.device, OptionalActions::Drain, modes);
        }
        true
    }

    /// Suspends the command before tenure itself.
    pub(super) fn suspend_with_command(&mut self, group: Pid) {
        if self.lent {
            // The command may clean up its screen first. Once it has stopped, tenure stops too.
            let _ = process::kill_process_group(group, Signal::TSTP);
            return;
        }
        self.paused = true;
        let _ = process::kill_process_group(group, Signal::STOP);
        if !suspend() {
            self.resumed(group);
        }
    }

    /// Handles a command that was stopped by `signal`: gives it the terminal, or stops along with
    /// it.
    pub(super) fn command_stopped(&mut self, group: Pid, signal: i32) {
        if self.paused {
            return;
        }
        if signal == Signal::TTIN.as_raw() || signal == Signal::TTOU.as_raw() {
            if self.holder() == Some(process::getpgrp()) {
                self.lend(group);
            }
            if self.holder() == Some(group) {
                let _ = process::kill_process_group(group, Signal::CONT);
                return;
            }
        }
        self.lend_again = self.take_back(false);
        // Without a shell that could continue tenure, Ctrl-Z has no effect, as usual.
        if !suspend() && signal == Signal::TSTP.as_raw() {
            self.resumed(group);
        }
    }

    /// Continues the command after tenure was continued, with the terminal if the command had it
    /// and the shell gave it to tenure.
    pub(super) fn resumed(&mut self, group: Pid) {
        self.paused = false;
        // The process that stopped tenure may have taken the terminal meanwhile.
        let had = std::mem::take(&mut self.lend_again) || self.lent;
        self.lent = had && self.holder() == Some(group);
        if had && self.holder() == Some(process::getpgrp()) {
            self.lend(group);
        }
        let _ = process::kill_process_group(group, Signal::CONT);
    }
}

/// Stops this process and its group, as Ctrl-Z does, until it is continued. Returns false at once
/// if there is no shell that could continue it.
///
/// Stop the commands first: they have groups of their own, and their leases lapse meanwhile.
pub fn suspend() -> bool {
    let group = process::getpgrp();
    let orphaned = match tree::processes() {
        Some(processes) => tree::is_orphaned(group, &processes),
        None => !parent_is_shell(group),
    };
    !orphaned && process::kill_current_process_group(Signal::STOP).is_ok()
}

/// Whether tenure's parent could continue it. It knows less than [`tree::is_orphaned`].
fn parent_is_shell(group: Pid) -> bool {
    let parent = process::getppid();
    parent.is_some()
        && process::getsid(parent) == process::getsid(None)
        && process::getpgid(parent).is_ok_and(|other| other != group)
}
