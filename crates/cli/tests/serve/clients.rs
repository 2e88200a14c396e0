//! Tenure's own commands over what a server listens on: encrypted, with tokens, on a socket.

use crate::http::get;
use crate::server::{Server, token};
use crate::support::{Ended, Running, StoreLocation, TENURE};
use crate::tls::certificate;

/// A command over this store, with these variables.
fn tenure(place: &StoreLocation, store: &str, variables: &[(&str, &str)], words: &[&str]) -> Ended {
    let mut command = place.command(TENURE);
    command.args(["--store", store]).args(words).envs(variables.iter().copied());
    Running::start(command).end()
}

#[test]
fn encrypted_and_with_a_token() {
    let place = StoreLocation::new();
    let Some([certificate, key]) = certificate(&place) else { return };
    let secret = token(&place, "ci", "work");
    let server = Server::start(&place, &["--tls-cert", &certificate, "--tls-key", &key]);
    let store = format!("https://{}", server.address());
    let (ca, secret) =
        (("TENURE_SERVER_CA_FILE", &*certificate), ("TENURE_SERVER_TOKEN", &*secret));
    let run = ["run", "deploy", "--", "sh", "-c", "echo held"];
    let ended = tenure(&place, &store, &[ca, secret], &run);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "held\n"), "{ended:?}");
    let ended = tenure(&place, &store, &[ca], &run);
    assert_eq!(ended.code, 5, "without a token: {ended:?}");
    // What the server may not see without being who it says it is.
    let ended = tenure(&place, &store, &[secret], &run);
    assert_eq!(ended.code, 3, "without trust: {ended:?}");
    assert!(ended.stderr.contains("its certificate is not accepted"), "{ended:?}");
    let elsewhere = ("TENURE_SERVER_CA_FILE", &*key);
    let ended = tenure(&place, &store, &[elsewhere, secret], &run);
    assert!(ended.code == 3 && ended.stderr.contains("it has no certificate"), "{ended:?}");
    let admin = ["break", "deploy", "--force", "--reason", "stuck"];
    let ended = tenure(&place, &store, &[ca, secret], &["acquire", "deploy"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let ended = tenure(&place, &store, &[ca, secret], &admin);
    assert_eq!(ended.code, 5, "with a role that is too weak: {ended:?}");
}

#[test]
fn on_a_socket() {
    let place = StoreLocation::new();
    let path = place.path("sock");
    let _server = Server::start_on(&place, &["--unix", path.to_str().unwrap()]);
    let store = format!("unix:{}", path.display());
    let added = tenure(&place, &store, &[], &["tasks", "add", "--id", "one", "First"]);
    assert_eq!(added.code, 0, "{added:?}");
    let work = ["work", "--until-empty", "--", "sh", "-c", "echo did $TENURE_TASK_ID"];
    let worked = tenure(&place, &store, &[], &work);
    assert_eq!((worked.code, worked.stdout.as_str()), (0, "did one\n"), "{worked:?}");
    let none = tenure(&place, "unix:nowhere", &[], &["status"]);
    assert!(none.code == 3 && none.stderr.contains("is not available"), "{none:?}");
}

/// How many requests a server has answered so far, by its own count.
fn answered(server: &Server) -> u64 {
    let numbers = server.ask(get("/metrics")).body;
    let counts = numbers.lines().filter(|line| line.starts_with("tenure_http_responses_total{"));
    counts.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
}

#[test]
fn finishing_a_task_takes_two_requests() {
    let place = StoreLocation::new();
    let server = Server::start(&place, &["--no-auth"]);
    let store = format!("http://{}", server.address());
    let run = |words: &[&str]| {
        let ended = tenure(&place, &store, &[], words);
        assert_eq!(ended.code, 0, "{words:?}: {ended:?}");
        ended.stdout
    };
    for id in ["one", "two"] {
        run(&["tasks", "add", "--id", id, "--section", "Backend", "Do it"]);
    }
    for (id, gives_up) in [("one", false), ("two", true)] {
        run(&["tasks", "claim", id, "--as", "alice"]);
        let before = answered(&server);
        let said = run(&["tasks", "complete", id, "--as", "alice"]);
        // The count of the requests is a request too.
        assert_eq!(answered(&server) - before - 1, 2, "{said}");
        assert_eq!(said.contains("Released Backend"), gives_up, "{said}");
    }
}
