//! `tenure doctor` on what setup wrote: it tries the hooks, and says nothing of hosts that are not
//! used.

use crate::project::{HOSTS, read, repository, tree, write};
use crate::snapshot_support::Sandbox;
use serde_json::Value;

/// What doctor says about this subject: whether it is fine, and its message.
fn finding(sandbox: &Sandbox, prefix: &str, subject: &str) -> Option<(bool, String)> {
    let answer = sandbox.quietly(&format!("{prefix} tenure doctor --json || true"));
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    // A failed check is an error with the same details.
    let data = [&answer["data"], &answer["error"]["details"]];
    let checks = data.iter().find_map(|data| data["checks"].as_array()).expect("checks");
    let found = checks.iter().find(|check| check["check"] == subject)?;
    Some((found["ok"] == true, found["message"].as_str().unwrap_or_default().to_owned()))
}

/// The same, of a subject that it must name.
fn said(sandbox: &Sandbox, prefix: &str, subject: &str) -> (bool, String) {
    finding(sandbox, prefix, subject).unwrap_or_else(|| panic!("nothing about {subject}"))
}

#[test]
fn hooks_that_refuse() {
    let sandbox = repository();
    sandbox.quietly(&format!("tenure setup {} git", HOSTS.join(" ")));
    let before = tree(&sandbox);
    for host in HOSTS {
        let (ok, message) = said(&sandbox, "", host);
        assert!(ok && message.contains("refused the edit of a file"), "{host}: {message}");
    }
    assert!(said(&sandbox, "", "git").0);
    let (ok, message) = said(&sandbox, "", "command");
    assert!(ok && message.ends_with("which is this program"), "{message}");
    let (ok, message) = said(&sandbox, "CLAUDE_CODE_SESSION_ID=s TENURE_IDENTITY=auto", "identity");
    assert!(ok && message.starts_with("claude-"), "{message}");
    // The trial happened elsewhere: the files are as they were, and nothing is held here.
    let after = tree(&sandbox);
    assert!(before.iter().all(|(name, bytes)| after.get(name) == Some(bytes)));
    assert_eq!(sandbox.data("tenure locks --json")["counts"]["held"], 0);
}

