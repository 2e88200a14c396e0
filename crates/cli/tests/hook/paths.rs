//! Which files are taken, which are refused, and under which policy.

use crate::scene::Scene;
use crate::support::TENURE;
use serde_json::{Value, json};

#[test]
fn a_file_has_one_name_however_it_is_written() {
    let scene = Scene::new();
    std::os::unix::fs::symlink("src", scene.root.join("link")).expect("a link");
    let root = scene.root.to_str().expect("text").to_owned();
    for (session, file) in [
        ("s1", "src/main.rs".to_owned()),
        ("s2", "./src/../src/main.rs".to_owned()),
        ("s3", "link/main.rs".to_owned()),
        ("s4", format!("{root}/link/main.rs")),
    ] {
        let mut event = scene.edit(session, "x");
        event["tool_input"]["file_path"] = json!(file);
        match session {
            "s1" => scene.is_allowed(&event),
            _ => assert!(scene.refused(&event).is_some(), "{file}"),
        }
    }
    assert_eq!(scene.resources(), ["path:src/main.rs"]);
}

#[test]
fn files_outside_and_what_git_and_tenure_keep_are_allowed_and_not_taken() {
    let scene = Scene::new();
    let outside = scene.place.path("notes.txt");
    scene.is_allowed(&scene.edit("one", outside.to_str().expect("text")));
    scene.is_allowed(&scene.edit("one", ".git/config"));
    scene.is_allowed(&scene.edit("one", ".tenure/config.yaml"));
    scene.is_allowed(&scene.bash("one", "echo x > /dev/null; rm -f /tmp/tenure-no-such-file"));
    assert!(!scene.root.join(".tenure").exists(), "nothing was taken");
}

#[test]
fn several_files_of_one_patch_are_taken_all_or_none() {
    let scene = Scene::new();
    scene.hold("alice", "path:a.txt");
    let patch = "*** Begin Patch\n*** Update File: src/main.rs\n*** Delete File: a.txt\n\
        *** Add File: new/deep/b.txt\n*** End Patch\n";
    let event = json!({
        "session_id": "one", "cwd": scene.root, "hook_event_name": "PreToolUse",
        "tool_name": "apply_patch", "tool_input": { "command": patch },
    });
    let ended = scene.hook("codex", &event);
    assert!(ended.stdout.contains("a.txt is held by alice"), "{ended:?}");
    assert_eq!(scene.resources(), ["path:a.txt"]);
    scene.release("alice");
    let ended = scene.hook("codex", &event);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""), "{ended:?}");
    assert_eq!(scene.resources(), ["path:a.txt", "path:new/deep/b.txt", "path:src/main.rs"]);
}

#[test]
fn a_path_is_the_same_in_all_worktrees_unless_the_scope_says_otherwise() {
    for (scope, is_refused) in [("repository", true), ("worktree", false)] {
        let scene = Scene::new();
        scene.git(&["worktree", "add", "-q", "../side"]);
        let side = scene.place.path("side").canonicalize().expect("the worktree");
        let scope = [("TENURE_HOOKS_SCOPE", scope)];
        let ended = scene.hook_with("claude-code", &scene.edit("one", "a.txt"), &scope);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, ""), "{ended:?}");
        let mut event = scene.edit("two", "a.txt");
        event["cwd"] = json!(side);
        event["tool_input"]["file_path"] = json!(side.join("a.txt"));
        let ended = scene.hook_with("claude-code", &event, &scope);
        assert_eq!(ended.stdout.contains("deny"), is_refused, "{scope:?}: {ended:?}");
    }
}

#[test]
fn a_file_of_another_worktree_stays_taken_while_it_is_changed_there() {
    let scene = Scene::new();
    scene.git(&["worktree", "add", "-q", "../side"]);
    let side = scene.place.path("side").canonicalize().expect("the worktree");
    // The session's own folder is the main worktree.
    let mut event = scene.edit("one", "a.txt");
    event["tool_input"]["file_path"] = json!(side.join("a.txt"));
    scene.is_allowed(&event);
    std::fs::write(side.join("a.txt"), "changed there").expect("a file");
    scene.is_allowed(&scene.event("one", "Stop"));
    assert_eq!(scene.resources(), ["path:a.txt"]);
    scene.git_in(&side, &["commit", "-q", "-a", "-m", "done"]);
    scene.is_allowed(&scene.event("one", "Stop"));
    assert_eq!(scene.resources(), Vec::<String>::new());
}

