//! How often a task is handed out whose workers fall silent.

use crate::support::World;
use crate::support::tasks::*;
use tenure_core::Status;
use tenure_core::rules::tasks::{Finish, NewTask};

#[test]
fn a_task_is_tried_as_often_as_it_allows() {
    // How often it may be tried, how often it may be taken back, how often it is handed out.
    for (max_attempts, recoveries_max, tries) in
        [(1, 3, 1), (2, 3, 2), (3, 3, 3), (9, 3, 3), (9, 1, 1), (1, 1, 1), (5, 9, 5)]
    {
        let mut world = World::with(vec![NewTask { max_attempts, ..plain("a") }]);
        world.recoveries_max = recoveries_max;
        let mut handed_out = 0;
        while world.status("a") == Status::Pending && handed_out < 20 {
            world.claim("w", "a");
            handed_out += 1;
            world.pass(TTL);
            assert_eq!(world.recover().len(), 1);
        }
        let case = format!("{max_attempts} {recoveries_max}");
        assert_eq!((world.status("a"), handed_out), (Status::Blocked, tries), "{case}");
        assert_eq!(world.task("a").attempts, handed_out, "{case}");
    }
}

#[test]
fn failures_and_silence_count_together() {
    let mut world = World::with(vec![NewTask { max_attempts: 2, ..plain("a") }]);
    world.claim("w", "a");
    world.finish("w", "a", Finish::Fail { reason: "x".into(), retry: true });
    world.pass(TTL * 60);
    world.claim("w", "a");
    world.pass(TTL);
    world.recover();
    assert_eq!(world.status("a"), Status::Blocked);
    let error = world.task("a").error.clone().unwrap();
    assert_eq!(error, "its worker w died or fell silent, and that was attempt 2 of 2");
}
