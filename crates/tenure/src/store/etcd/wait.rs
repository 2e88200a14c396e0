//! Waiting for a change.

use super::handle::Handle;
use crate::store::StoreError;
use std::time::Duration;
use tenure_core::Revision;
use tokio::time::{Instant, timeout_at};

/// Longer than any caller waits.
const FOR_EVER: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

impl Handle {
    /// Returns the newest revision as soon as it is beyond `since`, or when patience ends.
    pub(super) async fn wait_for_change(
        &self,
        since: Revision,
        patience: Duration,
    ) -> Result<Revision, StoreError> {
        let end = Instant::now() + patience.min(FOR_EVER);
        loop {
            if !patience.is_zero() {
                // Before the look, so that no change after it is missed.
                let opened = self.watches.open_head(self).await;
                opened.map_err(|failure| self.connection.unwritten(failure))?;
            }
            let known = self.watches.newest();
            let base = self.base().await.map_err(|failure| self.connection.unwritten(failure))?;
            if base.head > since || Instant::now() >= end {
                return Ok(base.head);
            }
            let next_look = end.min(Instant::now() + self.poll_interval.min(FOR_EVER));
            let _ = timeout_at(next_look, self.watches.beyond(since.max(base.head), known)).await;
        }
    }
}
