//! House rules: what the documents say is there, and what is there the documents say.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file that is longer has more than one concept in it.
const LINES_AT_MOST: usize = 700;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn document(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// All files below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

fn rust_files() -> Vec<PathBuf> {
    let mut files = files_below(&root().join("crates"));
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files
}

/// The path as documents write it.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()
}

fn is_source(path: &Path) -> bool {
    let path = shown(path);
    let is_test = ["/tests/", "crates/testkit/"].iter().any(|part| path.contains(part));
    path.contains("/src/") && !is_test && !path.ends_with("/tests.rs")
}

/// Fails with a sentence and a list, unless the list is empty.
fn none(sentence: &str, offenders: impl IntoIterator<Item = String>) {
    let offenders: BTreeSet<String> = offenders.into_iter().collect();
    let list = offenders.into_iter().map(|one| format!("\n  {one}")).collect::<String>();
    assert!(list.is_empty(), "{sentence}:{list}");
}

/// The texts between backticks, outside of blocks of code.
fn quoted(text: &str) -> Vec<&str> {
    text.split("```").step_by(2).flat_map(|prose| prose.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn every_exit_code_is_documented() {
    let reference = document("docs/reference.md");
    let source = document("crates/frontend/src/exit.rs");
    let codes = source.lines().filter_map(|line| {
        let (name, number) = line.trim().trim_end_matches(',').split_once(" = ")?;
        let number: u8 = number.parse().ok()?;
        Some((name.to_owned(), number))
    });
    let codes: Vec<(String, u8)> = codes.collect();
    assert!(codes.len() >= 9, "exit codes are not found in exit.rs any more: {codes:?}");
    let missing = codes.iter().filter(|(_, code)| !reference.contains(&format!("\n| {code} | ")));
    none(
        "exit codes without a row in the table of docs/reference.md",
        missing.map(|(name, code)| format!("{code} ({name})")),
    );
}

#[test]
fn every_variable_is_documented() {
    let reference = document("docs/reference.md");
    let mut variables = BTreeSet::new();
    for path in rust_files().into_iter().filter(|path| is_source(path)) {
        for piece in fs::read_to_string(path).unwrap().split("TENURE_").skip(1) {
            let end = piece.find(|c: char| !c.is_ascii_uppercase() && c != '_');
            let name = &piece[..end.unwrap_or(piece.len())];
            if !name.is_empty() {
                variables.insert(format!("TENURE_{name}"));
            }
        }
    }
    assert!(variables.contains("TENURE_STORE"), "{variables:?}");
    let documented = |variable: &String| reference.contains(&format!("`{variable}`"));
    none(
        "variables in the source that docs/reference.md does not name",
        variables.into_iter().filter(|variable| !documented(variable)),
    );
}

#[test]
fn every_command_is_documented() {
    let documents = document("README.md") + &document("docs/reference.md");
    let help = Command::new(env!("CARGO_BIN_EXE_tenure")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let list = help.lines().skip_while(|line| !line.starts_with("Usage:")).skip(1);
    let commands: Vec<&str> = list
        .take_while(|line| *line != "Options:")
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .collect();
    assert!(commands.contains(&"run"), "{help}");
    let missing = commands.iter().filter(|command| {
        let words = format!("tenure {command}");
        let mut rest = documents.split(&words).skip(1);
        !rest.any(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-'))
    });
    none(
        "commands that neither README.md nor docs/reference.md shows",
        missing.map(|command| format!("tenure {command}")),
    );
}

/// With the store, the state or the settings of the machine on which they run, tests would show
/// something else on each machine, and change what is in use there.
#[test]
fn tests_do_not_see_the_machines_own_store() {
    let starts = ["CARGO_BIN_EXE_", "tenure\")"].concat();
    let seeing = rust_files().into_iter().filter(|path| {
        let text = fs::read_to_string(path).unwrap();
        let starts = text.contains(&format!("Command::new(env!(\"{starts}"))
            || text.contains(".env_clear()") && shown(path).contains("/tests/");
        let is_here = path.ends_with("tests/tidy.rs");
        starts && !is_here && !text.contains("TENURE_MACHINE_DIR")
    });
    none("tests that start programs without TENURE_MACHINE_DIR", seeing.map(|path| shown(&path)));
}

/// The kernel stops all file locks of the machine while it lists them.
#[test]
fn the_list_of_file_locks_is_read_by_no_program() {
    let list = ["/proc", "locks"].join("/");
    let reading = rust_files().into_iter().filter(|path| {
        let is_code = |line: &str| !line.trim_start().starts_with("//");
        let text = fs::read_to_string(path).unwrap();
        is_source(path) && text.lines().any(|line| is_code(line) && line.contains(&list))
    });
    none("programs that read the list of file locks", reading.map(|path| shown(&path)));
}

#[test]
fn no_file_is_too_long_to_read() {
    let long = rust_files().into_iter().filter_map(|path| {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        (lines > LINES_AT_MOST).then(|| format!("{} ({lines})", shown(&path)))
    });
    none(&format!("files of more than {LINES_AT_MOST} lines"), long);
}

#[test]
fn the_map_names_only_what_exists() {
    let map = document("ARCHITECTURE.md");
    let paths: Vec<&str> = quoted(&map)
        .into_iter()
        .filter(|text| ["crates/", "docs/", "scripts/"].iter().any(|top| text.starts_with(top)))
        .collect();
    assert!(paths.len() > 5, "ARCHITECTURE.md names no paths in backticks any more: {paths:?}");
    let ghosts = paths.into_iter().filter(|path| !root().join(path).exists());
    none("paths in ARCHITECTURE.md that do not exist", ghosts.map(str::to_owned));
}

#[test]
fn the_map_names_every_module_folder() {
    let map = document("ARCHITECTURE.md");
    let named: BTreeSet<&str> =
        quoted(&map).into_iter().map(|path| path.trim_end_matches('/')).collect();
    let sources: Vec<PathBuf> = rust_files().into_iter().filter(|path| is_source(path)).collect();
    let folders: BTreeSet<&Path> = sources.iter().filter_map(|path| path.parent()).collect();
    let unnamed = folders.into_iter().filter(|folder| {
        let own = sources.iter().filter(|path| path.parent() == Some(folder)).count();
        let is_top = folder.parent().is_some_and(|parent| parent.ends_with("src"));
        // A single file deeper down belongs to what is named above it.
        !folder.ends_with("src") && (is_top || own > 1) && !named.contains(shown(folder).as_str())
    });
    none("module folders that ARCHITECTURE.md does not name", unnamed.map(shown));
}

/// A client takes time, tasks, randomness and processes from its world, and does nothing in a random
/// order, so that a test can run it in a virtual one.
#[test]
fn the_client_touches_the_machine_through_its_world_only() {
    let banned = [
        "std::thread",
        "Condvar",
        "Uuid::new_v4",
        "GrantId::random",
        "OnceLock",
        "Instant::now",
        "SystemTime",
        "platform::",
        "process::id",
        "tokio::spawn",
        "tokio::time",
        "sync::watch",
        "HashMap",
    ];
    // These two are the network itself, on a runtime of their own.
    let network = ["remote/connections.rs", "remote/dial.rs"];
    let is_client = |path: &&PathBuf| {
        let path = shown(path);
        ["client/", "remote/"]
            .iter()
            .any(|folder| path.starts_with(&format!("crates/tenure/src/{folder}")))
            && !network.iter().any(|name| path.ends_with(name))
    };
    let files = rust_files();
    let files: Vec<&PathBuf> = files.iter().filter(is_client).collect();
    assert!(files.len() > 15, "the client is not where it was: {files:?}");
    let mut offenders = Vec::new();
    for path in files {
        let source = fs::read_to_string(path).unwrap();
        let found = banned.iter().filter(|word| source.contains(**word));
        offenders.extend(found.map(|word| format!("{}: {word}", shown(path))));
        let selects = source.split("select! {").skip(1);
        if selects.into_iter().any(|body| !body.trim_start().starts_with("biased;")) {
            offenders.push(format!("{}: select! that is not biased", shown(path)));
        }
    }
    none("what the client must take from its world", offenders);
}

/// Paths of the machine that somebody worked on mean nothing to anybody else.
#[test]
fn no_file_names_a_place_on_somebodys_machine() {
    let listing = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let Ok(listing) = listing.map(|output| output.stdout) else { return };
    let places = [concat!("/", "work/"), concat!("/", "tmp/wt"), concat!("/", "root/")];
    let mut offenders = Vec::new();
    for name in listing.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let name = std::str::from_utf8(name).unwrap();
        let Ok(content) = fs::read(root().join(name)) else { continue };
        let content = String::from_utf8_lossy(&content);
        for place in places {
            // A folder of that name deeper down is nobody's machine.
            let begins = |(at, _): (usize, &str)| {
                let before = content[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || "._-])}>*~".contains(c))
            };
            if content.match_indices(place).any(begins) {
                offenders.push(format!("{name}: {place}"));
            }
        }
    }
    none("tracked files that name a place on somebody's machine", offenders);
}

/// A machine that was just started updates itself: its package manager is waited for, and its lists
/// are fetched once. Shown with a stand-in for apt-get, whose lists are locked the first two times.
#[test]
fn the_scripts_wait_for_the_package_manager() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let stand_ins = [
        ("sudo", "exec \"$@\""),
        ("sleep", "true"),
        (
            "apt-get",
            "echo \"$*\" >>$LOG; case \"$*\" in *update*)
                [ $(grep -c update $LOG) -gt 2 ] && exit 0
                echo 'E: Could not get lock /var/lib/apt/lists/lock' >&2; exit 100;;
             esac",
        ),
    ];
    for (name, script) in stand_ins {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let log = folder.path().join("log");
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let script = "set -euo pipefail; . scripts/needs; install_packages one; install_packages two";
    let mut command = Command::new("bash");
    command.args(["-c", script]).current_dir(root()).env("PATH", path).env("LOG", &log);
    let output = command.env_remove("PACKAGE_LISTS_UPDATED").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let patient = "-o DPkg::Lock::Timeout=300";
    let install = format!("{patient} install -y -qq --no-install-recommends");
    let update = format!("{patient} update -qq");
    let expected =
        [&update, &update, &update, &format!("{install} one"), &format!("{install} two")];
    let said = fs::read_to_string(log).unwrap();
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
}
