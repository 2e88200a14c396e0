//! How many files this process may still open. Where that is too few, a command would fail in the
//! middle, in as many ways as it opens files; so it is looked at first.

use crate::args::Command;
use crate::exit::Exit;
use crate::failure::Failure;

/// The store, the runtime, and what tells whether a holder lives.
const STORE: u64 = 16;

/// The same, and a command with its pipes.
const COMMAND: u64 = 24;

/// What each further command of a swarm needs: three pipes, its process and its log, and a spare.
const WORKER: u64 = 6;

/// Few enough to be open already that it is not worth counting them.
const USUAL: u64 = 512;

/// Refuses a command that could not open what it needs.
pub(crate) fn check(command: &Command) -> Result<(), Failure> {
    let needed = match command {
        Command::Run(_) | Command::Update(_) => COMMAND,
        Command::Work(_) => COMMAND + WORKER,
        Command::Swarm(args) => COMMAND + WORKER * u64::from(args.workers()),
        _ => STORE,
    };
    let Some(free) = free(needed) else { return Ok(()) };
    if free >= needed {
        return Ok(());
    }
    let message = format!(
        "too few files may be opened: this command needs {needed}, and the limit leaves {free}"
    );
    Err(Failure::new(Exit::Configuration, "OPEN_FILES", message)
        .hint("Raise the limit first: ulimit -n 1024"))
}

/// How many may still be opened; nothing where there is no limit or it is far away.
#[cfg(unix)]
fn free(needed: u64) -> Option<u64> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    if limit >= needed + USUAL {
        return None;
    }
    let folder = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    // One of those that are listed is the list itself.
    let open = std::fs::read_dir(folder).map(|list| list.count().saturating_sub(1) as u64);
    match open {
        Ok(open) => Some(limit.saturating_sub(open)),
        Err(error) if error.raw_os_error() == Some(TOO_MANY) => Some(0),
        Err(_) => Some(limit),
    }
}

#[cfg(not(unix))]
fn free(_: u64) -> Option<u64> {
    None
}

/// The error of a process that has as many files open as it may.
#[cfg(unix)]
const TOO_MANY: i32 = rustix::io::Errno::MFILE.raw_os_error();
