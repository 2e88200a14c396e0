//! Events reach a receiver that fails at first, signed, once each in the end, and nothing waits for it.

use crate::http::get;
use crate::server::Server;
use crate::support::{StoreLocation, until};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

/// A request to the receiver, and how it was answered.
#[derive(Clone, Debug)]
struct Received {
    path: String,
    headers: BTreeMap<String, String>,
    body: String,
    status: u16,
}

impl Received {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

struct Receiver {
    address: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Receiver {
    /// Answers with these, and then with 204.
    fn start(first: &'static [&'static str]) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let keep = received.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let keep = keep.clone();
                std::thread::spawn(move || while answer(&stream, first, &keep).is_some() {});
            }
        });
        Receiver { address, received }
    }

    fn all(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Accepted messages of this type.
    fn accepted(&self, kind: &str) -> Vec<Received> {
        let is_it = |it: &Received| it.status == 204 && it.json()["type"] == kind;
        self.all().into_iter().filter(is_it).collect()
    }
}

fn answer(stream: &TcpStream, first: &[&str], keep: &Mutex<Vec<Received>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let path = line.split_whitespace().nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let mut all = keep.lock().unwrap();
    let reply = first.get(all.len()).copied().unwrap_or("204 No Content");
    let status = reply[..3].parse().unwrap();
    all.push(Received { path, headers, body: String::from_utf8(body).unwrap(), status });
    drop(all);
    let mut stream = stream;
    write!(stream, "HTTP/1.1 {reply}\r\ncontent-length: 0\r\n\r\n").ok()
}

const SECRET: &str = "a secret of this test only";

fn secret_file(place: &StoreLocation) -> String {
    let file = place.path("secret");
    std::fs::write(&file, SECRET).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    file.to_str().unwrap().to_owned()
}

/// What another program computes.
fn signature(place: &StoreLocation, it: &Received) -> String {
    let text =
        format!("{}.{}.{}", it.headers["webhook-id"], it.headers["webhook-timestamp"], it.body);
    std::fs::write(place.path("signed"), text).unwrap();
    let script =
        format!("openssl dgst -sha256 -hmac '{SECRET}' -binary signed | openssl base64 -A");
    let output = place.command("sh").args(["-c", &script]).output().unwrap();
    format!("v1,{}", String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_receiver_that_fails_at_first_gets_each_event_in_the_end() {
    let place = StoreLocation::new();
    let receiver = Receiver::start(&["500 Oops", "503 Busy", "429 Slow"]);
    let (url, secret) = (format!("http://{}/hook/PATH", receiver.address), secret_file(&place));
    let server = Server::start(
        &place,
        &[
            "--no-auth",
            "--webhook",
            &url,
            "--webhook-secret-file",
            &secret,
            "--webhook-events",
            "failed,blocked",
            "--log",
        ],
    );
    until("the first message", || (!receiver.all().is_empty()).then_some(()));
    for id in ["one", "two"] {
        place.json(&["tasks", "add", id, "--id", id, "--max-attempts", "1"]);
        place.run(&["work", "--once", "--", "false"]);
    }
    let failed = until("both failures", || {
        Some(receiver.accepted("task.failed")).filter(|failed| failed.len() >= 2)
    });
    let resources: Vec<Value> =
        failed.iter().map(|it| it.json()["data"]["resource"].clone()).collect();
    assert_eq!(resources, ["task:one", "task:two"], "in order, and each accepted once");
    let all = receiver.all();
    assert_eq!(all[0].json()["type"], "server.started");
    assert!(all[..3].iter().all(|it| it.status >= 400), "{all:?}");
    let ids: Vec<&String> = all.iter().map(|it| &it.headers["webhook-id"]).collect();
    assert!(ids[..4].iter().all(|id| *id == ids[0]), "repeated under the same id: {ids:?}");
    for it in &all {
        assert_eq!(it.path, "/hook/PATH");
        assert_eq!(it.headers["webhook-signature"], signature(&place, it));
        assert!(!it.body.contains("grant"), "{it:?}");
        let kind = it.json()["type"].as_str().unwrap().to_owned();
        assert!(
            ["server.started", "task.failed"].contains(&kind.as_str()),
            "{kind} was not asked for"
        );
    }
    let ended = server.stop();
    assert!(!ended.text().contains(SECRET) && !ended.text().contains("PATH"), "{ended:?}");
}

#[test]
fn nothing_waits_for_a_receiver_that_does_not_answer() {
    let place = StoreLocation::new();
    // It listens, and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let secret = secret_file(&place);
    let arguments = [
        "--no-auth",
        "--webhook",
        &url,
        "--webhook-secret-file",
        &secret,
        "--webhook-events",
        "all",
    ];
    let server = Server::start(&place, &arguments);
    for _ in 0..20 {
        let (_, grant) = place.acquire(&["db"]);
        place.json(&["release", "db", "--grant", &grant]);
    }
    assert_eq!(server.ask(get("/readyz")).status, 200);
    server.stop();
}

#[test]
fn a_redirect_is_not_followed() {
    let place = StoreLocation::new();
    let elsewhere = Receiver::start(&[]);
    let reply: &'static str =
        Box::leak(format!("302 Found\r\nlocation: http://{}/", elsewhere.address).into_boxed_str());
    let receiver = Receiver::start(Box::leak(Box::new([reply])));
    let (url, secret) = (format!("http://{}/", receiver.address), secret_file(&place));
    let server =
        Server::start(&place, &["--no-auth", "--webhook", &url, "--webhook-secret-file", &secret]);
    until("a message that was given up", || {
        let text = server.ask(get("/metrics")).body;
        text.contains("tenure_webhook_messages_total{outcome=\"failed\"} 1").then_some(())
    });
    assert!(elsewhere.all().is_empty());
    assert_eq!(receiver.all().len(), 1, "it is not repeated");
    server.stop();
}

#[test]
fn wrong_arguments_are_refused() {
    let place = StoreLocation::new();
    let secret = secret_file(&place);
    let public = place.path("public");
    std::fs::write(&public, SECRET).unwrap();
    std::fs::set_permissions(&public, std::fs::Permissions::from_mode(0o644)).unwrap();
    for (arguments, words) in [
        (&["--webhook", "http://127.0.0.1:9/"][..], "--webhook-secret-file"),
        (&["--webhook", "ftp://127.0.0.1/", "--webhook-secret-file", &secret], "https://"),
        (&["--webhook", "http://a:b@127.0.0.1/", "--webhook-secret-file", &secret], "password"),
        (
            &[
                "--webhook",
                "http://127.0.0.1:9/",
                "--webhook-secret-file",
                public.to_str().unwrap(),
            ],
            "other users",
        ),
        (
            &[
                "--webhook",
                "http://127.0.0.1:9/",
                "--webhook-secret-file",
                &secret,
                "--webhook-events",
                "bloked",
            ],
            "bloked",
        ),
    ] {
        let ended =
            place.run(&[&["serve", "--no-auth", "--listen", "127.0.0.1:0"], arguments].concat());
        assert_ne!(ended.code, 0, "{arguments:?}");
        assert!(ended.stderr.contains(words), "{arguments:?}: {ended:?}");
    }
}
