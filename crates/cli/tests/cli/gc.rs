//! `tenure gc`: what is beyond the limits goes, what is needed stays, and all that counts tasks agrees.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

/// Four completed tasks, of which a pending one needs the second, and a failed one.
fn with_tasks() -> Sandbox {
    let sandbox = Sandbox::new();
    for name in ["a", "b", "c", "d"] {
        sandbox.quietly(&format!("tenure tasks add 'Task {name}' --id {name} --key key-{name}"));
        sandbox.quietly("tenure work --once -- true");
    }
    sandbox.quietly("tenure tasks add 'Task e' --id e --after b");
    sandbox.quietly("tenure tasks add 'Task f' --id f --max-attempts 1 --priority 0");
    sandbox.see("tenure work --once -- false");
    sandbox
}

#[test]
fn tasks_beyond_the_limit_are_removed() {
    let sandbox = with_tasks();
    assert_snapshot!(sandbox.see_all(&[
        "tenure gc",
        "TENURE_RETENTION_TASKS=1 tenure gc --dry-run",
        "tenure tasks stats",
        "TENURE_RETENTION_TASKS=1 tenure gc",
        "tenure tasks stats",
        "tenure tasks show a",
        "tenure tasks add 'Task a again' --id a --key key-a --print-id",
        "TENURE_RETENTION_TASKS=1 TENURE_RETENTION_EVENTS=1 tenure gc --json",
        "tenure events",
    ]));
}

/// A repository's own settings must not have its user's history removed.
#[test]
fn a_project_decides_only_once_it_is_trusted() {
    let sandbox = with_tasks();
    sandbox.write(".tenure/config.yaml", "retention:\n  tasks: 1\n");
    assert_snapshot!(sandbox.see_all(&[
        "tenure gc",
        "tenure tasks stats",
        "tenure trust --quiet",
        "tenure gc",
    ]));
}
