//! A request that is held up on its way, and arrives after its sender gave it up.

use crate::server::{Server, free_address, through};
use crate::support::{Running, StoreLocation, until};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longer than a change may take after it was sent.
const TOO_LATE: Duration = Duration::from_secs(16);

/// Passes bytes on, but keeps each release that has a deadline.
struct Wire {
    address: SocketAddr,
    kept: Arc<Mutex<Vec<u8>>>,
}

impl Wire {
    fn to(server: SocketAddr) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let kept: Arc<Mutex<Vec<u8>>> = Arc::default();
        let keeping = kept.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(server) else { return };
                let (mut from, mut to) =
                    (server.try_clone().expect("a clone"), client.try_clone().expect("a clone"));
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
                let keeping = keeping.clone();
                std::thread::spawn(move || pass_on(client, server, &keeping));
            }
        });
        Wire { address, kept }
    }

    /// The whole request that was kept, once there is one.
    fn kept(&self) -> Vec<u8> {
        until("a release on its way", || {
            let mut kept = self.kept.lock().expect("no thread panics with it");
            let text = String::from_utf8_lossy(&kept).to_lowercase();
            let (head, body) = text.split_once("\r\n\r\n")?;
            let length = head.split_once("content-length: ")?.1.split("\r\n").next()?;
            (body.len() == length.parse::<usize>().ok()?).then(|| std::mem::take(&mut *kept))
        })
    }
}

fn pass_on(mut client: TcpStream, mut server: TcpStream, kept: &Mutex<Vec<u8>>) {
    let mut bytes = vec![0; 1 << 16];
    let mut keeps = false;
    while let Ok(count @ 1..) = client.read(&mut bytes) {
        let text = String::from_utf8_lossy(&bytes[..count]).to_lowercase();
        // One that does not know the server's clock yet is only told it.
        let deadline = text.split_once("tenure-deadline: ").map_or("", |(_, rest)| rest);
        let has_one = deadline.split("\r\n").next().is_some_and(|text| text.contains('/'));
        keeps |= text.starts_with("post /v1/store/act/release") && has_one;
        if keeps {
            kept.lock().expect("no thread panics with it").extend(&bytes[..count]);
        } else if server.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}

/// Delivers a request; returns the first line of the answer.
fn deliver(server: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(server).expect("the server");
    stream.write_all(request).expect("it reads");
    let mut answer = [0; 4096];
    let count = stream.read(&mut answer).expect("an answer");
    String::from_utf8_lossy(&answer[..count]).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_release_that_arrives_after_it_was_given_up_ends_nothing() {
    let place = StoreLocation::new();
    let address = free_address();
    let wire = Wire::to(address);
    let server = Server::start_behind(&place, address, wire.address);
    let url = format!("http://{}", wire.address);
    let direct = |words: &[&str]| Running::start(server.tenure(words)).end();
    let acquire = |name: &str| {
        let held = direct(&["--json", "acquire", name, "--as", "alice", "--ttl", "10m"]);
        assert_eq!(held.code, 0, "{held:?}");
        (held.json()["data"]["reason"].clone(), held.json()["data"]["token"].clone())
    };
    // Its sender is killed while it waits for the answer.
    let release = |name: &str| {
        let words = ["release", name, "--as", "alice"];
        let releasing = Running::start(through(&place, &url, &words));
        let kept = wire.kept();
        assert_eq!(releasing.kill().code, 137);
        kept
    };

    acquire("soon");
    let answer = deliver(address, &release("soon"));
    assert_eq!(answer, "HTTP/1.1 200 OK");
    assert_eq!(acquire("soon").0, "acquired_new", "it was released");

    let (_, token) = acquire("late");
    let kept = release("late");
    std::thread::sleep(TOO_LATE);
    assert_eq!(acquire("late"), ("already_owned".into(), token.clone()));
    assert_eq!(deliver(address, &kept), "HTTP/1.1 408 Request Timeout");
    let verified = direct(&["verify", "late", "--token", &token.to_string()]);
    assert_eq!(verified.code, 0, "{verified:?}");
}
