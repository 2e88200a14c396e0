//! What a client takes from the machine around it: time, sleep, tasks, randomness and processes.
//!
//! A client, its keeper, its workers and its swarms use nothing else of the machine, so that a test
//! can replace all of it. [`SystemWorld`] is the machine itself. [`VirtualWorld`] is for tests: an
//! hour passes in milliseconds, and the same seed gives the same run.

#[cfg(any(feature = "http", feature = "postgres", feature = "etcd"))]
mod background;
mod clock;
pub(crate) mod own_thread;
mod per_process;
mod system;
mod virtual_world;

#[cfg(any(feature = "http", feature = "postgres", feature = "etcd"))]
pub(crate) use background::background_runtime;
pub(crate) use clock::SuspendClock;
pub use clock::{Clock, ManualClock, SystemClock};
pub(crate) use per_process::PerProcess;
pub use system::SystemWorld;
pub use virtual_world::VirtualWorld;

use crate::platform::fork;
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tenure_core::{Evidence, GrantId, Group, Witness};

/// A future that a world runs or hands out.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Lets this process fork at any time, also while other threads are inside calls of a
/// [`blocking`](crate::blocking) client. From now on a `fork` waits until no thread is in the middle of
/// a step, which takes as long as one write at most; a thread that waits for a lock does not delay it.
///
/// What the child may do is the same as without this; see [`Client`](crate::Client). For programs that
/// embed the library where others fork, such as Python.
pub fn prepare_for_forks() {
    fork::prepare_for_forks();
}

/// Runs the steps of this future between forks; see [`prepare_for_forks`]. For futures that run on a
/// runtime of the caller's own. A step must not wait for a thread that may be about to fork.
pub fn between_forks<F: Future>(future: F) -> impl Future<Output = F::Output> + use<F> {
    fork::between_forks(future)
}

/// The machine and the process in which a client runs.
///
/// Every answer is about the process that asks: after `fork` the child gets its own.
pub trait World: Send + Sync {
    /// The clock that judges how long leases may be trusted.
    fn clock(&self) -> Arc<dyn Clock>;

    /// Returns after this time.
    fn sleep(&self, time: Duration) -> Task;

    /// Runs a task beside the caller, on the caller's runtime.
    fn spawn(&self, task: Task) -> TaskHandle;

    /// Runs a task that goes on while the caller's runtime is busy with long work.
    fn spawn_background(&self, task: Task) -> BackgroundTask;

    /// 128 random bits that cannot be guessed.
    fn random(&self) -> u128;

    /// The number of this process.
    fn process_id(&self) -> u32;

    /// Evidence for a lease that is tied to no process: where this process runs.
    fn this_machine(&self) -> Evidence;

    /// Evidence for this process. Where its start cannot be read, only for this boot.
    fn this_process(&self) -> Evidence;

    /// Evidence for a process of this machine, if there is one with this number.
    fn process(&self, pid: u32) -> Option<Evidence>;

    /// Evidence for the processes around this one, as far as they can be seen: each started the one
    /// before it, and may wait for it.
    fn processes_around(&self) -> Vec<Evidence>;

    /// The process group of this leader, which is a process of this machine.
    fn process_group(&self, leader: u32) -> Group;

    /// Judges who lives, as seen from this process. `ended_boots` are boots of this machine that are
    /// known to have ended.
    fn witness(&self, ended_boots: Vec<String>) -> Arc<dyn Witness + Send + Sync>;

    /// Returns when all that this evidence names has ended: the process, and the group if there is
    /// one.
    fn process_ended(&self, evidence: Evidence) -> Task;
}

impl dyn World {
    /// A new grant that cannot be guessed.
    pub(crate) fn new_grant(&self) -> GrantId {
        // The version that is usual for random ids, so that no grant looks like a redacted one.
        GrantId::from_bits(
            uuid::Builder::from_random_bytes(self.random().to_be_bytes()).into_uuid().as_u128(),
        )
    }

    /// Runs a future for at most this time.
    pub(crate) async fn timeout<T>(
        &self,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            done = future => Some(done),
            () = self.sleep(limit) => None,
        }
    }
}

/// A task that was spawned. Dropping it cancels the task.
#[must_use = "dropping a handle cancels its task"]
pub struct TaskHandle {
    cancel: Option<Box<dyn FnOnce() + Send>>,
}

impl TaskHandle {
    /// A handle that calls this when it is dropped.
    pub fn new(cancel: impl FnOnce() + Send + 'static) -> TaskHandle {
        TaskHandle { cancel: Some(Box::new(cancel)) }
    }
}

impl Drop for TaskHandle {
    fn drop(&mut self) {
        if let Some(cancel) = self.cancel.take() {
            cancel();
        }
    }
}

/// A background task. It goes on until it returns, whether or not this handle is dropped.
pub struct BackgroundTask {
    ended: Option<Mutex<mpsc::Receiver<()>>>,
}

impl BackgroundTask {
    /// A task whose end can be waited for: its sender is dropped then.
    pub fn new(ended: mpsc::Receiver<()>) -> BackgroundTask {
        BackgroundTask { ended: Some(Mutex::new(ended)) }
    }

    /// A task whose end is not waited for, because it runs on the thread that would wait.
    pub fn unobserved() -> BackgroundTask {
        BackgroundTask { ended: None }
    }

    /// Blocks this thread until the task has ended, or up to this limit.
    pub(crate) fn wait_for_end(&self, limit: Duration) {
        if let Some(ended) = &self.ended {
            let ended = ended.lock();
            let _ = ended.recv_timeout(limit);
        }
    }
}