#[test]
fn a_file_of_another_repository_is_held_in_the_store_of_that_repository() {
    let scene = Scene::new();
    let other = scene.place.path("other");
    std::fs::create_dir(&other).expect("a folder");
    let other = other.canonicalize().expect("a folder");
    scene.git_in(&other, &["init", "-q"]);
    scene.is_allowed(&scene.edit("one", other.join("x.txt").to_str().expect("text")));
    assert!(other.join(".tenure/tenure.db").exists());
    assert!(!scene.root.join(".tenure").exists());
    let reason = scene.refused(&scene.edit("two", other.join("x.txt").to_str().expect("text")));
    let reason = reason.expect("a refusal");
    assert!(reason.contains(&format!("path:{}/x.txt", other.display())), "{reason}");
}

#[test]
fn the_policy_check_refuses_but_takes_nothing() {
    let scene = Scene::new();
    let check = [("TENURE_HOOKS_POLICY", "check")];
    let edit = scene.edit("one", "a.txt");
    let ended = scene.hook_with("claude-code", &edit, &check);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""), "{ended:?}");
    assert!(!scene.root.join(".tenure").exists(), "nothing is made");
    scene.hold("alice", "path:a.txt");
    let ended = scene.hook_with("claude-code", &edit, &check);
    assert!(ended.stdout.contains("held by alice"), "{ended:?}");
    assert_eq!(scene.holds(), ["path:a.txt alice"]);
}

#[test]
fn a_chosen_label_wins_over_the_session() {
    let scene = Scene::new();
    scene.hold("alice", "path:src/**");
    let chosen = [("TENURE_AGENT", "alice")];
    let edit = scene.edit("one", "src/main.rs");
    let ended = scene.hook_with("claude-code", &edit, &chosen);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""), "{ended:?}");
    assert_eq!(scene.holds(), ["path:src/** alice"]);
}

#[test]
fn an_agent_under_tenure_run_may_edit_what_that_holds() {
    let scene = Scene::new();
    let event = scene.place.path("event.json");
    std::fs::write(&event, scene.edit("one", "src/main.rs").to_string()).expect("the event");
    let mut command = scene.command(TENURE);
    command.args(["run", "path:src/**", "--", "sh", "-c"]);
    command.arg(format!("tenure hook claude-code < {}", event.display()));
    let ended = crate::support::Running::start(command).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""), "{ended:?}");
}

#[test]
fn a_shell_command_is_refused_by_the_files_that_it_names() {
    let scene = Scene::new();
    scene.hold("alice", "path:src/main.rs");
    for command in [
        "sed -i s/a/b/ src/main.rs",
        "cd src && echo x >> main.rs",
        "rm -rf src",
        "rm src/*.rs",
        "mv src other",
        "git checkout -- src/main.rs",
        "git rm -r src",
        "bash -lc 'cat > src/main.rs <<EOF\nx\nEOF'",
    ] {
        let reason = scene.refused(&scene.bash("one", command));
        assert!(reason.is_some_and(|reason| reason.contains("held by alice")), "{command}");
    }
    for command in ["cat src/main.rs", "rm src/*.py", "echo x > src/other.rs", "git checkout main"]
    {
        scene.is_allowed(&scene.bash("one", command));
    }
    assert_eq!(scene.resources(), ["path:src/main.rs", "path:src/other.rs"]);
}

#[test]
fn git_must_not_throw_away_what_another_agent_changed() {
    let scene = Scene::new();
    scene.is_allowed(&scene.edit("two", "src/main.rs"));
    let sweeping =
        ["git reset --hard", "git checkout .", "git restore .", "git stash", "cd src && git stash"];
    for command in sweeping {
        scene.is_allowed(&scene.bash("one", command));
    }
    scene.write("src/main.rs", "changed by two");
    scene.write("a.txt", "changed by one");
    for command in sweeping {
        let reason = scene.refused(&scene.bash("one", command)).expect(command);
        assert!(reason.contains("src/main.rs") && reason.contains("claude-"), "{reason}");
        scene.is_allowed(&scene.bash("two", command));
    }
    scene.is_allowed(&scene.bash("one", "git checkout a.txt"));
    scene.is_allowed(&scene.bash("one", "git clean -fd"));
    scene.is_allowed(&scene.edit("two", "untracked.txt"));
    scene.write("untracked.txt", "new by two");
    assert!(scene.refused(&scene.bash("one", "git clean -fd")).is_some());
}

