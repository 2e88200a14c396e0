//! A worker function that panics fails its task, and nothing else.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use tenure_core::rules::tasks::Finish;

/// The future, with a panic turned into a failure. It is not polled again after one.
pub(super) async fn caught(work: impl Future<Output = Finish>) -> Finish {
    let mut work = pin!(work);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        polled.unwrap_or_else(|panic| {
            let reason = format!("the worker panicked: {}", message(&*panic));
            Poll::Ready(Finish::Fail { reason, retry: true })
        })
    })
    .await
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
