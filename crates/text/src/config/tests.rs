//! The layers with real files, and whole error messages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;

/// Writes a user file into a fresh folder and loads it.
fn load(text: impl AsRef<[u8]>) -> Result<Settings, ConfigError> {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("config.yaml");
    fs::write(&file, text).expect("a file for the test");
    load_file(&file)
}

fn load_file(file: &Path) -> Result<Settings, ConfigError> {
    Settings::load(&Sources { user_file: Some(file.to_owned()), ..Sources::default() })
}

/// The message of a file that must be refused, with the folder's name taken out.
fn refusal(text: impl AsRef<[u8]>) -> String {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("config.yaml");
    fs::write(&file, text).expect("a file for the test");
    let message = load_file(&file).expect_err("must be refused").to_string();
    message.replace(&*file.to_string_lossy(), "FILE")
}

fn value(settings: &Settings, name: &str) -> String {
    settings.get(name).expect("a known key").value.clone()
}

#[test]
fn without_any_source_everything_is_built_in() {
    let settings = Settings::load(&Sources::default()).expect("defaults are valid");
    let lines = settings.all().iter().map(|setting| {
        assert_eq!(setting.origin, Origin::BuiltIn);
        format!("{}={}", setting.key.name(), setting.value)
    });
    assert_eq!(
        lines.collect::<Vec<_>>(),
        [
            "locking.taskTimeout=60m",
            "locking.sectionTimeout=120m",
            "locking.lockTimeout=60m",
            "locking.runTimeout=30s",
            "locking.waitTimeout=30m",
            "locking.pollInterval=5s",
            "locking.grace=5s",
            "tasks.maxRecoveries=3",
            "rescue.enabled=true",
            "rescue.maxBytes=50000000",
            "rescue.keep=30d",
            "retention.events=100000",
            "retention.eventsAge=0s",
            "retention.tasks=100000",
            "retention.tasksAge=0s",
            "retention.failedAge=0s",
            "store=",
            "agent=",
            "identity=auto",
            "telemetry=off",
            "server.url=",
            "server.tokenFile=",
            "server.caFile=",
            "hooks.policy=claim",
            "hooks.scope=repository",
            "hooks.lease=15m",
        ]
    );
    assert_eq!(settings.duration(Key::TaskTimeout), Duration::from_secs(3_600));
    assert_eq!(settings.integer(Key::MaxRecoveries), 3);
    assert_eq!(settings.text(Key::Store), None);
    assert_eq!(settings.get("locking.nonsense"), None);
}

#[test]
fn a_later_layer_wins_key_by_key() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let user = folder.path().join("user.yaml");
    let project = folder.path().join("project.yaml");
    fs::write(
        &user,
        "agent: ada\nlocking: {taskTimeout: 1m, lockTimeout: 1m, grace: 1s, runTimeout: 1s}\n",
    )
    .expect("a file for the test");
    fs::write(&project, "locking: {lockTimeout: 2m, grace: 2s, runTimeout: 2s}\n")
        .expect("a file for the test");
    let mut sources = Sources {
        user_file: Some(user.clone()),
        project_file: Some(project.clone()),
        environment: BTreeMap::from([
            ("TENURE_GRACE".to_owned(), "3s".to_owned()),
            ("TENURE_RUN_TIMEOUT".to_owned(), "3s".to_owned()),
            ("TENURE_AGENT".to_owned(), String::new()),
            ("TENURE_TOKEN".to_owned(), "17".to_owned()),
        ]),
        flags: vec![("locking.runTimeout".to_owned(), "4s".to_owned())],
        ..Sources::default()
    };
    let settings = Settings::load(&sources).expect("all layers are valid");
    for (name, expected, origin) in [
        ("locking.sectionTimeout", "120m", Origin::BuiltIn),
        ("locking.taskTimeout", "1m", Origin::File(user.clone())),
        ("agent", "ada", Origin::File(user)),
        ("locking.lockTimeout", "2m", Origin::Project(project.clone())),
        ("locking.grace", "3s", Origin::Environment("TENURE_GRACE".to_owned())),
        ("locking.runTimeout", "4s", Origin::Flag),
    ] {
        let setting = settings.get(name).expect("a known key");
        assert_eq!((setting.value.as_str(), &setting.origin), (expected, &origin));
    }
    sources.explicit_file = Some(project);
    let settings = Settings::load(&sources).expect("all layers are valid");
    assert_eq!(value(&settings, "agent"), "", "an explicit file replaces the user's");
    assert_eq!(value(&settings, "locking.lockTimeout"), "2m");
}

#[test]
fn values_may_be_plain_or_described() {
    let settings = load(
        "_description: our settings\n\
         locking:\n\
        \x20 _description: how long\n\
        \x20 taskTimeout: 90m # plain\n\
        \x20 sectionTimeout:\n\
        \x20   _description: of a section\n\
        \x20   _default: 120m\n\
        \x20   value: 1d 12h\n\
        \x20 grace: {_description: none yet, _default: 5s}\n\
        \x20 runTimeout:\n\
        \x20 pollInterval: ~\n\
         store: \"file:/a b\"\n\
         agent: no\n",
    )
    .expect("valid");
    assert_eq!(settings.duration(Key::TaskTimeout), Duration::from_secs(5_400));
    assert_eq!(settings.duration(Key::SectionTimeout), Duration::from_secs(129_600));
    assert_eq!(settings.text(Key::Store), Some("file:/a b"));
    assert_eq!(settings.text(Key::Agent), Some("no"));
    for unset in ["locking.grace", "locking.runTimeout", "locking.pollInterval"] {
        assert_eq!(settings.get(unset).expect("known").origin, Origin::BuiltIn);
    }
}

