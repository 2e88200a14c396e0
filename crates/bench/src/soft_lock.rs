//! Measures `SoftFileLock` of Python's `filelock`, acquired and released.

use crate::BenchSetup;
use crate::sample::median;
use std::path::Path;
use std::process::{Command, Stdio};

/// Prints the rate per second, once for each span.
const SCRIPT: &str = "
import sys, time
from filelock import SoftFileLock
lock = SoftFileLock(sys.argv[1])
for _ in range(int(sys.argv[3])):
    begun, count = time.monotonic(), 0
    while time.monotonic() - begun < float(sys.argv[2]):
        lock.acquire()
        lock.release()
        count += 1
    print(count / (time.monotonic() - begun))
";

/// The rate per second; `None` without Python and `filelock`.
pub(crate) fn rate(setup: &BenchSetup, lock: &Path) -> Option<f64> {
    let mut python = Command::new("python3");
    python.args(["-c", SCRIPT]).arg(lock);
    python.args([setup.scale("0.2", "1.0"), setup.scale("2", "5")]);
    let output = python.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    let rates: Vec<f64> = said.lines().filter_map(|line| line.parse().ok()).collect();
    (output.status.success() && !rates.is_empty()).then(|| median(&rates))
}
