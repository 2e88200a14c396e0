//! `tenure locks`.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;
use serde_json::Value;

/// One hold of each kind.
fn one_of_each() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.acquire("task:7 --as alice");
    sandbox.acquire("section:Backend --as alice");
    sandbox.acquire("deploy --as bob --operation 'release 1.2'");
    sandbox.acquire("'path:src/**' --as bob");
    sandbox
}

#[test]
fn list() {
    let sandbox = one_of_each();
    assert_snapshot!(sandbox.see_all(&[
        "tenure locks",
        "tenure locks list --type task",
        "tenure locks list --type section",
        "tenure locks list --type lock",
        "tenure locks list --type path",
    ]));
}

#[test]
fn list_of_nothing() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.see_all(&["tenure locks", "tenure locks --json"]));
}

/// Without a command below them, commands of lists list; the envelope says so.
#[test]
fn a_group_alone_lists() {
    let sandbox = one_of_each();
    sandbox.see("tenure tasks add 'Fix login' --section Backend");
    for group in ["locks", "tasks", "sections"] {
        let (alone, listed) = (format!("tenure {group}"), format!("tenure {group} list"));
        // Times aside: the names of what is listed.
        let first_words = |line: &str| {
            let shown = sandbox.see(line);
            let words = shown.lines().skip(1).filter_map(|line| line.split_whitespace().next());
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        assert!(sandbox.see(&alone).contains("Backend"), "{}", sandbox.see(&alone));
        assert_eq!(first_words(&alone), first_words(&listed));
        let envelope = sandbox.see(&format!("{alone} --json"));
        assert!(envelope.contains("\"subcommand\": \"list\""), "{envelope}");
    }
}

#[test]
fn list_in_json() {
    let sandbox = one_of_each();
    assert_snapshot!(sandbox.see("tenure locks list --json"));
    let data = sandbox.data("tenure locks list --type task --json");
    assert_eq!(data.as_object().unwrap().keys().collect::<Vec<_>>(), ["task_locks", "counts"]);
    let task = &data["task_locks"][0];
    for field in ["task_id", "runner_id", "acquired_at", "expires_at", "heartbeat_at"] {
        assert!(task[field].is_string(), "{field}: {task}");
    }
}

#[test]
fn columns_stand_below_their_headers() {
    let sandbox = one_of_each();
    let table = sandbox.quietly("tenure locks");
    let header = table.lines().next().unwrap();
    for (column, cell) in [("HOLDER", "bob"), ("TOKEN", "3"), ("FOR", "release 1.2")] {
        let at = header.find(column).unwrap();
        let row = table.lines().find(|line| line.starts_with("deploy ")).unwrap();
        assert!(row[at..].starts_with(cell), "{column}:\n{table}");
    }
}

#[test]
fn no_listing_shows_a_grant() {
    let sandbox = Sandbox::new();
    let grant = sandbox.acquire("task:7 --as alice");
    for line in ["locks", "locks show 7", "status task:7", "why task:7", "events", "status"] {
        for format in ["", "--json"] {
            let seen = sandbox.quietly(&format!("tenure {line} {format}"));
            assert!(!seen.contains(&grant), "{line}: {seen}");
        }
    }
}

#[test]
fn show() {
    let sandbox = one_of_each();
    assert_snapshot!(sandbox.see_all(&[
        "tenure locks show task:7",
        "tenure locks show 7",
        "tenure locks show Backend",
        "tenure locks show deploy --json",
        "tenure locks show unheld",
        "tenure locks show unheld --json",
    ]));
}

#[test]
fn release() {
    let sandbox = one_of_each();
    assert_snapshot!(sandbox.see_all(&[
        "tenure locks release 7 --as alice",
        "tenure locks release Backend --as bob",
        "tenure locks release Backend --force",
        "tenure locks release Backend --force --reason 'runner is gone' --as operator",
        "tenure locks release deploy --force --reason test --as operator --json",
        "tenure locks release unheld --force --reason test",
    ]));
}

#[test]
fn cleanup() {
    let sandbox = Sandbox::new();
    sandbox.lapsed("task:7", "--as alice");
    sandbox.lapsed("section:Backend", "--as alice");
    sandbox.dead("deploy", "--as bob --operation build");
    sandbox.acquire("db --as carol");
    assert_snapshot!(sandbox.see_all(&[
        "tenure locks cleanup --dry-run",
        "tenure locks cleanup --type section",
        "tenure locks cleanup",
        "tenure locks cleanup",
        "tenure locks",
    ]));
}

#[test]
fn cleanup_in_json() {
    let sandbox = Sandbox::new();
    sandbox.lapsed("task:7", "--as alice");
    assert_snapshot!(sandbox.see_all(&[
        "tenure locks cleanup --dry-run --json",
        "tenure locks cleanup --type task --json",
        "tenure locks cleanup --json",
    ]));
}

#[test]
fn cleanup_counts_per_kind() {
    let sandbox = Sandbox::new();
    sandbox.lapsed("task:7", "--as alice");
    sandbox.lapsed("task:8", "--as alice");
    let counts = |data: Value| {
        let tasks = &data["task_locks"];
        (tasks["found"].clone(), tasks["cleaned"].clone(), tasks["locks"].as_array().unwrap().len())
    };
    let dry = sandbox.data("tenure locks cleanup --dry-run --json");
    assert_eq!(counts(dry), (2.into(), 0.into(), 2));
    let wet = sandbox.data("tenure locks cleanup --json");
    assert_eq!(counts(wet), (2.into(), 2.into(), 2));
    assert_eq!(counts(sandbox.data("tenure locks cleanup --json")), (0.into(), 0.into(), 0));
}
