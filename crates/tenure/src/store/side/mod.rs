//! What lies beside a store that processes of one machine share: the queue of those who want to
//! write, and how they wake each other.

mod post;
mod turnstile;

pub(crate) use post::Post;
pub(crate) use turnstile::{Turnstile, unless_stopped};

use crate::store::StoreError;

/// Somebody is stopped while it writes, or while it is the next to write.
pub(crate) fn stopped(store: String, pid: u32) -> StoreError {
    StoreError::Unavailable {
        store,
        reason: format!("process {pid} was stopped while it wrote, and nobody else can write"),
        hint: Some(format!("Let it go on with `kill -CONT {pid}`, or end it; nothing was lost.")),
    }
}