#[test]
fn every_bad_file_has_its_own_sentence() {
    for (text, expected) in [
        (
            "locking:\n  taskTimeOut: 60m\n",
            "FILE:2:3: unknown key \"locking.taskTimeOut\"; \
             the nearest known key is locking.taskTimeout",
        ),
        ("stroe: x\n", "FILE:1:1: unknown key \"stroe\"; the nearest known key is store"),
        (
            "locking:\n  grace:\n    default: 5s\n",
            "FILE:3:5: unknown key \"locking.grace.default\"; \
             the nearest known key is locking.grace",
        ),
        ("agent: a\nstore: b\nagent: c\n", "FILE:3:1: duplicate key \"agent\", first on line 1"),
        (
            "locking:\n  taskTimeout: 90\n",
            "FILE:2:3: locking.taskTimeout: \"90\" has no unit: write 90s, 90m or 90h",
        ),
        (
            "locking:\n  taskTimeout: 0s\n",
            "FILE:2:3: locking.taskTimeout: \"0s\" is too short: at least 100ms is needed",
        ),
        (
            "agent: |\n  two\n  lines\n",
            "FILE:1:1: agent: control characters such as line breaks are not allowed",
        ),
        ("locking: 60m\n", "FILE:1:1: \"locking\" is a group of keys, not a value"),
        ("agent: {value: {a: b}}\n", "FILE:1:9: \"value\" must be a single value"),
        ("agent: [a]\n", "FILE:1:8: lists are not used in settings"),
        (
            "locking.grace: 1s\n",
            "FILE:1:1: \"locking.grace\" must be written as \"grace\", indented below \"locking\"",
        ),
        ("just words\n", "FILE:1:1: expected `key: value` lines"),
    ] {
        assert_eq!(refusal(text), expected, "{text}");
    }
    assert_eq!(
        refusal(b"agent: a\nstore: \xff\n"),
        "the settings file FILE is not UTF-8 text (line 2)"
    );
    assert_eq!(
        refusal("#".repeat(2 * 1024 * 1024)),
        "the settings file FILE is larger than 1048576 bytes"
    );
}

#[test]
fn a_file_nested_ten_thousand_deep_is_one_clear_error() {
    let flow = "{a: ".repeat(10_000);
    let block: String = (0..1_000).map(|depth| " ".repeat(depth) + "a:\n").collect();
    assert_eq!(refusal(flow), "FILE:1:33: nested too deeply");
    assert_eq!(refusal(block), "FILE:9:9: nested too deeply");
}

#[test]
fn a_file_that_is_missing_a_directory_or_unreadable_is_told_apart() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let error = load_file(folder.path()).expect_err("a directory");
    assert!(matches!(error, ConfigError::Directory { .. }), "{error}");

    let absent = folder.path().join("absent/config.yaml");
    assert!(load_file(&absent).is_ok(), "an absent file is no mistake");
    let below_a_file = folder.path().join("file");
    fs::write(&below_a_file, "").expect("a file for the test");
    assert!(load_file(&below_a_file.join("config.yaml")).is_ok());

    let explicit = Sources { explicit_file: Some(absent), ..Sources::default() };
    let error = Settings::load(&explicit).expect_err("an explicit file must exist");
    assert!(matches!(error, ConfigError::Missing { .. }), "{error}");

    let impossible = PathBuf::from("config\0.yaml");
    let error = load_file(&impossible).expect_err("no such name can exist");
    assert!(matches!(error, ConfigError::Unreadable { .. }), "{error}");
}

#[test]
fn mistakes_outside_files_name_their_layer() {
    let environment = |name: &str, value: &str| Sources {
        environment: BTreeMap::from([(name.to_owned(), value.to_owned())]),
        ..Sources::default()
    };
    let error = Settings::load(&environment("TENURE_GRACE", "-1s")).expect_err("negative");
    assert_eq!(
        error.to_string(),
        "TENURE_GRACE: locking.grace: \"-1s\" is negative: a duration is zero or more"
    );
    assert_eq!(error.hint(), "the built-in value is 5s");

    let flags = Sources {
        flags: vec![("locking.grase".to_owned(), "1s".to_owned())],
        ..Sources::default()
    };
    let error = Settings::load(&flags).expect_err("unknown");
    assert_eq!(
        error.to_string(),
        "command line: unknown key \"locking.grase\"; the nearest known key is locking.grace"
    );
    assert_eq!(error.hint(), "did you mean locking.grace?");
}

#[cfg(not(target_os = "macos"))]
#[test]
fn the_user_file_follows_the_environment() {
    let with = |variables: &[(&str, &str)]| {
        let variables: BTreeMap<_, _> = variables.iter().copied().collect();
        user_file(|name| variables.get(name).map(OsString::from))
    };
    let path = |text: &str| Some(PathBuf::from(text));
    assert_eq!(with(&[]), None);
    assert_eq!(with(&[("HOME", "/home/ada")]), path("/home/ada/.config/tenure/config.yaml"));
    assert_eq!(
        with(&[("HOME", "/home/ada"), ("XDG_CONFIG_HOME", "/etc/ada")]),
        path("/etc/ada/tenure/config.yaml")
    );
    assert_eq!(
        with(&[("HOME", "/home/ada"), ("XDG_CONFIG_HOME", "relative")]),
        path("/home/ada/.config/tenure/config.yaml")
    );
}
