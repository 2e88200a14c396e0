//! Real processes: what a command does, what tenure sees of it, and what is left afterwards.
//!
//! Processes under test write their pid to a file in a scratch folder, and are looked up in
//! `/proc`. Waiting for something to happen is bounded by [`PATIENCE`], which only a failure ever
//! reaches. Where a whole tenure is needed (to be killed, signalled, put into a terminal), this
//! test binary starts itself again in a [`role`].

mod exit;
mod guarded;
mod pipes;
mod role;
mod stopping;
mod terminal;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::*;

/// How long to wait for what must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A grace period that no test uses up.
const LONG: Duration = Duration::from_secs(60);

/// The lease of a command: for how long it may be trusted, and how long after that another may hold.
struct Lease(Duration, Duration);

impl Trust for Lease {
    fn left(&self) -> Duration {
        self.0
    }

    fn margin(&self) -> Duration {
        self.1
    }

    fn counts_suspend(&self) -> bool {
        false
    }

    fn watch(&self, _: &std::sync::Arc<dyn Fn() + Send + Sync>) {}
}

/// Starts a command under a lease that no test uses up.
fn spawn(spec: ChildSpec) -> Result<Child, SpawnError> {
    super::spawn(spec, Lease(Duration::from_secs(3600), LONG), LONG)
}

/// A shell that runs `script`; `$D` in it is the scratch folder.
fn sh(script: &str, scratch: &Scratch) -> ChildSpec {
    let folder = scratch.folder.path().as_os_str().to_owned();
    ChildSpec {
        environment: vec![("D".into(), folder)],
        stdin: Stdin::Null,
        ..ChildSpec::new(["sh", "-c", script].map(OsString::from).into())
    }
}

/// Asks again and again until there is an answer.
fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A folder for pid files.
struct Scratch {
    folder: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The pid that a process wrote to the file `name`, once it has.
    fn pid(&self, name: &str) -> u32 {
        until(&format!("a pid in {name}"), || {
            let text = fs::read_to_string(self.path(name)).ok()?;
            text.strip_suffix('\n')?.parse().ok()
        })
    }
}

/// The state letter of a process; `None` if there is no trace of it.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}

/// Whether a process runs, sleeps or is stopped; a zombie does not.
fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z' && state != 'X')
}

/// What each descriptor of a process refers to.
fn descriptors(pid: u32) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let number = |path: &Path| path.file_name()?.to_str()?.parse().ok();
    let mut all: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| Some((number(&entry.path())?, fs::read_link(entry.path()).ok()?)))
        .collect();
    all.sort();
    all
}
