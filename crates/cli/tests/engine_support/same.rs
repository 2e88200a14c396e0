//! The same commands give the same answers over SQLite and over servers: to programs (`--json`), to people
//! and to agents.

use super::{Engine, tenure};
use crate::support::{Running, StoreLocation};
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

/// What is done, one after the other. `GRANT` and `TOKEN` are those that were printed last.
const SCRIPT: &[&[&str]] = &[
    &["init"],
    &["status"],
    &["doctor"],
    &["locks"],
    &["mine", "--as", "alice"],
    &["events"],
    // Locks.
    &["acquire", "deploy", "--as", "alice", "--operation", "a release"],
    &["acquire", "deploy", "--as", "alice", "-n"],
    &["acquire", "deploy", "--as", "bob", "-n"],
    &["acquire", "deploy", "other", "--as", "bob", "-w", "2"],
    &["status", "deploy"],
    &["status"],
    &["workers"],
    &["gc", "--dry-run"],
    &["why", "deploy"],
    &["locks"],
    &["locks", "show", "deploy"],
    &["mine", "--as", "alice"],
    &["renew", "deploy", "--as", "alice"],
    &["renew", "deploy", "--as", "bob"],
    &["verify", "deploy", "--token", "TOKEN"],
    &["verify", "deploy", "--token", "1000000"],
    &["wait", "deploy", "-w", "2"],
    &["release", "deploy", "--as", "bob"],
    &["release", "deploy", "--as", "alice"],
    &["release", "deploy", "--as", "alice"],
    &["acquire", "slots", "--slots", "2"],
    &["release", "slots", "--grant", "GRANT"],
    &["acquire", "shared", "--shared", "--as", "r1"],
    &["acquire", "shared", "--shared", "--as", "r2"],
    &["acquire", "shared", "--as", "w", "-n"],
    &["release", "--all", "--as", "r1"],
    &["locks", "release", "shared", "--as", "r2"],
    &["acquire", "path:src/**", "--as", "alice"],
    &["acquire", "path:src/a.rs", "--as", "bob", "-n"],
    &["break", "path:src/**"],
    &["break", "path:src/**", "--force", "--reason", "stuck"],
    &["run", "deploy", "--", "sh", "-c", "echo held"],
    &["run", "deploy", "--", "sh", "-c", "exit 7"],
    &["wait", "deploy"],
    &["update", "shared.txt", "--", "sh", "-c", "cat; echo line"],
    &["update", "shared.txt", "--", "sh", "-c", "exit 3"],
    // Some engines keep no shorter lease.
    &["acquire", "short", "--ttl", "2s", "--as", "alice"],
    &["run", "short", "-w", "20", "--", "true"],
    // Tasks.
    &["tasks", "list"],
    &["tasks", "add", "--id", "one", "First", "--payload", "{\"x\": [1, 2]}", "--label", "l"],
    &["tasks", "add", "--id", "two", "Second", "--after", "one", "--section", "s", "--key", "k"],
    &["tasks", "add", "--id", "one", "Again"],
    &["tasks", "add", "Another", "--key", "k"],
    &["tasks", "add", "--id", "three", "Third", "--after", "nothing"],
    &["tasks", "add", "--id", "four", "Fourth", "--file", "src/**", "--priority", "80"],
    &["tasks", "add", "--id", "five", "Fifth", "--description", "two\nlines ünd 🚀"],
    &["tasks", "list"],
    &["tasks", "list", "--status", "pending"],
    &["tasks", "show", "one"],
    &["tasks", "show", "none"],
    &["why", "two"],
    &["tasks", "claim", "--as", "w1", "-n"],
    &["tasks", "start", "one", "--as", "w1"],
    &["tasks", "heartbeat", "one", "--as", "w1"],
    &["tasks", "note", "one", "a note", "--as", "w1"],
    &["mine", "--as", "w1"],
    &["prime", "--as", "w1"],
    &["tasks", "complete", "one", "--as", "w2"],
    &["tasks", "complete", "one", "--as", "w1", "--result", "{\"x\": 1}"],
    &["tasks", "complete", "one", "--as", "w1"],
    &["tasks", "show", "one"],
    &["tasks", "claim", "two", "--as", "w1", "-n"],
    &["sections", "list"],
    &["sections", "show", "s"],
    &["tasks", "fail", "two", "--as", "w1", "--reason", "no luck", "--no-retry"],
    &["tasks", "retry", "two"],
    &["sections", "pause", "s"],
    &["tasks", "claim", "two", "--as", "w1", "-n"],
    &["sections", "resume", "s"],
    &["sections", "add", "t", "--max-runners", "2", "--after", "s"],
    &["sections", "update", "t", "--priority", "5"],
    &["sections", "reorder", "t", "s"],
    &["sections", "graph"],
    &["sections", "list"],
    &["tasks", "cancel", "two"],
    &["tasks", "update", "two", "--title", "Renamed"],
    &["tasks", "claim", "four", "--as", "w1", "-n"],
    &["acquire", "path:src/x.rs", "--as", "other", "-n"],
    &["tasks", "review", "four", "--as", "w1"],
    &["tasks", "reject", "four", "--feedback", "again"],
    &["tasks", "claim", "four", "--as", "w1", "-n"],
    &["tasks", "review", "four", "--as", "w1"],
    &["tasks", "approve", "four"],
    &["tasks", "update", "five", "--not-before", "+2h"],
    &["why", "five"],
    &["tasks", "claim", "--as", "w1", "-n"],
    &["tasks", "retry", "five"],
    &["tasks", "skip", "five"],
    &["tasks", "stats"],
    &["tasks", "import", "more.json"],
    &["tasks", "import", "more.json"],
    &["tasks", "export", "--format", "json"],
    &["tasks", "export", "--format", "markdown"],
    &["tasks", "claim", "m1", "--as", "w1", "-n"],
    &["tasks", "release", "m1", "--as", "w1"],
    &["tasks", "claim", "m1", "--as", "w1", "-n"],
    &["break", "task:m1", "--force", "--reason", "stuck"],
    &["tasks", "recover"],
    &["tasks", "rescue", "m1"],
    &["work", "--once", "--", "true"],
    &["work", "--until-empty", "--", "true"],
    &["tasks", "add", "--id", "six", "Sixth"],
    &["swarm", "-n", "2", "--", "true"],
    &["tasks", "delete", "two"],
    &["tasks", "list"],
    &["tasks", "stats"],
    &["locks", "cleanup"],
    &["top", "--once"],
    &["status"],
    &["events", "--last", "1000"],
    &["events", "deploy", "--last", "5"],
];

