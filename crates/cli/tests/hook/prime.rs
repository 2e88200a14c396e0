//! What an agent is told at the start of a session.

use crate::scene::Scene;

#[test]
fn it_tells_the_rules_and_the_state_in_few_words() {
    let scene = Scene::new();
    let text = scene.tenure(&["prime"]).stdout;
    assert!(text.contains("tenure wait path:FILE") && text.contains("No other agent"), "{text}");
    assert!(!scene.root.join(".tenure").exists(), "it only looks");

    scene.hold("alice", "path:src/**");
    assert_eq!(scene.tenure(&["tasks", "add", "Mend the gate", "--id", "t"]).code, 0);
    assert_eq!(scene.tenure(&["tasks", "claim", "t", "--as", "bob"]).code, 0);
    let text = scene.tenure(&["prime", "--as", "bob"]).stdout;
    for piece in [
        "You are bob. You hold task:t (",
        "Your task: \"Mend the gate\" (t).",
        "Others hold path:src/** (alice, \"refactoring\", ",
    ] {
        assert!(text.contains(piece), "{piece}: {text}");
    }
    let data = scene.json(&["prime", "--as", "bob"]);
    assert_eq!(data["label"], "bob");
    assert_eq!(data["others"][0]["holder"], "alice", "{data}");
    assert_eq!(data["tasks"][0]["title"], "Mend the gate", "{data}");
}

#[test]
fn it_stays_short_however_much_is_held_and_however_long_it_is() {
    let scene = Scene::new();
    for index in 0..30 {
        scene.hold(
            &format!("agent-{index}-{}", "x".repeat(200)),
            &format!("path:{index}/{}", "y".repeat(150)),
        );
    }
    for text in [scene.tenure(&["prime"]).stdout, scene.tenure(&["prime", "--as", "bob"]).stdout] {
        assert!(text.trim_end().chars().count() <= 1500, "{}: {text}", text.chars().count());
    }
    let hook = scene.hook("claude-code", &scene.event("one", "SessionStart"));
    assert!(hook.stdout.contains("Several agents share"), "{hook:?}");
}
