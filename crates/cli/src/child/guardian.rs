//! The guardian: a small process beside tenure that ends commands when tenure cannot.
//!
//! It is forked before the first command, and shares some memory with tenure: for each command its
//! process group, and until when its lease may be trusted. It ends a group in two cases. Tenure has
//! ended and has not ended its command, as after SIGKILL: the kernel then kills the command itself, but
//! not what that started. Or the lease can be trusted no longer and tenure does not stop the command: it
//! is stopped itself, or hangs in a store on a broken disk. In both, the next holder would run beside
//! what is left of the command.
//!
//! It cannot be told by a signal, leads a session of its own so that signals for tenure's group do not
//! reach it, and ends with tenure. If it is killed itself, another one goes on when the next command starts.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{self, Pid, Signal};
use rustix::time::{ClockId, clock_gettime};

use super::sys;

/// For how long the lease of a command may be trusted.
pub trait Trust: Send + Sync + 'static {
    /// The time left.
    fn left(&self) -> Duration;

    /// How long after that another may hold: the command must have ended by then.
    fn margin(&self) -> Duration;

    /// Whether the time goes on while the machine sleeps.
    fn counts_suspend(&self) -> bool;

    /// Calls the watcher when the time left has changed, for as long as the caller keeps it.
    fn watch(&self, watcher: &Arc<dyn Fn() + Send + Sync>);
}

impl Trust for tenure::Trust {
    fn left(&self) -> Duration {
        tenure::Trust::left(self)
    }

    fn margin(&self) -> Duration {
        tenure::Trust::margin(self)
    }

    fn counts_suspend(&self) -> bool {
        tenure::Trust::counts_suspend(self)
    }

    fn watch(&self, watcher: &Arc<dyn Fn() + Send + Sync>) {
        tenure::Trust::watch(self, watcher);
    }
}

/// How many commands one tenure can run at once.
const COMMANDS_MAX: usize = 4096;

/// How long tenure may take to notice itself that trust has ended.
const NOTICE: Duration = Duration::from_millis(100);

/// How much longer than a grace period that ends after the margin a command that tenure stops may take before
/// the guardian kills it.
const LATE: Duration = Duration::from_secs(1);

/// The error number of a command whose lease was over before it could start.
pub(super) const TOO_LATE: i32 = libc::ETIME;

/// The stages of a command: it runs, tenure stops it, the guardian asked it to end, and it was killed.
const RUNS: u32 = 0;
const STOPPED_BY_TENURE: u32 = 1;
const ASKED_TO_END: u32 = 2;
const KILLED: u32 = 3;

/// One command, in the shared memory.
#[repr(C)]
struct Slot {
    is_taken: AtomicBool,
    counts_suspend: AtomicBool,
    stage: AtomicU32,
    /// The command's process group; 0 before it starts.
    group: AtomicI32,
    /// Until when the lease may be trusted, in nanoseconds on its clock.
    trusted_until: AtomicU64,
    /// How long after that another may hold, in nanoseconds.
    margin: AtomicU64,
    /// How long tenure lets the command end by itself, in nanoseconds.
    grace: AtomicU64,
}

impl Slot {
    fn now(&self) -> u64 {
        now(self.counts_suspend.load(Ordering::SeqCst))
    }

    fn group(&self) -> Option<Pid> {
        Pid::from_raw(self.group.load(Ordering::SeqCst))
    }

    /// Notes for how long the lease may be trusted; says whether that is less than before.
    fn note(&self, trust: &dyn Trust) -> bool {
        // Read first: a stop of this process in between must not make the time longer.
        let now = self.now();
        let until = now.saturating_add(nanoseconds(trust.left()));
        self.trusted_until.swap(until, Ordering::SeqCst) > until
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group() {
            let _ = process::kill_process_group(group, signal);
        }
    }

