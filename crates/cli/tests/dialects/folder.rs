//! A folder of lock files, with programs that share it.

use crate::support::{Ended, Running, StoreLocation};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// Whose lock files, and what the tests call the thing that is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Worker,
    Swarm,
    Memory,
}

impl Dialect {
    pub const ALL: [Dialect; 3] = [Dialect::Worker, Dialect::Swarm, Dialect::Memory];

    pub fn word(self) -> &'static str {
        match self {
            Dialect::Worker => "worker",
            Dialect::Swarm => "swarm",
            Dialect::Memory => "memory",
        }
    }

    /// What the other programs call it.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Worker => "task-1",
            Dialect::Swarm => "src/main.py",
            Dialect::Memory => "memory",
        }
    }

    /// What tenure calls it.
    pub fn resource(self) -> String {
        match self {
            Dialect::Worker => format!("task:{}", self.name()),
            Dialect::Swarm => format!("path:{}", self.name()),
            Dialect::Memory => self.name().to_owned(),
        }
    }

    /// The file that both mean.
    pub fn file(self) -> &'static str {
        match self {
            Dialect::Worker => "task-1.lock",
            // Of `src/main.py`.
            Dialect::Swarm => {
                "2e5ad92c43aa96cc3a9cef6c6aec998b216f1379c43b1f651013d25e55989312.lock"
            }
            Dialect::Memory => ".lock",
        }
    }

    /// After how long a lock is stale there.
    pub fn limit(self) -> Duration {
        match self {
            Dialect::Worker | Dialect::Swarm => Duration::from_secs(300),
            Dialect::Memory => Duration::from_secs(30),
        }
    }

    /// A lock of somebody, so old; in `memory` of this very process.
    pub fn content(self, owner: &str, age: Duration) -> String {
        let since = SystemTime::now() - age;
        let seconds = since.duration_since(SystemTime::UNIX_EPOCH).expect("a date").as_secs_f64();
        let date = jiff::Timestamp::try_from(since).expect("a date").to_string();
        let fields = match self {
            Dialect::Worker => serde_json::json!({
                "worker_id": owner, "started_at": date, "task_id": self.name(),
            }),
            Dialect::Swarm => serde_json::json!({
                "agent_id": owner, "filepath": self.name(), "locked_at": seconds,
                "reason": "editing",
            }),
            Dialect::Memory => serde_json::json!({
                "pid": std::process::id(), "session_id": owner, "acquired_at": date,
                "hostname": hostname(), "operation": "consolidating",
            }),
        };
        fields.to_string()
    }
}

pub fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a host name");
    name.trim().to_owned()
}

/// A scratch folder `locks` that tenure and the other programs share.
pub struct Folder {
    pub place: StoreLocation,
    pub dialect: Dialect,
}

impl Folder {
    pub fn new(dialect: Dialect) -> Folder {
        let place = StoreLocation::new();
        std::fs::create_dir(place.path("locks")).expect("a folder of locks");
        Folder { place, dialect }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path("locks").join(name)
    }

    /// The lock file that the tests are about.
    pub fn lock(&self) -> PathBuf {
        self.path(self.dialect.file())
    }

    pub fn url(&self) -> String {
        format!("file:{}?dialect={}", self.path("").display(), self.dialect.word())
    }

    /// The binary under test, about to share this folder.
    pub fn tenure(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(crate::support::TENURE);
        command.args(["--store", &self.url()]).args(arguments);
        command
    }

    pub fn start(&self, arguments: &[&str]) -> Running {
        Running::start(self.tenure(arguments))
    }

    pub fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).end()
    }

    /// What a command prints with `--json`; it must succeed.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let ended = self.run(&[&["--json"], arguments].concat());
        assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
        ended.json()
    }

    /// This test binary in one of its roles, about to share this folder.
    pub fn role(&self, role: &str) -> Command {
        let mut command = self.place.role(role);
        command.env("URL", self.url()).env("RESOURCE", self.dialect.resource());
        command
    }

    /// One of the other programs.
    pub fn foreign(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = self.place.command("python3");
        let programs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/dialects/foreign");
        command.arg("-B").arg(programs.join(program)).arg(self.dialect.word());
        command.args(arguments);
        command
    }

    /// What another program makes of the lock, so much later: `free`, `held by X` or `stale: WHY`.
    pub fn judged(&self, later: Duration) -> String {
        let (folder, later) = (self.path(""), later.as_secs_f64().to_string());
        let folder = folder.to_str().expect("a plain path");
        let command = self.foreign("judge.py", &[folder, self.dialect.name(), &later]);
        let ended = Running::start(command).end();
        assert_eq!(ended.code, 0, "{ended:?}");
        ended.stdout.trim().to_owned()
    }

    /// Puts a lock file there as another program would, whole.
    pub fn put(&self, content: &str) {
        let draft = self.path(".put");
        std::fs::write(&draft, content).expect("a draft");
        std::fs::rename(draft, self.lock()).expect("a lock file");
    }

    /// What the lock file says.
    pub fn said(&self) -> Value {
        let text = std::fs::read_to_string(self.lock()).expect("a lock file");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
    }

    /// Sets back the date of the lock file, as if it had been there for so long.
    pub fn backdate(&self, age: Duration) {
        let file = std::fs::File::options().write(true).open(self.lock()).expect("a lock file");
        file.set_modified(SystemTime::now() - age).expect("a date");
    }
}
