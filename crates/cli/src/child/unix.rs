//! A running command on Unix.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child as Process, Command, Stdio};
use std::time::Duration;

use rustix::process::{self, Pid, Signal, WaitId, WaitIdOptions};
#[cfg(target_os = "linux")]
use tokio::io::{Interest, unix::AsyncFd};
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};
use tokio::task::JoinHandle;

use super::guardian::{self, Trust, Ward};
use super::output::{self, Output};
use super::terminal::Terminal;
use super::tree::{self, MARK_VARIABLE, Tree};
use super::{ChildSpec, Ended, SpawnError, Stdin, Stdout, sys};

/// The result if another part of the program reaped the command: a failure.
const STATUS_UNKNOWN: Ended = Ended::Code(125);

/// A started command and the processes that it starts.
///
/// Its process is reaped only on drop, so that its pid, which is also the id of its group, cannot
/// be reused before. Dropping it while the command runs kills the command: a command must not run
/// without its lease being watched.
#[derive(Debug)]
#[must_use = "dropping it kills the command"]
pub struct Child {
    leader: Pid,
    pub(super) tree: Tree,
    pub(super) terminal: Option<Terminal>,
    pub(super) ended: Option<Ended>,
    /// Whether the command had the terminal when it ended.
    had_terminal: bool,
    stdout: Option<Output>,
    stderr: Option<Output>,
    feeder: Option<JoinHandle<()>>,
    /// Becomes readable when the command ends.
    #[cfg(target_os = "linux")]
    exit: Option<AsyncFd<OwnedFd>>,
    pub(super) ward: Option<Ward>,
    /// SIGCHLD: some child, or adopted orphan, ended or stopped.
    changes: Stream,
}

/// Starts the command of `spec` in a new process group, if its lease may be trusted at that moment. From
/// then on the command is ended in time, also where this process cannot do it: see
/// [`guardian`].
///
/// Call it on the main thread, within a Tokio runtime with I/O and time enabled: on Linux the
/// kernel kills the command when the thread that started it ends.
pub fn spawn(mut spec: ChildSpec, trust: impl Trust, grace: Duration) -> Result<Child, SpawnError> {
    let failed = |spec: &ChildSpec, error| SpawnError::from_attempt(spec, error);
    let ward = Ward::new(trust, grace).map_err(|error| failed(&spec, error))?;
    // Listen before the command exists, so that its end is not missed.
    let changes = signal(SignalKind::child()).map_err(|error| failed(&spec, error))?;
    tree::adopt_orphans();
    let mark = tree::new_mark();
    let mut terminal = spec.foreground.then(Terminal::open).flatten();
    let mut command = command(&mut spec, &mark, terminal.as_mut(), &ward);

    let mut leaders = tree::leaders();
    let mut process = match command.spawn() {
        Ok(process) => process,
        Err(error) => {
            terminal.map(|mut terminal| terminal.take_back(false));
            return Err(failed(&spec, error));
        }
    };
    let leader = Pid::from_child(&process);
    leaders.push(leader);
    drop(leaders);

    let mut child = Child {
        leader,
        tree: Tree::new(leader, mark),
        terminal,
        ended: None,
        had_terminal: false,
        stdout: None,
        stderr: None,
        feeder: None,
        #[cfg(target_os = "linux")]
        exit: exit_handle(leader),
        ward: Some(ward),
        changes,
    };
    // From here on a failure drops, and so kills, the child.
    let stdin = std::mem::replace(&mut spec.stdin, Stdin::Null);
    child.connect(&mut process, stdin).map_err(|error| failed(&spec, error))?;
    Ok(child)
}

