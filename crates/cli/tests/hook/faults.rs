//! Whatever goes wrong, the agent may go on: exit code 0, nothing but the host's own JSON on
//! standard output, and one sentence on stderr.

use crate::scene::Scene;
use crate::support::{Ended, Running, until};
use std::process::Stdio;

/// It was allowed, and one sentence says why it was not checked.
fn is_unchecked(ended: &Ended, why: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.starts_with("tenure: not checked, so allowed: "), "{ended:?}");
    assert!(ended.stderr.contains(why), "{ended:?}");
}

#[test]
fn input_that_is_no_event_is_allowed() {
    let scene = Scene::new();
    let hook = |input: &str| scene.hook_reading("claude-code", input, &[]);
    is_unchecked(&hook(""), "no JSON");
    is_unchecked(&hook("not json"), "no JSON");
    is_unchecked(&hook("\u{0}\u{1}"), "no JSON");
    is_unchecked(&hook(&"[".repeat(20_000)), "no JSON");
    is_unchecked(&hook("{}"), "no session");
    is_unchecked(&hook("[1, 2]"), "no session");
    is_unchecked(&hook(r#"{"session_id": 7, "tool_input": "x"}"#), "no session");
    let huge = format!(r#"{{"session_id": "s", "x": "{}"}}"#, "x".repeat(33 * 1024 * 1024));
    is_unchecked(&hook(&huge), "larger than 32 MiB");
    assert!(!scene.root.join(".tenure").exists());
}

#[test]
fn fields_of_a_wrong_type_are_a_sign_of_life_and_no_edit() {
    let scene = Scene::new();
    for input in [
        r#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Edit","tool_input":7}"#,
        r#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":["Edit"]}"#,
        r#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Edit","tool_input":{"file_path":"a\u0000b"}}"#,
    ] {
        let ended = scene.hook_reading("claude-code", input, &[]);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, ""), "{input}: {ended:?}");
    }
}

#[test]
fn a_host_that_never_ends_its_input_is_not_kept_waiting() {
    let scene = Scene::new();
    let mut command = scene.command("sh");
    command.args(["-c", "tenure hook claude-code"]).stdin(Stdio::piped());
    let mut running = Running::start(command);
    until("the hook to give up", || running.has_ended().then_some(()));
    is_unchecked(&running.end(), "no answer within 2 s");
}

#[test]
fn a_store_that_is_none_is_allowed() {
    let scene = Scene::new();
    std::fs::create_dir(scene.root.join(".tenure")).expect("a folder");
    scene.write(".tenure/tenure.db", &"this is no database ".repeat(500));
    is_unchecked(&scene.hook("claude-code", &scene.edit("one", "a.txt")), "");
    // Cursor is told in its own form.
    let event = serde_json::json!({
        "conversation_id": "c", "workspace_roots": [scene.root], "hook_event_name": "preToolUse",
        "tool_name": "Write", "tool_input": { "file_path": "a.txt" },
    });
    let ended = scene.hook("cursor", &event);
    assert_eq!((ended.code, ended.stdout.trim()), (0, r#"{"permission":"allow"}"#), "{ended:?}");
}

#[test]
fn a_folder_in_which_nothing_can_be_made_is_allowed() {
    let scene = Scene::new();
    scene.write(".tenure", "a file where the folder should be");
    is_unchecked(&scene.hook("claude-code", &scene.edit("one", "a.txt")), "");
}

#[test]
fn settings_that_are_wrong_are_allowed() {
    let scene = Scene::new();
    let wrong = [("TENURE_HOOKS_POLICY", "sometimes")];
    let ended = scene.hook_with("claude-code", &scene.edit("one", "a.txt"), &wrong);
    is_unchecked(&ended, "use claim or check or warn");
}

#[test]
fn a_server_that_is_not_there_is_allowed() {
    let scene = Scene::new();
    let gone = [("TENURE_STORE", "http://127.0.0.1:9")];
    let ended = scene.hook_with("claude-code", &scene.edit("one", "a.txt"), &gone);
    is_unchecked(&ended, "");
}

#[test]
fn a_store_behind_a_writer_that_does_not_go_on_is_not_waited_for() {
    let scene = Scene::new();
    scene.is_allowed(&scene.edit("one", "a.txt"));
    let seat = scene.root.join(".tenure/tenure.db.side/seat");
    let file = std::fs::OpenOptions::new().write(true).open(seat).expect("the writer's file");
    file.lock().expect("no writer");
    let ended = scene.hook("claude-code", &scene.edit("one", "src/main.rs"));
    is_unchecked(&ended, "no answer within 2 s");
    file.unlock().expect("the lock");
    scene.is_allowed(&scene.edit("one", "src/main.rs"));
}

#[test]
fn a_wrong_command_line_does_not_refuse_a_tool() {
    let scene = Scene::new();
    // Exit code 2 would.
    for arguments in [&["hook", "no-such-host"][..], &["hook"], &["hook", "codex", "--new-option"]]
    {
        let ended = scene.tenure(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{ended:?}");
    }
    assert_eq!(scene.tenure(&["hook", "--help"]).code, 0);
}

#[test]
fn without_a_session_start_in_a_project_nothing_is_said() {
    let scene = Scene::new();
    let mut event = scene.event("one", "SessionStart");
    event["cwd"] = serde_json::json!(scene.place.path("home"));
    scene.is_allowed(&event);
}
