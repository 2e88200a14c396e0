//! `tenure-bench` measures, prints its figures as JSON, and leaves nothing behind. How fast anything is, is
//! not tested: machines differ. Most tests give it a stand-in for the `tenure` command, which need not be
//! built.

#![cfg(unix)]

mod support;

use std::path::Path;
use support::{bench, data, stand_in};

#[test]
fn figures_come_as_json_and_nothing_stays_behind() {
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("plot.svg");
    let ground = folder.path().join("ground");
    std::fs::create_dir(&ground).unwrap();
    let (ground_text, plot_text) = (ground.to_str().unwrap(), plot.to_str().unwrap());
    let output = bench(&["--quick", "--json", "--dir", ground_text, "--plot", plot_text, "pair"]);
    let data = data(&output);
    assert_eq!(data["setup"]["quick"], true);
    let figures = data["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 3);
    for figure in figures {
        assert_eq!(figure["measurement"], "pair");
        assert!(figure["value"].as_f64().unwrap() > 0.0, "{figure}");
        assert!(figure["ratio"].as_f64().unwrap() > 0.0, "{figure}");
    }
    assert!(figures[0]["met"].is_boolean());
    assert!(std::fs::read_to_string(&plot).unwrap().starts_with("<svg"));
    assert_eq!(std::fs::read_dir(&ground).unwrap().count(), 0);
}

/// Each measurement has a store of its own beside those of the others.
#[test]
fn several_measurements_run_one_after_another() {
    let folder = tempfile::tempdir().unwrap();
    let (ground, program) = (folder.path().to_str().unwrap(), stand_in(folder.path()));
    let words = ["--quick", "--json", "--dir", ground, "--program", &program, "pair", "oneshot"];
    let data = data(&bench(&words));
    let figures = data["figures"].as_array().unwrap();
    for measurement in ["pair", "oneshot"] {
        assert!(figures.iter().any(|figure| figure["measurement"] == measurement), "{figures:?}");
    }
}

/// It is missed before anything is measured.
#[test]
fn a_command_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let ground = folder.path().to_str().unwrap();
    let missing = format!("{ground}/no-such-tenure");
    let output = bench(&["--quick", "--dir", ground, "--program", &missing, "pair", "oneshot"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    let error = format!("Error: there is no tenure command at {missing}\n");
    let hint = "Hint: Run scripts/bench, which builds it, or name one with --program PATH.\n";
    assert_eq!(said, error + hint);
}

#[test]
fn a_store_that_somebody_uses_is_not_measured_in() {
    let output = bench(&["--store", "sqlite:mine.db", "pair"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let output = bench(&["--quick", "--dir", "/no/such/folder", "pair"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/no/such/folder"));
}

/// All figures of `tasks` in a store that was named, and that the counts add up.
#[test]
fn tasks_are_measured_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("plot.svg");
    let url = format!("sqlite:{}", folder.path().join("named.db").display());
    let no_peer = folder.path().join("no-such-claimd");
    let program = stand_in(folder.path());
    let arguments = |store: &[&str]| {
        let mut arguments: Vec<String> = Vec::new();
        let folder = folder.path().to_str().unwrap();
        for word in ["--quick", "--json", "tasks", "--dir", folder, "--program", &program, "--peer"]
        {
            arguments.push(word.to_owned());
        }
        arguments.push(no_peer.to_str().unwrap().to_owned());
        arguments.extend(["--plot".to_owned(), plot.to_str().unwrap().to_owned()]);
        arguments.extend(store.iter().map(|word| (*word).to_owned()));
        arguments
    };
    for store in [&[][..], &["--store", &url]] {
        let arguments = arguments(store);
        let output = bench(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let data = data(&output);
        let figures = data["figures"].as_array().unwrap();
        let found: Vec<(&str, &str)> = figures
            .iter()
            .map(|figure| (figure["case"].as_str().unwrap(), figure["statistic"].as_str().unwrap()))
            .collect();
        let expected = [
            ("claim among 200 tasks", "p50"),
            ("claim among 200 tasks", "p99"),
            ("claim among 400 tasks", "p50"),
            ("claim among 400 tasks", "p99"),
            ("claim among 800 tasks", "p50"),
            ("claim among 800 tasks", "p99"),
            ("up to 800 tasks", "added"),
            ("1 process, one by one", "claim+complete"),
            ("1 process, by 100", "claim+complete"),
            ("8 processes, one by one", "claim+complete"),
            ("8 processes, by 100", "claim+complete"),
            ("all of these", "completed"),
            ("8 workers, one-shot commands, 16 tasks", "claim+complete"),
            ("8 workers, one-shot commands, 32 tasks", "claim+complete"),
        ];
        assert_eq!(found, expected);
        // The stand-in has no tasks.
        for figure in &figures[..12] {
            assert!(figure["value"].as_f64().unwrap() > 0.0, "{figure}");
        }
        assert_eq!(figures[11]["ratio"], 1.0, "the store's count by the workers'");
        let notes = data["notes"].to_string();
        assert!(notes.contains("claimd is not installed"), "{notes}");
        assert!(figures[12]["beside"].is_null(), "{}", figures[12]);
        assert!(std::fs::read_to_string(&plot).unwrap().contains("by 100"));
    }
    // It has tasks now.
    let arguments = arguments(&["--store", &url]);
    let output = bench(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

/// The `tenure` command itself, if it was built beside this program, as by a test of the whole workspace: the
/// two agree on options, exit codes and answers.
#[test]
fn the_command_itself_is_measured() {
    let program = Path::new(env!("CARGO_BIN_EXE_tenure-bench")).with_file_name("tenure");
    if !program.is_file() {
        let why = format!("there is no {}", program.display());
        assert!(std::env::var_os("CI").is_none(), "CI must show this: {why}");
        println!("skipped: {why}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ground = folder.path().to_str().unwrap();
    let words = ["--quick", "--json", "--dir", ground, "--peer", "no-such-claimd"];
    let data = data(&bench(&[&words[..], &["oneshot", "tasks", "serve"]].concat()));
    let figures = data["figures"].as_array().unwrap();
    for figure in figures {
        assert!(figure["value"].as_f64().unwrap() > 0.0, "{figure}");
    }
    let cases = ["run x -- true", "8 workers, one-shot commands, 32 tasks"];
    for case in cases.into_iter().chain(["64 connections to one server"]) {
        assert!(figures.iter().any(|figure| figure["case"] == case), "{case}: {data}");
    }
}
