//! What tests of the command share: a place of their own, commands in it, and waiting for what
//! must happen.
//!
//! A [`StoreLocation`] is a scratch folder with a home and a store. Commands in it see nothing of the
//! tester's environment. What they start carries the folder's name in `$D`, by which it is found
//! again, and ended when the place is dropped.

mod dice;
mod processes;

pub use dice::Dice;
pub use processes::{Signal, is_alive, signal, signal_group, state};

use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long to wait for what must happen; only a failure ever takes so long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The binary under test.
pub const TENURE: &str = env!("CARGO_BIN_EXE_tenure");

/// Asks again and again until there is an answer.
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A scratch folder, `$D` to what runs in it, with a home and a store.
pub struct StoreLocation {
    folder: TempDir,
    engine: Engine,
}

/// Which store a place has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Files,
}

impl StoreLocation {
    pub fn new() -> StoreLocation {
        StoreLocation::with(Engine::Sqlite)
    }

    pub fn with(engine: Engine) -> StoreLocation {
        let folder = tempfile::tempdir().expect("a scratch folder");
        std::fs::create_dir(folder.path().join("home")).expect("a home");
        if engine == Engine::Files {
            // Other commands than `init` make no folder for a store that was named.
            std::fs::create_dir(folder.path().join("store")).expect("a folder for the store");
        }
        StoreLocation { folder, engine }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn database(&self) -> PathBuf {
        self.path("tenure.db")
    }

    pub fn url(&self) -> String {
        match self.engine {
            Engine::Sqlite => format!("sqlite:{}", self.database().display()),
            Engine::Files => format!("file:{}", self.path("store").display()),
        }
    }

    /// Where those who write queue.
    pub fn side(&self) -> PathBuf {
        match self.engine {
            Engine::Sqlite => self.path("tenure.db.side"),
            Engine::Files => self.path("store/side"),
        }
    }

    /// What a file contains; nothing if it is not there yet.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub fn touch(&self, name: &str) {
        File::create(self.path(name)).expect("a file in the scratch folder");
    }

    /// The number that a process wrote to a file as a line, once it has.
    pub fn number(&self, name: &str) -> u32 {
        until(&format!("a number in {name}"), || {
            self.read(name).strip_suffix('\n')?.trim().parse().ok()
        })
    }

    /// Waits until a file is there.
    pub fn wait_for(&self, name: &str) {
        until(&format!("the file {name}"), || self.path(name).exists().then_some(()));
    }

    /// Any program, with the environment of this place and nothing else: `$D` is the folder, `$T`
    /// the binary under test.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.folder.path()).stdin(Stdio::null());
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.env("HOME", self.path("home")).env("D", self.folder.path()).env("T", TENURE);
        command.env("TENURE_MACHINE_DIR", self.path("machine"));
        // Each command stands for itself; tests of identity turn it on.
        command.env("TENURE_IDENTITY", "off");
        command
    }

    /// The binary under test, about to use this place's store.
    pub fn tenure(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(TENURE);
        command.args(["--store", &self.url()]).args(arguments);
        command
    }

    /// This test binary in one of its roles; see `faults/roles.rs`.
    pub fn role(&self, role: &str) -> Command {
        let mut command = self.command(std::env::current_exe().expect("this binary's path"));
        command.args(["--exact", "roles::role", "--nocapture", "--quiet", "--test-threads=1"]);
        command.env("FAULTS_ROLE", role).env("URL", self.url());
        command
    }

    pub fn start(&self, arguments: &[&str]) -> Running {
        Running::start(self.tenure(arguments))
    }

    /// Runs the binary under test to its end.
    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).end()
    }

    /// What a command answers with `--json`; it must succeed.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let ended = self.run(&[&["--json"], arguments].concat());
        assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
        ended.json()["data"].clone()
    }

    pub fn why(&self, resource: &str) -> Value {
        self.json(&["why", resource])
    }

    /// Takes a lease that no process is tied to; returns its token and grant.
    pub fn acquire(&self, arguments: &[&str]) -> (u64, String) {
        let lease = self.json(&[&["acquire"], arguments].concat());
        let token = lease["token"].as_u64().expect("a token");
        (token, lease["grant"].as_str().expect("a grant").to_owned())
    }

    /// Whether `tenure verify` accepts this token.
    pub fn accepts(&self, resource: &str, token: u64) -> bool {
        let ended = self.run(&["verify", resource, "--token", &token.to_string()]);
        assert!([0, 8].contains(&ended.code), "{ended:?}");
        ended.code == 0
    }

    /// What runs here now: all that was started in this place and did not wipe its environment.
    pub fn processes(&self) -> Vec<u32> {
        processes::with_variable("D", self.folder.path())
    }

    /// Nothing that was started here is left. What tenure killed may take a moment to be gone.
    pub fn is_deserted(&self) {
        until("the end of all that was started here", || self.processes().is_empty().then_some(()));
    }
}

