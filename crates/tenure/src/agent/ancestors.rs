//! The processes around this one: which of them is an agent's program, and which one started this one.

use super::host::{self, Host};
use crate::platform::{self, ProcessInfo};
use tenure_core::Evidence;

/// How far up is looked. Agents start commands through a few shells and wrappers.
const DEPTH_MAX: usize = 32;

/// How far up git is looked for: it starts a hook through a shell, and perhaps a program for hooks.
const GIT_DEPTH_MAX: usize = 8;

/// Programs that start commands on behalf of many: what they start has nothing in common. Only a chosen
/// label makes one owner of such commands.
const STARTERS: [&str; 40] = [
    // Init, also of containers, and what keeps services running.
    "init",
    "systemd",
    "launchd",
    "tini",
    "dumb-init",
    "docker-init",
    "catatonit",
    "containerd-shim",
    "conmon",
    "runc",
    "crun",
    "runsv",
    "s6-supervise",
    "supervisord",
    // Timers.
    "cron",
    "crond",
    "anacron",
    "atd",
    "fcron",
    // Logins and connections.
    "login",
    "sshd",
    "sshd-session",
    "sshd-auth",
    "telnetd",
    "mosh-server",
    // Multiplexers.
    "tmux",
    "screen",
    "zellij",
    "dtach",
    "abduco",
    "byobu",
    // What runs jobs in parallel.
    "xargs",
    "parallel",
    "make",
    "gmake",
    "ninja",
    "samu",
    "bazel",
    "pueued",
    "concurrently",
];

/// Programs that only pass a command on: the process that started them counts.
const WRAPPERS: [&str; 8] =
    ["tenure", "sudo", "doas", "timeout", "time", "strace", "setsid", "unbuffer"];

/// Shows processes; tests have tables of their own.
pub(super) trait ProcessTable {
    /// The process with this number, if it can be seen.
    fn process(&self, pid: u32) -> Option<ProcessInfo>;
}

/// The processes of this machine.
pub(super) struct SystemProcesses;

impl ProcessTable for SystemProcesses {
    fn process(&self, pid: u32) -> Option<ProcessInfo> {
        platform::process_info(pid)
    }
}

/// A process that is an agent's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) host: Host,
    pub(super) pid: u32,
    pub(super) start: u64,
    /// Whether one process of it serves many agents, so that only a session tells them apart.
    pub(super) is_shared: bool,
}

/// Evidence for the processes around this one, from the inside out, as far as they can be seen. The first
/// process of a machine or a container is left out: it waits for nobody.
pub fn processes_around() -> Vec<Evidence> {
    let own = platform::process_info(std::process::id());
    let outward = |process: &ProcessInfo| {
        (process.parent > 1).then(|| platform::process_info(process.parent)).flatten()
    };
    let around = std::iter::successors(own, outward).skip(1).take(DEPTH_MAX);
    around.filter_map(|process| platform::process_evidence(process.pid)).collect()
}

/// What was found around a process.
#[derive(Debug, Default)]
pub(super) struct Ancestors {
    program: Option<Found>,
    parent: Option<(u32, u64)>,
}

impl Ancestors {
    /// Looks at the processes around this one.
    pub(super) fn of(processes: &dyn ProcessTable, pid: u32) -> Ancestors {
        let mut around = Vec::new();
        let mut program: Option<Found> = None;
        let mut next = processes.process(pid).map_or(0, |own| own.parent);
        for _ in 0..DEPTH_MAX {
            // The first process belongs to all, whatever its name is.
            let Some(process) = (next > 1).then(|| processes.process(next)).flatten() else {
                break;
            };
            let host = Host::of_process(&process.name, &process.arguments);
            match (program, host) {
                // The processes of an editor start each other; the outermost is the same for all.
                (Some(inner), outer) if !(inner.is_shared && outer == Some(inner.host)) => break,
                (_, Some(host)) => {
                    let is_shared = host::is_shared(host, &process.name, &process.arguments);
                    let (pid, start) = (process.pid, process.start);
                    program = Some(Found { host, pid, start, is_shared });
                }
                (_, None) => {}
            }
            next = process.parent;
            if program.is_none() {
                around.push(process);
            }
        }
        Ancestors { program, parent: parent(&around) }
    }

    /// The nearest agent program.
    pub(super) fn program(&self) -> Option<&Found> {
        self.program.as_ref()
    }

    /// The process that started this one, by number and start, unless it starts commands for many.
    pub(super) fn parent(&self) -> Option<(u32, u64)> {
        self.parent
    }
}

/// The process that started a command, of those around it from the inside out.
fn parent(around: &[ProcessInfo]) -> Option<(u32, u64)> {
    // A hook of git acts for the process that started git, through whatever git starts it.
    let within_git =
        around.iter().take(GIT_DEPTH_MAX).rposition(|process| is_one_of(process, &["git"]));
    let outside = within_git.map_or(around, |at| &around[at + 1..]);
    let first = outside.iter().find(|process| !is_one_of(process, &WRAPPERS))?;
    (!is_one_of(first, &STARTERS)).then_some((first.pid, first.start))
}

/// Whether a process has one of these names: as the kernel shows it, as its program is called, or as the
/// script that it runs.
fn is_one_of(process: &ProcessInfo, names: &[&str]) -> bool {
    let is_named = |text: &str| {
        let file = text.rsplit('/').next().unwrap_or(text);
        // `tmux: server`, `sshd: user@pts/0`, and a login shell's leading hyphen.
        let word = file.split([':', ' ']).next().unwrap_or(file).trim_start_matches('-');
        names.iter().any(|name| name.eq_ignore_ascii_case(word))
    };
    let first = process.arguments.first().map(String::as_str);
    let mut called = first.into_iter().chain(host::script(&process.arguments));
    is_named(&process.name) || called.any(is_named)
}
