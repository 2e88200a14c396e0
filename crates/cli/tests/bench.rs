//! `tenure bench` measures, says so in the usual envelope, and leaves nothing behind. How fast
//! anything is, is not tested: machines differ.

use serde_json::Value;
use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenure")).arg("bench").args(arguments).output().unwrap()
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
