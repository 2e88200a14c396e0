//! A running server.

use crate::http::{Answer, Ask, connect, exchange};
use crate::support::{Ended, Running, Signal, StoreLocation, until};
use serde_json::Value;
use std::fs::File;
use std::net::TcpStream;
use std::path::PathBuf;

pub struct Server {
    running: Running,
    /// What it listens on, as it said.
    pub listening: Vec<String>,
    /// The token that it made for its user, if it did.
    pub own: Option<String>,
}

impl Server {
    /// Starts one on a port that the system chooses.
    pub fn start(place: &StoreLocation, arguments: &[&str]) -> Server {
        Server::start_on(place, &[&["--listen", "127.0.0.1:0"], arguments].concat())
    }

    /// The same, on whatever the arguments say.
    pub fn start_on(place: &StoreLocation, arguments: &[&str]) -> Server {
        let said = place.path("server.out");
        let end = File::create(&said).expect("a file for its output");
        let command = place.tenure(&[&["serve", "--json"], arguments].concat());
        let mut running = Some(Running::start_unheard(command, end.into()));
        let line: Value = until("a server that listens", || {
            let text = std::fs::read_to_string(&said).expect("its output");
            if text.is_empty() && running.as_mut().is_some_and(Running::has_ended) {
                panic!("it ended: {:?}", running.take().map(Running::end));
            }
            serde_json::from_str(text.strip_suffix('\n')?).ok()
        });
        let listening = line["listening"].as_array().expect("a list").iter();
        let listening = listening.map(|address| address.as_str().unwrap().to_owned()).collect();
        let own = (line["auth"] == "own_token").then(|| {
            let file = line["token_file"].as_str().expect("a file");
            std::fs::read_to_string(file).expect("its token").trim().to_owned()
        });
        Server { running: running.expect("it has not ended"), listening, own }
    }

    /// Where its first TCP listener is.
    pub fn address(&self) -> &str {
        let first = self.listening.iter().find_map(|it| it.split_once("://"));
        first.expect("a server on TCP").1
    }

    pub fn connect(&self) -> TcpStream {
        connect(self.address())
    }

    /// Asks, with the server's own token unless a token is given.
    pub fn ask(&self, ask: Ask) -> Answer {
        let has_token = ask.headers.iter().any(|(name, _)| name == "Authorization");
        match &self.own {
            Some(own) if !has_token => self.ask_as_given(ask.token(own)),
            _ => self.ask_as_given(ask),
        }
    }

    /// Asks, with no other token than is given.
    pub fn ask_as_given(&self, ask: Ask) -> Answer {
        self.send(ask.text(self.address()).as_bytes())
    }

    /// Sends bytes as they are.
    pub fn send(&self, bytes: &[u8]) -> Answer {
        exchange(&mut self.connect(), bytes)
    }

    pub fn id(&self) -> u32 {
        self.running.id()
    }

    pub fn signal(&self, which: Signal) {
        self.running.signal(which);
    }

    /// Its memory, in KiB.
    pub fn memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// It answers.
    pub fn is_alive(&self) {
        assert_eq!(self.ask(crate::http::get("/healthz")).status, 200);
    }

    /// Waits for its end.
    pub fn end(self) -> Ended {
        self.running.end()
    }

    /// Asks it to end, and waits for that. It must end well.
    pub fn stop(self) -> Ended {
        self.signal(Signal::TERM);
        let ended = self.end();
        assert_eq!(ended.code, 0, "{ended:?}");
        ended
    }
}

/// Makes a token for the servers of this place, and returns its secret.
pub fn token(place: &StoreLocation, name: &str, role: &str) -> String {
    let made = place.json(&["token", "create", name, "--role", role]);
    made["secret"].as_str().expect("a secret").to_owned()
}

/// Where the tokens of this place's servers are kept.
pub fn token_file(place: &StoreLocation) -> PathBuf {
    place.path("tenure.db.tokens")
}
