//! A process per host that edits through its hook, as the host does: it runs the configured command,
//! reads the answer by the host's own rules, and writes the file if it may.

use crate::scene::Scene;
use crate::support::{Ended, Running, Signal};
use serde_json::{Value, json};
use std::path::Path;

/// What came of an attempt to edit.
#[derive(Debug, PartialEq, Eq)]
enum Edit {
    Done,
    Refused(String),
}

const HOSTS: [&str; 5] = ["claude-code", "codex", "cursor", "gemini", "opencode"];

/// Writes `src/main.rs` through the host's edit tool.
fn edit(scene: &Scene, host: &str, session: &str, content: &str) -> Edit {
    if host == "opencode" {
        return edit_by_plugin(scene, session, content);
    }
    let file = scene.root.join("src/main.rs");
    let patch = "*** Begin Patch\n*** Update File: src/main.rs\n@@\n*** End Patch\n";
    let event = match host {
        "claude-code" => json!({
            "session_id": session, "cwd": scene.root, "hook_event_name": "PreToolUse",
            "tool_name": "Write", "tool_input": { "file_path": file, "content": content },
        }),
        "codex" => json!({
            "session_id": session, "cwd": scene.root, "hook_event_name": "PreToolUse",
            "tool_name": "apply_patch", "tool_input": { "command": patch },
        }),
        "cursor" => json!({
            "conversation_id": session, "workspace_roots": [scene.root],
            "hook_event_name": "preToolUse", "tool_name": "Write",
            "tool_input": { "file_path": file },
        }),
        _ => json!({
            "session_id": session, "cwd": scene.root, "hook_event_name": "BeforeTool",
            "tool_name": "write_file", "tool_input": { "file_path": file, "content": content },
        }),
    };
    let ended = scene.hook(host, &event);
    let refusal = refusal(host, &ended);
    if let Some(reason) = refusal {
        return Edit::Refused(reason);
    }
    scene.write("src/main.rs", content);
    Edit::Done
}

/// Why the host would not go on, by its own rules.
fn refusal(host: &str, ended: &Ended) -> Option<String> {
    if ended.code == 2 {
        return Some(ended.stderr.clone());
    }
    let answer: Value = serde_json::from_str(&ended.stdout).unwrap_or(Value::Null);
    let (decision, reason) = match host {
        "claude-code" | "codex" => {
            let output = &answer["hookSpecificOutput"];
            (&output["permissionDecision"], &output["permissionDecisionReason"])
        }
        "cursor" => (&answer["permission"], &answer["agent_message"]),
        _ => (&answer["decision"], &answer["reason"]),
    };
    (decision == "deny").then(|| reason.as_str().expect("a reason").to_owned())
}

/// What opencode does with a plugin: it loads the file, and calls its function before a tool runs.
const OPENCODE: &str = r#"
import { pathToFileURL } from "node:url"
import { writeFileSync } from "node:fs"
const [plugin, root, session, content] = process.argv.slice(2)
const { TenurePlugin } = await import(pathToFileURL(plugin))
const client = { session: { get: async () => ({ data: {} }) } }
const hooks = await TenurePlugin({ client, directory: root, worktree: root })
const env = { env: {} }
await hooks["shell.env"]({ cwd: root, sessionID: session }, env)
if (env.env.OPENCODE_SESSION_ID !== session) throw new Error("the shell does not know the session")
const system = { system: [] }
await hooks["experimental.chat.system.transform"]({ sessionID: session, model: {} }, system)
if (!system.system[0].startsWith("Several agents")) throw new Error("the session was not primed")
try {
  const args = { filePath: `${root}/src/main.rs`, content }
  await hooks["tool.execute.before"]({ tool: "write", sessionID: session, callID: "1" }, { args })
  writeFileSync(args.filePath, content)
  console.log(JSON.stringify({ done: true }))
} catch (error) {
  console.log(JSON.stringify({ refused: error.message }))
}
await hooks.event({ event: { type: "session.idle", properties: { sessionID: session } } })
"#;

