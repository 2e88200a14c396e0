//! Values for tests of stores. Other crates cannot write a [`Task`] field by field, so the one that
//! has a value in every field is made here: a field that it lacks does not compile.

use crate::{
    Claim, FinishedClaim, GrantId, Note, Part, Resource, Status, Task, Token, Try, TryOutcome,
    WallTime, Workspace,
};
use std::time::Duration;

/// A task in which no field has the value that a new task has.
pub fn full_task() -> Task {
    let text = |text: &str| Some(text.to_owned());
    let id = |text: &str| text.parse().expect("a good id");
    let resource = |text: &str| -> Resource { text.parse().expect("a good name") };
    Task {
        id: id("täsk 🚀/1"),
        title: "a \"title\"".to_owned(),
        description: text("in\ntwo lines"),
        section: text("Back end"),
        status: Status::InProgress,
        priority: 7,
        position: -3,
        age: 99,
        depends_on: vec![id("a"), id("b")],
        unmet: 1,
        labels: vec!["x".to_owned(), "y z".to_owned()],
        files: vec!["src/**".to_owned()],
        payload: text("{\"n\":1}"),
        max_attempts: 5,
        attempts: 2,
        recoveries: 1,
        timeout: Some(Duration::from_millis(1500)),
        not_before: Some(WallTime(-5)),
        key: text("key"),
        claim: Some(Claim {
            by: "w".to_owned(),
            grant: GrantId::from_bits(7),
            token: Token(8),
            parts: vec![
                Part {
                    resource: resource("path:src/**"),
                    grant: GrantId::from_bits(7),
                    token: Token(8),
                },
                Part {
                    resource: resource("section:Back end"),
                    grant: GrantId::from_bits(9),
                    token: Token(3),
                },
            ],
        }),
        result: text("[1]"),
        error: text("oops"),
        feedback: text("again"),
        created_at: WallTime(1),
        claimed_at: Some(WallTime(2)),
        started_at: Some(WallTime(3)),
        finished_at: Some(WallTime(4)),
        finished_by: text("w"),
        finished_claim: Some(FinishedClaim { grant: GrantId::from_bits(6), token: Token(5) }),
        notes: vec![
            Note {
                by: "v".to_owned(), at: WallTime(-6), text: "in\ntwo \"lines\" 🚀".to_owned()
            },
            Note { by: "w".to_owned(), at: WallTime(7), text: "x".to_owned() },
        ],
        tries: vec![ended_try(), open_try()],
    }
}

/// A try of which all is known.
fn ended_try() -> Try {
    let text = |text: &str| Some(text.to_owned());
    Try {
        number: 3,
        token: Token(5),
        by: "v".to_owned(),
        claimed_at: WallTime(-7),
        ended_at: Some(WallTime(-5)),
        outcome: Some(TryOutcome::Lost),
        error: text("path:src/** was lost"),
        workspace: Workspace {
            host: text("höst"),
            machine: text("m"),
            worktree: text("/tmp/a b"),
            branch: text("tenure/1-x"),
        },
        rescue: text("refs/tenure/rescue/1/3"),
    }
}

/// A try of which little is known.
fn open_try() -> Try {
    Try {
        number: 4,
        token: Token(8),
        by: "w".to_owned(),
        claimed_at: WallTime(2),
        ended_at: None,
        outcome: None,
        error: None,
        workspace: Workspace::default(),
        rescue: None,
    }
}