/// Converts `spec` for the standard library.
fn command(
    spec: &mut ChildSpec,
    mark: &OsString,
    terminal: Option<&mut Terminal>,
    ward: &Ward,
) -> Command {
    let mut words = spec.command.iter();
    // An empty name is reported as not found.
    let mut command = Command::new(words.next().cloned().unwrap_or_default());
    command.args(words).process_group(0);
    command.envs(spec.environment.iter().map(|(name, value)| (name, value)));
    command.env(MARK_VARIABLE, mark);
    if let Some(directory) = &spec.directory {
        command.current_dir(directory);
    }
    command.stdin(spec.stdin.give());
    command.stdout(match spec.stdout {
        Stdout::Inherit => Stdio::inherit(),
        Stdout::Piped => Stdio::piped(),
    });
    command.stderr(match spec.stderr {
        Stdout::Inherit => Stdio::inherit(),
        Stdout::Piped => Stdio::piped(),
    });
    let shares_both = matches!(spec.stdin, Stdin::Inherit) && spec.stdout == Stdout::Inherit;
    let take_terminal = terminal.filter(|_| shares_both).and_then(Terminal::lend_at_start);
    prepare(&mut command, take_terminal, ward.enter());
    command
}

/// Sets what the new process does between fork and exec.
#[expect(unsafe_code, reason = "code between fork and exec is unsafe by nature")]
fn prepare(
    command: &mut Command,
    take_terminal: Option<impl Fn() -> io::Result<()> + Send + Sync + 'static>,
    enter: impl Fn() -> io::Result<()> + Send + Sync + 'static,
) {
    let parent = process::getpid();
    // SAFETY: the closure runs in the forked process, where only async-signal-safe calls are
    // allowed; it makes system calls on captured values and neither allocates nor locks.
    unsafe {
        command.pre_exec(move || {
            die_with(parent)?;
            if let Some(take_terminal) = &take_terminal {
                take_terminal()?;
            }
            // Tenure blocked it for itself, and masks survive exec.
            sys::unblock(Signal::TTOU);
            enter()
        });
    }
}

/// Lets the kernel kill this process when its parent dies.
#[cfg(target_os = "linux")]
fn die_with(parent: Pid) -> io::Result<()> {
    process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before that took effect; then there is no signal.
    if process::getppid() != Some(parent) {
        return Err(io::Error::from(rustix::io::Errno::SRCH));
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn die_with(_parent: Pid) -> io::Result<()> {
    Ok(())
}

/// A descriptor that becomes readable when `leader` ends; without one, SIGCHLD is used.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "tokio cannot check that a descriptor stays open")]
fn exit_handle(leader: Pid) -> Option<AsyncFd<OwnedFd>> {
    let handle = process::pidfd_open(leader, process::PidfdFlags::empty()).ok()?;
    // SAFETY: the handle is owned by the result, and nothing else closes it.
    unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) }.ok()
}

impl Child {
    /// The command's process id, which is also the id of its process group.
    pub fn pid(&self) -> u32 {
        self.leader.as_raw_pid().unsigned_abs()
    }

    /// The command's output, if it is [`Stdout::Piped`]; once.
    pub fn take_stdout(&mut self) -> Option<Output> {
        self.stdout.take()
    }

    /// The command's standard error, if it is piped; once.
    pub fn take_stderr(&mut self) -> Option<Output> {
        self.stderr.take()
    }

    /// Signals the command's process group; does nothing if it is gone or belongs to another user.
    pub fn signal(&self, signal: i32) {
        if let Some(signal) = Signal::from_named_raw(signal) {
            let _ = process::kill_process_group(self.leader, signal);
        }
    }

    /// Passes a signal that tenure received on to the command.
    ///
    /// [`SUSPEND`](super::SUSPEND) pauses both the command and tenure. On [`RESUME`](super::RESUME)
    /// the command continues, so check the lease before passing it on.
    pub fn pass_on(&mut self, signal: i32) {
        match (signal, self.terminal.as_mut()) {
            (super::SUSPEND, Some(terminal)) => terminal.suspend_with_command(self.leader),
            (super::SUSPEND, None) => {
                self.signal(Signal::STOP.as_raw());
                if !super::suspend() {
                    self.signal(super::RESUME);
                }
            }
            (super::RESUME, Some(terminal)) => terminal.resumed(self.leader),
            _ => self.signal(signal),
        }
    }

    /// Waits until the command itself has ended; processes that it left running continue.
    /// Cancel-safe.
    ///
    /// It must be polled all the time, because it also handles job control and reaps orphans.
    pub async fn wait(&mut self) -> Ended {
        loop {
            if let Some(ended) = self.look_for_end() {
                return ended;
            }
            self.look_for_stop();
            tree::reap_orphans();
            self.changed().await;
        }
    }

