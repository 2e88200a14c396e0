//! A cluster of etcd servers.

use crate::process::{Server, find, free_port};
use std::fs::File;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Names the URL of a cluster that tests may share: each has a prefix of its own there.
pub const SHARED_VARIABLE: &str = "TENURE_TEST_ETCD";

/// How long servers may take to start on a busy machine.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// Some servers that form a cluster, which a test may stop, kill, freeze and restart. They end when this
/// is dropped.
#[derive(Debug)]
pub struct Etcd {
    folder: TempDir,
    members: Vec<Member>,
    /// More arguments of each server.
    arguments: Vec<String>,
    /// `https` for servers that talk to their clients over TLS only.
    scheme: &'static str,
}

#[derive(Debug)]
struct Member {
    place: Place,
    server: Option<Server>,
}

/// Where a server runs.
#[derive(Clone, Debug)]
pub struct Place {
    /// The command that runs it elsewhere, such as `ip netns exec NAME`; empty for here.
    pub wrapper: Vec<String>,
    /// Where it listens for clients, as `HOST:PORT`.
    pub client: String,
    /// Where it listens for other servers.
    pub peer: String,
}

impl Place {
    /// Free ports of the loopback interface.
    pub fn here() -> Place {
        let address = || format!("127.0.0.1:{}", free_port());
        Place { wrapper: vec![], client: address(), peer: address() }
    }
}

impl Etcd {
    /// Starts so many servers and waits until they have a leader.
    ///
    /// # Panics
    ///
    /// If etcd is not installed: what should be tested then is not.
    pub fn start(members: usize) -> Etcd {
        Etcd::start_with(members, &[])
    }

    /// As [`Etcd::start`], with more arguments for each server.
    pub fn start_with(members: usize, arguments: &[&str]) -> Etcd {
        let mut cluster =
            Etcd::at((0..members).map(|_| Place::here()).collect(), arguments, "http");
        (0..members).for_each(|member| cluster.run(member));
        cluster.wait_for_leader();
        cluster
    }

    /// Servers at these places that do not run yet.
    pub fn at(places: Vec<Place>, arguments: &[&str], scheme: &'static str) -> Etcd {
        let folder =
            tempfile::Builder::new().prefix("tenure-etcd").tempdir_in("/tmp").expect("a folder");
        let members = places.into_iter().map(|place| Member { place, server: None }).collect();
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Etcd { folder, members, arguments, scheme }
    }

    /// Starts a server, on the data that it had.
    pub fn run(&mut self, member: usize) {
        let program = find("etcd").unwrap_or_else(|| {
            panic!("etcd is not installed: install etcd-server, or run scripts/test, which does so")
        });
        let name = |number: usize| format!("m{number}");
        let peer = |place: &Place| format!("http://{}", place.peer);
        let all = self.members.iter().enumerate();
        let all: Vec<String> =
            all.map(|(number, one)| format!("{}={}", name(number), peer(&one.place))).collect();
        let place = &self.members[member].place;
        let client = format!("{}://{}", self.scheme, place.client);
        let data = self.folder.path().join(name(member)).display().to_string();
        let options = [
            ("--name", name(member)),
            ("--data-dir", data),
            ("--listen-client-urls", client.clone()),
            ("--advertise-client-urls", client),
            ("--listen-peer-urls", peer(place)),
            ("--initial-advertise-peer-urls", peer(place)),
            ("--initial-cluster", all.join(",")),
            ("--initial-cluster-state", "new".to_owned()),
            // Short elections, so that a killed leader is soon replaced.
            ("--heartbeat-interval", "50".to_owned()),
            ("--election-timeout", "500".to_owned()),
            ("--logger", "zap".to_owned()),
            ("--log-level", "fatal".to_owned()),
        ];
        let mut command = place.wrapper.clone();
        command.push(program.display().to_string());
        command.extend(options.into_iter().flat_map(|(option, value)| [option.to_owned(), value]));
        command.extend(self.arguments.iter().cloned());
        let log = self.folder.path().join(format!("{}.log", name(member)));
        let log = File::options().create(true).append(true).open(log).expect("a log");
        let server = Server::start(&command, "TERM", log).expect("etcd starts");
        self.members[member].server = Some(server);
    }

    /// Stops a server as an operator does.
    pub fn stop(&mut self, member: usize) {
        self.members[member].server = None;
    }

