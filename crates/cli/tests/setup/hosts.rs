//! A process per host that reads the configuration which setup wrote, as the host does: it finds the
//! hook by its matcher, runs its command through a shell, and edits the file if it may.

use crate::project::{HOSTS, fixtures, read, repository, write};
use crate::snapshot_support::Sandbox;
use serde_json::{Value, json};

/// A script that plays a host. It edits `src/main.rs` through the hooks of the configuration in the
/// current folder, and prints the reason if that is refused.
const HOST: &str = include_str!("host.mjs");

fn set_up(host: &str) -> Sandbox {
    let sandbox = repository();
    for (name, text) in fixtures(host) {
        // Hooks of the real projects call programs that are not here.
        if !text.contains("\"hooks\"") {
            write(&sandbox, name, text);
        }
    }
    write(&sandbox, "src/main.rs", "fn main() {}\n");
    write(&sandbox, "../host.mjs", HOST);
    sandbox.quietly(&format!("tenure setup {host}"));
    sandbox
}

/// Edits the file as this session; gives why it was refused.
fn edit(sandbox: &Sandbox, host: &str, session: &str, content: &str) -> Option<String> {
    let answer = sandbox.quietly(&format!("node ../host.mjs {host} {session} {content}"));
    let answer: Value = serde_json::from_str(&answer).expect("an answer of the host");
    assert_eq!(answer["found"], json!(true), "{host} found no hook for its edit tool");
    answer["refused"].as_str().map(str::to_owned)
}

#[test]
fn an_edit_is_refused_while_another_holds_the_file_and_allowed_after_its_release() {
    for host in HOSTS {
        let sandbox = set_up(host);
        sandbox.quietly("tenure acquire path:src/main.rs --as alice --ttl 10m");
        let reason = edit(&sandbox, host, "one", "changed").expect(host);
        assert!(reason.contains("alice"), "{host}: {reason}");
        assert!(!reason.contains("--force") && !reason.contains("break"), "{host}: {reason}");
        assert_eq!(read(&sandbox, "src/main.rs"), "fn main() {}\n", "{host}");
        sandbox.quietly("tenure release path:src/main.rs --as alice");
        assert_eq!(edit(&sandbox, host, "one", "changed"), None, "{host}");
        assert_eq!(read(&sandbox, "src/main.rs"), "changed", "{host}");
        let reason = edit(&sandbox, host, "two", "stolen").expect(host);
        assert!(!reason.is_empty(), "{host}");
        assert_eq!(read(&sandbox, "src/main.rs"), "changed", "{host}");
    }
}

#[test]
fn a_holder_that_is_killed_is_not_in_the_way() {
    for host in HOSTS {
        let sandbox = set_up(host);
        let mut holder = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = holder.id();
        sandbox.quietly(&format!("tenure acquire path:src/main.rs --as bob --pid {pid}"));
        let reason = edit(&sandbox, host, "one", "changed").expect(host);
        assert!(reason.contains("bob"), "{host}: {reason}");
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert_eq!(edit(&sandbox, host, "one", "changed"), None, "{host}");
    }
}

/// Without tenure on the path, committed files do nothing and say nothing.
#[test]
fn where_tenure_is_not_installed_hooks_are_silent() {
    for host in HOSTS {
        let sandbox = set_up(host);
        sandbox.quietly("tenure acquire path:src/main.rs --as alice --ttl 10m");
        let line = format!("PATH=/usr/local/bin:/usr/bin:/bin node ../host.mjs {host} one changed");
        let answer = sandbox.quietly(&format!("{line} 2>&1"));
        assert_eq!(answer, r#"{"found":true}"#, "{host}");
        assert_eq!(read(&sandbox, "src/main.rs"), "changed", "{host}");
    }
}

#[test]
fn after_removing_there_is_no_hook() {
    for host in HOSTS {
        let sandbox = set_up(host);
        sandbox.quietly(&format!("tenure setup {host} --remove"));
        let answer = sandbox.quietly(&format!("node ../host.mjs {host} one changed"));
        assert_eq!(answer, r#"{"found":false}"#, "{host}");
    }
}

#[test]
fn the_users_hooks_act_where_a_host_was_started_below_the_root_of_a_set_up_project() {
    for (host, variable, dir) in [
        ("claude-code", "CLAUDE_PROJECT_DIR", ".claude"),
        ("gemini", "GEMINI_PROJECT_DIR", ".gemini"),
    ] {
        let sandbox = set_up(host);
        let settings = format!("\"$HOME/{dir}/settings.json\"");
        let before = "{\"mine\": true}";
        sandbox
            .quietly(&format!("mkdir -p \"$HOME/{dir}\" && printf '%s' '{before}' > {settings}"));
        sandbox
            .quietly(&format!("tenure setup --user {host} && tenure setup --user --check {host}"));
        sandbox.quietly("tenure acquire path:src/main.rs --as alice --ttl 10m");
        let command = |text: &str| {
            let text: Value = serde_json::from_str(text).expect("settings");
            let event = if host == "gemini" { "BeforeTool" } else { "PreToolUse" };
            text["hooks"][event][0]["hooks"][0]["command"].as_str().expect("a hook").to_owned()
        };
        let command = command(&sandbox.quietly(&format!("cat {settings}")));
        let root = sandbox.path(".").canonicalize().expect("the project").display().to_string();
        let ask = |started_in: &str, cwd: &str| {
            let (event, tool) = match host {
                "gemini" => ("BeforeTool", "write_file"),
                _ => ("PreToolUse", "Write"),
            };
            let event = json!({
                "session_id": "one", "cwd": cwd, "hook_event_name": event, "tool_name": tool,
                "tool_input": { "file_path": format!("{root}/src/main.rs") },
            });
            sandbox.quietly(&format!(
                "printf '%s' '{event}' | {variable}={started_in} sh -c '{command}'"
            ))
        };
        let sub = format!("{root}/src");
        assert!(ask(&sub, &sub).contains("alice"), "{host}");
        assert!(!ask(&root, &sub).contains("alice"), "{host}: the project's own hook does it");
        // Nothing where the project is not set up.
        sandbox.quietly(&format!("tenure setup --remove {host}"));
        assert!(!ask(&sub, &sub).contains("alice"), "{host}");
        sandbox.quietly(&format!("tenure setup --user --remove {host}"));
        assert_eq!(sandbox.quietly(&format!("cat {settings}")), before, "{host}");
    }
    let sandbox = repository();
    let refused = sandbox.quietly("tenure setup --user codex 2>&1; echo \"exit $?\"");
    assert!(refused.contains("tenure setup codex") && refused.contains("exit 2"), "{refused}");
}
