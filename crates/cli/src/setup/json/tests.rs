//! Adding gives the value that is wanted; removing gives the bytes that were there.

use super::*;
use serde_json::json;

/// Objects as people and programs write them, `X` where the rest of an object goes.
const FRAMES: [&str; 9] = [
    "{X}",
    "{ X }",
    "{\n  X\n}",
    "{\n\t X\n}\n",
    "\u{feff}{\r\n    X\r\n}\r\n",
    "// first\n{ // here\n  X\n  // last\n}\n",
    "{\n  /* before */ X /* after */\n}",
    "{X\n\n}\n\n",
    "\n  {\n  X}",
];

/// What is in them.
const CONTENTS: [&str; 16] = [
    "",
    r#""a": 1"#,
    r#""a": 1,"#,
    r#""a": 1 , "b": [1, 2]"#,
    "\"a\": 1, // note\n  \"b\": {}",
    "\"a\": 1 // note\n",
    "\"a\": 1, // note\n",
    "\"a\": 1 /* one */ , /* two */",
    r#""hooks": {}"#,
    r#""hooks": { }, "a": 1"#,
    "\"hooks\": {\n  },",
    r#""hooks": {"Pre": []}"#,
    "\"hooks\": {\"Pre\": [ // none yet\n ]}",
    r#""hooks": {"Pre": [{"x": "}, ]//"}], "Stop": []}, "z": "\" // no comment""#,
    "\"hooks\": {\n    \"Pre\": [\n      {\"x\": 1},\n      {\"x\": 2},\n    ],\n  }",
    r#""servers": {"tenure": 1}, "hooks": {"Stop": [1]}"#,
];

fn texts() -> impl Iterator<Item = String> {
    let frames = FRAMES.iter();
    frames.flat_map(|frame| CONTENTS.iter().map(|content| frame.replace('X', content)))
}

/// Adds as `tenure setup` does: some lists below `hooks`, and a property below `servers`.
fn added(text: Option<&str>) -> String {
    let entry = json!({ "matcher": "a|b", "hooks": [{ "type": "command", "command": "c d" }] });
    let text = add(text, &["hooks", "Pre"], None, &entry).expect("an object");
    let text = add(Some(&text), &["hooks", "Start"], None, &entry).expect("an object");
    let text = add(Some(&text), &["hooks", "Stop"], None, &entry).expect("an object");
    add(Some(&text), &["servers"], Some("ours"), &json!({ "args": ["mcp"] })).expect("an object")
}

fn removed(text: &str) -> Option<String> {
    let mut text = remove(text, &[Step::Key("servers"), Step::Key("ours")]).expect("an object")?;
    for list in ["Stop", "Start", "Pre"] {
        let last = value(&text).expect("an object")["hooks"][list].as_array().map(Vec::len);
        let last = last.expect("the list") - 1;
        let path = [Step::Key("hooks"), Step::Key(list), Step::Index(last)];
        text = remove(&text, &path).expect("an object")?;
    }
    Some(text)
}

#[test]
fn removing_gives_the_bytes_that_were_there() {
    for text in texts() {
        let with = added(Some(&text));
        assert_eq!(removed(&with).as_deref(), Some(text.as_str()), "through\n{with}");
    }
}

#[test]
fn adding_changes_nothing_else() {
    for text in texts() {
        let (before, after) = (value(&text), value(&added(Some(&text))));
        let (mut before, after) = (before.expect("an object"), after.expect("still an object"));
        let entry = &after["hooks"]["Pre"].as_array().and_then(|list| list.last()).cloned();
        let entry = entry.clone().expect("the entry");
        assert_eq!(entry["hooks"][0]["command"], "c d");
        for list in ["Pre", "Start", "Stop"] {
            if before["hooks"][list].is_null() {
                before["hooks"][list] = json!([]);
            }
            before["hooks"][list].as_array_mut().expect("a list").push(entry.clone());
        }
        before["servers"]["ours"] = json!({ "args": ["mcp"] });
        assert_eq!(after, before, "{text}");
    }
}

#[test]
fn a_file_that_was_created_is_removed() {
    let text = added(None);
    assert_eq!(removed(&text), None);
    assert!(text.ends_with("}\n") && text.starts_with("{\n  \"hooks\": {\n    \"Pre\": [\n"));
}

#[test]
fn an_entry_is_indented_like_its_neighbours() {
    let text = "{\n\t\"hooks\": {\n\t\t\"Pre\": [\n\t\t\t{ \"x\": 1 }\n\t\t]\n\t}\n}\n";
    let after = add(Some(text), &["hooks", "Pre"], None, &json!({ "y": [2] })).expect("an object");
    let expected = "{\n\t\"hooks\": {\n\t\t\"Pre\": [\n\t\t\t{ \"x\": 1 },\n\t\t\t{\n\t\t\t\t\"y\": [2]\
                    \n\t\t\t}\n\t\t]\n\t}\n}\n";
    assert_eq!(after, expected);
}

#[test]
fn what_is_added_behind_an_entry_later_stays() {
    let with = add(Some("{\n  \"a\": 1\n}\n"), &["servers"], Some("ours"), &json!({}));
    let with = with.expect("an object").replace("{}\n  }", "{},\n    \"theirs\": {}\n  }");
    let rest = remove(&with, &[Step::Key("servers"), Step::Key("ours")]).expect("an object");
    let expected = "{\n  \"a\": 1,\n  \"servers\": {\n    \"theirs\": {}\n  }\n}\n";
    assert_eq!(rest.as_deref(), Some(expected));
}

#[test]
fn errors_have_a_line_and_a_column() {
    let place = |text: &str| {
        let error = add(Some(text), &["hooks", "Pre"], None, &json!(1)).expect_err(text);
        (error.line, error.column)
    };
    assert_eq!(place("{\n  \"a\": 1\n  \"b\": 2\n}"), (2, 9));
    assert_eq!(place("{\n  \"é\": 1, oops\n}"), (2, 11));
    assert_eq!(place("[]"), (1, 1));
    assert_eq!(place(""), (1, 1));
    assert_eq!(place("{\"hooks\": []}"), (1, 11));
    assert_eq!(place("{\"hooks\": {\"Pre\": {}}}"), (1, 19));
    assert_eq!(place("{\"a\": 'b'}"), (1, 7));
    assert_eq!(place("{\"a\": 1} {}"), (1, 10));
}
