//! This test binary as a small tenure of its own: it runs one command and passes signals on.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// Set to the script to run: then [`tenure`] is no test but a program.
const SCRIPT: &str = "TENURE_TEST_SCRIPT";

/// Runs the script as `tenure run` would, and ends as it did.
#[tokio::test]
async fn tenure() {
    let Some(script) = std::env::var_os(SCRIPT) else {
        return;
    };
    let mut signals = Signals::listen().unwrap();
    // A script that is a path is run as such, to see what happens if it is not there.
    let words = match script.to_str() {
        Some(path) if path.starts_with('/') => vec![script],
        _ => vec!["sh".into(), "-c".into(), script],
    };
    let spawned = spawn(ChildSpec { foreground: true, ..ChildSpec::new(words) });
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => exit(error.exit_code()),
    };
    let code = child.wait_passing_on(&mut signals).await.exit_code();
    child.die_of_same_signal();
    exit(code);
}

#[expect(clippy::exit, clippy::disallowed_methods, reason = "a program, not a test")]
fn exit(code: i32) -> ! {
    std::process::exit(code)
}

/// The words that start this binary as that program.
pub(super) fn words() -> Vec<OsString> {
    let mut words = vec![std::env::current_exe().unwrap().into_os_string()];
    let rest = "--exact child::tests::role::tenure --nocapture --quiet --test-threads=1";
    words.extend(rest.split(' ').map(OsString::from));
    words
}

/// That program, about to run `script`.
pub(super) fn tenure_running(script: &str, scratch: &Scratch) -> Command {
    let words = words();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command.env(SCRIPT, script).env("D", scratch.folder.path());
    command.stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::null());
    heed_interrupts(&mut command);
    command
}

/// Has `command` start with Ctrl-C in effect, which it is not for what is started in the
/// background, as these tests may be.
#[expect(unsafe_code, reason = "code between fork and exec is unsafe by nature")]
pub(super) fn heed_interrupts(command: &mut Command) {
    // SAFETY: a few system calls, no allocation, no lock.
    unsafe {
        command.pre_exec(|| {
            sys::restore_default(Signal::INT);
            sys::restore_default(Signal::QUIT);
            Ok(())
        });
    }
}

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

#[test]
fn the_command_dies_with_a_tenure_that_is_killed() {
    let scratch = Scratch::new();
    let mut tenure = tenure_running("echo $$ >$D/a; exec sleep 1000", &scratch);
    let mut tenure = tenure.spawn().unwrap();
    let command = scratch.pid("a");
    tenure.kill().unwrap();
    tenure.wait().unwrap();
    until("its end", || (!is_alive(command)).then_some(()));
}

#[tokio::test]
async fn what_a_killed_inner_tenure_left_is_reached_by_the_outer_one() {
    let scratch = Scratch::new();
    let detached = "setsid -f sh -c 'echo $$ >$D/a; exec sleep 1000'";
    let script = format!("{detached}; echo $PPID >$D/inner; exec sleep 1000");
    let mut outer = spawn(ChildSpec {
        environment: vec![
            (SCRIPT.into(), script.into()),
            ("D".into(), scratch.folder.path().into()),
        ],
        stdin: Stdin::Null,
        ..ChildSpec::new(words())
    })
    .unwrap();
    let left = scratch.pid("a");
    send(scratch.pid("inner"), Signal::KILL);
    assert_eq!(outer.wait().await, Ended::Signal(9));
    assert!(is_alive(left));
    assert!(outer.stop(LONG).await.survivors.is_empty());
    assert!(!is_alive(left));
}

#[test]
fn orphans_that_end_are_collected_while_the_command_runs() {
    let scratch = Scratch::new();
    let script = "(setsid sh -c 'echo $$ >$D/a; sleep 0.1' &); echo $$ >$D/b; exec sleep 1000";
    let mut tenure = tenure_running(script, &scratch).spawn().unwrap();
    let (orphan, command) = (scratch.pid("a"), scratch.pid("b"));
    until("its end without a trace", || state(orphan).is_none().then_some(()));
    assert!(is_alive(command));
    send(tenure.id(), Signal::TERM);
    assert_eq!(tenure.wait().unwrap().code(), Some(143));
}

#[test]
fn signals_reach_the_command_and_do_not_end_tenure() {
    let scratch = Scratch::new();
    let script = r#"
        for s in INT TERM HUP QUIT USR1 USR2 WINCH; do trap "echo 1 >$D/$s" $s; done
        trap 'exit 42' PIPE
        echo $$ >$D/a
        while :; do sleep 0.01; done"#;
    let mut tenure = tenure_running(script, &scratch).spawn().unwrap();
    let command = scratch.pid("a");
    for (signal, name) in [
        (Signal::INT, "INT"),
        (Signal::TERM, "TERM"),
        (Signal::HUP, "HUP"),
        (Signal::QUIT, "QUIT"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
        (Signal::WINCH, "WINCH"),
    ] {
        send(tenure.id(), signal);
        scratch.pid(name);
    }
    send(command, Signal::PIPE);
    assert_eq!(tenure.wait().unwrap().code(), Some(42));
}

#[test]
fn a_signal_reaches_the_whole_group() {
    let scratch = Scratch::new();
    let script = "trap : USR1
        sh -c 'trap \"exit 9\" USR1; echo $$ >$D/a; while :; do sleep 0.01; done' &
        wait $!; wait $!";
    let mut tenure = tenure_running(script, &scratch).spawn().unwrap();
    scratch.pid("a");
    send(tenure.id(), Signal::USR1);
    assert_eq!(tenure.wait().unwrap().code(), Some(9));
}

#[test]
fn what_was_ignored_stays_ignored() {
    let scratch = Scratch::new();
    let tenure = tenure_running("echo $$ >$D/a; read line; exit 3", &scratch);
    let mut nohup = Command::new("sh");
    nohup.args(["-c", r#"trap '' HUP; exec "$0" "$@""#]);
    nohup.arg(tenure.get_program()).args(tenure.get_args());
    nohup.envs(tenure.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let (reader, writer) = std::io::pipe().unwrap();
    let mut tenure = nohup.stdin(reader).spawn().unwrap();
    let command = scratch.pid("a");
    send(tenure.id(), Signal::HUP);
    send(command, Signal::HUP);
    drop(writer);
    assert_eq!(tenure.wait().unwrap().code(), Some(3));
}

#[test]
fn a_script_that_is_interrupted_ends_because_tenure_died_of_it_too() {
    let scratch = Scratch::new();
    let mut tenure = tenure_running("kill -INT $$", &scratch);
    let status = tenure.status().unwrap();
    assert_eq!(status.signal(), Some(Signal::INT.as_raw()));
}

#[test]
fn suspending_tenure_suspends_the_command_and_resuming_resumes_it() {
    let scratch = Scratch::new();
    // A group of its own, within reach of this process, as a shell makes one for each job.
    let mut tenure = tenure_running("echo $$ >$D/a; exec sleep 1000", &scratch);
    let mut tenure = tenure.process_group(0).spawn().unwrap();
    let both = [scratch.pid("a"), tenure.id()];
    for _ in 0..3 {
        send(tenure.id(), Signal::TSTP);
        for pid in both {
            until("a stop", || (state(pid) == Some('T')).then_some(()));
        }
        send(tenure.id(), Signal::CONT);
        for pid in both {
            until("going on", || (state(pid) == Some('S')).then_some(()));
        }
    }
    tenure.kill().unwrap();
    // Another test may collect it first: its group is its own, like that of an orphan.
    let _ = tenure.wait();
}
