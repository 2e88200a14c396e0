//! Measures a whole `tenure run x -- true` next to `flock FILE true`, and one with a path while
//! many paths are held.

use crate::report::{Beside, Figure, Report, Unit, Wanted};
use crate::sample::{median, quantile};
use crate::{BenchError, BenchSetup};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Runs that are not counted: the first ones read programs from disk.
const WARM_UP: usize = 5;

pub(crate) fn measure(setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    let (mut run, mut flock, mut start) = (Vec::new(), Vec::new(), Vec::new());
    let url = setup.store("oneshot");
    let file = setup.file("oneshot.lock");
    let has_flock = Command::new("flock").arg("--version").stdout(Stdio::null()).status().is_ok();
    for number in 0..WARM_UP + setup.scale(40, 300) {
        let mut command = setup.program().command();
        let ran = time(command.args(["run", "--store", &url, "x", "--", "true"]))?;
        let locked = match has_flock {
            true => Some(time(Command::new("flock").arg(&file).arg("true"))?),
            false => None,
        };
        let started = time(setup.program().command().arg("--version").stdout(Stdio::null()))?;
        if number >= WARM_UP {
            run.push(ran);
            flock.extend(locked);
            start.push(started);
        }
    }
    if !has_flock {
        report.note("flock is not installed (it is part of util-linux): no comparison");
    }
    let figure = |statistic, share: f64, wanted| {
        let beside = |value| Beside::new("flock FILE true", quantile(&run, share), value);
        Figure {
            measurement: "oneshot",
            case: "run x -- true".to_owned(),
            statistic,
            value: quantile(&run, share),
            unit: Unit::Seconds,
            beside: has_flock.then(|| beside(quantile(&flock, share))),
            wanted,
        }
    };
    report.add(figure("median", 0.5, Some(Wanted::RatioAtMost(3.0))));
    report.add(figure("p90", 0.9, None));
    report.add(Figure {
        measurement: "oneshot",
        case: "--version".to_owned(),
        statistic: "median",
        value: median(&start),
        unit: Unit::Seconds,
        beside: None,
        wanted: None,
    });
    measure_paths(setup, report)
}

/// How many paths one command takes; more would not fit on every command line.
const PATHS_AT_ONCE: usize = 250;

/// The cost of a path while many are held, next to a plain lock in the same store.
fn measure_paths(setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
    let url = setup.store("paths");
    let held = setup.scale(1_000, 10_000);
    for first in (0..held).step_by(PATHS_AT_ONCE) {
        let paths = (first..first + PATHS_AT_ONCE)
            .map(|number| format!("path:src/part{}/file{number}.rs", number / 100));
        time(
            setup
                .program()
                .command()
                .args(["acquire", "--store", &url])
                .args(paths)
                .current_dir(setup.folder())
                .stdout(Stdio::null()),
        )?;
    }
    let (mut path, mut plain) = (Vec::new(), Vec::new());
    for number in 0..WARM_UP + setup.scale(40, 300) {
        for (resource, times) in [("path:src/part1/new.rs", &mut path), ("x", &mut plain)] {
            let mut command = setup.program().command();
            let run = command.args(["run", "--store", &url, resource, "--", "true"]);
            let taken = time(run.current_dir(setup.folder()))?;
            if number >= WARM_UP {
                times.push(taken);
            }
        }
    }
    report.add(Figure {
        measurement: "oneshot",
        case: format!("run path:… -- true, {held} paths held"),
        statistic: "median",
        value: median(&path),
        unit: Unit::Seconds,
        beside: Some(Beside::new("run x -- true", median(&path), median(&plain))),
        wanted: Some(Wanted::RatioAtMost(1.5)),
    });
    Ok(())
}

/// The duration of a command in seconds.
fn time(command: &mut Command) -> Result<f64, BenchError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let begun = Instant::now();
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(begun.elapsed().as_secs_f64()),
        Ok(status) => Err(BenchError::Worker { said: status.to_string(), expected: "success" }),
        Err(source) => Err(BenchError::Process { program, source }),
    }
}
