//! The token that a server makes for its user: who is let in by it, and to whom it is sent.

use crate::http::{ask, get};
use crate::server::{Server, token};
use crate::support::{Ended, Running, Signal, StoreLocation, TENURE, until};
use rustix::process::geteuid;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command of this user over a server, without any setting.
fn tenure(place: &StoreLocation, store: &str, words: &[&str]) -> Ended {
    Running::start(command(place, store, words)).end()
}

fn command(place: &StoreLocation, store: &str, words: &[&str]) -> Command {
    let mut command = place.command(TENURE);
    command.args(["--store", store]).args(words);
    command
}

fn url(server: &Server) -> String {
    format!("http://{}", server.address())
}

/// Where the servers of this place keep their tokens.
fn folder(place: &StoreLocation) -> PathBuf {
    place.path("home/.local/state/tenure/servers")
}

fn files_ending(place: &StoreLocation, suffix: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder(place)).into_iter().flatten().flatten();
    files
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|it| it == suffix))
        .collect()
}

/// Another user of this machine. Only root can become one; a server on loopback does not see which
/// user asks, so that others ask as themselves, without a token.
fn as_another_user(place: &StoreLocation, program: &str, words: &[&str]) -> Ended {
    let mut command = match geteuid().is_root() {
        true => {
            let mut command = place.command("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]);
            command
        }
        false => place.command(program),
    };
    command.args(words);
    command.current_dir("/");
    Running::start(command).end()
}

/// Sends its third argument to the host and port before it, and prints the first line of the answer.
const ASK: &str = r#"exec 3<>"/dev/tcp/$1/$2" && printf %s "$3" >&3 && IFS= read -r -t 60 line <&3 && echo "$line""#;

#[test]
fn other_users_of_the_machine_are_not_let_in() {
    let place = StoreLocation::new();
    let (held, _) = place.acquire(&["deploy", "--as", "alice", "--ttl", "10m"]);
    let server = Server::start(&place, &[]);
    let (host, port) = server.address().split_once(':').unwrap();
    let status = |method: &str, path: &str, body: &str| {
        let asked = match body {
            "" => ask(method, path),
            body => ask(method, path).body(body),
        };
        let text = asked.text(server.address());
        let ended = as_another_user(&place, "/bin/bash", &["-c", ASK, "ask", host, port, &text]);
        assert_eq!(ended.code, 0, "{ended:?}");
        let status = ended.stdout.split(' ').nth(1).unwrap_or_default();
        status.parse::<u16>().unwrap_or_else(|_| panic!("{ended:?}"))
    };
    let body = format!(r#"{{"resource":"deploy","token":{held},"reason":"mine now"}}"#);
    assert_eq!(status("POST", "/v1/locks/break", &body), 401);
    assert_eq!(status("GET", "/v1/locks", ""), 401);
    assert_eq!(status("POST", "/mcp", "{}"), 401);
    assert_eq!(status("GET", "/metrics", ""), 401);
    assert_eq!(status("GET", "/healthz", ""), 200);
    assert!(place.accepts("deploy", held));
    // Nor can it read the token.
    let file = &files_ending(&place, "token")[0];
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    if geteuid().is_root() {
        let read = as_another_user(&place, "cat", &[file.to_str().unwrap()]);
        assert!(read.code != 0 && !read.text().contains("tnr_"), "{read:?}");
    }
}

#[test]
fn commands_of_the_same_user_are_let_in_by_themselves() {
    let place = StoreLocation::new();
    place.acquire(&["deploy", "--as", "alice", "--ttl", "10m"]);
    let server = Server::start(&place, &[]);
    let port = server.address().rsplit_once(':').unwrap().1;
    for store in [url(&server), format!("http://localhost:{port}")] {
        let ended = tenure(&place, &store, &["locks"]);
        assert!(ended.code == 0 && ended.stdout.contains("alice"), "{store}: {ended:?}");
        let ended = tenure(&place, &store, &["run", "x", "--", "sh", "-c", "echo held"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, "held\n"), "{ended:?}");
    }
    let held = &place.json(&["locks"])["locks"][0]["token"];
    let broken = ["break", "deploy", "--force", "--reason", "a test", "--token", &held.to_string()];
    assert_eq!(tenure(&place, &url(&server), &broken).code, 0);
    assert_eq!(server.ask_as_given(get("/v1/locks")).status, 401);
}

#[test]
fn encrypted_too() {
    let place = StoreLocation::new();
    let Some([certificate, key]) = crate::tls::certificate(&place) else { return };
    let server = Server::start(&place, &["--tls-cert", &certificate, "--tls-key", &key]);
    let mut locks = command(&place, &format!("https://{}", server.address()), &["locks"]);
    locks.env("TENURE_SERVER_CA_FILE", &certificate);
    let ended = Running::start(locks).end();
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[test]
fn a_token_is_private_kept_and_renewed() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &[]);
    let first = server.own.clone().expect("a token");
    assert!(first.starts_with("tnr_") && first.len() == 68, "{first}");
    let file = files_ending(&place, "token").remove(0);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder(&place)), mode(&file)), (0o700, 0o600));
    assert_eq!(place.run(&["token", "show"]).stdout.trim(), first);
    assert_eq!(place.json(&["token", "show"])["file"], file.to_str().unwrap());
    let ended = server.stop();
    // Output that is no terminal may be kept where others read it.
    assert!(!ended.text().contains("tnr_") && !place.read("server.out").contains("tnr_"));
    assert!(files_ending(&place, "server").is_empty());
    let server = Server::start(&place, &[]);
    assert_eq!(server.own.as_ref(), Some(&first));
    // Another server of the same store renews it: this one follows.
    let next = Server::start(&place, &["--new-token"]);
    let second = next.own.clone().expect("a token");
    assert_ne!(first, second);
    let status =
        |server: &Server, secret: &str| server.ask_as_given(get("/v1/locks").token(secret)).status;
    assert_eq!((status(&next, &first), status(&next, &second)), (401, 200));
    until("the end of the old token", || (status(&server, &first) == 401).then_some(()));
    assert_eq!(status(&server, &second), 200);
    assert_eq!(tenure(&place, &url(&server), &["locks"]).code, 0);
    // Another store has another.
    let other = Server::start(&place, &["--store", "memory:"]);
    assert_ne!(other.own, Some(second));
}

