//! The same commands give the same answers, whether they open the store themselves or ask a server.

use crate::server::{Server, through};
use crate::support::{Ended, Running, StoreLocation};
use serde_json::Value;

/// What is done, one after the other. `GRANT` is the grant that was printed last.
const SCRIPT: &[&[&str]] = &[
    &["status"],
    &["acquire", "deploy", "--as", "alice", "--operation", "a release"],
    &["acquire", "deploy", "--as", "alice", "-n"],
    &["acquire", "deploy", "--as", "bob", "-n"],
    &["acquire", "deploy", "other", "--as", "bob", "-w", "0.2"],
    &["why", "deploy"],
    &["locks"],
    &["renew", "deploy", "--as", "alice"],
    &["renew", "deploy", "--as", "bob"],
    &["verify", "deploy", "--token", "1"],
    &["verify", "deploy", "--token", "7"],
    &["release", "deploy", "--as", "bob"],
    &["release", "deploy", "--as", "alice"],
    &["release", "deploy", "--as", "alice"],
    &["acquire", "slots", "--slots", "2"],
    &["release", "slots", "--grant", "GRANT"],
    &["acquire", "path:src/**", "--as", "alice"],
    &["acquire", "path:src/a.rs", "--as", "bob", "-n"],
    &["break", "path:src/**"],
    &["break", "path:src/**", "--force", "--reason", "stuck"],
    &["run", "deploy", "--", "sh", "-c", "echo held under $TENURE_TOKEN"],
    &["run", "deploy", "--", "sh", "-c", "exit 7"],
    &["wait", "deploy"],
    &["tasks", "add", "--id", "one", "First"],
    &["tasks", "add", "--id", "two", "Second", "--after", "one", "--section", "s"],
    &["tasks", "add", "--id", "one", "Again"],
    &["tasks", "add", "--id", "three", "Third", "--after", "nothing"],
    &["tasks", "list"],
    &["tasks", "show", "one"],
    &["tasks", "show", "none"],
    &["tasks", "why", "two"],
    &["tasks", "claim", "--as", "w1", "-n"],
    &["tasks", "claim", "--as", "w2", "-n"],
    &["tasks", "start", "one", "--as", "w1"],
    &["tasks", "heartbeat", "one", "--as", "w1"],
    &["tasks", "complete", "one", "--as", "w2"],
    &["tasks", "complete", "one", "--as", "w1", "--result", "{\"x\": 1}"],
    &["tasks", "complete", "one", "--as", "w1"],
    &["tasks", "claim", "--as", "w1", "-n"],
    &["sections", "list"],
    &["tasks", "fail", "two", "--as", "w1", "no luck", "--no-retry"],
    &["tasks", "retry", "two"],
    &["sections", "pause", "s"],
    &["tasks", "claim", "--as", "w1", "-n"],
    &["sections", "resume", "s"],
    &["tasks", "cancel", "two"],
    &["tasks", "update", "two", "--title", "Renamed"],
    &["work", "--until-empty", "--", "true"],
    &["swarm", "-n", "2", "--", "true"],
    &["tasks", "delete", "two"],
    &["locks", "cleanup"],
    &["gc"],
    &["events"],
];

/// Fields that differ from run to run, or from store to store. `actor` is the token of a server.
const VARIES: [&str; 8] = ["engine", "store", "url", "pid", "grant", "hostname", "logs", "actor"];

fn answers(mut ask: impl FnMut(&[&str]) -> Ended) -> Vec<(String, i32, Value)> {
    let mut grant = String::new();
    let mut answers = Vec::new();
    for words in SCRIPT {
        let last = grant.clone();
        let words: Vec<&str> =
            words.iter().map(|word| if *word == "GRANT" { &last } else { *word }).collect();
        let ended = ask(&[&["--json"], &words[..]].concat());
        // What was run may have printed before.
        let line = ended.stdout.lines().last().unwrap_or_default();
        let mut answer: Value = serde_json::from_str(line).unwrap_or_else(|_| line.into());
        if let Some(found) = answer["data"]["grant"].as_str() {
            grant = found.to_owned();
        }
        plain(&mut answer);
        answers.push((SCRIPT[answers.len()].join(" "), ended.code, answer));
    }
    answers
}

/// Takes away what differs from run to run: times, spans, process numbers.
fn plain(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for name in VARIES {
                fields.remove(name);
            }
            fields.retain(|name, value| {
                let is_time =
                    ["_at", "At", "econds", "since", "_left"].iter().any(|end| name.ends_with(end));
                !is_time || value.is_null()
            });
            fields.values_mut().for_each(plain);
        }
        Value::Array(values) => values.iter_mut().for_each(plain),
        Value::String(text) => {
            let is_number =
                |word: &str| word.starts_with(|c: char| c.is_ascii_digit()) || word.contains(':');
            let mut words: Vec<&str> = text
                .split_whitespace()
                .map(|word| if is_number(word) { "#" } else { word })
                .collect();
            words.dedup();
            *text = words.join(" ");
        }
        _ => {}
    }
}

#[test]
fn commands_answer_alike_with_and_without_a_server() {
    let (own, served) = (StoreLocation::new(), StoreLocation::new());
    assert_eq!(own.run(&["init"]).code, 0);
    let server = Server::start(&served);
    let directly = answers(|words| own.run(words));
    let url = server.url();
    let asked = answers(|words| Running::start(through(&served, &url, words)).end());
    for (directly, asked) in directly.iter().zip(&asked) {
        assert_eq!(directly, asked, "asking a server differs (right)");
    }
}
