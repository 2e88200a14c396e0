//! `tenure trust`: a repository's own files decide nothing of credentials until their user agreed.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// A server that writes down all that arrives, and answers each request with this.
struct Listener {
    port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Listener {
    fn answering(answer: &str) -> Listener {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let (answer, all) = (answer.to_owned(), heard.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                all.lock().unwrap().push("a connection".to_owned());
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut line, mut length) = (String::new(), 0);
                while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 2) {
                    if let Some((_, bytes)) =
                        line.to_ascii_lowercase().split_once("content-length:")
                    {
                        length = bytes.trim().parse().unwrap_or(0);
                    }
                    all.lock().unwrap().push(line.trim_end().to_owned());
                    line.clear();
                }
                let _ = reader.read_exact(&mut vec![0; length]);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Listener { port, heard }
    }

    fn refusing() -> Listener {
        Listener::answering(
            "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        )
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    fn authorizations(&self) -> Vec<String> {
        let is_token = |line: &String| line.to_ascii_lowercase().starts_with("authorization:");
        self.heard().into_iter().filter(is_token).collect()
    }
}

/// A repository with such settings, and a clone of it, in which the commands run.
fn cloned(config: &str) -> Sandbox {
    let sandbox = Sandbox::bare();
    sandbox.quietly("mkdir -p ../origin/.tenure && git init --quiet ../origin");
    std::fs::write(sandbox.path("../origin/.tenure/config.yaml"), config).unwrap();
    sandbox.quietly(
        "cd ../origin && git add --force .tenure && git -c user.name=m -c user.email=m@example.org \
         commit --quiet -m innocent && git clone --quiet . ../project",
    );
    sandbox
}

/// All kinds of commands that would open the store.
const COMMANDS: [&str; 9] = [
    "status",
    "run deploy -- true",
    "acquire deploy",
    "tasks list",
    "tasks add x",
    "locks",
    "events",
    "doctor",
    "init",
];

#[test]
fn a_cloned_repository_sends_no_token_anywhere() {
    let listener = Listener::refusing();
    let sandbox = cloned(&format!("store: {}\nserver:\n  tokenFile: ../secret\n", listener.url()));
    std::fs::write(sandbox.path("../secret"), "the-content-of-a-file\n").unwrap();
    for command in COMMANDS {
        let seen = sandbox.see(&format!("TENURE_SERVER_TOKEN=mine tenure {command}"));
        assert!(seen.contains("you have not trusted this file"), "{seen}");
        assert!(seen.contains("tenure trust"), "{seen}");
        let exit = if command == "doctor" { "exit: 7" } else { "exit: 3" };
        assert!(seen.contains(exit), "{seen}");
        sandbox.see(&format!("tenure {command}"));
    }
    assert_eq!(listener.heard(), [] as [&str; 0]);
    // Nor was another store made or used instead.
    assert!(!sandbox.path(".tenure/tenure.db").exists());
    assert!(!sandbox.path("../home/.local/state/tenure/tenure.db").exists());

    // Only when the user agreed does the token go there.
    sandbox.quietly("tenure trust");
    sandbox.see("TENURE_SERVER_TOKEN=mine tenure status");
    assert!(listener.authorizations().iter().all(|line| line.ends_with("Bearer mine")));
    assert!(!listener.authorizations().is_empty());
    sandbox.see("tenure status");
    assert!(listener.authorizations().last().unwrap().ends_with("Bearer the-content-of-a-file"));
}

#[test]
fn a_servers_certificates_and_token_file_are_not_the_projects_to_choose() {
    let listener = Listener::refusing();
    let sandbox = cloned("server: {tokenFile: ../secret, caFile: evil.pem}\n");
    std::fs::write(sandbox.path("../secret"), "secret\n").unwrap();
    let seen = sandbox.see(&format!("tenure --store {} status", listener.url()));
    assert!(seen.contains("sets server.tokenFile, server.caFile"), "{seen}");
    assert!(seen.contains("exit: 3"), "{seen}");
    assert_eq!(listener.heard(), [] as [&str; 0]);
    // They do not concern a store that is no server.
    sandbox.quietly("tenure run deploy -- true");
}

#[test]
fn a_token_goes_to_its_own_server_only() {
    let (own, other) = (Listener::refusing(), Listener::refusing());
    let sandbox = Sandbox::bare();
    sandbox.quietly(&format!("tenure config set --user server.url {}", own.url()));
    for listener in [&own, &other] {
        sandbox.see(&format!("TENURE_SERVER_TOKEN=mine tenure --store {} status", listener.url()));
    }
    assert!(!own.authorizations().is_empty());
    assert!(!other.heard().is_empty());
    assert_eq!(other.authorizations(), [] as [&str; 0]);
    // The address of a server that the token is for must be one.
    let seen = sandbox.see(&format!(
        "TENURE_SERVER_URL=example TENURE_SERVER_TOKEN=mine tenure --store {} status",
        own.url()
    ));
    assert!(seen.contains("exit: 3") && seen.contains("server.url"), "{seen}");
}

#[test]
fn no_redirect_is_followed() {
    let target = Listener::refusing();
    for status in
        ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"]
    {
        let answer = format!(
            "HTTP/1.1 {status}\r\nlocation: {}/v1/store/read\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            target.url()
        );
        let first = Listener::answering(&answer);
        let sandbox = Sandbox::bare();
        let seen =
            sandbox.see(&format!("TENURE_SERVER_TOKEN=mine tenure --store {} status", first.url()));
        assert!(!seen.contains("exit: 0"), "{seen}");
        assert!(!first.authorizations().is_empty(), "{status}");
        assert_eq!(target.heard(), [] as [&str; 0], "{status}");
    }
}

#[test]
fn what_is_shown_remembered_listed_and_revoked() {
    let sandbox = cloned("store: sqlite:/nowhere/locks.db\nserver: {caFile: ca.pem}\n");
    assert_snapshot!(sandbox.see_all(&[
        "tenure status",
        "tenure status --json",
        "tenure config show | grep -v locking | tr -s ' '",
        "tenure trust --show",
        "tenure trust",
        "tenure trust --show --json",
        "tenure status",
        "tenure trust --list | tr -s ' '",
        "tenure trust --list --json",
        "mkdir sub && tenure -C sub trust --revoke",
        "tenure trust --revoke",
        "tenure trust --list",
        "TENURE_TRUST=1 tenure status",
        "TENURE_TRUST=$(sha256sum < .tenure/config.yaml | cut -d' ' -f1) tenure status",
        "TENURE_TRUST=yes tenure status",
        "tenure -C / trust",
    ]));
}

#[test]
fn a_path_that_is_wrong_never_means_the_project_that_one_is_in() {
    let sandbox = cloned("store: sqlite:/nowhere/locks.db\n");
    assert_snapshot!(sandbox.see_all(&[
        "tenure trust typo",
        "tenure trust --show typo",
        "tenure trust .tenure/config.yaml",
        "tenure trust --list",
        "tenure trust >/dev/null",
        "tenure trust --revoke typo",
        "tenure trust --revoke typo/deeper",
        "tenure trust --show | tail -1",
        "tenure trust --revoke .",
        "tenure trust --list",
    ]));
}

/// Who sets it here by hand has agreed to it; a stranger's settings beside it are another matter.
#[test]
fn settings_that_the_user_makes_need_no_second_step() {
    let sandbox = Sandbox::repository();
    sandbox.quietly("mkdir ../elsewhere");
    sandbox.quietly("tenure config set store \"sqlite:$PWD/../elsewhere/locks.db\"");
    sandbox.quietly("tenure run deploy -- true");
    sandbox.quietly("tenure config set locking.grace 3s");
    sandbox.quietly("tenure run deploy -- true");
    sandbox.quietly("echo '# pulled' >> .tenure/config.yaml");
    assert!(sandbox.see("tenure run deploy -- true").contains("exit: 3"));
    sandbox.quietly("tenure config set locking.grace 4s");
    assert!(sandbox.see("tenure run deploy -- true").contains("exit: 3"));
}

/// Git can carry links. One out of the repository is no store of the repository's.
#[test]
fn links_in_a_repository_lead_nowhere_without_trust() {
    let sandbox = Sandbox::repository();
    sandbox.quietly("mkdir ../elsewhere && ln -s ../elsewhere .tenure");
    assert_snapshot!(sandbox.see_all(&[
        "tenure run deploy -- true",
        "tenure trust --show | grep -v sha256",
        "ls ../elsewhere",
        "tenure trust -q",
        "tenure run deploy -- echo now",
    ]));
}

/// Whatever stands in place of the settings is refused at once.
#[test]
fn settings_that_would_keep_a_command_waiting() {
    let sandbox = Sandbox::repository();
    sandbox.quietly("mkdir .tenure && mkfifo .tenure/config.yaml");
    assert_snapshot!(sandbox.see_all(&[
        "timeout 20 tenure status",
        "rm .tenure/config.yaml && ln -s /dev/zero .tenure/config.yaml && timeout 20 tenure status",
        "ln -sf nowhere .tenure/config.yaml && timeout 20 tenure status",
    ]));
    // As many keys as fit, each of which is compared with all others.
    let keys: String = (0..120_000).map(|number| format!("k{number}: 1\n")).collect();
    sandbox.quietly("rm .tenure/config.yaml");
    sandbox.write(".tenure/config.yaml", &keys[..1 << 20]);
    assert_snapshot!(sandbox.see("timeout 20 tenure status"));
}
