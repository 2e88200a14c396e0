//! Blocks without the GIL, and notices Ctrl-C.

use crate::self_waits::Warnings;
use pyo3::prelude::*;
use std::pin::pin;
use std::time::Duration;
use tenure::blocking::Client;

/// How often a thread that waits lets Python run its signal handlers: a person who presses Ctrl-C
/// takes this for at once, and it costs a quarter of a percent of a core.
pub(crate) const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Waits for a future without the GIL. If a signal handler raises, as that of Ctrl-C does, the future
/// is dropped, which leaves nothing held or queued, and the exception is returned.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    client: &Client,
    future: impl Future<Output = T> + Send,
) -> PyResult<T> {
    wait_with_warnings(py, client, future, &Warnings::default())
}

/// The same for a future that warns. If Python makes a warning an error, it ends the wait.
pub(crate) fn wait_with_warnings<T: Send>(
    py: Python<'_>,
    client: &Client,
    future: impl Future<Output = T> + Send,
    warnings: &Warnings,
) -> PyResult<T> {
    let mut future = pin!(future);
    let runs_signal_handlers = runs_signal_handlers();
    loop {
        let step = async {
            tokio::select! {
                biased;
                done = future.as_mut() => Some(done),
                () = warnings.arrived() => None,
                () = tokio::time::sleep(SIGNAL_INTERVAL), if runs_signal_handlers => None,
            }
        };
        let done = py.detach(|| client.run(step));
        warnings.give(py)?;
        if let Some(done) = done {
            return Ok(done);
        }
        py.check_signals()?;
    }
}

/// Whether Python runs signal handlers in this thread: only in the main one.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn runs_signal_handlers() -> bool {
    rustix::thread::gettid() == rustix::process::getpid()
}

/// Whether Python may run signal handlers in this thread.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn runs_signal_handlers() -> bool {
    true
}

/// A duration from seconds in Python, where `None` is for ever.
pub(crate) fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}
