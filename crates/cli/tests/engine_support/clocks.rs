//! Processes whose clocks differ by two hours exclude each other as if they did not.

use super::{Engine, run};
use crate::support::{Running, StoreLocation, TENURE, with_moved_time};
use std::process::Command;

fn shifted(place: &StoreLocation, url: &str, shift: &str, arguments: &[&str]) -> Command {
    let mut command = with_moved_time(place, shift, TENURE);
    command.args(["--store", url]).args(arguments);
    command
}

/// Clocks that are an hour off change nothing.
pub fn an_hour_off(engine: &Engine) {
    let url = (engine.fresh_url)();
    let place = StoreLocation::new();
    std::fs::write(place.path("n"), "0").unwrap();
    let add = r#"n=$(cat "$D/n"); sleep 0.01; echo $((n + 1)) > "$D/n""#;
    let shifts = ["+1h", "-1h", "+0"];
    for round in 0..6 {
        let runs: Vec<Running> = shifts
            .iter()
            .map(|shift| {
                let arguments = ["run", "count", "--ttl", "10s", "-w", "60", "--", "sh", "-c", add];
                Running::start(shifted(&place, &url, shift, &arguments))
            })
            .collect();
        for run in runs {
            let ended = run.end();
            assert_eq!(ended.code, 0, "in round {round}: {ended:?}");
        }
    }
    assert_eq!(place.number("n"), 18, "an increment was lost");
    // A lease that one clock takes for long over still excludes, and one that is over does not.
    let held =
        Running::start(shifted(&place, &url, "-1h", &["acquire", "a", "--ttl", "10m"])).end();
    assert_eq!(held.code, 0, "{held:?}");
    let busy =
        Running::start(shifted(&place, &url, "+1h", &["run", "-n", "a", "--", "true"])).end();
    assert_eq!(busy.code, 6, "{busy:?}");
    let short =
        Running::start(shifted(&place, &url, "+1h", &["acquire", "b", "--ttl", "2s"])).end();
    assert_eq!(short.code, 0, "{short:?}");
    let after = run(&place, &url, &["run", "b", "-w", "30", "--", "true"]);
    assert_eq!(after.code, 0, "{after:?}");
}
