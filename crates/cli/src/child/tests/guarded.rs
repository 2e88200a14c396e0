//! What the guardian does where tenure does nothing.

use super::*;

#[tokio::test]
async fn a_command_whose_lease_is_over_does_not_start() {
    let scratch = Scratch::new();
    let over = Lease(Duration::ZERO, LONG);
    let error = super::super::spawn(sh("echo $$ >$D/a", &scratch), over, LONG).unwrap_err();
    assert!(matches!(error, SpawnError::TooLate { .. }), "{error:?}");
    assert_eq!(error.exit_code(), 8);
    assert!(!scratch.path("a").exists());
    // Others start as before.
    let mut child = spawn(sh("echo $$ >$D/a", &scratch)).unwrap();
    assert_eq!(child.wait().await, Ended::Code(0));
}

#[tokio::test]
async fn a_command_is_ended_with_its_lease_although_tenure_does_nothing() {
    let scratch = Scratch::new();
    let short = || Lease(Duration::from_millis(300), Duration::from_millis(900));
    let polite =
        "trap 'echo $$ >$D/asked; exit 0' TERM; echo $$ >$D/a; while :; do sleep 0.01; done";
    let stubborn = "trap '' TERM; sleep 1000 & echo $! >$D/c; echo $$ >$D/b; wait";
    let _polite = super::super::spawn(sh(polite, &scratch), short(), LONG).unwrap();
    let _stubborn = super::super::spawn(sh(stubborn, &scratch), short(), LONG).unwrap();
    let mut free = spawn(sh("sleep 1000", &scratch)).unwrap();
    for name in ["a", "b", "c"] {
        let pid = scratch.pid(name);
        until("its end", || (!is_alive(pid)).then_some(()));
    }
    assert!(scratch.path("asked").exists());
    assert!(is_alive(free.pid()), "its lease goes on");
    assert!(free.stop(LONG).await.survivors.is_empty());
}

/// Tenure is stopped while it stops a command: the guardian ends the command before another may hold, and not
/// only when the grace period and some more is over.
#[tokio::test]
async fn a_command_that_tenure_does_not_go_on_to_stop_is_ended_with_its_lease() {
    let scratch = Scratch::new();
    let grace = Duration::from_millis(100);
    let lease = Lease(Duration::from_millis(300), Duration::from_millis(300));
    let stubborn = "trap '' TERM; echo $$ >$D/a; while :; do sleep 0.01; done";
    let mut first = super::super::spawn(sh(stubborn, &scratch), lease, grace).unwrap();
    let pid = scratch.pid("a");
    // It begins to stop it, and does no more.
    tokio::select! {
        biased;
        _ = first.stop(grace) => panic!("it ignores the signal"),
        () = std::future::ready(()) => {}
    }
    // Later than what is promised for the first, earlier than its grace period and a second.
    let lease = Lease(Duration::from_millis(800), Duration::from_millis(300));
    let polite = "trap 'echo $$ >$D/asked; exit 0' TERM; while :; do sleep 0.01; done";
    let _second = super::super::spawn(sh(polite, &scratch), lease, LONG).unwrap();
    scratch.pid("asked");
    assert!(!is_alive(pid), "it runs although another may hold");
}
