//! Lending the terminal to a command and getting it back: job control.
//!
//! The command is in a process group of its own, and a terminal serves one group at a time. A
//! command that shares tenure's terminal for input and output is lent it from the start. Otherwise
//! tenure may be part of a pipeline whose other end uses the keyboard (`… | less`), so the
//! terminal stays where it is until the command asks for it by being stopped over it.
//!
//! When the command is stopped with Ctrl-Z, tenure and whoever shares its group stop as well, so
//! that the shell sees one stopped job, and `fg` continues both.

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
    /// How it was set before the command could change it.
    modes: Option<Termios>,
    lent: bool,
    /// It was lent when tenure was suspended, and is to be again.
    lend_again: bool,
    /// Tenure itself stopped the command, and is about to follow it.
    paused: bool,
}

impl Terminal {
    /// The controlling terminal, if there is one.
    pub(super) fn open() -> Option<Self> {
        let opened = fs::File::options().read(true).write(true).open("/dev/tty");
        let device = OwnedFd::from(opened.ok()?);
        // Lending it turns tenure into a background process, which would be stopped when it sets
        // the terminal or, depending on the terminal's settings, prints.
        sys::block(Signal::TTOU);
        Some(Self {
            modes: termios::tcgetattr(&device).ok(),
            device: Arc::new(device),
            lent: false,
            lend_again: false,
            paused: false,
        })
    }

    /// What the command is to do between fork and exec in order to start with the terminal; `None`
    /// if it should start without.
    pub(super) fn lend_at_start(&mut self) -> Option<impl Fn() -> io::Result<()> + use<>> {
        let shared = termios::isatty(io::stdin()) && termios::isatty(io::stdout());
        if !shared || self.holder() != Some(process::getpgrp()) {
            return None;
        }
        self.lent = true;
        let device = Arc::clone(&self.device);
        Some(move || Ok(termios::tcsetpgrp(&device, process::getpid())?))
    }

    /// The group that the terminal serves now.
    fn holder(&self) -> Option<Pid> {
        termios::tcgetpgrp(&self.device).ok()
    }

    fn lend(&mut self, group: Pid) {
        self.lent = termios::tcsetpgrp(&self.device, group).is_ok();
    }

    /// Ends the loan, if there is one, and says so. A command that was killed may have left the
    /// terminal unusable (no echo, no line editing): `reset` then sets it as it was.
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

    /// Tenure was asked to suspend itself: the command first.
    pub(super) fn suspend_with_command(&mut self, group: Pid) {
        if self.lent {
            // It may have something to tidy on the screen. Once it has stopped, so does tenure.
            let _ = process::kill_process_group(group, Signal::TSTP);
            return;
        }
        self.paused = true;
        let _ = process::kill_process_group(group, Signal::STOP);
        if !suspend() {
            self.resumed(group);
        }
    }

    /// The command was stopped by `signal`: lets it have what it asked for, or stops along with it.
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
        // Without a shell that could continue tenure, Ctrl-Z means nothing, as everywhere.
        if !suspend() && signal == Signal::TSTP.as_raw() {
            self.resumed(group);
        }
    }

    /// Tenure was continued: so is the command, with the terminal if it had it and the shell gave
    /// it to tenure.
    pub(super) fn resumed(&mut self, group: Pid) {
        self.paused = false;
        // Whoever stopped tenure from outside has taken the terminal meanwhile.
        let had = std::mem::take(&mut self.lend_again) || self.lent;
        self.lent = had && self.holder() == Some(group);
        if had && self.holder() == Some(process::getpgrp()) {
            self.lend(group);
        }
        let _ = process::kill_process_group(group, Signal::CONT);
    }
}

/// Stops this process and its group, as Ctrl-Z does, until somebody continues it. Returns false
/// at once if there is no shell that could.
///
/// Stop the commands first: they have groups of their own, and leases lapse meanwhile.
pub fn suspend() -> bool {
    let group = process::getpgrp();
    let orphaned = match tree::processes() {
        Some(processes) => tree::is_orphaned(group, &processes),
        None => !parent_is_shell(group),
    };
    !orphaned && process::kill_current_process_group(Signal::STOP).is_ok()
}

/// Whether tenure's own parent could continue it; less than [`tree::is_orphaned`] can tell.
fn parent_is_shell(group: Pid) -> bool {
    let parent = process::getppid();
    parent.is_some()
        && process::getsid(parent) == process::getsid(None)
        && process::getpgid(parent).is_ok_and(|other| other != group)
}
