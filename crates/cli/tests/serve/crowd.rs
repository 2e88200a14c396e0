//! Many who want nothing, or take their time, do not keep others out, nor fill the memory.

use crate::http::get;
use crate::server::Server;
use crate::support::{Over, StoreLocation};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

const IDLE: usize = 1000;
const SLOW: usize = 200;
/// More than a server takes unless told.
const CROWD: usize = 2200;

/// Generous: a debug build with a thousand connections takes a fraction of it.
const MEMORY_KIB_MAX: u64 = 300 * 1024;

/// This process needs a descriptor for each connection, too.
fn make_room() {
    let now = getrlimit(Resource::Nofile);
    let wanted = (CROWD + 500) as u64;
    let current = now.maximum.map_or(wanted, |most| most.min(wanted));
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: now.maximum });
}

#[test]
fn a_thousand_who_say_nothing() {
    make_room();
    let place = StoreLocation::new();
    let server = Server::start(&place, &[]);
    let idle: Vec<TcpStream> = (0..IDLE).map(|_| server.connect()).collect();
    for _ in 0..100 {
        server.is_alive();
    }
    let memory = server.memory_kib();
    println!("{IDLE} connections: {memory} KiB");
    assert!(memory < MEMORY_KIB_MAX, "{memory}");
    drop(idle);
    server.is_alive();
}

#[test]
fn those_who_send_a_byte_at_a_time() {
    make_room();
    let place = StoreLocation::new();
    let server = Server::start(&place, &[]);
    let mut slow: Vec<TcpStream> = (0..SLOW).map(|_| server.connect()).collect();
    let text =
        format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nX: {}", server.address(), "x".repeat(500));
    let over = Over::default();
    let is_over = over.flag();
    let sending = std::thread::spawn(move || {
        for byte in text.as_bytes() {
            for stream in &mut slow {
                let _ = stream.write_all(&[*byte]);
            }
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    for _ in 0..100 {
        server.is_alive();
    }
    assert!(server.memory_kib() < MEMORY_KIB_MAX);
    drop(over);
    sending.join().unwrap();
    server.stop();
}

/// More than the server has places for: they do not keep anybody out.
#[test]
fn more_who_say_nothing_than_there_are_places() {
    make_room();
    let place = StoreLocation::new();
    let server = Server::start(&place, &[]);
    let silent: Vec<TcpStream> = (0..CROWD).map(|_| server.connect()).collect();
    for _ in 0..20 {
        server.is_alive();
        assert_eq!(server.ask(get("/v1/locks")).status, 200);
    }
    let store = format!("http://{}", server.address());
    let mut locks = place.command(crate::support::TENURE);
    locks.args(["--store", &store, "run", "x", "--", "true"]);
    let ended = crate::support::Running::start(locks).end();
    assert_eq!(ended.code, 0, "{ended:?}");
    drop(silent);
    server.stop();
}

#[test]
fn a_caller_that_is_known_keeps_its_connection() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--max-connections", "16"]);
    let own = server.own.clone().expect("a token");
    let mut stream = server.connect();
    let text = get("/v1/stream").token(&own).text(server.address());
    stream.write_all(text.as_bytes()).unwrap();
    let mut begun = [0; 12];
    stream.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"HTTP/1.1 200");
    let silent: Vec<TcpStream> = (0..100).map(|_| server.connect()).collect();
    server.is_alive();
    place.json(&["tasks", "add", "--id", "news", "Something new"]);
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&heard).contains("Something new") {
        let length = stream.read(&mut buffer).unwrap();
        assert!(length > 0, "it was closed: {}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&buffer[..length]);
    }
    drop(silent);
}

#[test]
fn whoever_says_nothing_is_not_waited_for_long() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &[]);
    let mut silent = server.connect();
    let mut begins = server.connect();
    begins.write_all(b"GET /healthz HTTP/1.1\r\nHost: ").unwrap();
    for stream in [&mut silent, &mut begins] {
        let mut rest = Vec::new();
        // Closed by the server: this test would wait for a minute.
        stream.read_to_end(&mut rest).unwrap();
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }
}

#[test]
fn a_caller_in_a_hurry_is_slowed_down() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--rate", "2"]);
    let answers: Vec<_> = (0..20).map(|_| server.ask(get("/healthz"))).collect();
    let refused = answers.iter().find(|answer| answer.status == 429).expect("one too many");
    assert_eq!(refused.code(), "RATE_LIMITED");
    assert!(refused.header("retry-after").is_some());
}