#[test]
fn hooks_that_their_host_does_not_trust_are_named() {
    let sandbox = repository();
    sandbox.quietly("tenure setup codex gemini");
    for host in ["codex", "gemini"] {
        let (ok, message) = said(&sandbox, "", host);
        assert!(ok && message.ends_with("no hook of this host has run here yet"), "{message}");
    }
    let root = sandbox.path(".").canonicalize().expect("the project");
    let root = root.to_str().expect("a plain path");
    let home = |file: &str, text: &str| {
        sandbox.quietly(&format!("mkdir -p \"$HOME/$(dirname {file})\""));
        std::fs::write(home_of(&sandbox).join(file), text).expect("a file of the host");
    };
    // Codex was started elsewhere and knows of no project yet, with its settings and without.
    home(".codex/auth.json", "{}");
    let (ok, message) = said(&sandbox, "", "codex");
    assert!(!ok && message.contains("does not trust this project"), "{message}");
    home(".codex/config.toml", "model = \"m\"\n");
    let (ok, message) = said(&sandbox, "", "codex");
    assert!(!ok && message.contains("does not trust this project"), "{message}");
    let trusted = format!("[projects.\"{root}\"]\ntrust_level = \"trusted\"\n");
    home(".codex/config.toml", &trusted);
    let (ok, message) = said(&sandbox, "", "codex");
    assert!(!ok && message.contains("accept them in /hooks"), "{message}");
    let accepted = format!(
        "{trusted}[hooks.state.\"{root}/.codex/hooks.json:pre_tool_use:0:0\"]\n\
         trusted_hash = \"sha256:1\"\n"
    );
    home(".codex/config.toml", &accepted);
    let (ok, message) = said(&sandbox, "", "codex");
    assert!(ok && message.contains("refused the edit"), "{message}");

    // Gemini CLI trusts no folder yet, unless its user told it to trust all.
    let is_trusted = || {
        let (ok, message) = said(&sandbox, "", "gemini");
        assert!(ok || message.contains("does not trust this folder"), "{message}");
        ok
    };
    home(".gemini/settings.json", r#"{"security": {"folderTrust": {"enabled": true}}}"#);
    assert!(!is_trusted());
    let all = "{\n// of all\n\"security\": {\"folderTrust\": {\"enabled\": false}}}";
    home(".gemini/settings.json", all);
    assert!(is_trusted());
    home(".gemini/settings.json", "{}");
    assert!(!is_trusted());
    // Of what was said of the folders around, the nearest counts.
    let parent = std::path::Path::new(root).parent().expect("a folder around").display();
    for (folders, expected) in [
        (r#"{"/elsewhere": "TRUST_FOLDER"}"#.to_owned(), false),
        (format!(r#"{{"{root}": "TRUST_FOLDER"}}"#), true),
        (format!(r#"{{"{root}/other": "TRUST_PARENT"}}"#), true),
        (format!(r#"{{"{parent}": "TRUST_FOLDER", "{root}": "DO_NOT_TRUST"}}"#), false),
        (format!(r#"{{"{root}": "DO_NOT_TRUST", "{parent}": "TRUST_FOLDER"}}"#), false),
        (format!(r#"{{"{parent}": "DO_NOT_TRUST", "{root}": "TRUST_FOLDER"}}"#), true),
        (format!(r#"{{"{parent}": "TRUST_FOLDER"}}"#), true),
    ] {
        home(".gemini/trustedFolders.json", &folders);
        assert_eq!(is_trusted(), expected, "{folders}");
    }
    // What a hook of the host did counts, not the trial.
    let event = format!(r#"{{"session_id":"s","cwd":"{root}","hook_event_name":"SessionStart"}}"#);
    let hook =
        format!("printf '%s' '{event}' | TENURE_IDENTITY=auto tenure hook gemini >/dev/null");
    sandbox.quietly(&hook);
    let (_, message) = said(&sandbox, "", "gemini");
    assert!(message.contains("the last hook of this host ran"), "{message}");
}

fn home_of(sandbox: &Sandbox) -> std::path::PathBuf {
    sandbox.quietly("printf %s \"$HOME\"").into()
}

#[test]
fn hosts_that_are_not_used_or_not_set_up() {
    let sandbox = repository();
    for subject in HOSTS.iter().chain(&["git", "command", "identity"]) {
        assert_eq!(finding(&sandbox, "", subject), None);
    }
    write(&sandbox, "GEMINI.md", "# Rules\n");
    let (ok, message) = said(&sandbox, "", "gemini");
    assert!(ok && message.contains("tenure setup gemini"), "{message}");
}

#[test]
fn hooks_that_were_changed_are_not_run() {
    let sandbox = repository();
    sandbox.quietly("tenure setup claude-code cursor");
    let settings = read(&sandbox, ".claude/settings.json");
    write(&sandbox, ".claude/settings.json", settings.replace("|MultiEdit", ""));
    let (ok, message) = said(&sandbox, "", "claude-code");
    assert!(
        !ok && message.contains("missing or outdated: hooks in .claude/settings.json"),
        "{message}"
    );
    // A stranger's command is recognised as a hook of tenure, but it is not what setup writes.
    let hooks = read(&sandbox, ".cursor/hooks.json");
    write(
        &sandbox,
        ".cursor/hooks.json",
        hooks.replace("tenure hook", "touch ../run; tenure hook"),
    );
    let (ok, message) = said(&sandbox, "", "cursor");
    assert!(!ok && message.contains("missing or outdated"), "{message}");
    assert!(!sandbox.path("../run").exists(), "a stranger's command was run");
}

#[test]
fn a_hook_whose_program_is_gone_or_does_not_refuse() {
    let sandbox = repository();
    sandbox.quietly("tenure setup codex");
    let gone = "T=$(command -v tenure); PATH=/usr/bin:/bin; tenure() { \"$T\" \"$@\"; };";
    let (ok, message) = said(&sandbox, gone, "codex");
    assert!(!ok && message.contains("does not refuse"), "{message}");
    let (ok, message) = said(&sandbox, gone, "command");
    assert!(!ok && message.contains("not on the PATH"), "{message}");
    write(&sandbox, "../bin/tenure", "#!/bin/sh\ncat >/dev/null; echo '{}'\n");
    sandbox.quietly("chmod +x ../bin/tenure");
    let other = gone.replace("PATH=", "PATH=$PWD/../bin:");
    let (ok, message) = said(&sandbox, &other, "codex");
    assert!(!ok && message.contains("does not refuse"), "{message}");
    let (ok, message) = said(&sandbox, &other, "command");
    assert!(ok && message.contains("this program is"), "{message}");
}