#[test]
fn what_others_can_read_is_not_used() {
    let place = StoreLocation::new();
    Server::start(&place, &[]).stop();
    let file = files_ending(&place, "token").remove(0);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let ended = place.run(&["serve", "--json", "--listen", "127.0.0.1:0"]);
    assert_eq!((ended.code, ended.json()["error"]["code"].as_str()), (3, Some("OWN_TOKEN")));
    assert!(!ended.text().contains("tnr_"), "{ended:?}");
    Server::start(&place, &["--new-token"]).stop();
}

/// Whether one waits for `deploy`.
fn waits(place: &StoreLocation) -> bool {
    place.why("deploy")["waiters"].as_array().is_some_and(|waiters| waiters.len() == 1)
}

/// Reads what one client sends before it gives up.
fn heard(stream: TcpStream) -> String {
    let mut stream = stream;
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..length]);
        if bytes.windows(4).any(|window| window == b"\r\n\r\n") {
            let _ = stream.write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn whoever_takes_the_port_of_a_dead_server_is_not_told_the_token() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &[]);
    let (address, store) = (server.address().to_owned(), url(&server));
    server.signal(Signal::KILL);
    server.end();
    assert_eq!(files_ending(&place, "server").len(), 1, "it had no time to remove its record");
    let stranger = TcpListener::bind(&address).unwrap();
    let asking = Running::start(command(&place, &store, &["locks"]));
    let said = heard(stranger.accept().unwrap().0);
    assert!(said.starts_with("POST ") && !said.contains("tnr_"), "{said}");
    assert!(!said.to_ascii_lowercase().contains("authorization"), "{said}");
    assert_eq!(asking.end().code, 5);
}

