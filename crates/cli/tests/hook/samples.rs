//! Every recorded event is answered exactly as its host expects.

use crate::scene::Scene;
use serde_json::Value;
use std::path::{Path, PathBuf};

const DENIAL: &str = "src/main.rs is held by alice for \"refactoring\"; its lease lasts TIME more \
    unless renewed. Do not change it in another way. Meanwhile edit something else, take another \
    task (`tenure tasks claim`), or wait: `tenure wait 'path:src/main.rs'`.";

const WARNING: &str = "src/main.rs is held by alice for \"refactoring\"; its lease lasts TIME more \
    unless renewed. Your change may collide with theirs.";

fn samples(host: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hook/samples").join(host);
    let entries = std::fs::read_dir(&folder).expect("samples");
    entries.map(|entry| entry.expect("a sample").path()).collect()
}

/// Replaces every text in a value.
fn mapped(value: &Value, change: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(items) => items.iter().map(|item| mapped(item, change)).collect(),
        Value::Object(fields) => Value::Object(
            fields.iter().map(|(name, value)| (name.clone(), mapped(value, change))).collect(),
        ),
        other => other.clone(),
    }
}

/// A text as samples write it: with a placeholder for what differs from run to run.
fn with_placeholders(text: &str) -> String {
    let Some((before, after)) = text.split_once("lease lasts ") else {
        let is_prime = text.starts_with("Several agents share this repository");
        assert!(!is_prime || text.chars().count() <= 1500, "{text}");
        return if is_prime { "$PRIME".to_owned() } else { text.to_owned() };
    };
    let after = after.split_once(" more").expect("a time").1;
    match format!("{before}lease lasts TIME more{after}").as_str() {
        DENIAL => "$DENIAL".to_owned(),
        WARNING => "$WARNING".to_owned(),
        other => other.to_owned(),
    }
}

fn check(host: &str) {
    let files = samples(host);
    assert!(files.len() >= 8, "{files:?}");
    for file in files {
        let sample: Value = serde_json::from_slice(&std::fs::read(&file).expect("a sample"))
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(sample["source"].is_string(), "{}", file.display());
        let answers = sample["answers"].as_object().expect("answers");
        for (case, expected) in answers {
            let scene = Scene::new();
            let root = scene.root.to_str().expect("text").to_owned();
            let input = mapped(&sample["input"], &|text| text.replace("$ROOT", &root));
            if case != "free" {
                scene.hold("alice", "path:src/main.rs");
            }
            if case == "warn" {
                assert_eq!(scene.tenure(&["config", "set", "hooks.policy", "warn"]).code, 0);
            }
            let ended = scene.hook(host, &input);
            let what = format!("{} when {case}: {ended:?}", file.display());
            assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{what}");
            let answer = match ended.stdout.as_str() {
                "" => Value::Null,
                text => {
                    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {what}"))
                }
            };
            assert_eq!(mapped(&answer, &with_placeholders), *expected, "{what}");
        }
    }
}

#[test]
fn claude_code_is_answered_in_its_own_format() {
    check("claude-code");
}

#[test]
fn codex_is_answered_in_its_own_format() {
    check("codex");
}

#[test]
fn cursor_is_answered_in_its_own_format() {
    check("cursor");
}

#[test]
fn gemini_is_answered_in_its_own_format() {
    check("gemini");
}

#[test]
fn the_plugin_of_opencode_is_answered_in_its_own_format() {
    check("opencode");
}

#[test]
fn a_refusal_stays_short_and_teaches_no_force() {
    assert!(DENIAL.len() <= 400, "{}", DENIAL.len());
    let scene = Scene::new();
    let long = "long-folder-name/".repeat(12);
    std::fs::create_dir_all(scene.root.join(&long)).expect("folders");
    let file = format!("{long}file.rs");
    let label = "l".repeat(200);
    let held =
        ["acquire", "--as", &label, &format!("path:{file}"), "--operation", &"o".repeat(500)];
    let ended = scene.tenure(&held);
    assert_eq!(ended.code, 0, "{ended:?}");
    let reason = scene.refused(&scene.edit("s", &file)).expect("a refusal");
    assert!(reason.chars().count() <= 400, "{}: {reason}", reason.chars().count());
    for word in ["force", "break", "release", "steal"] {
        assert!(!reason.contains(word), "{reason}");
    }
}
