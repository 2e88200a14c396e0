//! Whole files before and after a change.

use super::*;

/// What a file reads after setting a key in it.
fn after(before: &str, key: &str, value: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("config.yaml");
    fs::write(&file, before).expect("a file for the test");
    set(&file, key, value).unwrap_or_else(|error| panic!("{error}\n{before}"));
    fs::read_to_string(&file).expect("still there")
}

#[test]
fn an_existing_value_is_changed_where_it_stands() {
    for (before, expected) in [
        (
            "# mine\nlocking:\n  # why so long\n  taskTimeout:   60m   # slow machine\n\nagent: a\n",
            "# mine\nlocking:\n  # why so long\n  taskTimeout:   5m   # slow machine\n\nagent: a\n",
        ),
        ("locking: {taskTimeout: '60m', grace: 1s}\n", "locking: {taskTimeout: 5m, grace: 1s}\n"),
        (
            "locking:\n  taskTimeout:\n    _default: 60m\n    value: \"60m\" # was 50\n",
            "locking:\n  taskTimeout:\n    _default: 60m\n    value: 5m # was 50\n",
        ),
        (
            "locking:\n  taskTimeout: {_default: 60m, value: 60m}\n",
            "locking:\n  taskTimeout: {_default: 60m, value: 5m}\n",
        ),
        ("locking:\n  taskTimeout: # none\n", "locking:\n  taskTimeout: 5m # none\n"),
        ("locking:\n  taskTimeout: ~\n", "locking:\n  taskTimeout: 5m\n"),
        ("\"locking\":\r\n  'taskTimeout': 60m\r\n", "\"locking\":\r\n  'taskTimeout': 5m\r\n"),
        ("\u{feff}locking: {taskTimeout: 60m}", "\u{feff}locking: {taskTimeout: 5m}"),
        ("{\"locking\": {\"taskTimeout\": \"60m\"}}", "{\"locking\": {\"taskTimeout\": 5m}}"),
    ] {
        assert_eq!(after(before, "locking.taskTimeout", "5m"), expected);
    }
}

#[test]
fn a_new_key_goes_to_the_end_of_its_group_or_of_the_file() {
    for (before, expected) in [
        ("", "locking:\n  grace: 1s\n"),
        ("# only this", "# only this\nlocking:\n  grace: 1s\n"),
        ("---\n# start\n", "---\n# start\nlocking:\n  grace: 1s\n"),
        ("agent: 'a' # me", "agent: 'a' # me\nlocking:\n  grace: 1s\n"),
        (
            "locking:\n    taskTimeout: 60m # long\n\n# the agent\nagent: a\n",
            "locking:\n    taskTimeout: 60m # long\n    grace: 1s\n\n# the agent\nagent: a\n",
        ),
        (
            "locking:\n  taskTimeout:\n    value: 60m\nagent: a\n",
            "locking:\n  taskTimeout:\n    value: 60m\n  grace: 1s\nagent: a\n",
        ),
        (
            "locking:\n  _description: |\n    two\n    lines\nagent: a\n",
            "locking:\n  _description: |\n    two\n    lines\n  grace: 1s\nagent: a\n",
        ),
        ("locking:\n  runTimeout:\nagent: a\n", "locking:\n  runTimeout:\n  grace: 1s\nagent: a\n"),
        (
            "locking: # nothing yet\n  # grace: 9s\nagent: a\n",
            "locking: # nothing yet\n  grace: 1s\n  # grace: 9s\nagent: a\n",
        ),
        ("locking: {taskTimeout: 60m}\n", "locking: {taskTimeout: 60m, grace: 1s}\n"),
        ("locking: {}\n", "locking: {grace: 1s}\n"),
        ("{}", "{locking: {grace: 1s}}"),
        ("{\"agent\": \"a\"}", "{\"agent\": \"a\", locking: {grace: 1s}}"),
        (
            "agent: a\r\nlocking:\r\n  taskTimeout: 60m\r\n",
            "agent: a\r\nlocking:\r\n  taskTimeout: 60m\r\n  grace: 1s\r\n",
        ),
        (
            "locking:\n  grace:\n    _default: 5s # see below\n",
            "locking:\n  grace:\n    _default: 5s # see below\n    value: 1s\n",
        ),
        (
            "? locking\n: {taskTimeout: 60m}\n? agent\n",
            "? locking\n: {taskTimeout: 60m, grace: 1s}\n? agent\n",
        ),
        ("agent: a\n...\n", "agent: a\nlocking:\n  grace: 1s\n...\n"),
    ] {
        assert_eq!(after(before, "locking.grace", "1s"), expected);
    }
}

