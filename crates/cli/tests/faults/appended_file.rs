//! `tenure append`: lines of many writers stay whole, whoever is killed meanwhile.

use crate::support::{Dice, Running, StoreLocation};
use std::collections::HashMap;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

const WRITERS: usize = 16;
const LINES: usize = 1000;

/// Some lines are much longer than what a pipe holds.
const LONG: usize = 100_000;

fn line(writer: usize, number: usize) -> String {
    let length = if number % 20 == writer { LONG } else { 10 + (number * 37) % 500 };
    let letter = char::from(b'a' + writer as u8);
    format!(
        "{{\"writer\":{writer},\"line\":{number},\"text\":\"{}\"}}\n",
        letter.to_string().repeat(length)
    )
}

#[test]
fn lines_of_many_writers_are_all_there_whole_and_in_each_writers_order() {
    let place = StoreLocation::new();
    let place = &place;
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                let mut command = place.tenure(&["append", "log.jsonl", "--validate", "json"]);
                let mut child = command.stdin(Stdio::piped()).spawn().expect("an appender");
                let mut input = child.stdin.take().expect("its input");
                for number in 0..LINES {
                    input.write_all(line(writer, number).as_bytes()).expect("somebody who reads");
                }
                drop(input);
                assert!(child.wait().expect("its end").success());
            });
        }
    });
    let mut next: HashMap<usize, usize> = HashMap::new();
    for text in place.read("log.jsonl").split_inclusive('\n') {
        let value: serde_json::Value = serde_json::from_str(text).expect("a whole line");
        let writer = value["writer"].as_u64().expect("a writer") as usize;
        let number = next.entry(writer).or_default();
        assert_eq!(text, line(writer, *number));
        *number += 1;
    }
    assert_eq!(next.len(), WRITERS);
    assert!(next.values().all(|count| *count == LINES), "{next:?}");
}

#[test]
fn an_append_killed_in_the_middle_leaves_at_most_the_beginning_of_a_line_which_the_next_ends() {
    const ROUNDS: usize = 40;
    let place = StoreLocation::new();
    std::fs::write(place.path("input"), format!("{}\n", "k".repeat(30_000_000))).expect("a file");
    let mut dice = Dice::new();
    let mut torn = 0;
    for round in 0..ROUNDS {
        let mut command = place.tenure(&["append", "log"]);
        command.stdin(std::fs::File::open(place.path("input")).expect("the input"));
        let running = Running::start(command);
        // Half of them at any moment, half as soon as something of the line is there.
        match round % 2 {
            0 => std::thread::sleep(Duration::from_micros(dice.below(60_000) as u64)),
            _ => {
                let begun = || std::fs::metadata(place.path("log")).is_ok_and(|log| log.len() > 0);
                let deadline = Instant::now() + crate::support::PATIENCE;
                while !begun() {
                    assert!(Instant::now() < deadline, "nothing is ever written");
                    std::hint::spin_loop();
                }
            }
        }
        running.kill();
        let before = std::fs::read(place.path("log")).unwrap_or_default();
        let is_torn = !before.is_empty() && !before.ends_with(b"\n");
        torn += usize::from(is_torn);
        let ended = place.run(&["append", "log", "--line", &format!("round {round}")]);
        assert_eq!(ended.code, 0, "{ended:?}");
        assert_eq!(ended.stderr.contains("was unfinished"), is_torn, "{ended:?}");
        let after = std::fs::read(place.path("log")).expect("the log");
        let expected =
            if is_torn { format!("\nround {round}\n") } else { format!("round {round}\n") };
        assert!(after.starts_with(&before) && after.ends_with(expected.as_bytes()));
        assert_eq!(after.len(), before.len() + expected.len());
        std::fs::remove_file(place.path("log")).expect("the log");
    }
    println!("{torn} of {ROUNDS} were torn");
}

#[test]
fn lines_come_out_as_they_go_in_and_not_when_the_input_ends() {
    let place = StoreLocation::new();
    let mut command = place.tenure(&["append", "log"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("an appender");
    let mut input = child.stdin.take().expect("its input");
    input.write_all(b"first\nsec").expect("somebody who reads");
    crate::support::until("the first line", || (place.read("log") == "first\n").then_some(()));
    // Others are not kept waiting meanwhile.
    assert_eq!(place.run(&["append", "-n", "log", "--line", "other"]).code, 0);
    input.write_all(b"ond").expect("somebody who reads");
    drop(input);
    assert!(child.wait().expect("its end").success());
    assert_eq!(place.read("log"), "first\nother\nsecond\n");
}

#[test]
fn whoever_keeps_the_file_locked_is_waited_for_as_long_as_was_asked() {
    if !crate::support::is_installed("flock") {
        crate::support::skip("there is no `flock` here");
        return;
    }
    let place = StoreLocation::new();
    place.touch("log");
    let mut command = place.command("flock");
    command.args(["log", "sh", "-c", "touch $D/ready; until [ -e $D/go ]; do sleep 0.02; done"]);
    let keeper = Running::start(command);
    place.wait_for("ready");
    for options in [&["-n"][..], &["--no-wait"], &["-w", "0.1"]] {
        let ended = place.run(&[&["append", "log", "--line", "x"], options].concat());
        assert_eq!(ended.code, 6, "{ended:?}");
    }
    let patient = place.start(&["append", "log", "--line", "x"]);
    place.touch("go");
    assert_eq!((keeper.end().code, patient.end().code), (0, 0));
    assert_eq!(place.read("log"), "x\n");
}
