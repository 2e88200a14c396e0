//! Servers over one store: a command through a server does what it does without, and two servers are
//! one service.

use super::{Engine, tenure};
use crate::support::{Running, StoreLocation, until};
use std::net::{SocketAddr, TcpListener, TcpStream};

struct Server {
    address: SocketAddr,
    _running: Running,
}

impl Server {
    fn start(place: &StoreLocation, url: &str) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        drop(listener);
        let listen = address.to_string();
        let mut running = Running::start(tenure(place, url, &["serve", "--listen", &listen]));
        until("a server that listens", || {
            assert!(!running.has_ended(), "the server ended");
            TcpStream::connect(address).ok().map(drop)
        });
        Server { address, _running: running }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

pub fn are_one_service(engine: &Engine) {
    let place = StoreLocation::new();
    let url = (engine.fresh_url)();
    let (one, other) = (Server::start(&place, &url), Server::start(&place, &url));
    let run = |url: &str, words: &[&str]| Running::start(tenure(&place, url, words)).end();
    let held = run(&one.url(), &["--json", "acquire", "deploy", "--as", "alice"]);
    assert_eq!(held.code, 0, "{held:?}");
    let token = held.json()["data"]["token"].to_string();
    for server in [&one.url(), &other.url(), &url] {
        assert_eq!(run(server, &["acquire", "deploy", "--as", "bob", "-n"]).code, 6, "{server}");
        assert_eq!(run(server, &["verify", "deploy", "--token", &token]).code, 0, "{server}");
    }
    // Who waits at one server is woken by a release through the other.
    let waiting =
        Running::start(tenure(&place, &other.url(), &["run", "deploy", "-w", "30", "--", "true"]));
    until("a waiter", || {
        let seen = run(&one.url(), &["--json", "why", "deploy"]);
        (seen.json()["data"]["waiters"].as_array()?.len() == 1).then_some(())
    });
    let released = run(&one.url(), &["release", "deploy", "--as", "alice"]);
    assert_eq!(released.code, 0, "{released:?}");
    let ended = waiting.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    // Each task goes to one worker, through whichever server.
    for number in 0..20 {
        let added = run(&url, &["tasks", "add", &format!("Task {number}")]);
        assert_eq!(added.code, 0, "{added:?}");
    }
    let swarm = |server: &Server| {
        let line = "echo $TENURE_TASK_ID >> $D/done";
        Running::start(tenure(&place, &server.url(), &["swarm", "-n", "3", "--", "sh", "-c", line]))
    };
    let (first, second) = (swarm(&one), swarm(&other));
    for ended in [first.end(), second.end()] {
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    let mut done: Vec<String> = place.read("done").lines().map(str::to_owned).collect();
    done.sort();
    done.dedup();
    assert_eq!((done.len(), place.read("done").lines().count()), (20, 20));
}
