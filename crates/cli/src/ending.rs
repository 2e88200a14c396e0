//! Being asked to end.

/// Returns when the process is asked to end, with the code to end with. It listens from this call
/// on, so that it can be called before anything is changed or said.
#[cfg(unix)]
pub(crate) fn told_to_end() -> impl Future<Output = i32> {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
    let streams = kinds.map(signal);
    async {
        // What cannot be listened to ends the process by itself.
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

/// Returns when the process is asked to end, with the code to end with.
#[cfg(not(unix))]
pub(crate) async fn told_to_end() -> i32 {
    let _ = tokio::signal::ctrl_c().await;
    130
}
