//! Task lists of other programs, worked on in place by those programs and by tenure at once.
//!
//! The other programs are in `foreign/`, written from the documented formats.

mod coordination;
mod place;
mod queue;

/// Refreshing a lock file is cut short in the tests of lock files.
const ELSEWHERE: &str = "lock-drafted";

#[test]
fn every_step_is_one_at_which_something_here_is_killed() {
    for step in tenure::store::DIALECT_STEPS {
        let here = coordination::STEPS.contains(step) || queue::STEPS.contains(step);
        assert!(here || queue::QUEUE_STEPS.contains(step) || *step == ELSEWHERE, "{step}");
    }
}