const MORE: &str = r#"[{"id": "m1", "title": "Imported", "section": "s"},
    {"id": "m2", "title": "After it", "depends_on": ["m1"]}]"#;

/// Fields that differ from run to run, or by the engine's numbers, which may have gaps.
const VARIES: [&str; 12] = [
    "store",
    "url",
    "pid",
    "grant",
    "hostname",
    "logs",
    "token",
    "currentToken",
    "revision",
    "age",
    "ticket",
    // The name and version of the engine.
    "engine",
];

/// What `doctor` checks of one engine only.
const OWN_CHECKS: [&str; 22] = [
    "store",
    "file system",
    "permissions",
    "owner",
    "integrity",
    "schema",
    "server",
    "durability",
    "journal",
    "leftovers",
    "latency",
    "connections",
    "privileges",
    "snapshots",
    "locks",
    "messages",
    "servers",
    "leader",
    "space",
    "version",
    "alarms",
    "grants",
];

/// What `doctor` says of clocks that are not this machine's.
const SERVERS_CLOCKS: [&str; 2] =
    ["this machine's clock and the server's", "times are shown by the clock of each client"];

struct Asked {
    words: String,
    code: i32,
    answer: Value,
}

/// Runs the script; `--json` or as people read it.
fn answers(engine: &str, place: &StoreLocation, url: &str, json: bool) -> Vec<Asked> {
    std::fs::write(place.path("more.json"), MORE).unwrap();
    let (mut grant, mut token) = (String::new(), String::new());
    let mut answers = Vec::new();
    for script in SCRIPT {
        let (last_grant, last_token) = (grant.clone(), token.clone());
        let mut words: Vec<&str> = script
            .iter()
            .map(|word| match *word {
                "GRANT" => last_grant.as_str(),
                "TOKEN" => last_token.as_str(),
                word => word,
            })
            .collect();
        if json {
            words.insert(0, "--json");
        }
        let ended = Running::start(tenure(place, url, &words)).end();
        let mut answer = match json {
            // What was run may have printed before.
            true => {
                let line = ended.stdout.lines().last().unwrap_or_default();
                serde_json::from_str(line).unwrap_or_else(|_| line.into())
            }
            false => Value::from(ended.text()),
        };
        if let Some(found) = answer["data"]["grant"].as_str() {
            grant = found.to_owned();
        }
        if let Some(found) = answer["data"]["token"].as_u64() {
            token = found.to_string();
        }
        if !json && script[0] == "acquire" && ended.code == 0 {
            // The grant is the word with four dashes; the token is asked for.
            let words = ended.stdout.split_whitespace();
            let found = words.map(|word| word.trim_matches(['(', ')', '.']));
            let mut found = found.filter(|word| word.len() == 36 && word.matches('-').count() == 4);
            grant = found.next_back().unwrap_or_default().to_owned();
            let shown = Running::start(tenure(place, url, &["--json", "locks"])).end();
            let shown = shown.json();
            let newest = shown["data"]["locks"].as_array().and_then(|locks| locks.last().cloned());
            token = newest.map(|lock| lock["token"].to_string()).unwrap_or_default();
        }
        plain(&mut answer, engine, url, place);
        answers.push(Asked { words: script.join(" "), code: ended.code, answer });
    }
    answers
}

