//! Stopping a command and everything it started, and nothing else.

use super::*;

/// Leaves a process that says who it is in `$D/NAME` and sleeps.
const HERE: &str = r#"here() { sh -c 'echo $$ >$D/'$1'; exec sleep 1000'; }; "#;

/// Stops what `script` started, after all of `names` have said who they are; all must be gone.
async fn everything_goes(script: &str, names: &[&str], grace: Duration) -> Stopped {
    let scratch = Scratch::new();
    let mut child = spawn(sh(&format!("{HERE}{script}"), &scratch)).unwrap();
    let mut pids: Vec<u32> = names.iter().map(|name| scratch.pid(name)).collect();
    pids.push(child.pid());
    let stopped = child.stop(grace).await;
    assert!(stopped.survivors.is_empty(), "{script}");
    let alive: Vec<&u32> = pids.iter().filter(|pid| is_alive(**pid)).collect();
    assert!(alive.is_empty(), "{script}: {alive:?} of {pids:?}");
    drop(child);
    for pid in pids {
        assert_eq!(state(pid), None, "{script}: {pid} was not collected");
    }
    stopped
}

#[tokio::test]
async fn the_real_child_of_a_shell_does_not_survive_it() {
    let stopped = everything_goes("here real; true", &["real"], LONG).await;
    assert_eq!(stopped.ended, Some(Ended::Signal(15)));
}

#[tokio::test]
async fn a_command_may_end_in_its_own_way() {
    let script = "trap 'exit 7' TERM; here real & wait";
    let stopped = everything_goes(script, &["real"], LONG).await;
    assert_eq!(stopped.ended, Some(Ended::Code(7)));
}

#[tokio::test]
async fn a_command_that_ignores_sigterm_is_killed() {
    let script = "trap '' TERM; here real; true";
    let stopped = everything_goes(script, &["real"], Duration::from_millis(50)).await;
    assert_eq!(stopped.ended, Some(Ended::Signal(9)));
}

#[tokio::test]
async fn without_grace_it_is_killed_at_once() {
    let script = "trap '' TERM; here real; true";
    let stopped = everything_goes(script, &["real"], Duration::ZERO).await;
    assert_eq!(stopped.ended, Some(Ended::Signal(9)));
}

#[tokio::test]
async fn a_stopped_command_is_continued_so_that_it_can_end() {
    let script = "trap 'exit 8' TERM; echo $$ >$D/self; kill -STOP $$; sleep 1000";
    let stopped = everything_goes(script, &["self"], LONG).await;
    assert_eq!(stopped.ended, Some(Ended::Code(8)));
}

#[tokio::test]
async fn those_that_left_the_group_go_too() {
    for script in [
        "setsid -f sh -c 'echo $$ >$D/a; exec sleep 1000'; sleep 1000",
        "(setsid sh -c 'echo $$ >$D/a; exec sleep 1000' &) ; sleep 1000",
        "(setsid sh -c '(setsid sh -c \"echo \\$\\$ >\\$D/a; exec sleep 1000\" &)' &); sleep 1000",
        "setsid -f sh -c 'setsid -f sh -c \"echo \\$\\$ >\\$D/a; sleep 1000; true\"'; sleep 1000",
        "bash -c 'set -m; here() { sh -c \"echo \\$\\$ >\\$D/a; exec sleep 1000\"; }; here & wait'",
    ] {
        everything_goes(script, &["a"], LONG).await;
    }
}

#[tokio::test]
async fn those_that_left_the_group_and_ignore_sigterm_are_killed() {
    let script = "setsid -f sh -c 'trap \"\" TERM; echo $$ >$D/a; sleep 1000; sleep 1000'; here b";
    everything_goes(script, &["a", "b"], Duration::from_millis(50)).await;
}

#[tokio::test]
async fn one_that_wiped_its_environment_goes_while_its_parent_is_known() {
    let script = "env -i D=$D setsid sh -c 'echo $$ >$D/a; exec sleep 1000'; true";
    everything_goes(script, &["a"], LONG).await;
}

#[tokio::test]
async fn those_that_start_others_all_the_time_go() {
    let script = "trap '' TERM; echo $$ >$D/a; while :; do setsid -f sleep 1000; done";
    everything_goes(script, &["a"], Duration::ZERO).await;
}

#[tokio::test]
async fn what_an_ended_command_left_running_stays_until_it_is_stopped() {
    let scratch = Scratch::new();
    let script = format!("{HERE} here a & (setsid sh -c 'echo $$ >$D/b; exec sleep 1000' &)");
    let mut child = spawn(sh(&script, &scratch)).unwrap();
    let left = [scratch.pid("a"), scratch.pid("b")];
    assert_eq!(child.wait().await, Ended::Code(0));
    assert!(left.iter().all(|pid| is_alive(*pid)));
    let stopped = child.stop(LONG).await;
    assert_eq!(stopped.ended, Some(Ended::Code(0)));
    assert!(!left.iter().any(|pid| is_alive(*pid)));
}

#[tokio::test]
async fn what_an_ended_command_left_running_is_left_alone_by_drop() {
    let scratch = Scratch::new();
    let mut child =
        spawn(sh("setsid -f sh -c 'echo $$ >$D/a; exec sleep 1000'", &scratch)).unwrap();
    assert_eq!(child.wait().await, Ended::Code(0));
    let left = scratch.pid("a");
    drop(child);
    assert!(is_alive(left));
    let left = rustix::process::Pid::from_raw(left as i32).unwrap();
    rustix::process::kill_process(left, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn another_command_and_its_orphans_are_left_alone() {
    let (first, second) = (Scratch::new(), Scratch::new());
    let script = "setsid -f sh -c 'echo $$ >$D/a; exec sleep 1000'; echo $$ >$D/b; exec sleep 1000";
    let mut one = spawn(sh(script, &first)).unwrap();
    let mut other = spawn(sh(script, &second)).unwrap();
    let gone = [first.pid("a"), first.pid("b")];
    let stay = [second.pid("a"), second.pid("b")];
    assert!(one.stop(LONG).await.survivors.is_empty());
    assert!(!gone.iter().any(|pid| is_alive(*pid)));
    assert!(stay.iter().all(|pid| is_alive(*pid)));
    assert!(other.stop(LONG).await.survivors.is_empty());
    assert!(!stay.iter().any(|pid| is_alive(*pid)));
}

#[tokio::test]
async fn dropping_a_running_command_kills_it_and_its_own() {
    let scratch = Scratch::new();
    let script = "setsid -f sh -c 'echo $$ >$D/a; exec sleep 1000'; sleep 1000; true";
    let child = spawn(sh(script, &scratch)).unwrap();
    let pids = [child.pid(), scratch.pid("a")];
    drop(child);
    until("their end", || (!pids.iter().any(|pid| is_alive(*pid))).then_some(()));
}

#[tokio::test]
async fn children_of_other_parts_of_tenure_are_not_collected() {
    let scratch = Scratch::new();
    let mut foreign = std::process::Command::new("true").spawn().unwrap();
    until("its end", || (state(foreign.id()) == Some('Z')).then_some(()));
    let mut child = spawn(sh("(setsid sleep 0.01 &); sleep 0.05", &scratch)).unwrap();
    assert_eq!(child.wait().await, Ended::Code(0));
    drop(child);
    assert!(foreign.wait().unwrap().success());
}
