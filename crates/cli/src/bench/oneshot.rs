//! A whole `tenure run x -- true` beside `flock FILE true`, and one of a path beside it where many
//! paths are held.

use super::ground::this_program;
use super::report::{Beside, Figure, Report, Unit, Wanted};
use super::sample::{median, quantile};
use super::{BenchError, Ground};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Runs that are not counted: the first ones read programs from the disk.
const WARM_UP: usize = 5;

pub(super) fn measure(ground: &Ground, report: &mut Report) -> Result<(), BenchError> {
    let (mut run, mut flock, mut start) = (Vec::new(), Vec::new(), Vec::new());
    let url = ground.store("oneshot");
    let file = ground.file("oneshot.lock");
    let has_flock = Command::new("flock").arg("--version").stdout(Stdio::null()).status().is_ok();
    for number in 0..WARM_UP + ground.scale(40, 300) {
        let mut command = this_program()?;
        let ran = time(command.args(["run", "--store", &url, "x", "--", "true"]))?;
        let locked = match has_flock {
            true => Some(time(Command::new("flock").arg(&file).arg("true"))?),
            false => None,
        };
        let started = time(this_program()?.arg("--version").stdout(Stdio::null()))?;
        if number >= WARM_UP {
            run.push(ran);
            flock.extend(locked);
            start.push(started);
        }
    }
    if !has_flock {
        report.note("There is no flock here (it comes with util-linux): nothing to compare with");
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
    measure_paths(ground, report)
}

/// How many paths one command takes: more would not fit on a command line everywhere.
const PATHS_AT_ONCE: usize = 250;

/// What a path costs among many that are held, beside a plain lock in the same store.
fn measure_paths(ground: &Ground, report: &mut Report) -> Result<(), BenchError> {
    let url = ground.store("paths");
    let held = ground.scale(1_000, 10_000);
    for first in (0..held).step_by(PATHS_AT_ONCE) {
        let paths = (first..first + PATHS_AT_ONCE)
            .map(|number| format!("path:src/part{}/file{number}.rs", number / 100));
        time(
            this_program()?
                .args(["acquire", "--store", &url])
                .args(paths)
                .current_dir(ground.folder())
                .stdout(Stdio::null()),
        )?;
    }
    let (mut path, mut plain) = (Vec::new(), Vec::new());
    for number in 0..WARM_UP + ground.scale(40, 300) {
        for (resource, times) in [("path:src/part1/new.rs", &mut path), ("x", &mut plain)] {
            let mut command = this_program()?;
            let run = command.args(["run", "--store", &url, resource, "--", "true"]);
            let taken = time(run.current_dir(ground.folder()))?;
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

/// How many seconds it takes from start to end.
fn time(command: &mut Command) -> Result<f64, BenchError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let begun = Instant::now();
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(begun.elapsed().as_secs_f64()),
        Ok(status) => Err(BenchError::Worker { said: status.to_string(), expected: "success" }),
        Err(source) => Err(BenchError::Process { program, source }),
    }
}
