//! Bad names, labels, durations and command lines: one clear sentence, the right code, nothing lost.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

#[test]
fn names() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        r#"tenure acquire "$(printf 'a\nb')""#,
        r#"tenure acquire "$(printf 'a\033[31mred')""#,
        r#"tenure acquire "$(printf '%10240s' | tr ' ' x)""#,
        "tenure acquire ''",
        "tenure acquire ' deploy'",
        "tenure acquire task:",
        r#"tenure acquire "$(printf 'a\377b')""#,
        r#"tenure --json acquire "$(printf 'a\nb')""#,
        "tenure locks show ''",
        "tenure locks",
    ]));
}

#[test]
fn odd_but_fine_names() {
    let sandbox = Sandbox::new();
    for name in
        ["deploy/prod", "lock:..", "lock:../up", "a:b", "🚀 to the moon", "--", "lock:task:7"]
    {
        sandbox.acquire(&format!("--as alice -- '{name}'"));
    }
    assert_snapshot!(sandbox.see("tenure locks | cut -d' ' -f1-4"));
}

#[test]
fn paths_that_would_leave_the_repository() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure acquire path:../x",
        "tenure acquire path:a/../../x",
        "tenure acquire path:/etc/x",
        "tenure acquire path:%2e%2e/x",
        r"tenure acquire 'path:C:\x'",
        "tenure acquire 'path:[a'",
        "tenure acquire path:",
        "tenure --json acquire path:../x",
    ]));
}

#[test]
fn labels() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        r#"tenure acquire deploy --as "$(printf 'a\nb')""#,
        r#"tenure acquire deploy --as "$(printf '%300s' | tr ' ' x)""#,
        "tenure acquire deploy --as ''",
        "tenure acquire deploy --as ' '",
        r#"TENURE_AGENT="$(printf 'a\nb')" tenure acquire deploy"#,
        r#"TENURE_AGENT="$(printf '%300s' | tr ' ' x)" tenure acquire deploy"#,
        "tenure status deploy",
    ]));
}

#[test]
fn durations() {
    let sandbox = Sandbox::new();
    let lines =
        ["0", "0s", "-1s", "1e9h", "5 parsecs", "", "10", "400d", "1ms", "999999999999999d"]
            .map(|duration| format!("tenure acquire deploy --ttl='{duration}'"));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_snapshot!(sandbox.see_all(&lines));
    assert_eq!(sandbox.quietly("tenure status deploy"), "deploy is free");
}

#[test]
fn limits() {
    let sandbox = Sandbox::new();
    let lines = ["-1", "nan", "inf", "1e3", "''", "99999999999999999999", "0", "0.5", "5m"]
        .map(|limit| format!("tenure wait deploy -w {limit}"));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_snapshot!(sandbox.see_all(&lines));
}

#[test]
fn numbers() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure run deploy -E 256 -- true",
        "tenure run deploy --slots 0 -- true",
        "tenure verify deploy --token -1",
        "tenure verify deploy --token 99999999999999999999999",
        "tenure acquire deploy --pid 99999999999",
        "tenure acquire deploy --grant nonsense",
    ]));
}

#[test]
fn command_lines() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure runn deploy",
        "tenure run deploy",
        "tenure run -- true",
        "tenure run deploy --",
        "tenure run -n -w 3 deploy -- true",
        "tenure run --shared --slots 2 deploy -- true",
        "tenure -q -v status",
        "tenure verify deploy",
        "tenure locks nothing",
        "tenure locks list --type nothing",
        "tenure config",
        "tenure acquire --hold deploy --pid 1",
    ]));
}

#[test]
fn command_lines_in_json() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure --json",
        "tenure --json runn deploy",
        "tenure run deploy --json",
        "tenure --json locks list --type nothing",
        "tenure --json config",
        "tenure --json acquire deploy --ttl 0",
    ]));
}

/// What comes after `--` is the command's own.
#[test]
fn json_for_the_command_is_not_json_for_tenure() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see("tenure run deploy --bogus -- prog --json"));
}

#[test]
fn operations_stay_on_one_line() {
    let sandbox = Sandbox::new();
    let operation = r#""$(printf 'first\nsecond\033[31m%200s' | tr ' ' x)""#;
    sandbox.acquire(&format!("deploy --as alice --operation {operation}"));
    assert_snapshot!(sandbox.see_all(&[
        "tenure locks",
        "tenure status deploy",
        "tenure run -n deploy -- true",
        "tenure events",
    ]));
}

#[test]
fn folders_that_are_not_there() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "");
    assert_snapshot!(sandbox.see_all(&[
        "tenure -C nowhere status",
        "tenure -C file status",
        "tenure --json -C nowhere status",
    ]));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let sandbox = Sandbox::new();
    sandbox.quietly("tenure run deploy --as alice -- true");
    assert_snapshot!(sandbox.see_all(&[
        "tenure events | head -1",
        "(sleep 0.1; tenure events; echo $? >&2) | true",
        "(sleep 0.1; tenure completions bash; echo $? >&2) | true",
        "(sleep 0.1; tenure --help; echo $? >&2) | true",
        "tenure status deploy >&-",
    ]));
}

/// An answer that nobody can read is an error. What it would have handed out is given back.
#[test]
fn an_answer_that_cannot_be_written() {
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&[
        "tenure acquire deploy > /dev/full",
        "tenure acquire deploy --json > /dev/full",
        "tenure -q tasks add 'Fix bug' --id bug --section S",
        "tenure tasks claim > /dev/full",
        "tenure tasks claim bug --as alice > /dev/full",
        "tenure tasks update bug --status in_progress > /dev/full",
        "tenure status deploy",
        "tenure locks",
        "tenure -q tasks list --status pending",
        "tenure token create ci --role work > /dev/full",
        "tenure token create ci --role work --json > /dev/full",
        "tenure token list",
        "tenure locks --json > /dev/full",
        "tenure completions bash > /dev/full",
    ]));
}
