//! Checks at the start that the process may open enough files, because a command that runs out of
//! them would fail in the middle.

use crate::args::Command;
use crate::exit::Exit;
use crate::failure::Failure;

/// Files for the store, the async runtime and checking whether holders live.
const STORE: u64 = 16;

/// [`STORE`], plus a command with its pipes.
const COMMAND: u64 = 24;

/// Files for each further command of a swarm: three pipes, its process, its log and one to spare.
const WORKER: u64 = 6;

/// An upper bound of files that are usually open. With a limit this far above the need, they are
/// not counted.
const USUAL: u64 = 512;

/// Refuses a command that could not open all the files it needs.
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
        "not enough free file descriptors: this command needs {needed}, the limit leaves {free}"
    );
    Err(Failure::new(Exit::Configuration, "OPEN_FILES", message)
        .hint("Raise the limit: ulimit -n 1024"))
}

/// How many files may still be opened; `None` if there is no limit or it is far away.
fn free(needed: u64) -> Option<u64> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    if limit >= needed + USUAL {
        return None;
    }
    let folder = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    // The folder that is being listed is itself open and counted.
    let open = std::fs::read_dir(folder).map(|list| list.count().saturating_sub(1) as u64);
    match open {
        Ok(open) => Some(limit.saturating_sub(open)),
        Err(error) if error.raw_os_error() == Some(TOO_MANY) => Some(0),
        Err(_) => Some(limit),
    }
}

/// The error code for too many open files.
const TOO_MANY: i32 = rustix::io::Errno::MFILE.raw_os_error();
