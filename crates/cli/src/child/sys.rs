//! System calls that neither the standard library nor `rustix` offers safely.

use std::mem::MaybeUninit;
use std::ptr;

use rustix::process::Signal;

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

/// The first child that has ended but was not waited for; it is not reaped.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "rustix does not tell the pid that waitid found")]
pub(super) fn first_ended_child() -> Option<rustix::process::Pid> {
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
    rustix::process::Pid::from_raw(raw)
}
