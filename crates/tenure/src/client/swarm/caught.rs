//! A worker function that panics fails its task, and nothing else.

use futures_util::FutureExt;
use std::any::Any;
use std::panic::AssertUnwindSafe;
use tenure_core::rules::tasks::Finish;

/// Runs a worker's future and turns a panic in it into a failure of its task.
pub(super) async fn caught(work: impl Future<Output = Finish>) -> Finish {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| {
        let reason = format!("the worker panicked: {}", message(&*panic));
        Finish::Fail { reason, retry: true }
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