#[test]
fn any_line_of_text_reads_back_as_it_was_given() {
    for text in ["", "no", "007", "it's", "a: b #c", "{x}", "\\n \"q\"", "~", " 🦀 ", "- x", "*a"]
    {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("config.yaml");
        for before in ["", "agent: old\n", "{agent: old}"] {
            fs::write(&file, before).expect("a file for the test");
            set(&file, "agent", text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
            let sources =
                super::super::Sources { explicit_file: Some(file.clone()), ..Default::default() };
            let settings = super::super::Settings::load(&sources).expect("valid");
            assert_eq!(settings.get("agent").expect("known").value, text);
        }
    }
}

#[test]
fn blanks_in_a_duration_are_made_plain() {
    let text = after("", "locking.grace", " 1m\n 5s ");
    assert_eq!(text, "locking:\n  grace: 1m 5s\n");
}

#[test]
fn what_cannot_be_changed_safely_is_refused_and_left_alone() {
    for before in [
        "locking: ~\n",
        "locking: null # none\nagent: a\n",
        "---\n...\n",
        // The colon after the key belongs to a comment.
        "locking:\n  ? grace # see: below\n",
    ] {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let file = folder.path().join("config.yaml");
        fs::write(&file, before).expect("a file for the test");
        let error = set(&file, "locking.grace", "1s").expect_err(before);
        assert!(matches!(error, ConfigError::NotEditable { .. }), "{error}");
        assert_eq!(fs::read_to_string(&file).expect("still there"), before);
    }
}

#[test]
fn bad_keys_values_and_files_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("sub/config.yaml");
    let error = set(&file, "locking.grase", "1s").expect_err("unknown key");
    assert!(matches!(error, ConfigError::UnknownKey { .. }), "{error}");
    let error = set(&file, "locking.grace", "soon").expect_err("bad value");
    assert!(matches!(error, ConfigError::BadValue { .. }), "{error}");
    assert!(!folder.path().join("sub").exists());

    let error = set(folder.path(), "agent", "a").expect_err("a directory");
    assert!(matches!(error, ConfigError::Directory { .. }), "{error}");

    let file = folder.path().join("config.yaml");
    for before in ["agent: a\nagent: b\n", "nonsense: 1\n"] {
        fs::write(&file, before).expect("a file for the test");
        set(&file, "agent", "c").expect_err("the file was bad before");
        assert_eq!(fs::read_to_string(&file).expect("still there"), before);
    }
}

#[test]
fn folders_are_created_and_no_temporary_file_is_left() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("a/b/config.yaml");
    set(&file, "agent", "ada").expect("created");
    set(&file, "agent", "bob").expect("changed");
    assert_eq!(fs::read_to_string(&file).expect("there"), "agent: 'bob'\n");
    let names: Vec<_> = fs::read_dir(folder.path().join("a/b"))
        .expect("created")
        .map(|entry| entry.expect("readable").file_name())
        .collect();
    assert_eq!(names, ["config.yaml"]);
}

#[test]
fn changes_at_the_same_time_are_all_kept() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("config.yaml");
    let is_locking = |key: &&super::super::KeyInfo| key.name.starts_with("locking.");
    let keys: Vec<_> = super::super::KEYS.iter().filter(is_locking).collect();
    std::thread::scope(|scope| {
        for key in &keys {
            scope.spawn(|| {
                for seconds in 1..=20 {
                    set(&file, key.name, &format!("{seconds}s")).expect("set");
                }
            });
        }
    });
    let text = fs::read_to_string(&file).expect("there");
    for key in keys {
        let name = key.name.replace("locking.", "");
        assert!(text.contains(&format!("  {name}: 20s\n")), "{name} in {text}");
    }
}

#[test]
fn a_symbolic_link_and_the_mode_of_its_file_survive() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().expect("a folder for the test");
    let (file, link) = (folder.path().join("real.yaml"), folder.path().join("config.yaml"));
    fs::write(&file, "agent: a\n").expect("a file for the test");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode for the test");
    symlink(&file, &link).expect("a link for the test");

    set(&link, "agent", "b").expect("set");
    assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
    assert_eq!(fs::read_to_string(&file).expect("there"), "agent: 'b'\n");
    let mode = fs::metadata(&file).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    fs::remove_file(&file).expect("removed for the test");
    let error = set(&link, "agent", "c").expect_err("the link leads nowhere");
    assert!(matches!(error, ConfigError::NotWritable { .. }), "{error}");
}
