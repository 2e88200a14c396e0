//! A real server, which can be killed and started again at the same address.

use crate::support::{Running, Signal, StoreLocation, until};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;

/// A server over a place's store.
pub struct Server<'a> {
    place: &'a StoreLocation,
    address: SocketAddr,
    running: Option<Running>,
    /// What else it is started with.
    more: Vec<String>,
}

impl<'a> Server<'a> {
    pub fn start(place: &'a StoreLocation) -> Server<'a> {
        Server::start_with(place, free_address(), vec![])
    }

    /// One that asks for no token, for programs that do not find it by themselves.
    pub fn start_without_token(place: &'a StoreLocation) -> Server<'a> {
        Server::start_with(place, free_address(), vec!["--no-auth".to_owned()])
    }

    /// One that is reached by another address than its own.
    pub fn start_behind(
        place: &'a StoreLocation,
        address: SocketAddr,
        front: SocketAddr,
    ) -> Server<'a> {
        // What is in between is not the server, so that no client shows it the server's token.
        let more = ["--no-auth", "--host", &front.to_string()].map(str::to_owned);
        Server::start_with(place, address, more.into())
    }

    fn start_with(place: &'a StoreLocation, address: SocketAddr, more: Vec<String>) -> Server<'a> {
        let mut server = Server { place, address, running: None, more };
        server.restart();
        server
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Starts it again, and waits until it listens.
    pub fn restart(&mut self) {
        let listen = self.address.to_string();
        let mut words = vec!["serve", "--listen", &listen];
        words.extend(self.more.iter().map(String::as_str));
        let mut running = self.place.start(&words);
        until("a server that listens", || {
            assert!(!running.has_ended(), "the server ended");
            TcpStream::connect(self.address).ok().map(drop)
        });
        self.running = Some(running);
    }

    /// Kills it in whatever it does.
    pub fn kill(&mut self) {
        let running = self.running.take().expect("a server that runs");
        assert_eq!(running.kill().code, 137);
    }

    /// Asks it to end, and waits until it has.
    pub fn stop(&mut self) {
        let running = self.running.take().expect("a server that runs");
        running.signal(Signal::TERM);
        let ended = running.end();
        assert_eq!(ended.code, 0, "{ended:?}");
    }

    /// The binary under test, about to use this server.
    pub fn tenure(&self, arguments: &[&str]) -> Command {
        through(self.place, &self.url(), arguments)
    }
}

/// The binary under test, about to use the server there.
pub fn through(place: &StoreLocation, url: &str, arguments: &[&str]) -> Command {
    let mut command = place.command(crate::support::TENURE);
    command.args(["--store", url]).args(arguments);
    command
}

/// An address that is free now, and hopefully stays so.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address")
}
