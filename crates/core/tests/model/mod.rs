//! Random histories of the rules against a simple model, and that every queue drains.
//!
//! `model/line.rs` says what should come of each step: it knows one ordered list of requests,
//! judges by brute force over a handful of places, and shares no code with the rules.
//! `model/history.rs` takes the same steps in both and compares them after each.
//!
//! Tasks, sections and files have a model of their own: `model/task_list.rs` says where each task
//! stands, `model/task_history.rs` plays workers that claim, finish, die and fall silent. A failure
//! prints the shortest list of steps that shows it.

mod drain;
mod history;
mod line;
mod steps;
mod task_history;
mod task_list;
mod task_steps;

use crate::support::View;
use history::History;
use proptest::prelude::*;
use steps::{Step, any_step, peaceful_step, step_of_the_careful};
use task_history::TaskHistory;
use task_steps::any_task_step;

/// The usual number of cases, which `PROPTEST_CASES` raises. Failures are kept nowhere: one that was
/// understood becomes a test of its own, with a name.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

fn play(view: View, steps: &[Step]) -> History {
    let mut history = History::new(view);
    for step in steps {
        history.take(step);
    }
    history
}

proptest! {
    #![proptest_config(config())]

    /// In each view the model tells what comes of each step, so the views agree with each other.
    #[test]
    fn the_rules_do_what_the_model_says_in_every_view(
        steps in prop::collection::vec(any_step(), 1..60)
    ) {
        let outcomes = |view| play(view, &steps).outcomes_unless_revived();
        let whole = outcomes(View::Whole);
        for view in &View::ALL[1..] {
            let part = outcomes(*view);
            prop_assert!(part.is_none() || whole.is_none() || part == whole, "{view:?}");
        }
    }

    /// Whatever happened, when holders release and waiters look again, everybody is served.
    #[test]
    fn every_waiter_that_stays_is_served(
        steps in prop::collection::vec(any_step(), 1..60),
        front in 1..4_usize,
    ) {
        for view in [View::Whole, View::Front(front)] {
            play(view, &steps).drain_by_looking_again();
        }
    }

    /// Where nobody dies and nothing lapses, nobody need ever look again without being woken.
    #[test]
    fn wakes_alone_drain_the_queue(
        steps in prop::collection::vec(peaceful_step(), 1..60),
        front in 1..4_usize,
    ) {
        for view in [View::Whole, View::Asked, View::Front(front)] {
            play(view, &steps).drain_by_wakes();
        }
    }

    /// Where everybody says what they keep while they wait, nobody waits for ever.
    #[test]
    fn refusing_cycles_prevents_every_deadlock(
        steps in prop::collection::vec(step_of_the_careful(), 1..60),
    ) {
        play(View::Whole, &steps).drain_while_waiters_keep();
    }

    /// Whatever workers do and whatever happens to them, each task stands where the list says, a
    /// claim is handed out only where it excludes nobody, and nothing counts that a worker says
    /// after it lost a part of its claim. In the end, no task was overlooked.
    #[test]
    fn tasks_stand_where_the_list_says(
        steps in prop::collection::vec(any_task_step(), 1..80)
    ) {
        for view in [View::Whole, View::Asked] {
            let mut history = TaskHistory::new(view);
            for step in &steps {
                history.take(step);
            }
            history.finish_everything();
        }
    }
}
