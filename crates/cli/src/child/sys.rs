//! System calls that neither the standard library nor `rustix` offers safely.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr;

use rustix::process::{Pid, Signal};

/// Whether this process ignores `signal`, as under `nohup`.
#[expect(unsafe_code, reason = "rustix has no sigaction")]
pub(super) fn is_ignored(signal: Signal) -> bool {
    let mut current = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: no new action is given, so nothing changes; `current` is valid for writes, and
    // all-zero bytes are a valid `sigaction` in case the call fails.
    let current = unsafe {
        libc::sigaction(signal.as_raw(), ptr::null(), current.as_mut_ptr());
        current.assume_init()
    };
    current.sa_sigaction == libc::SIG_IGN
}

/// Restores the default effect of `signal` and unblocks it.
#[expect(unsafe_code, reason = "rustix has no sigaction")]
pub(super) fn restore_default(signal: Signal) {
    // SAFETY: the default action runs no code of ours.
    unsafe { libc::signal(signal.as_raw(), libc::SIG_DFL) };
    change_mask(libc::SIG_UNBLOCK, signal);
}

/// Blocks `signal` on this thread and on threads that it starts.
pub(super) fn block(signal: Signal) {
    change_mask(libc::SIG_BLOCK, signal);
}

/// Undoes [`block`]. Safe to call between fork and exec.
pub(super) fn unblock(signal: Signal) {
    change_mask(libc::SIG_UNBLOCK, signal);
}

#[expect(unsafe_code, reason = "rustix has no signal masks")]
fn change_mask(how: libc::c_int, signal: Signal) {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `set` is initialised by `sigemptyset` before it is read, and the calls keep no
    // pointer. All three are async-signal-safe. They fail only on invalid numbers.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal.as_raw());
        libc::pthread_sigmask(how, set.as_ptr(), ptr::null_mut());
    }
}

/// Forks without what the C library does at a fork: the new process has only one thread, may make system
/// calls and do nothing else, and gets no signals. Returns its id, and `None` in it.
#[expect(unsafe_code, reason = "a fork is unsafe by nature")]
pub(super) fn fork_bare() -> io::Result<Option<Pid>> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the sets are initialised before they are read. The new process has a copy of all memory;
    // the caller makes sure that it uses neither locks nor the heap.
    let forked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        // The C library's own fork waits for other threads, one of which may hang in a store.
        #[cfg(target_os = "linux")]
        let forked = libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t;
        #[cfg(not(target_os = "linux"))]
        let forked = libc::fork();
        if forked != 0 {
            let error = io::Error::last_os_error();
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
            if forked < 0 {
                return Err(error);
            }
        }
        forked
    };
    Ok(Pid::from_raw(forked))
}

/// Has a forked process share nothing with its parent but this descriptor: not the session, the folder
/// or a file, which the parent's readers would otherwise wait for.
#[expect(unsafe_code, reason = "the descriptors belong to values of the parent")]
pub(super) fn leave_parent(kept: RawFd, name: &CStr) {
    // SAFETY: system calls on numbers, a path and a name; nothing in this process uses the closed
    // descriptors.
    unsafe {
        libc::setsid();
        libc::chdir(c"/".as_ptr());
        #[cfg(target_os = "linux")]
        {
            libc::prctl(libc::PR_SET_NAME, name.as_ptr());
            let close = |first: RawFd, last: libc::c_uint| {
                libc::syscall(libc::SYS_close_range, first, last, 0) == 0
            };
            if close(kept + 1, libc::c_uint::MAX)
                && (kept == 0 || close(0, kept.cast_unsigned() - 1))
            {
                return;
            }
        }
        let _ = name;
        for descriptor in 0..libc::getdtablesize() {
            if descriptor != kept {
                libc::close(descriptor);
            }
        }
    }
}

/// Waits on a pipe for this many nanoseconds at most, for ever without a number, and reads what is there.
/// Returns whether its other end was closed.
#[expect(unsafe_code, reason = "the descriptor belongs to a value of the parent")]
pub(super) fn has_ended(pipe: RawFd, nanoseconds: Option<u64>) -> bool {
    let milliseconds = nanoseconds.map_or(-1, |time| {
        libc::c_int::try_from(time.div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX)
    });
    let mut wanted = libc::pollfd { fd: pipe, events: libc::POLLIN, revents: 0 };
    let mut bytes = [0_u8; 64];
    // SAFETY: both calls write at most as much as their arguments have room for.
    unsafe {
        libc::poll(&raw mut wanted, 1, milliseconds);
        match libc::read(pipe, bytes.as_mut_ptr().cast(), bytes.len()) {
            0 => true,
            1.. => false,
            _ => io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock,
        }
    }
}

/// Writes a byte into a pipe, if there is room: what is there already is a sign as well.
#[expect(unsafe_code, reason = "called between fork and exec")]
pub(super) fn write_byte(pipe: RawFd) {
    // SAFETY: it reads one byte that is there.
    unsafe { libc::write(pipe, [0_u8].as_ptr().cast(), 1) };
}

/// Ends this process without running anything of the program.
#[expect(unsafe_code, reason = "nothing of the parent may run in a forked process")]
pub(super) fn exit_bare() -> ! {
    // SAFETY: it does not return.
    unsafe { libc::_exit(0) }
}

/// The first child that has ended but was not waited for; it is not reaped.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "rustix does not tell the pid that waitid found")]
pub(super) fn first_ended_child() -> Option<Pid> {
    let mut found = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `found` is valid for writes and zeroed, which is a valid `siginfo_t`; with WNOHANG
    // the kernel leaves the pid zero if there is none. `si_pid` is set for every other answer.
    let raw = unsafe {
        if libc::waitid(libc::P_ALL, 0, found.as_mut_ptr(), options) != 0 {
            return None;
        }
        found.assume_init().si_pid()
    };
    Pid::from_raw(raw)
}
