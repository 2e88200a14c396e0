//! What an agent's program, its shells and its parts hold.

use crate::support::{Running, Signal, StoreLocation, until};
use crate::{end, holders, program, shell};

/// Holds a lock in a shell of the program, says so, and stays.
const HOLD: &str = r#"
    sh -c '"$T" acquire deploy --ttl 1h -q >/dev/null; true'
    sh -c '"$T" acquire "path:src/**" --ttl 1h -q >/dev/null; true'
    "$T" whoami --json >"$D/who"
    touch "$D/ready"
    while :; do sleep 1; done"#;

#[test]
fn what_a_killed_program_held_is_free_at_once() {
    for name in ["claude", "codex", "gemini", "opencode"] {
        let place = StoreLocation::new();
        let host = Running::start(program(&place, name, HOLD));
        place.wait_for("ready");
        let who: serde_json::Value = serde_json::from_str(&place.read("who")).unwrap();
        let agent = &who["data"]["agent"];
        assert_eq!((&agent["source"], &agent["pid"]), (&"agent_process".into(), &host.id().into()));
        assert_eq!(holders(&place), [agent["label"].as_str().unwrap()]);
        // Another agent is excluded, until the program is dead.
        let take = r#""$T" acquire -n deploy --json; echo "code $?""#;
        let other = || end(program(&place, "claude", take)).stdout;
        assert!(other().contains("code 6"), "{name}");
        host.kill();
        let taken = until("the lock of a dead agent", || {
            Some(other()).filter(|said| said.contains("code 0"))
        });
        assert!(taken.contains("claimed_dead"), "{name}: {taken}");
    }
}

#[test]
fn a_session_is_one_owner_in_all_shells_and_ends_with_its_program() {
    let place = StoreLocation::new();
    let session = |mut command: std::process::Command| {
        command.env("CLAUDE_CODE_SESSION_ID", "6a1c");
        command
    };
    let host = Running::start(session(program(&place, "claude", HOLD)));
    place.wait_for("ready");
    // A shell elsewhere with the same session, and one of another session.
    let take = r#""$T" acquire -n deploy --json; echo "code $?""#;
    let same = end(session(shell(&place, &place.url(), take)));
    assert!(same.stdout.contains("already_owned"), "{same:?}");
    let mut other = shell(&place, &place.url(), take);
    other.env("CLAUDE_CODE_SESSION_ID", "another");
    assert!(end(other).stdout.contains("code 6"));
    let [label] = <[String; 1]>::try_from(holders(&place)).unwrap();
    assert!(label.starts_with("claude-") && label.len() == 15, "{label}");
    host.signal(Signal::KILL);
    until("the end of its holds", || {
        let free = place.json(&["status", "deploy"])["free"].as_bool();
        free.filter(|free| *free)
    });
}

#[test]
fn a_part_of_a_session_goes_under_it_and_excludes_it() {
    let place = StoreLocation::new();
    let as_part = |thread: &str, script: &str| {
        let mut command = shell(&place, &place.url(), script);
        command.env("CODEX_SESSION_ID", "root").env("CODEX_THREAD_ID", thread);
        end(command).stdout.trim().to_owned()
    };
    let take = |what: &str| format!(r#""$T" acquire -n '{what}' -q >/dev/null; echo $?"#);
    assert_eq!(as_part("root", &take("path:src/**")), "0");
    assert_eq!(as_part("one", &take("path:src/a.rs")), "0", "within what its session holds");
    assert_eq!(as_part("one", &take("path:doc/a")), "0");
    assert_eq!(as_part("two", &take("path:doc/a")), "6", "a sibling's");
    assert_eq!(as_part("root", &take("path:doc/**")), "6", "its part's");
    assert_eq!(as_part("root", &take("path:**/a")), "6", "more than it has, which a part holds");
    assert_eq!(as_part("one", r#""$T" release 'path:src/**'; echo $?"#), "5", "not the part's");
}
