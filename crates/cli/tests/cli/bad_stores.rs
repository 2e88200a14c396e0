//! Stores that cannot be used: said in one sentence, and left as they are.

use crate::snapshot_support::Sandbox;
use insta::assert_snapshot;

#[test]
fn urls() {
    let sandbox = Sandbox::bare();
    assert_snapshot!(sandbox.see_all(&[
        "tenure --store nonsense status",
        "tenure --store redis://localhost status",
        "tenure --store postgres://alice:secret@127.0.0.1:1/locks status",
        "tenure --store sqlite: status",
        "tenure --store '' status",
        "tenure --store nonsense status --json",
    ]));
}

/// A store in `good.db` that holds `deploy`, all of it in that one file.
fn with_a_store() -> Sandbox {
    let sandbox = Sandbox::bare();
    sandbox.acquire("deploy --as alice --store sqlite:good.db");
    let store = rusqlite::Connection::open(sandbox.path("good.db")).unwrap();
    store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    sandbox
}

fn unusable(sandbox: &Sandbox, file: &str) -> String {
    let content = |file| std::fs::read(sandbox.path(file)).ok();
    let before = content(file);
    let seen = sandbox.see_all(&[
        &format!("tenure --store sqlite:{file} acquire deploy"),
        &format!("tenure --store sqlite:{file} status --json"),
    ]);
    assert_eq!(content(file), before, "{file} was changed");
    seen
}

#[test]
fn an_empty_file() {
    let sandbox = Sandbox::bare();
    sandbox.write("empty.db", "");
    assert_snapshot!(unusable(&sandbox, "empty.db"));
}

#[test]
fn a_file_that_is_no_database() {
    let sandbox = Sandbox::bare();
    sandbox.write("text.db", "This is no database, whatever its name says.\n".repeat(100));
    assert_snapshot!(unusable(&sandbox, "text.db"));
}

#[test]
fn a_truncated_database() {
    let sandbox = with_a_store();
    let content = std::fs::read(sandbox.path("good.db")).unwrap();
    sandbox.write("half.db", &content[..content.len() / 2]);
    assert_snapshot!(unusable(&sandbox, "half.db"));
}

#[test]
fn a_database_of_a_newer_tenure() {
    let sandbox = with_a_store();
    std::fs::copy(sandbox.path("good.db"), sandbox.path("newer.db")).unwrap();
    let newer = rusqlite::Connection::open(sandbox.path("newer.db")).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    newer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(newer);
    assert_snapshot!(unusable(&sandbox, "newer.db"));
}

#[test]
fn a_database_of_another_program() {
    let sandbox = Sandbox::bare();
    let other = rusqlite::Connection::open(sandbox.path("other.db")).unwrap();
    other.execute_batch("CREATE TABLE notes (note TEXT)").unwrap();
    drop(other);
    assert_snapshot!(unusable(&sandbox, "other.db"));
}

#[test]
fn a_folder_in_its_place() {
    let sandbox = Sandbox::bare();
    sandbox.quietly("mkdir folder.db");
    assert_snapshot!(unusable(&sandbox, "folder.db"));
}

#[test]
fn a_place_that_cannot_be_made() {
    let sandbox = Sandbox::bare();
    sandbox.write("file", "");
    assert_snapshot!(sandbox.see("tenure --store sqlite:file/locks.db status"));
}
