//! Looking at processes and signalling them, each by its number.

pub use rustix::process::Signal;

use rustix::process::{Pid, kill_process, kill_process_group};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The state letter of a process; `None` if there is no trace of it.
pub fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.trim_start().chars().next()
}

/// Whether a process runs, sleeps or is stopped; a zombie does not.
pub fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z' && state != 'X')
}

fn to_pid(pid: u32) -> Pid {
    let raw = i32::try_from(pid).expect("a process number");
    Pid::from_raw(raw).expect("a process number above zero")
}

/// Signals a process that a test started; one that has just ended by itself is no failure.
pub fn signal(pid: u32, signal: Signal) {
    let _ = kill_process(to_pid(pid), signal);
}

/// Signals a process group that a test started.
pub fn signal_group(leader: u32, signal: Signal) {
    let _ = kill_process_group(to_pid(leader), signal);
}

/// The live processes whose environment has this value.
pub fn with_variable(name: &str, value: &Path) -> Vec<u32> {
    let wanted = [name.as_bytes(), b"=", value.as_os_str().as_bytes()].concat();
    let entries = std::fs::read_dir("/proc").expect("a list of processes").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
    })
    .collect()
}