/// Takes away what differs from run to run: times, spans, process numbers, tokens, names of stores.
fn plain(value: &mut Value, name: &str, url: &str, place: &StoreLocation) {
    match value {
        Value::Object(fields) => {
            for name in VARIES {
                fields.remove(name);
            }
            fields.retain(|name, value| {
                let ends = ["_at", "At", "econds", "since", "_left", "_for", "_ms"];
                !ends.iter().any(|end| name.ends_with(end)) || value.is_null()
            });
            if let Some(Value::Array(checks)) = fields.get_mut("checks") {
                checks.retain(|check| {
                    let message = check["message"].as_str().unwrap_or_default();
                    !OWN_CHECKS.iter().any(|own| check["check"] == *own)
                        && !SERVERS_CLOCKS.iter().any(|clock| message.starts_with(clock))
                });
            }
            fields.values_mut().for_each(|value| plain(value, name, url, place));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| plain(value, name, url, place)),
        Value::String(text) => *text = plain_text(text, name, url, place),
        _ => {}
    }
}

fn plain_text(text: &str, name: &str, url: &str, place: &StoreLocation) -> String {
    let text = text.replace(url, "STORE").replace(&*place.path("").to_string_lossy(), "FOLDER/");
    // `status` and `top` name the engine.
    let text = text.replace(&format!("({name})"), "(SQLite 3)");
    let lines = text.lines().filter(|line| {
        // Lines of `doctor` about one engine.
        !SERVERS_CLOCKS.iter().any(|clock| line.contains(clock))
            && !OWN_CHECKS.iter().any(|own| {
                let rest = line.trim_start_matches("ok").trim_start_matches("FAIL");
                rest.starts_with("  ") && rest.trim_start().starts_with(own)
            })
    });
    let is_number = |word: &str| word.contains(|c: char| c.is_ascii_digit());
    let line = |line: &str| {
        let words = line.split_whitespace();
        let mut words: Vec<&str> =
            words.map(|word| if is_number(word) { "#" } else { word }).collect();
        words.dedup();
        words.join(" ")
    };
    lines.map(line).collect::<Vec<_>>().join("\n")
}

/// The lines of an answer around the first that another answer does not have.
fn first_difference(answer: &Value, other: &Value) -> String {
    let lines = |answer: &Value| -> Vec<String> {
        let text = answer.as_str().map_or_else(|| format!("{answer:#}"), str::to_owned);
        text.lines().map(str::to_owned).collect()
    };
    let (lines, other) = (lines(answer), lines(other));
    let same = lines.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let end = lines.len().min(same + 6);
    lines[same.saturating_sub(4).min(end)..end].join("\n    ")
}