    /// Ends tenure in the way the command ended, if that was by Ctrl-C or Ctrl-\; otherwise
    /// returns.
    ///
    /// A shell script or loop stops at Ctrl-C only if the program *died* of it; after an exit code
    /// of 130 it continues. Call it last: nothing is released after it.
    pub fn die_of_same_signal(self) {
        let interrupts = [Signal::INT, Signal::QUIT];
        let died_of = |signal: &Signal| self.ended == Some(Ended::Signal(signal.as_raw()));
        let Some(signal) = interrupts.into_iter().find(died_of) else {
            return;
        };
        let had_terminal = self.had_terminal;
        drop(self);
        guardian::dismiss();
        let none = process::Rlimit { current: Some(0), maximum: Some(0) };
        // The command has already written a core dump if one was wanted.
        let _ = process::setrlimit(process::Resource::Core, none);
        sys::restore_default(signal);
        // The terminal signalled only the group that had it.
        let _ = match had_terminal {
            true => process::kill_current_process_group(signal),
            false => process::kill_process(process::getpid(), signal),
        };
    }

    /// Whether the command has ended. It is not reaped before drop.
    pub(super) fn look_for_end(&mut self) -> Option<Ended> {
        if self.ended.is_some() {
            return self.ended;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let ended = match process::waitid(WaitId::Pid(self.leader), options) {
            Ok(None) => return None,
            Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Ended::Code(code),
                (None, Some(signal)) => Ended::Signal(signal),
                (None, None) => STATUS_UNKNOWN,
            },
            Err(_) => STATUS_UNKNOWN,
        };
        self.ended = Some(ended);
        let killed = matches!(ended, Ended::Signal(_));
        if let Some(terminal) = &mut self.terminal {
            self.had_terminal = terminal.take_back(killed);
        }
        self.ended
    }

    /// Handles a stopped command that may use the terminal.
    fn look_for_stop(&mut self) {
        let Some(terminal) = &mut self.terminal else {
            return;
        };
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let status = process::waitid(WaitId::Pid(self.leader), options);
        if let Some(signal) = status.ok().flatten().and_then(|s| s.stopping_signal()) {
            terminal.command_stopped(self.leader, signal);
        }
    }

    /// Waits until the state of a process may have changed. Cancel-safe.
    #[cfg(target_os = "linux")]
    pub(super) async fn changed(&mut self) {
        let ended = async {
            match &self.exit {
                // A debugger can delay the notification; SIGCHLD arrives when it is done.
                Some(exit) => exit.readable().await.map(|mut ready| ready.clear_ready()),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = ended => {}
            _ = self.changes.recv() => {}
        }
    }

    /// Waits until the state of a process may have changed. Cancel-safe.
    #[cfg(not(target_os = "linux"))]
    pub(super) async fn changed(&mut self) {
        self.changes.recv().await;
    }

    /// Takes tenure's ends of the pipes.
    fn connect(&mut self, process: &mut Process, source: Stdin) -> io::Result<()> {
        let stdout = process.stdout.take().map(OwnedFd::from);
        self.stdout = stdout.map(Output::new).transpose()?;
        let stderr = process.stderr.take().map(OwnedFd::from);
        self.stderr = stderr.map(Output::new).transpose()?;
        if let (Some(pipe), Stdin::Bytes(bytes)) = (process.stdin.take(), source) {
            let pipe = pipe::Sender::from_owned_fd(OwnedFd::from(pipe))?;
            self.feeder = Some(tokio::spawn(output::feed(pipe, bytes)));
        }
        Ok(())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.look_for_end().is_none() {
            // Twice: the second look finds what started during the first.
            for _ in 0..2 {
                let members = self.tree.look(false);
                self.tree.signal(&members, Signal::KILL);
            }
            self.terminal.as_mut().map(|terminal| terminal.take_back(true));
        }
        if let Some(feeder) = &self.feeder {
            feeder.abort();
        }
        // Before the number of the group can be given out again.
        self.ward = None;
        // If it is not quite dead yet, it is reaped later as an orphan.
        let _ = process::waitpid(Some(self.leader), process::WaitOptions::NOHANG);
        tree::leaders().retain(|leader| *leader != self.leader);
        tree::reap_orphans();
    }
}
