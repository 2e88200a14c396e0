//! A store that cannot be used: exit 3, one sentence with a hint, and the file stays as it was.

use crate::support::{Ended, Running, StoreLocation, TENURE, bytes};
use rusqlite::Connection;

/// One of each way to use a store.
const COMMANDS: [&[&str]; 8] = [
    &["run", "-n", "x", "--", "sh", "-c", "touch $D/ran"],
    &["acquire", "x"],
    &["release", "x", "--as", "bob"],
    &["locks"],
    &["why", "x"],
    &["verify", "x", "--token", "1"],
    &["locks", "cleanup"],
    &["events"],
];

/// One sentence and one hint, nothing else.
fn assert_refused(ended: &Ended, what: &str) {
    assert_eq!(ended.code, 3, "{what}: {ended:?}");
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let shape = (lines.len(), lines[0].starts_with("Error: "));
    assert_eq!(shape, (2, true), "{what}: {ended:?}");
    assert!(lines[1].starts_with("Hint: "), "{what}: {ended:?}");
    assert!(!ended.text().contains("panicked"), "{what}: {ended:?}");
}

/// All commands refuse the store and change nothing in it.
fn refuses(place: &StoreLocation, what: &str) {
    let before = place.database().is_file().then(|| bytes(&place.database()));
    for words in COMMANDS {
        assert_refused(&place.run(words), &format!("{what}, {words:?}"));
    }
    let ended = place.run(&["doctor"]);
    assert_eq!(ended.code, 7, "{what}: {ended:?}");
    assert!(!place.path("ran").exists(), "{what}: a command ran without a lock");
    let after = place.database().is_file().then(|| bytes(&place.database()));
    assert!(before == after, "{what}: the file was changed");
}

/// A store that was used, with all of it in the database file.
fn used_store() -> StoreLocation {
    let place = StoreLocation::new();
    for number in 0..4 {
        let names = [0, 1, 2, 3, 4].map(|part| format!("lock-{number}-{part}"));
        let names = names.each_ref().map(String::as_str);
        place.acquire(&names);
    }
    let connection = Connection::open(place.database()).expect("the database");
    let fold = "PRAGMA wal_checkpoint(TRUNCATE)";
    connection.query_row(fold, [], |_| Ok(())).expect("the log in the database");
    place
}

#[test]
fn a_folder_in_its_place_is_refused() {
    let place = StoreLocation::new();
    std::fs::create_dir(place.database()).expect("a folder");
    refuses(&place, "a folder");
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let long = "This is not a database. ".repeat(1000);
    for (what, content) in [("empty", ""), ("a few bytes", "hello\n"), ("a text", &long)] {
        let place = StoreLocation::new();
        std::fs::write(place.database(), content).expect("a file");
        refuses(&place, what);
    }
}

#[test]
fn the_database_of_another_program_is_refused() {
    let place = StoreLocation::new();
    let foreign = Connection::open(place.database()).expect("a database");
    foreign.execute_batch("CREATE TABLE holds (a); INSERT INTO holds VALUES (1)").expect("a table");
    drop(foreign);
    refuses(&place, "a foreign database");
}

#[test]
fn a_store_of_a_newer_version_is_refused() {
    let place = used_store();
    let newer = Connection::open(place.database()).expect("the database");
    newer.pragma_update(None, "user_version", 999).expect("a newer version");
    drop(newer);
    refuses(&place, "a newer version");
}

#[test]
fn a_truncated_store_is_refused() {
    for keep in [50, 100, 4096, 8192] {
        let place = used_store();
        let whole = bytes(&place.database());
        assert!(whole.len() > keep);
        std::fs::write(place.database(), &whole[..keep]).expect("a shorter file");
        refuses(&place, &format!("cut to {keep} bytes"));
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_refused() {
    let place = StoreLocation::new();
    place.touch("file");
    let store = format!("sqlite:{}", place.path("file/tenure.db").display());
    for words in COMMANDS {
        let mut command = place.command(TENURE);
        command.args(["--store", &store]).args(words);
        let ended = Running::start(command).end();
        assert_refused(&ended, &format!("{words:?}"));
    }
    assert!(!place.path("ran").exists());
}
