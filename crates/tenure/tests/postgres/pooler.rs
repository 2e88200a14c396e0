//! Through pgbouncer in transaction mode: slower wakes, the same promises.

use super::{open, shared_port};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tenure::store::{Maintained, Maintenance};
use tenure::{Client, Wait};
use tenure_testkit::postgres::{psql, shared_url};
use tenure_testkit::process::{Server, find, free_port};

/// A pgbouncer in transaction mode before a database.
pub struct Pooler {
    folder: TempDir,
    database: String,
    setting: String,
    port: u16,
    _server: Server,
}

impl Pooler {
    /// Starts it before this database of the server at a port, with a further line of settings.
    pub fn start(database: &str, server: u16, setting: &str) -> Pooler {
        let folder = tempfile::Builder::new().prefix("tenure-pb").tempdir_in("/tmp").unwrap();
        let port = free_port();
        fs::write(folder.path().join("users"), "\"postgres\" \"\"\n").unwrap();
        write_settings(folder.path(), database, server, port, setting);
        let program = find("pgbouncer").unwrap_or_else(|| "/usr/sbin/pgbouncer".into());
        let mut command: Vec<String> = vec![];
        // It refuses to run as root.
        let user =
            fs::metadata("/proc/self").map(|meta| std::os::unix::fs::MetadataExt::uid(&meta));
        if user.is_ok_and(|user| user == 0) {
            command.extend(
                ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
                    .map(str::to_owned),
            );
            let done = Command::new("chown").args(["-R", "postgres:"]).arg(folder.path()).status();
            assert!(done.unwrap().success());
        }
        let settings = folder.path().join("pgbouncer.ini");
        command.extend([program.display().to_string(), settings.display().to_string()]);
        let log = fs::File::create(folder.path().join("out")).unwrap();
        let process = Server::start(&command, "INT", log).unwrap();
        let (database, setting) = (database.to_owned(), setting.to_owned());
        let pooler = Pooler { folder, database, setting, port, _server: process };
        let deadline = Instant::now() + Duration::from_secs(20);
        while psql(&pooler.url(), "SELECT 1").is_err() {
            let out = || fs::read_to_string(pooler.folder.path().join("out")).unwrap_or_default();
            assert!(Instant::now() < deadline, "pgbouncer does not start: {}", out());
            std::thread::sleep(Duration::from_millis(50));
        }
        pooler
    }

    /// The URL of the database through it.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{}", self.port, self.database)
    }

    /// Gives it a command.
    pub fn admin(&self, command: &str) {
        psql(&format!("postgres://postgres@127.0.0.1:{}/pgbouncer", self.port), command).unwrap();
    }

    /// From now on it connects to another server.
    pub fn point_to(&self, server: u16) {
        write_settings(self.folder.path(), &self.database, server, self.port, &self.setting);
        self.admin("RELOAD");
    }
}

fn write_settings(folder: &Path, database: &str, server: u16, port: u16, setting: &str) {
    let path = |name: &str| folder.join(name).display().to_string();
    let settings = format!(
        "[databases]\n{database} = host=127.0.0.1 port={server}\n[pgbouncer]\n\
         listen_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = trust\n\
         auth_file = {}\npool_mode = transaction\ndefault_pool_size = 6\n\
         admin_users = postgres\nmax_client_conn = 100\nunix_socket_dir =\nlogfile = {}\n{setting}\n",
        path("users"),
        path("log")
    );
    fs::write(folder.join("pgbouncer.ini"), settings).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn everything_works_through_pgbouncer_in_transaction_mode() {
    through_pgbouncer("refuses", "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn everything_works_through_a_pooler_that_drops_options() {
    through_pgbouncer("drops", "ignore_startup_parameters = options").await;
}

async fn through_pgbouncer(name: &str, setting: &str) {
    // A database of its own: other tests have transactions open in the shared one.
    let database = format!("pool_{name}_{}", std::process::id());
    psql(&shared_url(), &format!("CREATE DATABASE {database}")).unwrap();
    let pooler = Pooler::start(&database, shared_port(), setting);
    let url = pooler.url();
    let workers = (0..6).map(|_| {
        let url = url.clone();
        tokio::spawn(async move {
            let client = Client::open(&url).await.unwrap();
            for round in 0..12 {
                let request = client.request("one").wait(Wait::Forever).hold().await.unwrap();
                let held = request.into_result().unwrap();
                assert!(held.is_held(), "in round {round}");
                held.release().await.unwrap();
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    let store = open(&url);
    let Maintained::Checked(findings) = store.maintain(Maintenance::Check).await.unwrap() else {
        panic!("a check answers with findings");
    };
    let messages = findings.iter().find(|finding| finding.subject == "messages").unwrap();
    assert!(messages.message.contains("pgbouncer"), "{messages:?}");
    // No process may find the statement of another under a name of its own.
    let prepared = "SELECT count(*) FROM pg_prepared_statements";
    for _ in 0..12 {
        assert_eq!(psql(&url, prepared).unwrap(), "0");
    }
    // Nothing is left open; what a client had begun as it ended is rolled back by the pooler.
    let open = format!(
        "SELECT count(*) FROM pg_stat_activity
         WHERE datname = '{database}' AND state LIKE 'idle in transaction%'"
    );
    let deadline = Instant::now() + Duration::from_secs(20);
    while psql(&shared_url(), &open).unwrap() != "0" {
        assert!(Instant::now() < deadline, "a transaction stays open");
        std::thread::sleep(Duration::from_millis(50));
    }
    drop((store, pooler));
    psql(&shared_url(), &format!("DROP DATABASE {database} WITH (FORCE)")).unwrap();
}
