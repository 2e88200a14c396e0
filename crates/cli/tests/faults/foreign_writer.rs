//! A program that uses the database by itself delays tenure, and makes nothing fail.

use crate::support::{Running, StoreLocation, is_alive, until};
use rusqlite::Connection;
use tenure::blocking::Client;

fn connect(place: &StoreLocation) -> Connection {
    Connection::open(place.database()).expect("the database")
}

fn writers(place: &StoreLocation, grant: &str) -> Vec<Running> {
    let commands: [&[&str]; 5] = [
        &["run", "a", "--", "true"],
        &["acquire", "b"],
        &["renew", "--grant", grant],
        &["run", "-n", "c", "d", "--", "true"],
        &["locks", "cleanup"],
    ];
    commands.iter().map(|words| place.start(words)).collect()
}

#[test]
fn a_foreign_write_lock_delays_those_who_write_and_not_those_who_look() {
    let place = StoreLocation::new();
    let (_, grant) = place.acquire(&["x"]);
    let foreign = connect(&place);
    foreign.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    let mut delayed = writers(&place, &grant);
    for looking in [&["why", "x"][..], &["locks"], &["status"], &["events"], &["doctor"]] {
        let ended = place.run(looking);
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    for writer in &mut delayed {
        assert!(!writer.has_ended(), "it did not wait for the foreign writer");
    }
    foreign.execute_batch("COMMIT").expect("the end of it");
    for writer in delayed {
        let ended = writer.end();
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(!ended.text().contains("locked"), "{ended:?}");
    }
}

#[test]
fn a_command_goes_on_while_a_foreign_writer_delays_its_renewals() {
    let place = StoreLocation::new();
    let script = "touch $D/begun; while [ ! -e $D/go ]; do sleep 0.02; done; exit 7";
    let holder = place.start(&["run", "--ttl", "12s", "x", "--", "sh", "-c", script]);
    place.wait_for("begun");
    let left = || place.why("x")["holders"][0]["seconds_left"].as_f64();
    let foreign = connect(&place);
    until("the lease to be bound", || (left()? > 10.0).then_some(()));
    foreign.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    // The first renewal is due after four seconds; now it is late.
    until("a late renewal", || (left()? < 7.5).then_some(()));
    foreign.execute_batch("COMMIT").expect("the end of it");
    until("a renewal", || (left()? > 10.0).then_some(()));
    place.touch("go");
    assert_eq!(holder.end().code, 7);
}

#[test]
fn a_foreign_reader_and_a_foreign_checkpoint_disturb_nobody() {
    let place = StoreLocation::new();
    let (token, _) = place.acquire(&["x"]);
    let reader = connect(&place);
    reader.execute_batch("BEGIN; SELECT count(*) FROM events").expect("a long look");
    for _ in 0..20 {
        let ended = place.run(&["run", "a", "--", "true"]);
        assert_eq!(ended.code, 0, "{ended:?}");
        let foreign = connect(&place);
        foreign.busy_timeout(crate::support::PATIENCE).expect("patience");
        // Cannot finish while somebody reads, and does as much as it can.
        let _ = foreign.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }
    reader.execute_batch("COMMIT").expect("the end of it");
    drop(reader);
    // The last to leave folds the log into the database and removes it.
    drop(connect(&place));
    connect(&place).execute_batch("VACUUM").expect("a smaller file");
    assert!(place.accepts("x", token));
    let (next, _) = place.acquire(&["a"]);
    assert!(next > token);
    assert_eq!(place.run(&["doctor"]).code, 0);
}

#[test]
fn a_writer_stopped_in_the_middle_of_a_write_delays_the_others() {
    let place = StoreLocation::new();
    let (_, grant) = place.acquire(&["x"]);
    // What such a writer keeps is the seat at the turnstile.
    let seat = std::fs::File::open(place.path("tenure.db.side/seat")).expect("the seat");
    seat.lock().expect("a free seat");
    let mut delayed = writers(&place, &grant);
    for looking in [&["why", "x"][..], &["locks"], &["status"], &["events"]] {
        let ended = place.run(looking);
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    for writer in &mut delayed {
        assert!(!writer.has_ended(), "it did not wait for its turn");
    }
    drop(seat);
    for writer in delayed {
        let ended = writer.end();
        assert_eq!(ended.code, 0, "{ended:?}");
    }
}

#[test]
fn a_holder_that_cannot_reach_its_store_in_time_stops_its_command() {
    // From the first moment that the hold can be seen, or only once the command runs.
    for at_once in [true, false] {
        let place = StoreLocation::new();
        let client = Client::open(&place.url()).expect("the store");
        let seat = std::fs::File::open(place.path("tenure.db.side/seat")).expect("the seat");
        let is_held = || {
            let seen = client.run(client.asynchronous().look_everywhere()).expect("a look");
            !seen.holds.is_empty()
        };
        let script = "echo $$ >$D/command; while :; do sleep 0.02; done";
        let holder = place.start(&["run", "--ttl", "2s", "x", "--", "sh", "-c", script]);
        while !is_held() {
            std::hint::spin_loop();
        }
        if !at_once {
            place.wait_for("command");
        }
        seat.lock().expect("a seat that is soon free");
        let command = place.number("command");
        until("the end of the command", || (!is_alive(command)).then_some(()));
        drop(seat);
        let ended = holder.end();
        assert_eq!(ended.code, 8, "{ended:?}");
        assert_eq!(place.run(&["run", "-w", "50", "x", "--", "true"]).code, 0);
        place.is_deserted();
    }
}
