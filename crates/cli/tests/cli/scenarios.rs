//! Stories that whole tools were built around, told with tenure.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::json;

/// Runner A takes a task and crashes; its lease runs out; runner B finds it expired and claims it.
#[test]
fn a_task_whose_lock_expired_is_claimed() {
    let sandbox = Sandbox::new();
    sandbox.lapsed("task:T1", "--as runner-a --operation 'Task 1'");
    assert_snapshot!(sandbox.see_all(&[
        "tenure status task:T1 --as runner-b",
        "tenure acquire task:T1 --as runner-b --json",
        "tenure locks show T1",
        "tenure release task:T1 --as runner-a",
        "tenure events task:T1",
    ]));
}

/// The same with a crash that can be proved: nobody waits for the lease to run out.
#[test]
fn a_task_whose_runner_died_is_claimed_at_once() {
    let sandbox = Sandbox::new();
    sandbox.dead("task:T1", "--as runner-a");
    assert_snapshot!(sandbox.see_all(&[
        "tenure status task:T1",
        "tenure run task:T1 --as runner-b -- echo 'restarting Task 1'",
    ]));
}

/// A locked task: an interactive wait, a refusal to wait, and the same as JSON.
#[test]
fn a_task_that_another_runner_has() {
    let sandbox = Sandbox::new();
    let grant = sandbox.acquire("'task:Fix bug' --as f47ac10b --ttl 60m");
    assert_snapshot!(sandbox.see_all(&[
        "tenure run --no-wait 'task:Fix bug' --as b -- true",
        "tenure run --no-wait --json 'task:Fix bug' --as b -- true",
    ]));
    let screen = sandbox.terminal("tenure run 'task:Fix bug' --as b -- echo in_progress");
    screen.shows("you are next");
    sandbox.quietly(&format!("tenure release --grant {grant}"));
    assert_snapshot!("a_task_that_was_waited_for", screen.end());
}

#[test]
fn the_details_of_a_locked_task() {
    let sandbox = Sandbox::new();
    sandbox.acquire("task:a1b2 --as f47a");
    let seen = sandbox.quietly("tenure run -n --json task:a1b2 -- true || test $? = 6");
    let envelope: serde_json::Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(envelope["success"], false);
    assert_eq!(envelope["error"]["code"], "TASK_LOCKED");
    let details = &envelope["error"]["details"];
    assert_eq!(details["taskId"], "a1b2");
    assert_eq!(details["lockedBy"], "f47a");
    assert_eq!(details["runnerId"], details["lockedBy"]);
    assert!(details["expiresAt"].as_str().unwrap().ends_with('Z'), "{details}");
    assert_eq!(envelope["data"], json!(null));
}

/// Two runners in one section: the second waits until the first gives the section up.
#[test]
fn two_runners_in_one_section() {
    let sandbox = Sandbox::new();
    let section = sandbox.acquire("section:Backend --as runner-a");
    sandbox.acquire("task:1 --as runner-a");
    let other = sandbox.waiter("tenure acquire section:Backend --as runner-b");
    let story = sandbox.see_all(&[
        "tenure release task:1 --as runner-a",
        "tenure acquire task:2 --as runner-a --operation 'Task 2'",
        "tenure why section:Backend",
        "tenure release task:2 --as runner-a",
    ]);
    sandbox.quietly(&format!("tenure release --grant {section}"));
    assert_snapshot!(format!("{story}\n{}", other.ends_by_itself()));
}

/// The four commands of a lock around one folder: status, acquire, release, break.
#[test]
fn one_lock_for_a_folder_of_files() {
    let sandbox = Sandbox::new();
    let main = sandbox
        .background("tenure acquire --hold memory --as main --operation write:tasks.json --wait 5");
    main.printed("Lock acquired for: write:tasks.json");
    let while_held = sandbox.see_all(&[
        "tenure status memory --json",
        "tenure acquire memory --as heartbeat --operation heartbeat-check --wait 0.3",
        "tenure acquire memory --as heartbeat -n",
        "tenure release memory --as heartbeat",
    ]);
    main.signal(Signal::INT);
    let held = main.ends_by_itself();
    let after = sandbox.see_all(&[
        "tenure status memory --json",
        "tenure break memory --force --reason emergency",
    ]);
    assert_snapshot!(format!("{while_held}\n{held}\n{after}"));
}

/// A holder that crashed is replaced without anybody's help, and it is said why.
#[test]
fn a_crash_while_holding() {
    let sandbox = Sandbox::new();
    let main =
        sandbox.background("tenure acquire --hold memory --as main --operation update:tasks");
    main.printed("Lock acquired");
    main.signal(Signal::KILL);
    main.ends_by_itself();
    assert_snapshot!(sandbox.see_all(&[
        "tenure status memory",
        "tenure run -n memory --as heartbeat -- echo 'writing tasks.json'",
    ]));
}
