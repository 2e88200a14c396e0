//! A process per host that reads the configuration which setup wrote, as the host does: it finds the
//! hook by its matcher, runs its command through a shell, and edits the file if it may.

use crate::project::{HOSTS, fixtures, read, repository, write};
use crate::snapshot_support::Sandbox;
use serde_json::{Value, json};

/// A script that plays a host. It edits `src/main.rs` through the hooks of the configuration in the
/// current folder, and prints the reason if that is refused.
const HOST: &str = include_str!("host.mjs");

fn set_up(host: &str) -> Sandbox {
    let sandbox = repository();
    for (name, text) in fixtures(host) {
        // Hooks of the real projects call programs that are not here.
        if !text.contains("\"hooks\"") {
            write(&sandbox, name, text);
        }
    }
    write(&sandbox, "src/main.rs", "fn main() {}\n");
    write(&sandbox, "../host.mjs", HOST);
    sandbox.quietly(&format!("tenure setup {host}"));
    sandbox
}

/// Edits the file as this session; gives why it was refused.
fn edit(sandbox: &Sandbox, host: &str, session: &str, content: &str) -> Option<String> {
    let answer = sandbox.quietly(&format!("node ../host.mjs {host} {session} {content}"));
    let answer: Value = serde_json::from_str(&answer).expect("an answer of the host");
    assert_eq!(answer["found"], json!(true), "{host} found no hook for its edit tool");
    answer["refused"].as_str().map(str::to_owned)
}

#[test]
fn an_edit_is_refused_while_another_holds_the_file_and_allowed_after_its_release() {
    for host in HOSTS {
        let sandbox = set_up(host);
        sandbox.quietly("tenure acquire path:src/main.rs --as alice --ttl 10m");
        let reason = edit(&sandbox, host, "one", "changed").expect(host);
        assert!(reason.contains("alice"), "{host}: {reason}");
        assert!(!reason.contains("--force") && !reason.contains("break"), "{host}: {reason}");
        assert_eq!(read(&sandbox, "src/main.rs"), "fn main() {}\n", "{host}");
        sandbox.quietly("tenure release path:src/main.rs --as alice");
        assert_eq!(edit(&sandbox, host, "one", "changed"), None, "{host}");
        assert_eq!(read(&sandbox, "src/main.rs"), "changed", "{host}");
        let reason = edit(&sandbox, host, "two", "stolen").expect(host);
        assert!(!reason.is_empty(), "{host}");
        assert_eq!(read(&sandbox, "src/main.rs"), "changed", "{host}");
    }
}

#[test]
fn a_holder_that_is_killed_is_not_in_the_way() {
    for host in HOSTS {
        let sandbox = set_up(host);
        let mut holder = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = holder.id();
        sandbox.quietly(&format!("tenure acquire path:src/main.rs --as bob --pid {pid}"));
        let reason = edit(&sandbox, host, "one", "changed").expect(host);
        assert!(reason.contains("bob"), "{host}: {reason}");
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert_eq!(edit(&sandbox, host, "one", "changed"), None, "{host}");
    }
}

/// Without tenure on the path, committed files do nothing and say nothing.
#[test]
fn where_tenure_is_not_installed_hooks_are_silent() {
    for host in HOSTS {
        let sandbox = set_up(host);
        sandbox.quietly("tenure acquire path:src/main.rs --as alice --ttl 10m");
        let line = format!("PATH=/usr/local/bin:/usr/bin:/bin node ../host.mjs {host} one changed");
        let answer = sandbox.quietly(&format!("{line} 2>&1"));
        assert_eq!(answer, r#"{"found":true}"#, "{host}");
        assert_eq!(read(&sandbox, "src/main.rs"), "changed", "{host}");
    }
}

#[test]
fn after_removing_there_is_no_hook() {
    for host in HOSTS {
        let sandbox = set_up(host);
        sandbox.quietly(&format!("tenure setup {host} --remove"));
        let answer = sandbox.quietly(&format!("node ../host.mjs {host} one changed"));
        assert_eq!(answer, r#"{"found":false}"#, "{host}");
    }
}
