//! A PostgreSQL server.

use crate::process::{Server, find, free_port};
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Names the URL of a server that tests may share: each makes a schema of its own there.
pub const SHARED_VARIABLE: &str = "TENURE_TEST_POSTGRES";

/// A server of its own, which a test may stop, kill and restart.
#[derive(Debug)]
pub struct Postgres {
    server: Option<Server>,
    folder: TempDir,
    /// Where it listens.
    pub port: u16,
    settings: Vec<String>,
}

impl Postgres {
    /// Makes a database cluster and starts it, with these settings (`name=value`) beside the usual.
    ///
    /// # Panics
    ///
    /// If PostgreSQL is not installed: what should be tested then is not.
    pub fn start(settings: &[&str]) -> Postgres {
        let folder =
            tempfile::Builder::new().prefix("tenure-pg").tempdir_in("/tmp").expect("a folder");
        own(folder.path());
        let data = folder.path().join("data");
        let made = as_postgres(&program("initdb"))
            .args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync", "-D"])
            .arg(&data)
            .output()
            .expect("initdb runs");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let mut postgres = Postgres { server: None, folder, port: free_port(), settings };
        postgres.run();
        postgres
    }

    /// Starts a standby that follows this server, some moments behind.
    ///
    /// # Panics
    ///
    /// If the server cannot be copied.
    pub fn standby(&self) -> Postgres {
        let folder =
            tempfile::Builder::new().prefix("tenure-pg").tempdir_in("/tmp").expect("a folder");
        own(folder.path());
        let copied = as_postgres(&program("pg_basebackup"))
            .args(["-h", "127.0.0.1", "-U", "postgres", "-c", "fast", "-X", "stream", "-R", "-p"])
            .arg(self.port.to_string())
            .arg("-D")
            .arg(folder.path().join("data"))
            .output()
            .expect("pg_basebackup runs");
        let said = String::from_utf8_lossy(&copied.stderr);
        assert!(copied.status.success(), "pg_basebackup: {said}");
        let mut standby = Postgres { server: None, folder, port: free_port(), settings: vec![] };
        standby.run();
        standby
    }

    /// Starts the server again after [`Postgres::stop`] or [`Postgres::kill`].
    pub fn run(&mut self) {
        let mut command = prefix();
        command.push(program("postgres").display().to_string());
        command.extend(["-D".to_owned(), self.folder.path().join("data").display().to_string()]);
        command.extend(["-p".to_owned(), self.port.to_string()]);
        command.extend(["-k".to_owned(), self.folder.path().display().to_string()]);
        for setting in ["listen_addresses=127.0.0.1", "max_connections=200"] {
            command.extend(["-c".to_owned(), setting.to_owned()]);
        }
        for setting in &self.settings {
            command.extend(["-c".to_owned(), setting.clone()]);
        }
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join("log"))
            .expect("a log");
        self.server = Some(Server::start(&command, "INT", log).expect("postgres starts"));
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.try_sql("SELECT 1").is_err() {
            let log =
                || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "PostgreSQL does not start: {}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops the server as an operator does; connections end.
    pub fn stop(&mut self) {
        self.server = None;
    }

    /// Ends the server at once, as a crash does.
    pub fn kill(&mut self) {
        if let Some(server) = &self.server {
            let children =
                Command::new("pkill").args(["-KILL", "-P", &server.pid.to_string()]).status();
            let _ = children;
            server.signal("KILL");
        }
        self.server = None;
        // The kernel may still have the lock file's process id in use by a dying child.
        let _ = std::fs::remove_file(self.folder.path().join("data/postmaster.pid"));
    }

    /// The URL of the database `postgres`, without options.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The folder with the data, the log and the Unix socket.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs SQL and returns what `psql` prints.
    pub fn sql(&self, sql: &str) -> String {
        self.try_sql(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    fn try_sql(&self, sql: &str) -> Result<String, String> {
        psql(&self.url(), sql)
    }
}

/// Runs SQL at this server and returns what `psql` prints.
pub fn psql(url: &str, sql: &str) -> Result<String, String> {
    let output = Command::new("psql")
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql, url])
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// The URL of a fresh store at a server that tests share: the one that the variable names, or one
/// that this process starts once.
pub fn fresh_url() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    format!("{}?schema=t_{}_{number}_{now:x}", shared_url(), std::process::id())
}

/// The URL of the shared server.
pub fn shared_url() -> String {
    static OWN: OnceLock<Postgres> = OnceLock::new();
    match std::env::var(SHARED_VARIABLE) {
        Ok(url) if !url.is_empty() => url,
        _ => OWN.get_or_init(|| Postgres::start(&[])).url(),
    }
}

/// A program of PostgreSQL, which Debian keeps off the search path.
pub fn program(name: &str) -> PathBuf {
    // Debian's programs on the search path choose among versions by their own rules.
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin").join(name)))
        .filter(|file| file.is_file())
        .collect();
    found.sort();
    let on_path = || find(name).map(|found| std::fs::canonicalize(&found).unwrap_or(found));
    found.pop().or_else(on_path).unwrap_or_else(|| {
        panic!("{name} is not installed: install postgresql, or run scripts/test, which does so")
    })
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self")
        .is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0)
}

/// PostgreSQL refuses to run as root, so it runs as the user that its package made.
fn prefix() -> Vec<String> {
    match is_root() {
        true => ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
            .map(str::to_owned)
            .to_vec(),
        false => vec![],
    }
}

fn as_postgres(program: &Path) -> Command {
    let prefix = prefix();
    match prefix.split_first() {
        Some((first, rest)) => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
        None => Command::new(program),
    }
}

/// Gives a folder to the user that runs the server.
fn own(folder: &Path) {
    if is_root() {
        let done = Command::new("chown").arg("postgres:").arg(folder).status();
        assert!(done.is_ok_and(|status| status.success()), "there is no user postgres");
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder, open).expect("it is ours");
    }
}