    /// Ends the command if it is time to. Returns for how long nothing is to be done.
    fn look(&self) -> Option<u64> {
        let load = |number: &AtomicU64| number.load(Ordering::SeqCst);
        let (margin, grace) = (load(&self.margin), load(&self.grace));
        let stage = self.stage.load(Ordering::SeqCst);
        let (wait, next, signal) = match stage {
            RUNS => (nanoseconds(NOTICE).min(margin / 10), ASKED_TO_END, Signal::TERM),
            // It has to be gone before another may hold, unless it was given a longer time to end.
            STOPPED_BY_TENURE if grace > margin => {
                (grace.saturating_add(nanoseconds(LATE)), KILLED, Signal::KILL)
            }
            ASKED_TO_END | STOPPED_BY_TENURE => (margin - margin / 10, KILLED, Signal::KILL),
            _ => return None,
        };
        let at = load(&self.trusted_until).saturating_add(wait);
        let left = at.saturating_sub(self.now());
        if left == 0 {
            let stage =
                self.stage.compare_exchange(stage, next, Ordering::SeqCst, Ordering::SeqCst);
            if stage.is_ok() {
                self.signal(signal);
                self.signal(Signal::CONT);
            }
        }
        Some(left)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn now(counts_suspend: bool) -> u64 {
    #[cfg(target_os = "linux")]
    let with_suspend = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let with_suspend = ClockId::Monotonic;
    let now = clock_gettime(if counts_suspend { with_suspend } else { ClockId::Monotonic });
    let (seconds, rest) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// What tenure and its guardian both see. All zero, it has no command.
#[repr(C)]
struct Shared {
    /// Slots from this one on were never used.
    used: AtomicU32,
    slots: [Slot; COMMANDS_MAX],
}

impl Shared {
    /// Maps memory that this process shares with those that it forks. It is never unmapped.
    #[expect(unsafe_code, reason = "memory that processes share is outside of the language")]
    fn map() -> io::Result<&'static Shared> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: it is a new mapping, at an address that the kernel chooses: large enough, aligned to
        // a page, and zeroed, which is a valid value of all atomics. It lives until the process ends.
        unsafe {
            let memory = libc::mmap(std::ptr::null_mut(), size_of::<Shared>(), access, kind, -1, 0);
            if memory == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            Ok(&*memory.cast())
        }
    }

    fn take(&'static self) -> io::Result<&'static Slot> {
        let is_free = |slot: &&Slot| !slot.is_taken.swap(true, Ordering::SeqCst);
        let (index, slot) = (self.slots.iter().enumerate().find(|(_, slot)| is_free(slot)))
            .ok_or_else(|| io::Error::from(io::ErrorKind::QuotaExceeded))?;
        self.used.fetch_max(index as u32 + 1, Ordering::SeqCst);
        Ok(slot)
    }

    fn used(&self) -> &[Slot] {
        let used = self.used.load(Ordering::SeqCst) as usize;
        &self.slots[..used.min(COMMANDS_MAX)]
    }

    /// Ends the commands whose time is over. Returns for how long nothing is to be done.
    fn look(&self) -> Option<u64> {
        self.used().iter().filter(|slot| slot.group().is_some()).filter_map(Slot::look).min()
    }
}

/// What tenure knows of its guardian.
struct Guardian {
    shared: &'static Shared,
    process: Pid,
    /// What the guardian reads. Tenure has it open too: so writing never ends tenure or a command with a
    /// signal because no guardian reads, and the next guardian gets it.
    ear: OwnedFd,
    /// The guardian looks anew at each byte, and ends what is left when this is closed.
    line: OwnedFd,
}

static GUARDIAN: Mutex<Option<Guardian>> = Mutex::new(None);

impl Guardian {
    fn start() -> io::Result<Guardian> {
        let shared = Shared::map()?;
        let (ear, line) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let process = Guardian::fork(shared, &ear)?;
        Ok(Guardian { shared, process, ear, line })
    }

    fn fork(shared: &'static Shared, ear: &OwnedFd) -> io::Result<Pid> {
        let ear = ear.as_raw_fd();
        sys::fork_bare()?.map_or_else(|| guard(shared, ear), Ok)
    }

    /// Starts another process in the place of one that was killed. It watches the same commands.
    fn replace_if_ended(&mut self) -> io::Result<()> {
        let ended = process::waitpid(Some(self.process), process::WaitOptions::NOHANG);
        // Without such a child, something else has waited for it.
        if matches!(ended, Ok(None)) {
            return Ok(());
        }
        self.process = Guardian::fork(self.shared, &self.ear)?;
        Ok(())
    }
}

/// What the guardian does. It runs in a copy of a process whose other threads are missing, so it only
/// makes system calls.
fn guard(shared: &Shared, ear: RawFd) -> ! {
    sys::leave_parent(ear, c"guards-commands");
    loop {
        let pause = shared.look();
        if sys::has_ended(ear, pause) {
            shared.used().iter().for_each(|slot| slot.signal(Signal::KILL));
            sys::exit_bare();
        }
    }
}

/// Ends the guardian when tenure ends by itself. What still runs ends with it.
pub fn dismiss() {
    let Some(Guardian { process, line, .. }) = GUARDIAN.lock().take() else { return };
    drop(line);
    // Not left to an init that does not collect the dead.
    let _ = process::waitpid(Some(process), process::WaitOptions::empty());
}

/// A command that the guardian watches, until it is dropped.
pub(super) struct Ward {
    slot: &'static Slot,
    line: RawFd,
    /// Whether the slot is this command's: a watcher may be called a moment too late.
    is_ours: Arc<Mutex<bool>>,
    _watcher: Arc<dyn Fn() + Send + Sync>,
}

impl Ward {
    /// Prepares the guardian to watch a command that is about to start.
    pub(super) fn new(trust: impl Trust, grace: Duration) -> io::Result<Ward> {
        let mut guardian = GUARDIAN.lock();
        let watching = match &mut *guardian {
            Some(watching) => {
                watching.replace_if_ended()?;
                watching
            }
            none => none.insert(Guardian::start()?),
        };
        let slot = watching.shared.take()?;
        let line = watching.line.as_raw_fd();
        drop(guardian);
        slot.counts_suspend.store(trust.counts_suspend(), Ordering::SeqCst);
        slot.margin.store(nanoseconds(trust.margin()), Ordering::SeqCst);
        slot.grace.store(nanoseconds(grace), Ordering::SeqCst);
        slot.stage.store(RUNS, Ordering::SeqCst);
        let trust = Arc::new(trust);
        let is_ours = Arc::new(Mutex::new(true));
        let watcher: Arc<dyn Fn() + Send + Sync> = {
            let (is_ours, trust) = (is_ours.clone(), trust.clone());
            Arc::new(move || {
                let is_ours = is_ours.lock();
                if *is_ours && slot.note(&*trust) {
                    wake(line);
                }
            })
        };
        // First, so that no renewal after the look is missed.
        trust.watch(&watcher);
        watcher();
        Ok(Ward { slot, line, is_ours, _watcher: watcher })
    }

    /// What the new process does last between fork and exec: it enters itself as the command, and
    /// fails if its lease is over by now.
    pub(super) fn enter(&self) -> impl Fn() -> io::Result<()> + Send + Sync + use<> {
        let (slot, line) = (self.slot, self.line);
        move || {
            slot.group.store(process::getpid().as_raw_pid(), Ordering::SeqCst);
            // Not left to tenure, which may be stopped at this moment.
            wake(line);
            match slot.now() < slot.trusted_until.load(Ordering::SeqCst) {
                true => Ok(()),
                false => Err(io::Error::from_raw_os_error(TOO_LATE)),
            }
        }
    }

    /// Leaves it to tenure to stop the command, within the grace period.
    pub(super) fn is_stopped_by_tenure(&self) {
        self.slot.stage.store(STOPPED_BY_TENURE, Ordering::SeqCst);
    }
}

/// Has the guardian look anew. Only system calls: it is called between fork and exec too.
fn wake(line: RawFd) {
    sys::write_byte(line);
}

impl std::fmt::Debug for Ward {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ward").finish_non_exhaustive()
    }
}

impl Drop for Ward {
    fn drop(&mut self) {
        *self.is_ours.lock() = false;
        self.slot.group.store(0, Ordering::SeqCst);
        self.slot.trusted_until.store(0, Ordering::SeqCst);
        self.slot.is_taken.store(false, Ordering::SeqCst);
    }
}