#[test]
fn a_hold_names_the_host_for_people() {
    let scene = Scene::new();
    scene.is_allowed(&scene.edit("one", "a.txt"));
    let held: Value = scene.json(&["why", "path:a.txt"])["holders"][0].clone();
    assert_eq!(held["operation"], "editing (claude-code)", "{held}");
}

/// What the agent's shell says with this session in its environment.
fn in_shell(scene: &Scene, session: &str, arguments: &[&str]) -> Value {
    let mut command = scene.command(TENURE);
    command.arg("--json").args(arguments);
    command.env("TENURE_IDENTITY", "auto").env("CLAUDE_CODE_SESSION_ID", session);
    let ended = crate::support::Running::start(command).end();
    assert_eq!(ended.code, 0, "{ended:?}");
    ended.json()["data"].clone()
}

#[test]
fn the_shell_of_the_agent_is_the_same_owner() {
    let scene = Scene::new();
    scene.is_allowed(&scene.edit("one", "a.txt"));
    let mine = in_shell(&scene, "one", &["mine"]);
    assert_eq!(mine["holding"][0]["resource"], "path:a.txt", "{mine}");
    in_shell(&scene, "one", &["acquire", "path:src/**"]);
    scene.is_allowed(&scene.edit("one", "src/main.rs"));
    assert!(scene.refused(&scene.edit("two", "src/main.rs")).is_some());
    in_shell(&scene, "one", &["release", "path:a.txt"]);
    scene.is_allowed(&scene.edit("two", "a.txt"));
    assert_eq!(scene.resources(), ["path:a.txt", "path:src/**"]);
}

#[test]
fn a_file_is_refused_also_by_a_path_through_folders_that_are_not_there() {
    let scene = Scene::new();
    scene.hold("alice", "path:a.txt");
    scene.hold("alice", "path:src/**");
    // Whoever reads the path takes `..` out of it first, or makes the folder first.
    for path in ["nosuch/../a.txt", "nosuch/deep/../../src/main.rs", "a.txt/../a.txt"] {
        let mut event = scene.edit("one", "x");
        event["tool_input"]["file_path"] = json!(path);
        assert!(scene.refused(&event).is_some(), "{path}");
    }
    for command in [
        "mkdir nosuch; echo x > nosuch/../a.txt",
        "mkdir -p new && rm new/../src/*.rs",
        "mkdir -p new && rm -r new/../src",
    ] {
        assert!(scene.refused(&scene.bash("one", command)).is_some(), "{command}");
    }
    assert_eq!(scene.resources(), ["path:a.txt", "path:src/**"]);
}

#[test]
fn a_repository_that_is_not_trusted_does_not_weaken_hooks() {
    let scene = Scene::new();
    scene.hold("alice", "path:a.txt");
    let weak = [
        "hooks: {policy: warn}",
        "hooks: {policy: check, lease: 1s}",
        "hooks: {scope: worktree}",
        "agent: alice",
    ];
    for config in weak {
        scene.write(".tenure/config.yaml", &format!("{config}\n"));
        assert!(scene.refused(&scene.edit("one", "a.txt")).is_some(), "{config}");
        scene.is_allowed(&scene.edit("one", "src/main.rs"));
        let taken = scene.json(&["status", "path:src/main.rs"]);
        assert!(!taken["free"].as_bool().unwrap(), "{config}: {taken}");
        scene.is_allowed(&scene.event("one", "SessionEnd"));
    }
    // Commands refuse these settings. Hooks protect the files without them.
    for config in [
        "store: sqlite:other.db",
        "telemetry: otlp",
        "hooks: {policy: off}",
        "nonsense: 1",
        "{broken",
        "a: [",
    ] {
        scene.write(".tenure/config.yaml", &format!("{config}\n"));
        assert!(scene.refused(&scene.edit("one", "a.txt")).is_some(), "{config}");
    }
    scene.write(".tenure/config.yaml", "hooks: {policy: warn}\n");
    assert_eq!(scene.tenure(&["trust", "--show"]).code, 3);
    assert_eq!(scene.tenure(&["trust"]).code, 0);
    let ended = scene.hook("claude-code", &scene.edit("one", "a.txt"));
    assert!(ended.stdout.contains("may collide") && !ended.stdout.contains("deny"), "{ended:?}");
}
