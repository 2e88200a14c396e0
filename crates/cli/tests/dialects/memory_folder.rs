//! One lock for everything in a folder: what else is asked for, for how long it is held, when it is
//! taken over, and what git sees of it.

use crate::folder::{Dialect, Folder, hostname};
use crate::memory::sitting;
use crate::support::{Ended, Running};
use serde_json::json;
use std::process::Command;
use std::time::Duration;

/// Updates of tenure and of another program, all of the same file at once: none is lost.
#[test]
fn updates_by_tenure_and_by_others_are_all_counted() {
    let folder = Folder::new(Dialect::Memory);
    let file = folder.path("state.json");
    std::fs::write(&file, r#"{"n": 0}"#).expect("a file");
    let (directory, path) = (folder.path(""), file.to_str().expect("a plain path"));
    let directory = directory.to_str().expect("a plain path");
    let others: Vec<Running> = (0..2)
        .map(|number| {
            let owner = format!("session-{number}");
            let arguments = [directory, "memory", &owner, "20", path];
            Running::start(folder.foreign("count.py", &arguments))
        })
        .collect();
    let add = "import json, sys; d = json.load(sys.stdin); d['n'] += 1; json.dump(d, sys.stdout)";
    let updates: Vec<Running> = (0..16)
        .map(|_| folder.start(&["update", "-w", "60", path, "--", "python3", "-c", add]))
        .collect();
    for process in updates.into_iter().chain(others) {
        let ended = process.end();
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    let content = std::fs::read_to_string(&file).expect("the file");
    let content: serde_json::Value = serde_json::from_str(&content).expect("JSON");
    assert_eq!(content["n"], 16 + 2 * 20);
    assert!(!folder.lock().exists());
}

#[test]
fn updates_and_appended_lines_wait_for_the_folders_lock() {
    let folder = Folder::new(Dialect::Memory);
    let file = folder.path("events.jsonl");
    let path = file.to_str().expect("a plain path");
    let sitter = sitting(&folder, "theirs");
    for arguments in
        [&["update", "-n", path, "--", "echo", "{}"][..], &["append", "-n", path, "--line", "{}"]]
    {
        let refused = folder.run(arguments);
        assert_eq!(refused.code, 6, "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains("theirs"), "{arguments:?}: {refused:?}");
    }
    assert!(std::fs::read(&file).unwrap_or_default().is_empty(), "nothing was written");
    sitter.kill();
    assert_eq!(folder.run(&["append", path, "--line", "{}"]).code, 0);
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), "{}\n");
    assert!(!folder.lock().exists(), "it is held for the moment of writing");
}

/// What the settings say cannot be known: it may be this folder's lock.
#[test]
fn nothing_is_written_where_the_settings_cannot_be_read() {
    let folder = Folder::new(Dialect::Memory);
    let file = folder.path("events.jsonl");
    let path = file.to_str().expect("a plain path");
    std::fs::create_dir_all(folder.path(".tenure")).expect("a folder");
    std::fs::write(folder.path(".tenure/config.yaml"), "{broken").expect("settings");
    for arguments in
        [&["update", "-n", path, "--", "echo", "{}"][..], &["append", "-n", path, "--line", "{}"]]
    {
        let refused = folder.run(arguments);
        assert_eq!(refused.code, 3, "{arguments:?}: {refused:?}");
    }
    assert!(std::fs::read(&file).unwrap_or_default().is_empty(), "nothing was written");
}

/// Held by itself, it would only seem to exclude the other programs.
#[test]
fn nothing_but_the_one_lock_can_be_held() {
    let folder = Folder::new(Dialect::Memory);
    for resource in ["path:state.json", "task:t", "section:s", "other"] {
        for arguments in [&["acquire", "-n", resource][..], &["run", resource, "--", "true"]] {
            let refused = folder.run(arguments);
            assert_eq!(refused.code, 2, "{arguments:?}: {refused:?}");
            assert!(refused.stderr.contains("single lock"), "{refused:?}");
            assert!(refused.stderr.contains("Hint: "), "{refused:?}");
        }
    }
    for arguments in
        [&["tasks", "add", "something"][..], &["sections", "add", "s"], &["tasks", "import", "-"]]
    {
        let refused = folder.run(arguments);
        assert_ne!(refused.code, 0, "{arguments:?}: {refused:?}");
    }
    let refused = folder.run(&["tasks", "add", "something"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.stderr.contains("no task list"), "{refused:?}");

    // The library, or a server over it, asks the store itself.
    let client = tenure::blocking::Client::open(&folder.url()).expect("the store");
    for resource in ["path:state.json", "lock:other", "task:t"] {
        let error = client.acquire(resource).err().expect("there is one lock");
        assert!(error.to_string().contains("has a single lock"), "{error}");
    }
    assert_eq!(client.acquire("memory").expect("that one").lease().resources.len(), 1);
}

#[test]
fn a_detached_lease_lasts_as_long_as_their_locks_unless_told_otherwise() {
    let folder = Folder::new(Dialect::Memory);
    let seconds = |arguments: &[&str]| {
        let lease = folder.json(&[&["acquire", "-n"], arguments].concat());
        let grant = lease["data"]["grant"].as_str().expect("a grant");
        assert_eq!(folder.run(&["release", "--grant", grant]).code, 0);
        lease["data"]["ttl_seconds"].as_f64().expect("a number")
    };
    assert_eq!(seconds(&[]), 30.0);
    assert_eq!(seconds(&["--ttl", "5m"]), 300.0);
    let mut told = folder.tenure(&["--json", "acquire", "-n"]);
    told.env("TENURE_LOCK_TIMEOUT", "2m");
    let told = Running::start(told).end().json();
    assert_eq!(told["data"]["ttl_seconds"], 120.0);
}

#[test]
fn a_lock_with_a_byte_order_mark_is_read() {
    for dialect in Dialect::ALL {
        let folder = Folder::new(dialect);
        folder.put(&format!("\u{feff}{}", dialect.content("powershell", Duration::ZERO)));
        let refused = folder.run(&["acquire", "-n", &dialect.resource()]);
        assert_eq!(refused.code, 6, "{dialect:?}: {refused:?}");
        assert!(refused.stderr.contains("powershell"), "{dialect:?}: {refused:?}");
        assert_eq!(folder.run(&["doctor"]).code, 0, "{dialect:?}");
    }
}

/// A lock of a process that ended, taken just now.
fn of_a_dead_process(folder: &Folder) -> u32 {
    let mut child = Command::new("true").spawn().expect("a process");
    let pid = child.id();
    child.wait().expect("its end");
    let now = jiff::Timestamp::now().to_string();
    let fields = json!({ "pid": pid, "session_id": "gone", "acquired_at": now,
        "hostname": hostname(), "operation": "consolidating" });
    folder.put(&fields.to_string());
    pid
}

#[test]
fn a_dead_holder_is_reported_as_dead() {
    let folder = Folder::new(Dialect::Memory);
    let pid = of_a_dead_process(&folder);
    let taken = folder.run(&["--json", "acquire", "-n"]);
    assert_eq!(taken.code, 0, "{taken:?}");
    assert_eq!(taken.json()["data"]["reason"], "claimed_dead");
    let events = folder.run(&["events"]).stdout;
    assert!(events.contains("gone died"), "{events}");
    assert!(!events.contains("lapsed"), "{events}");
    assert_eq!(folder.run(&["break", "--force", "--reason", "again"]).code, 0);

    of_a_dead_process(&folder);
    let cleaned = folder.run(&["locks", "cleanup"]);
    assert_eq!(cleaned.code, 0, "{cleaned:?}");
    assert!(cleaned.stdout.contains("is dead"), "{pid}: {cleaned:?}");
}

/// Runs a command in this folder with `break_stale=no`.
fn patient(folder: &Folder, arguments: &[&str]) -> Ended {
    let url = format!("{}&break_stale=no", folder.url());
    let mut command = folder.place.command(crate::support::TENURE);
    command.args(["--store", &url]).args(arguments);
    Running::start(command).end()
}

#[test]
fn stale_locks_are_left_alone_where_that_is_asked() {
    let folder = Folder::new(Dialect::Memory);
    let pid = of_a_dead_process(&folder);
    let old = folder.dialect.content("hangs", Duration::from_secs(45));
    for (content, reason) in
        [(None, format!("process {pid} is dead")), (Some(old), "lock is 4".into())]
    {
        if let Some(content) = content {
            folder.put(&content);
        }
        let before = std::fs::read(folder.lock()).expect("the lock");
        assert_eq!(patient(&folder, &["acquire", "-n"]).code, 6);
        assert_eq!(patient(&folder, &["locks", "cleanup"]).code, 0);
        assert_eq!(std::fs::read(folder.lock()).expect("the lock"), before, "left as it is");
        let status = patient(&folder, &["--json", "status"]).json();
        assert_eq!(status["is_stale"], true);
        let told = status["stale_reason"].as_str().expect("a reason");
        assert!(told.starts_with(&reason), "{told}");
    }
    let broken = patient(&folder, &["break", "--force", "--reason", "it hangs"]);
    assert_eq!(broken.code, 0, "an operator still can: {broken:?}");
    assert_eq!(patient(&folder, &["acquire", "-n"]).code, 0);
}

fn git(folder: &Folder, arguments: &[&str]) -> String {
    let mut command = folder.place.command("git");
    command.args(arguments);
    let ended = Running::start(command).end();
    assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
    ended.stdout
}

#[test]
fn git_does_not_see_lock_files_and_no_file_of_the_user_is_changed() {
    for dialect in Dialect::ALL {
        let folder = Folder::new(dialect);
        git(&folder, &["init", "--quiet"]);
        std::fs::write(folder.path("state.json"), "{}").expect("a file");
        std::fs::write(folder.path(".gitignore"), "mine\n").expect("a file");
        // A look leaves git's own list alone.
        let exclude = folder.place.path(".git/info/exclude");
        let read = || std::fs::read_to_string(&exclude).expect("git's own list");
        let fresh = read();
        assert_eq!(folder.run(&["locks"]).code, 0);
        assert_eq!(read(), fresh);
        assert_eq!(folder.run(&["acquire", &dialect.resource(), "--ttl", "10m"]).code, 0);
        assert!(folder.lock().exists());
        let seen = git(&folder, &["status", "--porcelain", "--untracked-files=all", "locks"]);
        assert_eq!(seen, "?? locks/.gitignore\n?? locks/state.json\n", "{dialect:?}");
        let text = std::fs::read_to_string(folder.path(".gitignore")).expect("the user's file");
        assert_eq!(text, "mine\n");
        // Once, however many commands follow.
        let before = read();
        folder.run(&["acquire", "-n", &dialect.resource()]);
        assert_eq!(read(), before);
    }
}
