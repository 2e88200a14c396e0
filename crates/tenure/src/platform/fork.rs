//! Lets a process with several threads fork: the child never inherits a lock that a thread held which
//! is not there any more.
//!
//! A forked process has a copy of all memory, but only the thread that forked. If another thread was
//! inside SQLite or held a mutex of the process at that moment, the child finds it locked for ever.
//! So code that takes such locks runs inside of [`inside`], for microseconds up to one write, and
//! never while it waits for another process. A fork waits until no thread is inside, and threads wait
//! to go inside until the fork is done.
//!
//! A kernel lock on a file is shared with the child through the inherited descriptor, and would
//! outlive its holder there: see [`OwnFile`].

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::ops::Deref;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// How long a fork waits for the threads inside. A write takes milliseconds; one that hangs on a
/// broken disk must not hang the fork too.
const PATIENCE: Duration = Duration::from_secs(10);

struct State {
    /// How many threads are inside.
    inside: usize,
    /// How many threads are about to fork.
    forking: usize,
    /// Descriptors of files that only this process uses.
    own_files: Vec<RawFd>,
}

// From the standard library, since these work in the child as they are; `parking_lot` keeps its
// waiting threads in a table of the process, which a fork may find locked.
static STATE: Mutex<State> = Mutex::new(State { inside: 0, forking: 0, own_files: Vec::new() });
static CHANGED: Condvar = Condvar::new();

/// The number of this process; 0 until it is asked for.
static PROCESS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// How often this thread has gone inside without having come out.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Keeps all other threads from changing the state while this one forks.
    static FORKING: RefCell<Option<MutexGuard<'static, State>>> = const { RefCell::new(None) };
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While it lives, no other thread forks.
pub(crate) struct Inside {
    /// It belongs to its thread.
    _not_send: std::marker::PhantomData<*const ()>,
}

/// Keeps other threads from forking for a moment. Waits for a fork that is on its way.
pub(crate) fn inside() -> Inside {
    let depth = DEPTH.get();
    if depth == 0 {
        let mut state = state();
        while state.forking > 0 {
            state = CHANGED.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.inside += 1;
    }
    DEPTH.set(depth + 1);
    Inside { _not_send: std::marker::PhantomData }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let depth = DEPTH.get() - 1;
        DEPTH.set(depth);
        if depth > 0 {
            return;
        }
        let mut state = state();
        state.inside -= 1;
        let is_awaited = state.forking > 0;
        drop(state);
        if is_awaited {
            CHANGED.notify_all();
        }
    }
}

/// A future that is polled and dropped inside, so that a fork falls between its steps.
pub(crate) struct BetweenForks<F> {
    future: Option<Pin<Box<F>>>,
}

/// Runs the steps of this future inside.
pub(crate) fn between_forks<F: Future>(future: F) -> BetweenForks<F> {
    BetweenForks { future: Some(Box::pin(future)) }
}

impl<F: Future> Future for BetweenForks<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _inside = inside();
        let future = self.future.as_mut().expect("a future is not polled after its end");
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            // What it held, such as the last handle of a store, is closed inside too.
            self.future = None;
        }
        polled
    }
}

impl<F> Drop for BetweenForks<F> {
    fn drop(&mut self) {
        if self.future.is_some() {
            let _inside = inside();
            self.future = None;
        }
    }
}

/// A file whose kernel locks are of this process alone. In a forked process the descriptor leads
/// nowhere, so that the kernel frees the locks when their holder dies, not when its children do.
#[derive(Debug)]
pub(crate) struct OwnFile(File);

impl OwnFile {
    pub(crate) fn new(file: File) -> OwnFile {
        state().own_files.push(file.as_raw_fd());
        OwnFile(file)
    }
}

impl Deref for OwnFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        let descriptor = self.0.as_raw_fd();
        let mut state = state();
        if let Some(at) = state.own_files.iter().position(|own| *own == descriptor) {
            state.own_files.swap_remove(at);
        }
    }
}

/// The number of this process, without a system call each time: it is asked for at every step of a
/// change.
pub(crate) fn process_id() -> u32 {
    match PROCESS.load(Ordering::Relaxed) {
        0 => {
            // From now on a child forgets the number of its parent.
            prepare_for_forks();
            let own = std::process::id();
            PROCESS.store(own, Ordering::Relaxed);
            own
        }
        known => known,
    }
}

/// Makes every later `fork` of this process wait for the moment in which no thread is inside.
#[expect(unsafe_code, reason = "only the C library can tell of a fork")]
pub(crate) fn prepare_for_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers are functions of this program and live as long as it does.
        unsafe {
            libc::pthread_atfork(Some(before_fork), Some(after_in_parent), Some(after_in_child));
        }
    });
}

extern "C" fn before_fork() {
    // A thread that forks while it is inside does not wait for itself.
    let own = usize::from(DEPTH.get() > 0);
    let deadline = Instant::now() + PATIENCE;
    let mut state = state();
    state.forking += 1;
    while state.inside > own {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let waited = CHANGED.wait_timeout(state, left);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    FORKING.with_borrow_mut(|forking| *forking = Some(state));
}

extern "C" fn after_in_parent() {
    let Some(mut state) = FORKING.take() else { return };
    state.forking -= 1;
    drop(state);
    CHANGED.notify_all();
}

extern "C" fn after_in_child() {
    PROCESS.store(0, Ordering::Relaxed);
    let Some(mut state) = FORKING.take() else { return };
    state.forking = 0;
    state.inside = usize::from(DEPTH.get() > 0);
    lead_nowhere(&state.own_files);
    state.own_files.clear();
}

/// Replaces descriptors, which closes the files here and leaves them open in the parent. The numbers
/// stay in use: what owns them in the copied memory may still close them.
#[expect(unsafe_code, reason = "the descriptors belong to values that are not at hand")]
fn lead_nowhere(descriptors: &[RawFd]) {
    if descriptors.is_empty() {
        return;
    }
    // SAFETY: the calls take open descriptors, and are allowed in a forked process.
    unsafe {
        let nowhere = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        for descriptor in descriptors {
            if nowhere == -1 || libc::dup2(nowhere, *descriptor) == -1 {
                libc::close(*descriptor);
                continue;
            }
            libc::fcntl(*descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        if nowhere != -1 {
            libc::close(nowhere);
        }
    }
}
