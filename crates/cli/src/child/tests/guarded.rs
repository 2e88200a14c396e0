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
