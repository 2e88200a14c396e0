//! Hooks are added once, updated, and removed without touching others.

use super::*;

const GROUPED: HookEntries = HookEntries {
    is_of_user: false,
    host: "claude-code",
    shape: Shape::Groups,
    events: &[("PreToolUse", Some("Edit|Bash")), ("Stop", None)],
};

const VERSIONED: HookEntries = HookEntries {
    is_of_user: false,
    host: "cursor",
    shape: Shape::Versioned,
    events: &[("preToolUse", Some("Write")), ("stop", None)],
};

const FOREIGN: &str = r#"{
  // Ours alone.
  "hooks": {
    "Stop": [{ "hooks": [{ "type": "command", "command": "say done" }] }],
    "PreToolUse": [
      { "matcher": "Bash", "hooks": [{ "type": "command", "command": "tenure hook claude-codex" }] },
    ],
  },
}
"#;

#[test]
fn adding_twice_changes_nothing_and_removing_gives_the_same_bytes() {
    for entries in [GROUPED, VERSIONED] {
        for text in [FOREIGN, "{}", "{\n}\n", "{\"version\": 1, \"hooks\": {}}", "{\"version\": 1}"]
        {
            let with = entries.with(Some(text)).expect("an object");
            assert!(entries.is_complete(&json::value(&with).expect("an object")));
            assert_eq!(entries.with(Some(&with)).expect("an object"), with);
            let without = entries.without(&with).expect("an object");
            assert_eq!(without.as_deref(), Some(text), "through {with}");
        }
        let created = entries.with(None).expect("no file");
        assert_eq!(entries.with(Some(&created)).expect("an object"), created);
        assert_eq!(entries.without(&created).expect("an object"), None, "{created}");
    }
}

#[test]
fn a_file_of_hooks_has_a_version_if_it_was_created() {
    let created = VERSIONED.with(None).expect("no file");
    let value = json::value(&created).expect("an object");
    assert_eq!(value["version"], 1);
    assert_eq!(value["hooks"]["preToolUse"][0]["command"], command("cursor"));
    assert_eq!(value["hooks"]["preToolUse"][0]["matcher"], "Write");
}

#[test]
fn an_edited_or_older_entry_is_replaced_by_the_present_one() {
    let with = GROUPED.with(Some(FOREIGN)).expect("an object");
    let edited = with.replace("Edit|Bash", "Edit");
    assert!(!GROUPED.is_complete(&json::value(&edited).expect("an object")));
    let again = GROUPED.with(Some(&edited)).expect("an object");
    assert_eq!(again, with);
    let without = GROUPED.without(&edited).expect("an object");
    assert_eq!(without.as_deref(), Some(FOREIGN));
}

#[test]
fn a_hook_that_a_user_added_beside_ours_stays() {
    let with = GROUPED.with(None).expect("no file");
    let own = r#""hooks": [{ "type": "command", "command": "mine" },"#;
    let edited = with.replacen(r#""hooks": ["#, own, 1);
    let rest = GROUPED.without(&edited).expect("an object").expect("a file");
    let value = json::value(&rest).expect("an object");
    let hooks = &value["hooks"]["PreToolUse"][0]["hooks"];
    assert_eq!(hooks, &json!([{ "type": "command", "command": "mine" }]));
    assert_eq!(value["hooks"].get("Stop"), None);
}

#[test]
fn a_command_with_a_path_is_recognised_and_another_host_is_not() {
    let ours = |command: &str| GROUPED.is_ours(&json!({ "command": command }));
    assert!(ours("/opt/bin/tenure hook claude-code"));
    assert!(ours("tenure hook claude-code --verbose || true"));
    assert!(!ours("tenure hook claude-codex"));
    assert!(!ours("tenure hook codex"));
    assert!(!ours("echo tenure"));
}