/// Each command of the script answers alike; `json` for programs, else for people.
pub fn commands(engine: &Engine, json: bool) {
    let (one, other) = (StoreLocation::new(), StoreLocation::new());
    let sqlite = answers("SQLite 3", &one, &one.url(), json);
    let servers = answers(engine.name, &other, &(engine.fresh_url)(), json);
    // A command line that does not parse would be alike, and would compare nothing.
    let is_unparsed = |asked: &&Asked| asked.code == 2 && !asked.words.ends_with("Again");
    let unparsed: Vec<&str> =
        sqlite.iter().filter(is_unparsed).map(|asked| asked.words.as_str()).collect();
    assert_eq!(unparsed, Vec::<&str>::new());
    let mut differences = Vec::new();
    for (sqlite, servers) in sqlite.iter().zip(&servers) {
        if (sqlite.code, &sqlite.answer) != (servers.code, &servers.answer) {
            differences.push(format!(
                "tenure {}\n  SQLite exits {}: {}\n  {} exits {}: {}",
                sqlite.words,
                sqlite.code,
                first_difference(&sqlite.answer, &servers.answer),
                engine.name,
                servers.code,
                first_difference(&servers.answer, &sqlite.answer),
            ));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

/// The script names each command that uses a store, so that a new one is not forgotten.
pub fn every_command_that_uses_a_store_is_compared() {
    const OTHERWISE: [&str; 18] = [
        // They use no store, or one of their own.
        "append",
        "token",
        "hook",
        "guard",
        "setup",
        "whoami",
        "config",
        "trust",
        "selftest",
        "completions",
        "man",
        "help",
        "migrate",
        // Tested below, in `two_servers.rs`, and by the tests of `migrate`.
        "backup",
        "restore",
        "serve",
        "mcp",
        // Only for stores on servers.
        "store",
    ];
    let place = StoreLocation::new();
    let mut command = place.command(crate::support::TENURE);
    command.arg("--help");
    let help = Running::start(command).end().stdout;
    let commands = help.lines().take_while(|line| *line != "Options:");
    let names = commands.filter_map(|line| line.strip_prefix("  "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names
        .filter(|name| name.chars().all(|letter| letter.is_ascii_lowercase()))
        .filter(|name| *name != "tenure")
        .collect();
    assert!(names.contains(&"acquire") && names.contains(&"doctor"), "{names:?}");
    let is_compared = |name: &&str| SCRIPT.iter().any(|words| words[0] == *name);
    let missing: Vec<_> =
        names.into_iter().filter(|name| !is_compared(name) && !OTHERWISE.contains(name)).collect();
    assert_eq!(missing, Vec::<&str>::new(), "commands that are not compared");
}

/// One call of a tool, over the standard streams.
fn tool_call(name: &str, place: &StoreLocation, url: &str) -> Value {
    let mut command = tenure(place, url, &["mcp"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("mcp");
    let mut stdin = child.stdin.take().expect("its input");
    // The label is this name with a random suffix; what has a digit is not compared.
    let client = r#"{"name":"agent1","version":"1"}"#;
    let begin = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{{}},"clientInfo":{client}}}}}"#
    );
    let lines = [
        begin.as_str(),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"claim_task","arguments":{}}}"#,
    ];
    for line in lines {
        writeln!(stdin, "{line}").expect("it reads");
    }
    stdin.flush().expect("it reads");
    let output = std::io::BufReader::new(child.stdout.take().expect("its output"));
    let mut answers: Vec<Value> = Vec::new();
    for line in std::io::BufRead::lines(output) {
        let answer: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let is_last = answer["id"] == 3;
        answers.push(answer);
        if is_last {
            break;
        }
    }
    drop(stdin);
    child.wait().expect("it ends");
    let mut answers = Value::from(answers);
    plain(&mut answers, name, url, place);
    answers
}

/// A tool of `tenure mcp` answers alike.
pub fn tools(engine: &Engine) {
    let (one, other) = (StoreLocation::new(), StoreLocation::new());
    let (sqlite, servers) = (one.url(), (engine.fresh_url)());
    for (place, url) in [(&one, &sqlite), (&other, &servers)] {
        let added =
            Running::start(tenure(place, url, &["tasks", "add", "--id", "one", "First"])).end();
        assert_eq!(added.code, 0, "{added:?}");
    }
    let answers = tool_call("SQLite 3", &one, &sqlite);
    assert_eq!(answers, tool_call(engine.name, &other, &servers));
}
