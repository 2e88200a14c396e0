//! Work is handed over: what a worker noted and how its try ended reach the next worker, whatever the
//! store. The first worker is a real process and is killed in the middle of its work.

#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const TENURE: &str = env!("CARGO_BIN_EXE_tenure");

/// How long something may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

struct Scene {
    folder: tempfile::TempDir,
    store: String,
}

impl Scene {
    fn new(store: impl Fn(&str) -> String) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path().to_str().unwrap());
        Scene { folder, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(TENURE);
        command.args(words).env_clear().env("HOME", self.folder.path()).env("TENURE", TENURE);
        command.env("TENURE_MACHINE_DIR", self.folder.path().join("machine"));
        command.env("TENURE_STORE", &self.store).env("PATH", "/usr/bin:/bin");
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    fn ok(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?} on {}: {err}", self.store);
        String::from_utf8(output.stdout).unwrap()
    }

    fn task(&self) -> Value {
        let shown = self.ok(&["--json", "tasks", "show", "t"]);
        serde_json::from_str::<Value>(&shown).unwrap()["data"]["task"].clone()
    }

    fn await_file(&self, name: &str) {
        let begun = Instant::now();
        while !self.path(name).exists() {
            assert!(begun.elapsed() < PATIENCE, "{name} on {}", self.store);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A worker that notes something, says so by a file, and goes on working.
    fn start_worker(&self) -> Child {
        let script = "\"$TENURE\" tasks note t 'half of it is in src/cache.rs' && touch noted; exec sleep 300";
        self.command(&["--as", "first", "work", "--once", "--", "sh", "-c", script])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }
}

/// Ended when it is dropped, so that a test that fails leaves no server behind.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_handed_over(scene: &Scene) {
    scene.ok(&["tasks", "add", "T", "--id", "t"]);
    let mut first = scene.start_worker();
    scene.await_file("noted");
    first.kill().unwrap();
    first.wait().unwrap();
    // The next worker is told on its standard input.
    scene.ok(&["--as", "second", "work", "--until-empty", "--", "sh", "-c", "cat > told.json"]);
    let told = std::fs::read_to_string(scene.path("told.json")).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    let notes: Vec<(&Value, &Value)> =
        told["notes"].as_array().unwrap().iter().map(|note| (&note["by"], &note["text"])).collect();
    assert_eq!(notes, [(&json!("first"), &json!("half of it is in src/cache.rs"))]);
    let tries = told["tries"].as_array().unwrap();
    let [died] = tries.as_slice() else { panic!("{told}") };
    assert_eq!((&died["by"], &died["outcome"]), (&json!("first"), &json!("died")), "{told}");
    // What was told is kept, with how the second try ended.
    let task = scene.task();
    let outcomes: Vec<&Value> =
        task["tries"].as_array().unwrap().iter().map(|one| &one["outcome"]).collect();
    assert_eq!(outcomes, ["died", "completed"], "{task}");
    assert_eq!(task["finished_by"], "second");
    assert_eq!(task["notes"], told["notes"]);
    let text = scene.ok(&["tasks", "show", "t"]);
    assert!(text.contains("try 1        first: died at "), "{text}");
    assert!(text.contains("half of it is in src/cache.rs"), "{text}");
    let events = scene.ok(&["events"]);
    let noted = "first noted on task:t: \"half of it is in src/cache.rs\"";
    assert!(events.contains(noted), "{events}");
}

#[test]
fn over_sqlite() {
    is_handed_over(&Scene::new(|folder| format!("sqlite:{folder}/tasks.db")));
}

#[test]
fn over_readable_files() {
    let scene = Scene::new(|folder| format!("file:{folder}/tasks"));
    scene.ok(&["init"]);
    is_handed_over(&scene);
}

#[test]
fn over_a_server() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let scene = Scene::new(|_| format!("http://{address}"));
    let store = format!("sqlite:{}", scene.path("tasks.db").display());
    let mut serve = scene.command(&["--store", &store, "serve", "--listen", &address.to_string()]);
    let server = serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let _server = Server(server);
    let begun = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(begun.elapsed() < PATIENCE, "the server does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    is_handed_over(&scene);
}

