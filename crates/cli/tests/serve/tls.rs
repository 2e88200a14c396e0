//! Encrypted, with a certificate that is made here.

use crate::http::{Answer, get, parse};
use crate::server::Server;
use crate::support::{StoreLocation, is_installed, until};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

/// Makes a certificate and its key; nothing where that cannot be done.
pub fn certificate(place: &StoreLocation) -> Option<[String; 2]> {
    if !is_installed("openssl") {
        crate::support::skip("openssl is not installed");
        return None;
    }
    let [certificate, key] =
        ["cert.pem", "key.pem"].map(|name| place.path(name).display().to_string());
    let mut command = place.command("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    command.args(["-nodes", "-days", "2", "-subj", "/CN=localhost"]);
    command.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
    // One that vouches for others as well is not accepted by all as a server's.
    command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    command.args(["-keyout", &key, "-out", &certificate]);
    let made = command.output().unwrap();
    assert!(made.status.success(), "{made:?}");
    Some([certificate, key])
}

fn ask(place: &StoreLocation, server: &Server, certificate: &str) -> Answer {
    try_to_ask(place, server, certificate).expect("an answer")
}

/// Asks, unless the server shows another certificate.
fn try_to_ask(place: &StoreLocation, server: &Server, certificate: &str) -> Option<Answer> {
    let mut client = place.command("openssl");
    client.args(["s_client", "-quiet", "-verify_return_error", "-verify_hostname", "localhost"]);
    client.args(["-CAfile", certificate, "-connect", server.address()]);
    client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut client = client.spawn().unwrap();
    let mut stdin = client.stdin.take().unwrap();
    let _ = stdin.write_all(get("/healthz").text(server.address()).as_bytes());
    let mut text = String::new();
    client.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    drop(stdin);
    client.wait().unwrap();
    parse(&text)
}

#[test]
fn clients_that_trust_the_certificate_are_answered() {
    let place = StoreLocation::new();
    let Some([certificate, key]) = certificate(&place) else { return };
    let server = Server::start(&place, &["--tls-cert", &certificate, "--tls-key", &key]);
    assert!(server.listening[0].starts_with("https://"), "{:?}", server.listening);
    assert_eq!(ask(&place, &server, &certificate).status, 200);
    // Whoever speaks in clear, or says nothing, harms nobody.
    let silent = server.connect();
    let mut clear = server.connect();
    let _ = clear.write_all(get("/healthz").text(server.address()).as_bytes());
    let mut answer = Vec::new();
    let _ = clear.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"));
    assert_eq!(ask(&place, &server, &certificate).status, 200);
    drop(silent);
    server.stop();
}

#[test]
fn a_certificate_that_is_renewed_is_shown_to_those_who_come_then() {
    let place = StoreLocation::new();
    let Some([old, key]) = certificate(&place) else { return };
    let server = Server::start(&place, &["--tls-cert", &old, "--tls-key", &key]);
    assert_eq!(ask(&place, &server, &old).status, 200);
    let (kept, good) = (place.path("kept.pem"), std::fs::read(&old).unwrap());
    std::fs::write(&kept, &good).unwrap();
    // What is no certificate changes nothing.
    std::fs::write(&old, "nonsense").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(ask(&place, &server, kept.to_str().unwrap()).status, 200);
    let [new, _] = certificate(&place).unwrap();
    let answer = until("the new certificate", || try_to_ask(&place, &server, &new));
    assert_eq!(answer.status, 200);
    assert!(try_to_ask(&place, &server, kept.to_str().unwrap()).is_none(), "the old one");
    server.stop();
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let place = StoreLocation::new();
    let Some([certificate, key]) = certificate(&place) else { return };
    let serve = ["serve", "--json", "--listen", "127.0.0.1:0", "--tls-cert", &certificate];
    for mode in [0o644, 0o604, 0o620] {
        std::fs::set_permissions(&key, PermissionsExt::from_mode(mode)).unwrap();
        let ended = place.run(&[&serve[..], &["--tls-key", &key]].concat());
        let error = &ended.json()["error"];
        assert_eq!((ended.code, error["code"].as_str()), (3, Some("TLS")), "{mode:o}: {ended:?}");
        let message = error["message"].to_string();
        assert!(message.contains("can be read by other users"), "{message}");
        assert!(error["hint"].to_string().contains("chmod 600"), "{error}");
    }
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    Server::start(&place, &["--tls-cert", &certificate, "--tls-key", &key]).stop();
}

#[test]
fn what_is_no_certificate_is_named() {
    let place = StoreLocation::new();
    let Some([certificate, key]) = certificate(&place) else { return };
    let missing = place.path("missing").display().to_string();
    for (certificate, key) in [(&missing, &key), (&certificate, &missing), (&key, &key)] {
        let ended = place.run(&["serve", "--json", "--tls-cert", certificate, "--tls-key", key]);
        assert_eq!(
            (ended.code, ended.json()["error"]["code"].as_str()),
            (3, Some("TLS")),
            "{ended:?}"
        );
    }
    let ended = place.run(&["serve", "--tls-cert", &certificate]);
    assert_eq!(ended.code, 2, "{ended:?}");
}
