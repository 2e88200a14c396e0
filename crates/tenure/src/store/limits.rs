//! What an engine can take, and how a change beyond it is refused.

use super::StoreError;
use std::time::Duration;
use tenure_core::{Change, Write};

/// The limits of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The shortest lease that it can keep.
    pub shortest_lease: Duration,
    /// The largest number of records that one change can write; none where there is no such limit.
    pub records_max: Option<usize>,
}

impl Limits {
    /// The limits of a store on this machine: it counts milliseconds, and takes a change of any size.
    pub const LOCAL: Limits =
        Limits { shortest_lease: Duration::from_millis(1), records_max: None };

    /// Refuses a change that the store cannot make whole. A store with limits calls this before it
    /// writes anything: a change is never split, because it must be made whole or not at all.
    pub fn check(&self, change: &Change) -> Result<(), StoreError> {
        let records = change.writes.len();
        if let Some(most) = self.records_max.filter(|most| records > *most) {
            return Err(StoreError::Unsupported {
                what: format!(
                    "this change writes {records} records, and the store takes {most} at once"
                ),
                instead: "Import or finish fewer tasks at a time.".to_owned(),
            });
        }
        let shortest = self.shortest_lease;
        let leases = change.writes.iter().filter_map(|write| match write {
            Write::Hold(hold) => Some(hold.ttl),
            Write::Extend { ttl, .. } => Some(*ttl),
            Write::Wait(waiter) | Write::KeepPlace(waiter) => Some(waiter.ttl),
            _ => None,
        });
        match leases.min() {
            Some(lease) if lease < shortest => Err(StoreError::Unsupported {
                what: format!(
                    "this lease lasts {lease:?}, and the store keeps none shorter than {shortest:?}"
                ),
                instead: "Ask for a longer lease.".to_owned(),
            }),
            _ => Ok(()),
        }
    }
}