/// What a claim prints, for an agent that claims by the command line.
#[test]
fn a_claim_shows_what_was_left() {
    let scene = Scene::new(|folder| format!("sqlite:{folder}/tasks.db"));
    scene.ok(&["tasks", "add", "T", "--id", "t"]);
    let claimed = scene.ok(&["tasks", "claim", "--as", "a"]);
    assert!(
        !claimed.contains("try") && !claimed.contains("note"),
        "nothing is left yet: {claimed}"
    );
    scene.ok(&["tasks", "note", "t", "\u{1b}[2Jone\ntwo", "--as", "a"]);
    scene.ok(&["tasks", "release", "t", "--as", "a"]);
    let claimed = scene.ok(&["tasks", "claim", "--as", "b"]);
    assert!(claimed.contains("  try 1    a: released at "), "{claimed}");
    assert!(claimed.contains("\n           two"), "{claimed}");
    assert!(!claimed.contains('\u{1b}'), "a note must not steer the terminal: {claimed:?}");
    // The lists stay short.
    let listed = scene.ok(&["--json", "tasks", "list"]);
    assert!(!listed.contains("\"notes\"") && !listed.contains("\"tries\""), "{listed}");
    // An operator ends it: the next worker learns who and why.
    let task = scene.task();
    let token = task["token"].to_string();
    let reason = ["--force", "--reason", "stuck"];
    scene.ok(&[&["break", "task:t", "--token", &token, "--as", "ops"], &reason[..]].concat());
    let tries = scene.task()["tries"].clone();
    assert_eq!(tries[1]["outcome"], "broken", "{tries}");
    assert_eq!(tries[1]["error"], "task:t was broken by ops: stuck", "{tries}");
}

#[test]
fn what_is_no_note_is_refused() {
    let scene = Scene::new(|folder| format!("sqlite:{folder}/tasks.db"));
    scene.ok(&["tasks", "add", "T", "--id", "t"]);
    let long = "x".repeat(8193);
    for (words, code, sentence) in [
        (vec!["t", " \n "], 2, "Error: the note is empty\n"),
        (vec!["t", &long], 2, "Error: the note has 8193 bytes; the longest allowed is 8192\n"),
        (vec!["nothing", "x"], 4, "Error: no task \"nothing\"\n"),
        (vec!["t", "-"], 2, "Error: the note is empty\n"),
    ] {
        let output = scene.run(&[&["tasks", "note"], words.as_slice()].concat());
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{err}");
        assert!(err.starts_with(sentence), "{err}");
    }
    assert_eq!(scene.task().get("notes"), None);
}

/// Notes go with an export, and come back with an import.
#[test]
fn notes_are_exported_and_imported() {
    for format in ["json", "yaml"] {
        let scene = Scene::new(|folder| format!("sqlite:{folder}/tasks.db"));
        scene.ok(&["tasks", "add", "T", "--id", "t"]);
        scene.ok(&["tasks", "note", "t", "- one: 'two'\n  three", "--as", "a"]);
        let notes = scene.task()["notes"].clone();
        let file = format!("tasks.{format}");
        scene.ok(&["tasks", "export", "-o", &file]);
        scene.ok(&["tasks", "delete", "t"]);
        scene.ok(&["tasks", "import", &file]);
        assert_eq!(scene.task()["notes"], notes, "{format}");
    }
}

/// The task list of another program stays as it is, byte for byte; the note is kept beside it.
#[test]
fn a_note_leaves_the_list_of_another_program_alone() {
    let scene = Scene::new(|folder| format!("file:{folder}/c?dialect=coordination"));
    std::fs::create_dir(scene.path("c")).unwrap();
    let task = |id: &str, status: &str, by: Option<&str>| {
        json!({ "id": id, "description": format!("do {id}"), "status": status, "priority": 5,
            "claimed_by": by, "dependencies": [], "claimed_at": "2026-01-01T00:00:00Z" })
    };
    let tasks = [
        task("t", "available", None),
        task("theirs", "claimed", Some("term-1")),
        task("done", "done", Some("term-1")),
    ];
    let list = json!({ "version": "1.0", "tasks": tasks }).to_string();
    std::fs::write(scene.path("c/tasks.json"), &list).unwrap();
    for name in ["t", "theirs", "done"] {
        scene.ok(&["tasks", "note", name, "a note", "--as", "a"]);
        let shown = scene.ok(&["tasks", "show", name]);
        assert!(shown.contains("a note"), "{shown}");
    }
    assert_eq!(std::fs::read_to_string(scene.path("c/tasks.json")).unwrap(), list);
    let claimed = scene.ok(&["tasks", "claim", "t", "--as", "b"]);
    assert!(claimed.contains("a note"), "{claimed}");
    // Another program finishes it meanwhile: the try says so.
    let mut tasks = tasks;
    tasks[0]["status"] = json!("done");
    tasks[0]["claimed_by"] = json!("term-2");
    let list = json!({ "version": "1.0", "tasks": tasks }).to_string();
    std::fs::write(scene.path("c/tasks.json"), list).unwrap();
    let task = scene.task();
    assert_eq!((&task["status"], &task["finished_by"]), (&json!("completed"), &json!("term-2")));
    assert_eq!(task["tries"][0]["outcome"], "lost", "{task}");
}
