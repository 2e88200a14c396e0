//! Many who want nothing, or take their time, do not keep others out, nor fill the memory.

use crate::http::get;
use crate::server::Server;
use crate::support::{Over, Place};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

const IDLE: usize = 1000;
const SLOW: usize = 200;

/// Generous: a debug build with a thousand connections takes a fraction of it.
const MEMORY_KIB_MAX: u64 = 300 * 1024;

/// This process needs a descriptor for each connection, too.
fn make_room() {
    let now = getrlimit(Resource::Nofile);
    let wanted = (IDLE + SLOW + 500) as u64;
    let current = now.maximum.map_or(wanted, |most| most.min(wanted));
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: now.maximum });
}

#[test]
fn a_thousand_who_say_nothing() {
    make_room();
    let place = Place::new();
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
    let place = Place::new();
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

#[test]
fn those_who_find_no_room_wait_for_it() {
    let place = Place::new();
    let server = Server::start(&place, &["--max-connections", "8"]);
    let mut inside: Vec<TcpStream> = (0..8).map(|_| server.connect()).collect();
    let mut outside = server.connect();
    let text = get("/healthz").text(server.address());
    outside.write_all(text.as_bytes()).unwrap();
    inside.pop();
    assert_eq!(crate::http::read(&mut outside).status, 200);
}

#[test]
fn a_caller_in_a_hurry_is_slowed_down() {
    let place = Place::new();
    let server = Server::start(&place, &["--rate", "2"]);
    let answers: Vec<_> = (0..20).map(|_| server.ask(get("/healthz"))).collect();
    let refused = answers.iter().find(|answer| answer.status == 429).expect("one too many");
    assert_eq!(refused.code(), "RATE_LIMITED");
    assert!(refused.header("retry-after").is_some());
}