#[test]
fn not_even_by_a_client_that_knew_the_server() {
    let place = StoreLocation::new();
    place.acquire(&["deploy", "--as", "alice", "--ttl", "10m"]);
    let server = Server::start(&place, &[]);
    let (address, store) = (server.address().to_owned(), url(&server));
    let waiting = Running::start(command(&place, &store, &["run", "deploy", "--", "true"]));
    until("one who waits", || waits(&place).then_some(()));
    server.signal(Signal::KILL);
    server.end();
    let stranger = TcpListener::bind(&address).unwrap();
    // It looks who is there before it says a word, again and again.
    for _ in 0..3 {
        assert_eq!(heard(stranger.accept().unwrap().0), "");
    }
    drop(stranger);
    // The next server is known again.
    let arguments = ["--listen", &address];
    let next = until("the port", || {
        let free = TcpListener::bind(&address).is_ok();
        free.then(|| Server::start_on(&place, &arguments))
    });
    place.json(&["release", "deploy", "--as", "alice"]);
    let ended = waiting.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    next.stop();
}

#[test]
fn without_authentication_all_are_let_in_and_it_says_so() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--no-auth"]);
    assert_eq!(server.own, None);
    assert_eq!(server.ask_as_given(get("/v1/locks")).status, 200);
    let said = server.stop();
    assert!(said.stderr.contains("Every user, container and program"), "{said:?}");
    assert!(files_ending(&place, "token").is_empty());
    // Not on addresses that others reach, nor where there are tokens.
    let refused = |arguments: &[&str]| {
        let ended = place.run(&[&["serve", "--json", "--no-auth"], arguments].concat());
        (ended.code, ended.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(refused(&["--listen", "0.0.0.0:0"]), (3, "NO_TOKENS".to_owned()));
    token(&place, "ci", "work");
    assert_eq!(refused(&["--listen", "127.0.0.1:0"]), (3, "TOKENS".to_owned()));
}

#[test]
fn given_tokens_take_the_place_of_the_servers_own() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &[]);
    let own = server.own.clone().expect("a token");
    let given = token(&place, "ci", "read");
    let status = |secret: &str| server.ask_as_given(get("/v1/locks").token(secret)).status;
    until("the end of its own token", || (status(&own) == 401).then_some(()));
    assert_eq!(status(&given), 200);
    let ended = tenure(&place, &url(&server), &["locks"]);
    assert_eq!(ended.code, 5, "{ended:?}");
    assert!(ended.stderr.contains("tenure token create"), "{ended:?}");
    let shown = place.run(&["token", "show"]);
    assert_eq!(shown.code, 4, "{shown:?}");
}

#[test]
fn a_browser_is_led_there_without_naming_the_token_to_all() {
    let place = StoreLocation::new();
    let programs = place.path("programs");
    std::fs::create_dir(&programs).unwrap();
    let opener = programs.join("xdg-open");
    std::fs::write(&opener, "#!/bin/sh\nprintf '%s\\n' \"$@\" > \"$D/opened.new\"\nmv \"$D/opened.new\" \"$D/opened\"\n")
        .unwrap();
    std::fs::set_permissions(&opener, PermissionsExt::from_mode(0o755)).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(programs).chain(std::env::split_paths(&path));
    let mut serve = place.tenure(&["serve", "--listen", "127.0.0.1:0", "--open"]);
    serve.env("PATH", std::env::join_paths(paths).unwrap());
    let server = Running::start(serve);
    place.wait_for("opened");
    let opened = place.read("opened");
    let page = PathBuf::from(opened.trim());
    let secret = std::fs::read_to_string(&files_ending(&place, "token")[0]).unwrap();
    assert!(!opened.contains("tnr_") && page.starts_with(folder(&place)), "{opened}");
    assert_eq!(std::fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.contains(&format!("/#token={}", secret.trim())), "{text}");
    server.signal(Signal::TERM);
    let ended = server.end();
    assert!(ended.code == 0 && !ended.text().contains("tnr_"), "{ended:?}");
    assert!(!page.exists());
}

#[test]
fn a_request_is_not_let_in_by_what_a_page_could_send() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &[]);
    let own = server.own.clone().expect("a token");
    for asked in [
        get(&format!("/v1/locks?token={own}")),
        get("/v1/locks").header("Cookie", &format!("token={own}; tenure.token={own}")),
        ask("POST", "/v1/tasks").body(format!("{{\"token\":\"{own}\"}}")),
    ] {
        assert_eq!(server.ask_as_given(asked).status, 401);
    }
    let foreign = get("/v1/locks").token(&own).header("Origin", "http://evil.example");
    assert_eq!(server.ask_as_given(foreign).code(), "ORIGIN");
}
