//! Waits for a signal to shut down.

/// Resolves when SIGTERM, SIGHUP or SIGINT arrives, to the exit code for that signal. It listens
/// from the call on, not from the first poll, so that no signal is missed.
pub(crate) fn shutdown_signal() -> impl Future<Output = i32> {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
    let streams = kinds.map(signal);
    async {
        // If no handler could be installed, the signal ends the process by itself.
        let [Ok(mut terminate), Ok(mut hangup), Ok(mut interrupt)] = streams else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = terminate.recv() => 128 + 15,
            _ = hangup.recv() => 128 + 1,
            _ = interrupt.recv() => 128 + 2,
        }
    }
}
