//! `tenure bench` measures, says so in the usual envelope, and leaves nothing behind. How fast
//! anything is, is not tested: machines differ.

use serde_json::Value;
use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", home.path()).env("TENURE_MACHINE_DIR", home.path().join("machine"));
    command.arg("bench").args(arguments).output().unwrap()
}

#[test]
fn figures_come_in_the_envelope_and_nothing_stays_behind() {
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("plot.svg");
    let ground = folder.path().join("ground");
    std::fs::create_dir(&ground).unwrap();
    let (ground_text, plot_text) = (ground.to_str().unwrap(), plot.to_str().unwrap());
    let output = bench(&["--quick", "--json", "--dir", ground_text, "--plot", plot_text, "pair"]);
    assert!(output.status.success(), "{output:?}");
    let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(envelope["command"], "bench");
    let figures = envelope["data"]["figures"].as_array().unwrap();
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
    let ground = folder.path().to_str().unwrap();
    let output = bench(&["--quick", "--json", "--dir", ground, "pair", "oneshot"]);
    assert!(output.status.success(), "{output:?}");
    let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
    let figures = envelope["data"]["figures"].as_array().unwrap();
    for measurement in ["pair", "oneshot"] {
        assert!(figures.iter().any(|figure| figure["measurement"] == measurement), "{figures:?}");
    }
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

/// All figures of `bench tasks` in a store that was named, and that the counts add up.
#[test]
fn tasks_are_measured_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("plot.svg");
    let url = format!("sqlite:{}", folder.path().join("named.db").display());
    let no_peer = folder.path().join("no-such-claimd");
    let arguments = |store: &[&str]| {
        let mut arguments: Vec<String> = Vec::new();
        let folder = folder.path().to_str().unwrap();
        for word in ["--quick", "--json", "tasks", "--dir", folder, "--peer"] {
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
        assert!(output.status.success(), "{output:?}");
        let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
        let figures = envelope["data"]["figures"].as_array().unwrap();
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
        for figure in figures {
            assert!(figure["value"].as_f64().unwrap() > 0.0, "{figure}");
        }
        assert_eq!(figures[11]["ratio"], 1.0, "the store's count by the workers'");
        let notes = envelope["data"]["notes"].to_string();
        assert!(notes.contains("claimd is not installed"), "{notes}");
        assert!(figures[12]["beside"].is_null(), "{}", figures[12]);
        assert!(std::fs::read_to_string(&plot).unwrap().contains("by 100"));
    }
    // It has tasks now.
    let arguments = arguments(&["--store", &url]);
    let output = bench(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
