//! Whoever waits goes on waiting while the server is restarted, and whoever holds goes on holding.

use crate::server::Server;
use crate::support::{Running, StoreLocation, until};

#[test]
fn a_wait_outlives_the_server_and_keeps_its_place() {
    let place = StoreLocation::new();
    let mut server = Server::start(&place);
    let start = |server: &Server<'_>, name: &str| {
        let note = format!(
            "echo {name} >>$D/order; test {name} != first || until [ -e $D/go ]; do sleep 0.02; done"
        );
        Running::start(server.tenure(&["run", "deploy", "--as", name, "--", "sh", "-c", &note]))
    };
    let waiting = |count: usize| {
        until("waiters", || {
            let why = place.why("deploy");
            (why["waiters"].as_array().map_or(0, Vec::len) == count).then_some(())
        });
    };
    let first = start(&server, "first");
    until("a holder", || place.read("order").contains("first").then_some(()));
    let second = start(&server, "second");
    waiting(1);
    let third = start(&server, "third");
    waiting(2);

    server.kill();
    server.restart();
    server.stop();
    server.restart();

    place.touch("go");
    for running in [first, second, third] {
        let ended = running.end();
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    assert_eq!(place.read("order"), "first\nsecond\nthird\n");
}

#[test]
fn a_server_that_is_not_there_is_an_error_that_says_so() {
    let place = StoreLocation::new();
    let mut server = Server::start(&place);
    server.kill();
    let ended = Running::start(server.tenure(&["acquire", "deploy", "-n"])).end();
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(ended.stderr.contains("is not available"), "{ended:?}");
    assert!(ended.stderr.contains("tenure serve"), "{ended:?}");
}

#[test]
fn a_server_that_does_not_encrypt_is_not_asked_to() {
    let place = StoreLocation::new();
    let server = Server::start(&place);
    let url = server.url().replace("http:", "https:");
    let ended = Running::start(crate::server::through(&place, &url, &["status"])).end();
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(ended.stderr.contains("does not speak TLS"), "{ended:?}");
}
