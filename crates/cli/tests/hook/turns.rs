//! What a turn, a subagent and a session leave behind.

use crate::scene::Scene;
use serde_json::json;

#[test]
fn at_the_end_of_a_turn_files_without_uncommitted_changes_are_released() {
    let scene = Scene::new();
    for file in ["src/main.rs", "a.txt", "new.txt", "with space é.txt"] {
        scene.is_allowed(&scene.edit("one", file));
    }
    // Taken by hand, it is not the hook's to give back.
    let label = scene.holds()[0].split(' ').next_back().expect("a label").to_owned();
    let ended = scene.tenure(&["acquire", "--as", &label, "path:docs/**"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    scene.write("src/main.rs", "changed");
    scene.write("with space é.txt", "new");
    scene.is_allowed(&scene.event("two", "Stop"));
    assert_eq!(scene.resources().len(), 5, "another session's end of a turn changes nothing");
    scene.is_allowed(&scene.event("one", "Stop"));
    let expected = ["path:docs/**", "path:src/main.rs", "path:with space é.txt"];
    let held: Vec<String> = scene.json(&["status"])["held"]
        .as_array()
        .expect("holds")
        .iter()
        .map(|hold| hold["resource"].as_str().expect("a name").to_owned())
        .collect();
    let mut held = held;
    held.sort();
    assert_eq!(held, expected);
    scene.git(&["add", "."]);
    scene.git(&["commit", "-q", "-m", "done"]);
    scene.is_allowed(&scene.event("one", "Stop"));
    assert_eq!(scene.resources(), ["path:docs/**"]);
}

#[test]
fn a_file_that_was_taken_by_hand_stays_as_it_was_taken() {
    let scene = Scene::new();
    scene.is_allowed(&scene.edit("one", "a.txt"));
    let label = scene.holds()[0].split(' ').next_back().expect("a label").to_owned();
    scene.hold(&label, "path:src/main.rs");
    scene.is_allowed(&scene.edit("one", "src/main.rs"));
    let why = scene.json(&["why", "path:src/main.rs"]);
    assert_eq!(why["holders"][0]["operation"], "refactoring", "{why}");
    scene.is_allowed(&scene.event("one", "Stop"));
    assert_eq!(scene.resources(), ["path:src/main.rs"]);
}

#[test]
fn at_the_end_of_a_session_everything_is_released_and_its_task_is_returned() {
    let scene = Scene::new();
    scene.is_allowed(&scene.edit("one", "a.txt"));
    let label = scene.holds()[0].split(' ').next_back().expect("a label").to_owned();
    assert_eq!(scene.tenure(&["tasks", "add", "T", "--id", "t"]).code, 0);
    let claimed = scene.tenure(&["tasks", "claim", "t", "--as", &label]);
    assert_eq!(claimed.code, 0, "{claimed:?}");
    assert_eq!(scene.tenure(&["acquire", "db", "--as", &label]).code, 0);
    scene.hold("alice", "deploy");
    scene.write("a.txt", "changed");
    scene.is_allowed(&scene.event("one", "SessionEnd"));
    assert_eq!(scene.holds(), ["deploy alice"]);
    assert_eq!(scene.json(&["tasks", "show", "t"])["task"]["status"], "pending");
}

/// An edit inside a subagent.
fn edit_in(scene: &Scene, agent: &str, file: &str) -> serde_json::Value {
    let mut event = scene.edit("one", file);
    event["agent_id"] = json!(agent);
    event
}

#[test]
fn subagents_exclude_each_other_and_go_under_their_parent() {
    let scene = Scene::new();
    scene.is_allowed(&scene.edit("one", "a.txt"));
    scene.is_allowed(&edit_in(&scene, "sub1", "a.txt"));
    scene.is_allowed(&edit_in(&scene, "sub1", "src/main.rs"));
    let held = scene.holds();
    assert_eq!(scene.resources(), ["path:a.txt", "path:a.txt", "path:src/main.rs"], "{held:?}");
    assert!(held[2].starts_with("path:src/main.rs claude-") && held[2].contains('/'), "{held:?}");
    // The same file by two subagents, also one that their parent holds.
    for other in [
        edit_in(&scene, "sub2", "a.txt"),
        edit_in(&scene, "sub2", "src/main.rs"),
        scene.edit("one", "a.txt"),
        scene.edit("one", "src/main.rs"),
    ] {
        let reason = scene.refused(&other).expect("a refusal");
        assert!(reason.contains("held by claude-"), "{reason}");
    }
    let mut end = scene.event("one", "SubagentStop");
    end["agent_id"] = json!("sub1");
    scene.is_allowed(&end);
    assert_eq!(scene.resources(), ["path:a.txt"], "what the parent held");
    scene.is_allowed(&edit_in(&scene, "sub2", "a.txt"));
}

/// A lock file that other programs read names one holder.
#[test]
fn where_lock_files_are_shared_a_subagent_does_not_take_its_parents() {
    let scene = Scene::new();
    let store = format!("file:{}?dialect=swarm", scene.root.join("locks").display());
    assert_eq!(scene.tenure(&["--store", &store, "init"]).code, 0);
    let hook = |event: &serde_json::Value| {
        let ended = scene.hook_with("claude-code", event, &[("TENURE_STORE", &store)]);
        assert_eq!(ended.code, 0, "{ended:?}");
    };
    let locks = || -> Vec<String> {
        let files = std::fs::read_dir(scene.root.join("locks")).expect("the folder of locks");
        let paths = files.map(|file| file.expect("a file").path());
        let locks = paths.filter(|path| path.extension().is_some_and(|end| end == "lock"));
        locks.map(|path| std::fs::read_to_string(path).expect("a lock")).collect()
    };
    hook(&scene.edit("one", "a.txt"));
    let owner = |text: &String| -> serde_json::Value {
        serde_json::from_str::<serde_json::Value>(text).expect("JSON")["agent_id"].clone()
    };
    let before: Vec<_> = locks().iter().map(owner).collect();
    assert_eq!(before.len(), 1);
    hook(&edit_in(&scene, "sub1", "a.txt"));
    let mut end = scene.event("one", "SubagentStop");
    end["agent_id"] = json!("sub1");
    hook(&end);
    assert_eq!(locks().iter().map(owner).collect::<Vec<_>>(), before);
}

#[test]
fn what_a_subagent_left_uncommitted_goes_on_to_its_parent() {
    let scene = Scene::new();
    for file in ["a.txt", "src/main.rs"] {
        scene.is_allowed(&edit_in(&scene, "sub1", file));
    }
    scene.write("a.txt", "changed by the subagent");
    // What it took in other ways ends with it: its shell and tools would not give it back.
    let part = scene.holds()[0].split(' ').next_back().expect("a label").to_owned();
    scene.hold(&part, "deploy");
    let mut end = scene.event("one", "SubagentStop");
    end["agent_id"] = json!("sub1");
    scene.is_allowed(&end);
    let held = scene.holds();
    assert_eq!(held.len(), 1, "{held:?}");
    assert!(held[0].starts_with("path:a.txt claude-") && !held[0].contains("txt claude-/"));
    scene.is_allowed(&scene.edit("one", "a.txt"));
    scene.is_allowed(&edit_in(&scene, "sub2", "a.txt"));
    assert!(scene.refused(&scene.edit("two", "a.txt")).is_some());
}

#[test]
fn every_event_renews_what_the_agent_holds() {
    let scene = Scene::new();
    let lease = [("TENURE_HOOKS_LEASE", "1h")];
    let ended = scene.hook_with("claude-code", &scene.edit("one", "a.txt"), &lease);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""), "{ended:?}");
    let renewed_at = || {
        let why = scene.json(&["why", "path:a.txt"]);
        why["holders"][0]["heartbeat_at"].as_str().expect("a time").to_owned()
    };
    for event in [
        scene.event("one", "UserPromptSubmit"),
        scene.event("one", "PostToolUse"),
        scene.bash("one", "cargo test"),
        scene.edit("one", "src/main.rs"),
    ] {
        let before = renewed_at();
        crate::support::until("a renewal", || {
            scene.is_allowed(&event);
            (renewed_at() > before).then_some(())
        });
    }
    let before = renewed_at();
    scene.is_allowed(&scene.event("two", "UserPromptSubmit"));
    assert_eq!(renewed_at(), before, "another session's event renews nothing");
}
