//! A server under a service manager: it tells when it is ready, alive and stopping, and takes over
//! sockets that were opened for it.
//!
//! The manager is this test: a real notify socket, and a listening socket that is passed on.

use crate::http::{connect, exchange, get, read};
use crate::server::Server;
use crate::support::{PATIENCE, Running, Signal, StoreLocation, until};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::Command;

/// A socket on which a service manager hears of its services.
struct Manager {
    socket: UnixDatagram,
}

impl Manager {
    fn new(place: &StoreLocation) -> Manager {
        let socket = UnixDatagram::bind(place.path("notify")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Manager { socket }
    }

    /// The next message, as lines.
    fn hear(&self) -> Vec<String> {
        let mut message = [0; 4096];
        let length = self.socket.recv(&mut message).expect("a message to the service manager");
        let text = std::str::from_utf8(&message[..length]).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits for this line.
    fn hear_of(&self, line: &str) -> Vec<String> {
        until(line, || Some(self.hear()).filter(|lines| lines.iter().any(|it| it == line)))
    }
}

/// Starts a server to which this socket is passed as systemd does: as descriptor 3, with variables
/// that name the process itself.
fn start_with(place: &StoreLocation, socket: OwnedFd, arguments: &[&str]) -> Running {
    let script = "exec 3<&0 0</dev/null; export LISTEN_FDS=1 LISTEN_PID=$$; exec \"$@\"";
    let mut command = place.command("sh");
    command.args(["-c", script, "sh", crate::support::TENURE, "--store", &place.url(), "serve"]);
    command.args(arguments).stdin(socket).env("NOTIFY_SOCKET", place.path("notify"));
    Running::start(command)
}

#[test]
fn it_tells_that_it_is_ready_alive_and_stopping() {
    let place = StoreLocation::new();
    let manager = Manager::new(&place);
    let mut command: Command = place.tenure(&["serve", "--listen", "127.0.0.1:0", "--no-auth"]);
    command.env("NOTIFY_SOCKET", place.path("notify")).env("WATCHDOG_USEC", "20000");
    let server = Running::start(command);
    let ready = manager.hear();
    assert_eq!(ready[0], "READY=1", "{ready:?}");
    let address = ready[1].strip_prefix("STATUS=Listening on http://").unwrap().to_owned();
    // Ready means that requests are answered.
    let text = get("/readyz").text(&address);
    assert_eq!(exchange(&mut connect(&address), text.as_bytes()).status, 200);
    for _ in 0..3 {
        assert_eq!(manager.hear(), ["WATCHDOG=1"]);
    }
    server.signal(Signal::TERM);
    manager.hear_of("STOPPING=1");
    assert_eq!(server.end().code, 0);
}

#[test]
fn without_a_watchdog_nothing_is_reported_in_between() {
    let place = StoreLocation::new();
    let manager = Manager::new(&place);
    let mut command = place.tenure(&["serve", "--listen", "127.0.0.1:0", "--no-auth"]);
    // The variable is for another process.
    command.env("NOTIFY_SOCKET", place.path("notify"));
    command.env("WATCHDOG_USEC", "1000").env("WATCHDOG_PID", "1");
    let server = Running::start(command);
    assert_eq!(manager.hear()[0], "READY=1");
    server.signal(Signal::TERM);
    assert_eq!(manager.hear()[0], "STOPPING=1");
    assert_eq!(server.end().code, 0);
}

#[test]
fn it_serves_a_socket_that_was_opened_for_it() {
    let place = StoreLocation::new();
    let manager = Manager::new(&place);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // A client that came before the server is served too.
    let mut early = connect(&address);
    early.write_all(get("/healthz").text(&address).as_bytes()).unwrap();
    let server = start_with(&place, listener.try_clone().unwrap().into(), &["--no-auth"]);
    let ready = manager.hear();
    assert_eq!(ready[1], format!("STATUS=Listening on http://{address}"), "only there: {ready:?}");
    assert_eq!(read(&mut early).status, 200);
    server.signal(Signal::TERM);
    assert_eq!(server.end().code, 0);
    // The socket is the manager's: clients can connect, and the next server answers.
    let mut waiting = connect(&address);
    waiting.write_all(get("/healthz").text(&address).as_bytes()).unwrap();
    let next = start_with(&place, listener.into(), &["--no-auth"]);
    assert_eq!(read(&mut waiting).status, 200);
    next.signal(Signal::TERM);
    assert_eq!(next.end().code, 0);
}

#[test]
fn a_unix_socket_that_was_opened_for_it_stays() {
    let place = StoreLocation::new();
    let manager = Manager::new(&place);
    let path = place.path("passed.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let server = start_with(&place, listener.into(), &[]);
    assert_eq!(manager.hear()[0], "READY=1");
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(get("/v1/locks").text("localhost").as_bytes()).unwrap();
    assert_eq!(read(&mut stream).status, 200);
    server.signal(Signal::TERM);
    assert_eq!(server.end().code, 0);
    assert!(path.exists(), "the manager's socket was removed");
}

#[test]
fn what_does_not_listen_is_refused() {
    let place = StoreLocation::new();
    let (connection, _other) = UnixStream::pair().unwrap();
    let ended = start_with(&place, connection.into(), &["--no-auth"]).end();
    assert_ne!(ended.code, 0);
    assert!(ended.stderr.contains("does not listen"), "{ended:?}");
    let file = std::fs::File::open("/dev/null").unwrap();
    let ended = start_with(&place, file.into(), &["--no-auth"]).end();
    assert!(ended.stderr.contains("is not a socket"), "{ended:?}");
}

#[test]
fn an_open_address_needs_tokens_when_it_is_passed_too() {
    let place = StoreLocation::new();
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let ended = start_with(&place, listener.into(), &[]).end();
    assert!(ended.stderr.contains("there are no tokens"), "{ended:?}");
}

#[test]
fn it_says_that_it_is_not_ready_before_the_port_closes() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--no-auth", "--drain", "10m", "--grace", "10m"]);
    assert_eq!(server.ask(get("/readyz")).status, 200);
    let mut stream = server.connect();
    stream.write_all(get("/v1/stream").text(server.address()).as_bytes()).unwrap();
    let mut begun = [0; 12];
    stream.read_exact(&mut begun).unwrap();
    server.signal(Signal::TERM);
    let refused = until("an answer that it is not ready", || {
        Some(server.ask(get("/readyz"))).filter(|answer| answer.status == 503)
    });
    assert_eq!(refused.code(), "DRAINING");
    // It still does its work, and streams go on.
    assert_eq!(server.ask(get("/v1/locks")).status, 200);
    assert_eq!(server.ask(get("/healthz")).status, 200);
    // A second signal does not wait for the rest of the time.
    server.stop();
}

#[test]
fn the_port_closes_after_the_time_for_draining() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--no-auth", "--drain", "1ms"]);
    server.stop();
}
