//! Connections are cut after the server has acted and before its answer arrives. The answer is asked
//! for again; nothing is done twice.

use crate::server::{Server, free_address, through};
use crate::support::{Dice, Over, Running, StoreLocation};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Passes bytes on, and swallows every few answers with their connection.
struct Wire {
    address: SocketAddr,
    cut: Arc<AtomicUsize>,
}

impl Wire {
    fn to(server: SocketAddr, over: Arc<AtomicBool>) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let cut = Arc::new(AtomicUsize::new(0));
        let count = cut.clone();
        std::thread::spawn(move || {
            let mut dice = Dice::new();
            for client in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(server)) else { return };
                let after = dice.below(4);
                let count = count.clone();
                std::thread::spawn(move || pass_on(client, server, after, &count));
            }
        });
        Wire { address, cut }
    }
}

/// Lets so many answers through; the next one is read from the server and never arrives.
fn pass_on(client: TcpStream, server: TcpStream, after: usize, cut: &AtomicUsize) {
    let (mut from, mut to) =
        (client.try_clone().expect("a clone"), server.try_clone().expect("a clone"));
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let (mut client, mut server) = (client, server);
    let mut answers = 0;
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = server.read(&mut bytes) {
        // Small answers come whole, each beginning with its status.
        if bytes.starts_with(b"HTTP/1.1") {
            answers += 1;
        }
        if answers > after {
            cut.fetch_add(1, Ordering::Relaxed);
            break;
        }
        if client.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
}

#[test]
fn answers_that_were_lost_are_given_again_and_nothing_is_done_twice() {
    let place = StoreLocation::new();
    let over = Over::default();
    let address = free_address();
    let wire = Wire::to(address, over.flag());
    let _server = Server::start_behind(&place, address, wire.address);
    let url = format!("http://{}", wire.address);
    let run = |words: &[&str]| Running::start(through(&place, &url, words)).end();

    for number in 0..20 {
        let ended = run(&["tasks", "add", &format!("Task {number}")]);
        assert_eq!(ended.code, 0, "{ended:?}");
        let ended = run(&["run", "counter", "--", "sh", "-c", "echo x >>$D/runs"]);
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    let ended = run(&["swarm", "-n", "3", "--", "sh", "-c", "echo $TENURE_TASK_ID >>$D/done"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let (token, _) = place.acquire(&["deploy", "--as", "alice"]);
    let ended =
        run(&["break", "deploy", "--force", "--reason", "a test", "--token", &token.to_string()]);
    assert_eq!(ended.code, 0, "{ended:?}");

    assert_eq!(place.read("runs").lines().count(), 20);
    let tasks = place.json(&["tasks", "list"]);
    let tasks = tasks["tasks"].as_array().expect("tasks");
    assert_eq!(tasks.len(), 20, "added twice, or not at all");
    assert!(tasks.iter().all(|task| task["status"] == "completed" && task["attempts"] == 1));
    let mut done: Vec<String> = place.read("done").lines().map(str::to_owned).collect();
    done.sort();
    done.dedup();
    assert_eq!((done.len(), place.read("done").lines().count()), (20, 20), "done twice");
    let cut = wire.cut.load(Ordering::Relaxed);
    println!("{cut} answers were lost");
    assert!(cut > 10, "hardly an answer was lost");
}
