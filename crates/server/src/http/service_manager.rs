//! Tells the service manager how the server is: `sd_notify`. Without one, nothing happens.

use crate::log::LOG;
use sd_notify::NotifyState;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Reports that the server listens, and keeps the watchdog content until the result is dropped.
pub(crate) fn ready(status: &str) -> Watchdog {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
    let task = sd_notify::watchdog_enabled().map(|limit| tokio::spawn(keep_content(limit)));
    Watchdog { task }
}

/// Reports that the server shuts down.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("Shutting down")]);
}

/// The task that reports to the watchdog; it ends on drop.
pub(crate) struct Watchdog {
    task: Option<JoinHandle<()>>,
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Reports twice as often as the watchdog demands: one report may be late.
async fn keep_content(limit: Duration) {
    let mut ticks = tokio::time::interval((limit / 2).max(Duration::from_millis(1)));
    loop {
        ticks.tick().await;
        tell(&[NotifyState::Watchdog]);
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(target: LOG, %error, "Cannot notify the service manager");
    }
}
