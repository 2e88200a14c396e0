//! Blocks without the GIL, and notices Ctrl-C.

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
    let mut future = pin!(future);
    if !runs_signal_handlers() {
        return Ok(py.detach(|| client.run(future)));
    }
    loop {
        let step = async { tokio::time::timeout(SIGNAL_INTERVAL, future.as_mut()).await };
        match py.detach(|| client.run(step)) {
            Ok(done) => return Ok(done),
            Err(_) => py.check_signals()?,
        }
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