    /// Ends a server at once, as a crash does, if it runs.
    pub fn kill(&mut self, member: usize) {
        if let Some(server) = self.members[member].server.take() {
            server.signal("KILL");
        }
    }

    /// Stops a server as a debugger does, or lets it go on: its connections stay open meanwhile.
    pub fn freeze(&self, member: usize, is_frozen: bool) {
        let server = self.members[member].server.as_ref().expect("the server runs");
        server.signal(if is_frozen { "STOP" } else { "CONT" });
    }

    /// Where each server listens for clients, as `HOST:PORT`.
    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(|member| member.place.client.clone()).collect()
    }

    /// The URL of the store with this prefix.
    pub fn url(&self, prefix: &str) -> String {
        let scheme = if self.scheme == "https" { "etcds" } else { "etcd" };
        format!("{scheme}://{}/{prefix}", self.endpoints().join(","))
    }

    /// Which of the running servers leads: each is asked.
    pub fn leader(&self) -> Option<usize> {
        (0..self.members.len()).find(|member| {
            let status = self.status(*member).unwrap_or_default();
            let leader = field(&status, "Leader").filter(|leader| *leader != 0);
            leader.is_some() && leader == field(&status, "MemberID")
        })
    }

    /// The leader, as soon as there is one.
    pub fn wait_for_leader(&self) -> usize {
        let begun = Instant::now();
        loop {
            if let Some(leader) = self.leader() {
                return leader;
            }
            assert!(begun.elapsed() < START_PATIENCE, "the servers do not find a leader");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Makes a running member the leader, if it is not yet. The others may refuse one that was cut off
    /// until their connections to it are back: then it gives up after this time.
    pub fn make_leader(&self, member: usize, patience: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < patience {
            let leader = self.wait_for_leader();
            if leader == member {
                return;
            }
            let status = self.status(member).unwrap_or_default();
            if let Some(id) = field(&status, "MemberID") {
                // It may be behind, or the leader may change meanwhile: then again.
                let target = format!("{id:x}");
                let _ = etcdctl(&self.members[leader].place.client, &["move-leader", &target]);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn status(&self, member: usize) -> Option<String> {
        let member = &self.members[member];
        member.server.as_ref()?;
        etcdctl(&member.place.client, &["endpoint", "status", "--write-out=fields"]).ok()
    }

    /// Makes the servers forget all earlier values of keys.
    pub fn compact(&self) -> Result<(), String> {
        let endpoints = self.endpoints().join(",");
        let found = etcdctl(&endpoints, &["get", "any", "--write-out=fields"])?;
        let newest = field(&found, "Revision").ok_or_else(|| format!("no revision: {found}"))?;
        etcdctl(&endpoints, &["compact", &newest.to_string()]).map(drop)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // Its data is removed: there is nothing to end cleanly.
        (0..self.members.len()).for_each(|member| self.kill(member));
    }
}

/// A number that `etcdctl --write-out=fields` printed.
fn field(printed: &str, name: &str) -> Option<u64> {
    let start = format!("\"{name}\" : ");
    printed.lines().find_map(|line| line.strip_prefix(&start))?.trim().parse().ok()
}

/// Runs `etcdctl` against these servers and returns what it prints.
pub fn etcdctl(endpoints: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("etcdctl")
        .env("ETCDCTL_API", "3")
        .args(["--endpoints", endpoints, "--dial-timeout=2s", "--command-timeout=3s"])
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("etcdctl does not start (install etcd-client): {error}"));
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// The URL of a fresh store at a cluster that tests share.
pub fn fresh_url() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    format!("{}/t-{}-{number}-{now:x}", shared_url(), std::process::id())
}

/// The URL of the shared cluster, without a prefix: the one that the variable names, or one server that
/// this process starts once.
pub fn shared_url() -> String {
    static OWN: OnceLock<Etcd> = OnceLock::new();
    let url = match std::env::var(SHARED_VARIABLE) {
        Ok(url) if !url.is_empty() => url,
        _ => OWN.get_or_init(|| Etcd::start(1)).url(""),
    };
    let hosts = url.find("://").map_or(0, |at| at + 3);
    let end = url[hosts..].find('/').map_or(url.len(), |at| hosts + at);
    url[..end].to_owned()
}