impl Drop for StoreLocation {
    fn drop(&mut self) {
        for pid in self.processes() {
            signal(pid, Signal::KILL);
        }
    }
}

/// A process that was started; killed when dropped before its end.
pub struct Running {
    child: Child,
    words: Vec<OsString>,
    stdout: File,
    stderr: File,
}

impl Running {
    /// Starts a command. Its output goes to files, so that neither a flood of it nor an heir that
    /// keeps it open can block anybody.
    pub fn start(command: Command) -> Running {
        let stdout = tempfile::tempfile().expect("a file for output");
        let end = stdout.try_clone().expect("another descriptor").into();
        Running::start_writing_to(command, end, stdout)
    }

    /// Starts a command whose standard output goes elsewhere; to a pipe that nobody reads, say.
    pub fn start_unheard(command: Command, end: Stdio) -> Running {
        Running::start_writing_to(command, end, tempfile::tempfile().expect("a file"))
    }

    /// Starts a command whose messages go elsewhere; to a pipe that nobody reads, say.
    pub fn start_mute(mut command: Command, end: impl Into<Stdio>) -> Running {
        let (stdout, stderr) = (tempfile::tempfile(), tempfile::tempfile());
        let (stdout, stderr) = (stdout.expect("a file"), stderr.expect("a file"));
        command.stdout(stdout.try_clone().expect("another descriptor")).stderr(end);
        let words = command.get_args().map(OsStr::to_owned).collect();
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Running { child, words, stdout, stderr }
    }

    fn start_writing_to(mut command: Command, end: Stdio, stdout: File) -> Running {
        let stderr = tempfile::tempfile().expect("a file for output");
        command.stdout(end);
        command.stderr(stderr.try_clone().expect("another descriptor"));
        let words = command.get_args().map(OsStr::to_owned).collect();
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Running { child, words, stdout, stderr }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Signals it. Its number cannot mean another process, for it is not collected before its end.
    pub fn signal(&self, which: Signal) {
        signal(self.child.id(), which);
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child to look at").is_some()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ended {
        let what = format!("the end of {:?}", self.words);
        let status = until(&what, || self.child.try_wait().expect("a child to look at"));
        Ended {
            code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
            stdout: content(&self.stdout),
            stderr: content(&self.stderr),
        }
    }

    /// Kills it with SIGKILL and collects it.
    pub fn kill(self) -> Ended {
        self.signal(Signal::KILL);
        self.end()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A pipe into which nothing more can be written until it is read.
pub fn full_pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    use std::io::Write;
    /// What a pipe has room for.
    const CAPACITY: usize = 64 * 1024;
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(&[b' '; CAPACITY]).expect("room in an empty pipe");
    (reader, writer)
}

fn content(file: &File) -> String {
    let length = file.metadata().expect("an open file").len();
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0).expect("output that was written");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How a process ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; 128 + N if signal N killed it.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// All that it said.
    pub fn text(&self) -> String {
        format!("{}\n{}", self.stdout, self.stderr)
    }

    /// The envelope that it printed with `--json`.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Set when it is dropped, also by a failure: tells threads beside the test that it is over.
#[derive(Default)]
pub struct Over {
    is_over: Arc<AtomicBool>,
}

impl Over {
    /// What those who watch look at.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.is_over.clone()
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Says why a test shows nothing here. In CI, where all that tests need must be there, it fails.
pub fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "cannot be shown here, and CI must show it: {why}");
    println!("skipped: {why}");
}

/// Whether a program of this name can be started.
pub fn is_installed(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder: PathBuf| folder.join(program).is_file())
}

/// Starts a program with its time of day moved. `faketime` keeps a semaphore under its process id and
/// leaves it behind when it is killed; a later process with that id would be refused.
const WITH_MOVED_TIME: &str = r#"rm -f "/dev/shm/sem.faketime_sem_$$" "/dev/shm/faketime_shm_$$"
    exec faketime -f "$@""#;

/// A command in this place whose time of day is moved by this much. The monotonic clock stays, as it
/// does when the clock is set.
pub fn with_moved_time(place: &StoreLocation, shift: &str, program: &str) -> Command {
    assert!(is_installed("faketime"), "this test needs `faketime`: install the package faketime");
    let mut command = place.command("sh");
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    command.args(["-c", WITH_MOVED_TIME, "sh", shift, program]);
    command
}

/// The bytes of a file, which no SQLite connection of this process may have open.
pub fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
