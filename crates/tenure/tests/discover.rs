//! `Client::discover` finds the store as the command does. Each case runs in a process of its own,
//! because the current folder and the environment decide.

use std::path::Path;
use std::process::Command;

/// Is set in the process that discovers.
const CHILD: &str = "DISCOVER_HERE";

/// Runs in the child process, and prints what it found.
#[tokio::test(flavor = "current_thread")]
#[allow(clippy::print_stdout, reason = "the parent reads it")]
async fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    match tenure::Client::discover().await {
        Ok(client) => println!("found {} as {}", client.info().url, client.holder().label),
        Err(error) => println!("refused: {error}"),
    }
}

/// What a process finds that runs in this folder.
fn discover(folder: &Path, store: Option<&str>) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture"]).env_clear().current_dir(folder);
    command.env("TENURE_MACHINE_DIR", folder.join("machine"));
    command.env(CHILD, "1").env("HOME", folder.join("home")).env("TENURE_AGENT", "alice");
    if let Some(store) = store {
        command.env("TENURE_STORE", store);
    }
    let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let line = output.lines().find(|line| line.contains("found ") || line.contains("refused: "));
    let line = line.unwrap_or_else(|| panic!("the child said nothing: {output}"));
    let start = line.find("found ").or_else(|| line.find("refused: ")).unwrap();
    line[start..].to_owned()
}

fn project() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join(".tenure")).unwrap();
    std::fs::create_dir_all(root.join("deep/below")).unwrap();
    (folder, root)
}

#[test]
fn the_nearest_folder_upward_has_the_store() {
    let (_folder, root) = project();
    let database = root.join(".tenure/tenure.db");
    let found = discover(&root.join("deep/below"), None);
    assert_eq!(found, format!("found sqlite:{} as alice", database.display()));
    assert!(database.exists());
}

#[test]
fn a_store_that_is_set_is_created_where_the_command_would_create_it() {
    let (_folder, root) = project();
    let url = |name: &str| format!("sqlite:{}", root.join(name).display());
    assert_eq!(discover(&root, Some("sqlite:new.db")), format!("found {} as alice", url("new.db")));
    for mistyped in ["nwe.db", "no-folder/new.db"] {
        let refused = discover(&root, Some(&format!("sqlite:{mistyped}")));
        assert_eq!(refused, format!("refused: there is no store at {}", url(mistyped)));
        assert!(!root.join(mistyped).exists());
    }
}

#[test]
fn the_settings_of_a_project_need_trust() {
    let (_folder, root) = project();
    std::fs::write(root.join(".tenure/config.yaml"), "store: sqlite:/elsewhere/x.db\n").unwrap();
    let refused = discover(&root, None);
    assert!(refused.contains("you have not trusted this file"), "{refused}");
}
