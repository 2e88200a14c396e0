//! `tenure selftest`: shows exclusion on a normal folder, finds it missing where nobody asks for the
//! lock, and decides whether a FUSE file system is accepted.

#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "what was skipped is told")]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// A command in this folder, which sees nothing of the machine's own settings and stores.
fn tenure(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.current_dir(folder).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", folder).env("TENURE_MACHINE_DIR", folder.join("machine"));
    command
}

fn selftest(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = tenure(folder);
    command.arg("selftest").args(arguments).output().unwrap()
}

fn envelope(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_normal_folder_excludes_and_nothing_stays_behind() {
    for store in ["sqlite:locks.db", "file:locks"] {
        let folder = tempfile::tempdir().unwrap();
        let options = ["--store", store, "--for", "2s", "--processes", "4", "--json"];
        let output = selftest(folder.path(), &options);
        assert!(output.status.success(), "{output:?}");
        let data = &envelope(&output)["data"];
        assert_eq!(data["exclusive"], true);
        assert_eq!(data["processes"], 4);
        assert!(data["record"].is_null(), "{data}");
        assert!(data["limits"].as_str().unwrap().contains("between machines"), "{data}");
        let checks = data["checks"].as_array().unwrap();
        assert_eq!(checks.len(), 6);
        for check in checks {
            assert_eq!(check["ok"], true, "{check}");
            let is_there = check["flaw"].is_null();
            assert!(!is_there || check["rounds"].as_u64().unwrap() > 0, "{check}");
        }
        for check in ["kernel lock", "store"] {
            let check = checks.iter().find(|found| found["check"] == check).unwrap();
            assert!(check["takeovers"].as_u64().unwrap() > 0, "{check}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{store}");
    }
}

#[test]
fn a_store_that_is_there_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = tenure(folder.path());
        let output = command.args(arguments).args(["--store", "file:locks"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output
    };
    run(&["init"]);
    run(&["acquire", "selftest", "--as", "me"]);
    let before = run(&["events", "--json"]).stdout;
    run(&["selftest", "--for", "1s", "--processes", "2"]);
    assert_eq!(run(&["events", "--json"]).stdout, before);
}

/// Only builds for tests have the switch.
#[cfg(debug_assertions)]
#[test]
fn processes_that_do_not_ask_for_the_lock_are_caught() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["--store", "sqlite:a.db", "--for", "2s", "--without-lock"];
    let output = selftest(folder.path(), &options);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("Error: store: two processes held the same lock at once"), "{stderr}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("FAIL  store"), "{stdout}");
    let output = selftest(folder.path(), &[&options[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(7));
    let error = &envelope(&output)["error"];
    assert_eq!(error["code"], "NOT_EXCLUSIVE");
    assert_eq!(error["details"]["exclusive"], false);
}

#[test]
fn what_could_show_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for options in [["--for", "10ms"], ["--for", "1h"], ["--processes", "1"], ["--processes", "65"]]
    {
        let output = selftest(folder.path(), &[&options[..], &["--store", "file:x"]].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    let output = selftest(folder.path(), &["--store", "memory:"]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}

/// Runs a script in a shell where `fuse` is a FUSE file system and `$T` the command; nothing if it
/// cannot be mounted.
fn with_fuse(script: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    for name in ["disk", "fuse"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    let mount = "bindfs disk fuse || exit 99
        trap 'cd /; umount \"$D/fuse\" || umount -l \"$D/fuse\"' EXIT";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", &format!("{mount}\n{script}")]);
    command.env("T", env!("CARGO_BIN_EXE_tenure")).env("D", folder.path());
    command.env_remove("TENURE_STORE").env("HOME", folder.path()).current_dir(folder.path());
    command.env("TENURE_MACHINE_DIR", folder.path().join("machine"));
    // The program that serves the files must not keep a pipe open.
    let (out, err) = (folder.path().join("out"), folder.path().join("err"));
    command.stdout(std::fs::File::create(&out).unwrap());
    command.stderr(std::fs::File::create(&err).unwrap());
    let status = command.status();
    let read = |path| std::fs::read_to_string(path).unwrap();
    match status.map(|status| status.code()) {
        Ok(Some(0)) => Some(read(&out)),
        Ok(Some(99 | 1)) | Err(_) if !read(&out).contains("mounted") => {
            let why = "no FUSE file system can be mounted here, and CI must show this";
            assert!(std::env::var_os("CI").is_none(), "{why}: {}", read(&err));
            println!("skipped: no FUSE file system can be mounted here: {}", read(&err));
            None
        }
        other => panic!("{other:?}\n{}\n{}", read(&out), read(&err)),
    }
}

#[test]
fn fuse_is_refused_until_exclusion_was_shown_and_the_user_says_so() {
    let script = r#"
        echo mounted
        code() { "$T" -q --store "$@" >>log 2>&1; echo $?; }
        plain='file:fuse/s'; shown='file:fuse/s?exclusion=shown'
        echo "neither $(code $plain acquire a)"
        echo "only said $(code $shown acquire a)"
        grep -q 'Run `tenure selftest --store file:.*/fuse/s` first' log && echo hinted
        echo "database $(code sqlite:fuse/a.db selftest --for 1s)"
        echo "selftest $(code $plain selftest --for 2s --processes 4)"
        grep -o '"result": "shown"' fuse/s/exclusion.json
        echo "left $(ls -A fuse/s)"
        echo "only shown $(code $plain acquire a)"
        echo "both $(code $shown acquire a)"
        echo "held $(code $shown acquire a --no-wait)"
        echo "doctor $(code $shown doctor)"
        sed -i 's/"shown"/"failed"/' fuse/s/exclusion.json
        echo "failed $(code $shown acquire b)"
        cat log >&2
    "#;
    let Some(said) = with_fuse(script) else { return };
    let expected = "mounted
neither 3
only said 3
hinted
database 3
selftest 0
\"result\": \"shown\"
left exclusion.json
only shown 3
both 0
held 6
doctor 0
failed 3
";
    assert_eq!(said, expected);
}