fn edit_by_plugin(scene: &Scene, session: &str, content: &str) -> Edit {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands/hook/opencode_plugin.js");
    // A module by its name, as opencode's own runtime takes every plugin.
    let (plugin, host) = (scene.place.path("tenure.mjs"), scene.place.path("host.mjs"));
    std::fs::copy(source, &plugin).expect("the plugin");
    std::fs::write(&host, OPENCODE).expect("a host");
    let mut command = scene.command("node");
    command.arg(host).arg(plugin).arg(&scene.root).args([session, content]);
    let ended = Running::start(command).end();
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{ended:?}");
    let answer: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    match answer["refused"].as_str() {
        Some(reason) => Edit::Refused(reason.to_owned()),
        None => Edit::Done,
    }
}

#[test]
fn an_edit_is_refused_while_another_agent_holds_the_file_and_allowed_after_its_release() {
    for host in HOSTS {
        let scene = Scene::new();
        scene.hold("alice", "path:src/**");
        let before = scene.read("src/main.rs");
        match edit(&scene, host, "one", "changed") {
            Edit::Refused(reason) => assert!(reason.contains("held by alice"), "{host}: {reason}"),
            done => panic!("{host}: {done:?}"),
        }
        assert_eq!(scene.read("src/main.rs"), before, "{host}");
        scene.release("alice");
        assert_eq!(edit(&scene, host, "one", "changed"), Edit::Done, "{host}");
        assert_eq!(scene.read("src/main.rs"), "changed", "{host}");
        // Now it is the first agent's: its own next edit goes through, that of a second does not.
        assert_eq!(edit(&scene, host, "one", "again"), Edit::Done, "{host}");
        let second = edit(&scene, host, "two", "theirs");
        assert!(matches!(second, Edit::Refused(_)), "{host}: {second:?}");
        assert_eq!(scene.read("src/main.rs"), "again", "{host}");
    }
}

#[test]
fn a_holder_that_is_killed_is_no_longer_in_the_way() {
    for host in HOSTS {
        let scene = Scene::new();
        let mut command = scene.command("sleep");
        command.arg("600");
        let holder = Running::start(command);
        let pid = holder.id().to_string();
        let held = scene.tenure(&["acquire", "--as", "bob", "--pid", &pid, "path:src/main.rs"]);
        assert_eq!(held.code, 0, "{held:?}");
        match edit(&scene, host, "one", "changed") {
            Edit::Refused(reason) => assert!(reason.contains("held by bob"), "{host}: {reason}"),
            done => panic!("{host}: {done:?}"),
        }
        holder.signal(Signal::KILL);
        holder.end();
        assert_eq!(edit(&scene, host, "one", "changed"), Edit::Done, "{host}");
    }
}

#[test]
fn hosts_of_different_kinds_exclude_each_other() {
    let scene = Scene::new();
    assert_eq!(edit(&scene, "codex", "s", "codex"), Edit::Done);
    for host in ["claude-code", "cursor", "gemini", "opencode"] {
        match edit(&scene, host, "s", host) {
            Edit::Refused(reason) => assert!(reason.contains("held by codex-"), "{host}: {reason}"),
            done => panic!("{host}: {done:?}"),
        }
    }
    assert_eq!(scene.read("src/main.rs"), "codex");
}

#[test]
fn cursor_is_one_owner_through_hooks_of_claude_code_too() {
    let scene = Scene::new();
    assert_eq!(edit(&scene, "cursor", "conversation", "x"), Edit::Done);
    let mut event = scene.edit("conversation", "src/main.rs");
    event["cursor_version"] = json!("3.18.25");
    event["conversation_id"] = json!("conversation");
    scene.is_allowed(&event);
    assert_eq!(scene.holds().len(), 1);
}
