//! No path leads out of what is served.

use crate::http::get;
use crate::server::{Server, token};
use crate::support::StoreLocation;

const PATHS: [&str; 14] = [
    "/assets/../../etc/passwd",
    "/assets/../../../../../../etc/passwd",
    "/assets/..%2f..%2fetc%2fpasswd",
    "/assets/%2e%2e/%2e%2e/etc/passwd",
    "/assets/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "/assets/%252e%252e%252fetc%252fpasswd",
    "/assets/..%c0%af..%c0%afetc/passwd",
    "/assets/..\\..\\etc\\passwd",
    "/assets//etc/passwd",
    "/assets/%00/etc/passwd",
    "/../etc/passwd",
    "//etc/passwd",
    "/assets/../v1/locks",
    "/assets/..%2fv1%2flocks",
];

#[test]
fn paths_that_would_leave() {
    let place = StoreLocation::new();
    token(&place, "ci", "read");
    let server = Server::start(&place, &[]);
    for path in PATHS {
        let answer = server.ask(get(path));
        assert!([400, 401, 404].contains(&answer.status), "{path}: {answer:?}");
        assert!(!answer.body.contains("root:") && !answer.body.contains("locks\":"), "{answer:?}");
    }
    server.is_alive();
}
