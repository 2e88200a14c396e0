//! Finds the processes of a command: its group, its descendants, and orphans of them.
//!
//! Tenure adopts a process whose parent ended (see [`adopt_orphans`]), so it can still reach it,
//! but the parentage is lost. Tenure can run many commands at once and can have other children, so
//! each command gets a mark in its environment that its descendants inherit: tenure's pid and a
//! running number, appended to the mark that tenure itself inherited. So an outer tenure recognises
//! what a killed inner one left behind.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{self, Pid, Signal};

/// The variable that carries a command's mark.
pub(super) const MARK_VARIABLE: &str = "TENURE_TREE";

/// How often to read an environment that seems empty, and the pause in between: longer in all than
/// it takes to start a program.
const LOOKS_AT_NOTHING: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_micros(200);

/// The commands' own processes, which only [`Child`](super::Child) may reap. The lock is held while
/// a command is started, so that it is not taken for an orphan in between.
static LEADERS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// A new, unique mark.
pub(super) fn new_mark() -> OsString {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let own = format!("{}.{number}", std::process::id());
    match std::env::var_os(MARK_VARIABLE) {
        Some(mut outer) if !outer.is_empty() => {
            outer.push("/");
            outer.push(own);
            outer
        }
        _ => own.into(),
    }
}

/// Whether `found` is `mark` or a mark within it.
fn is_within(found: &[u8], mark: &[u8]) -> bool {
    found.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// Makes tenure the parent of all orphans among its descendants. It then has to
/// [reap](reap_orphans) them.
pub(super) fn adopt_orphans() {
    // If the kernel refuses, orphans are out of reach and everything else works.
    #[cfg(target_os = "linux")]
    let _ = process::set_child_subreaper(Some(process::getpid()));
}

/// Reaps adopted orphans that have ended, which would otherwise remain as zombies.
///
/// It leaves the commands themselves alone, and children that other parts of tenure started: those
/// are in tenure's own process group, and orphans of a command are not.
pub(super) fn reap_orphans() {
    #[cfg(target_os = "linux")]
    {
        let leaders = leaders();
        while let Some(pid) = super::sys::first_ended_child() {
            // The owner of this one reaps it and calls this again.
            if leaders.contains(&pid) || process::getpgid(Some(pid)) == Ok(process::getpgrp()) {
                return;
            }
            let _ = process::waitpid(Some(pid), process::WaitOptions::NOHANG);
        }
    }
}

/// The registry, even if a thread panicked: each change to it is a single step.
pub(super) fn leaders() -> parking_lot::MutexGuard<'static, Vec<Pid>> {
    LEADERS.lock()
}

/// One process, as the kernel listed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pid: Pid,
    parent: i32,
    group: i32,
    session: i32,
    /// Whether it has ended.
    dead: bool,
    /// The start time in clock ticks since boot; with the pid it identifies the process.
    started: u64,
}

impl Process {
    /// Parses one `/proc/PID/stat`. The name in it, in parentheses, may contain anything.
    fn parse(stat: &[u8]) -> Option<Self> {
        let name_end = stat.iter().rposition(|&byte| byte == b')')?;
        let pid_end = stat.iter().position(|&byte| byte == b' ')?;
        let pid = std::str::from_utf8(&stat[..pid_end]).ok()?;
        let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<i32>().ok();
        let threads = number(17)?;
        Some(Self {
            pid: Pid::from_raw(pid.parse().ok()?)?,
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            // A first thread that ended before the others also shows as a zombie.
            dead: matches!(*fields.first()?, "Z" | "X") && threads <= 1,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    fn read(pid: &str) -> Option<Self> {
        // One read is enough: the line has 52 numbers and a name of at most 64 bytes.
        let mut buffer = [0; 1536];
        let mut file = fs::File::open(format!("/proc/{pid}/stat")).ok()?;
        let length = file.read(&mut buffer).ok()?;
        Self::parse(&buffer[..length])
    }

    /// Stands for the group of `leader` when only the id is known.
    fn standing_for(leader: Pid) -> Self {
        Self {
            pid: leader,
            parent: 0,
            group: leader.as_raw_pid(),
            session: 0,
            dead: false,
            started: 0,
        }
    }

    /// The process id, for messages.
    pub(super) fn id(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    /// Signals this process, never a later one with the same pid.
    fn signal(&self, signal: Signal) {
        #[cfg(target_os = "linux")]
        if let Ok(handle) = process::pidfd_open(self.pid, process::PidfdFlags::empty()) {
            if Self::read(&self.pid.to_string()).is_some_and(|now| now.started == self.started) {
                let _ = process::pidfd_send_signal(handle, signal);
            }
            return;
        }
        let _ = process::kill_process(self.pid, signal);
    }
}

/// All processes of this machine or container; `None` if the system does not list them, or lists
/// those of another pid namespace.
pub(super) fn processes() -> Option<Vec<Process>> {
    let own = fs::read_link("/proc/self").ok()?;
    if own.to_str()?.parse() != Ok(std::process::id()) {
        return None;
    }
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let pids = names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    Some(pids.filter_map(|pid| Process::read(&pid)).collect())
}

/// The environment of a process. It is empty for a moment while the process executes another
/// program.
fn environment(pid: Pid) -> Vec<u8> {
    for _ in 0..LOOKS_AT_NOTHING {
        match fs::read(format!("/proc/{pid}/environ")) {
            Ok(environment) if environment.is_empty() => std::thread::sleep(BETWEEN_LOOKS),
            Ok(environment) => return environment,
            Err(_) => break,
        }
    }
    vec![]
}

/// Whether a group whose leader ended, but was not reaped, has other members. Linux counts the dead
/// leader too, so there the answer is no.
fn group_outlives(leader: Pid) -> bool {
    cfg!(not(target_os = "linux")) && process::test_kill_process_group(leader).is_ok()
}

/// Whether no process could continue `group` if it were stopped: none of its processes has a parent
/// in another group of the same session.
pub(super) fn is_orphaned(group: Pid, processes: &[Process]) -> bool {
    let group = group.as_raw_pid();
    let find = |pid: i32| processes.iter().find(|other| other.pid.as_raw_pid() == pid);
    !processes
        .iter()
        .filter(|member| member.group == group && !member.dead)
        .filter_map(|member| Some((member, find(member.parent)?)))
        .any(|(member, parent)| parent.session == member.session && parent.group != group)
}

/// The known processes of a command.
#[derive(Debug)]
pub(super) struct Tree {
    leader: Pid,
    mark: OsString,
    /// Members seen so far, by pid and start time: they stay members when their parent ends.
    seen: HashSet<(Pid, u64)>,
    /// The groups of the members: their children are in them unless they change groups.
    groups: HashSet<i32>,
}

impl Tree {
    pub(super) fn new(leader: Pid, mark: OsString) -> Self {
        Self { leader, mark, seen: HashSet::new(), groups: HashSet::from([leader.as_raw_pid()]) }
    }

    /// The living members. If processes cannot be listed, the leader stands for its group.
    ///
    /// A process that starts during the call may be missed: call it again after signalling.
    pub(super) fn look(&mut self, leader_ended: bool) -> Vec<Process> {
        let Some(processes) = processes() else {
            let remains = !leader_ended || group_outlives(self.leader);
            return Vec::from_iter(remains.then(|| Process::standing_for(self.leader)));
        };
        let mut members: HashSet<Pid> = HashSet::from([self.leader]);
        loop {
            let before = members.len();
            for process in &processes {
                if !members.contains(&process.pid) && self.owns(process, &members) {
                    members.insert(process.pid);
                }
            }
            if members.len() == before {
                break;
            }
        }
        let found = processes.into_iter().filter(|p| members.contains(&p.pid));
        let (dead, alive): (Vec<_>, Vec<_>) = found.partition(|process| process.dead);
        for process in &alive {
            self.seen.insert((process.pid, process.started));
            self.groups.insert(process.group);
        }
        for process in dead.iter().filter(|process| process.pid != self.leader) {
            // It fails for a process that still has another parent, which will reap it.
            let _ = process::waitpid(Some(process.pid), process::WaitOptions::NOHANG);
        }
        alive
    }

    /// Whether `process` belongs to the command, given the members known so far.
    fn owns(&self, process: &Process, members: &HashSet<Pid>) -> bool {
        let own = process::getpid();
        process.group == self.leader.as_raw_pid()
            || self.seen.contains(&(process.pid, process.started))
            || Pid::from_raw(process.parent).is_some_and(|parent| members.contains(&parent))
            || (process.parent == own.as_raw_pid()
                && (self.groups.contains(&process.group) || self.has_mark(process.pid)))
    }

    fn has_mark(&self, pid: Pid) -> bool {
        let environment = environment(pid);
        let assignment = format!("{MARK_VARIABLE}=");
        environment
            .split(|&byte| byte == 0)
            .filter_map(|variable| variable.strip_prefix(assignment.as_bytes()))
            .any(|found| is_within(found, self.mark.as_encoded_bytes()))
    }

    /// Signals the group at once, then each of `members` outside it.
    pub(super) fn signal(&self, members: &[Process], signal: Signal) {
        let _ = process::kill_process_group(self.leader, signal);
        let group = self.leader.as_raw_pid();
        for process in members.iter().filter(|process| process.group != group) {
            process.signal(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32, group: i32, session: i32) -> Process {
        let pid = Pid::from_raw(pid).unwrap();
        Process { pid, parent, group, session, dead: false, started: 1 }
    }

    #[test]
    fn a_name_with_parentheses_and_spaces_is_no_trap() {
        let stat = b"42 (a) Z 1 (b) S 7 40 39 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 12345 0";
        let expected = Process { started: 12345, ..process(42, 7, 40, 39) };
        assert_eq!(Process::parse(stat), Some(expected));
    }

    #[test]
    fn a_zombie_whose_other_threads_run_is_not_dead() {
        let threads =
            |count: u32| format!("42 (a) Z 7 40 39 0 -1 0 0 0 0 0 0 0 0 0 20 0 {count} 0 12345 0");
        assert!(Process::parse(threads(1).as_bytes()).unwrap().dead);
        assert!(!Process::parse(threads(2).as_bytes()).unwrap().dead);
    }

    #[test]
    fn a_cut_or_foreign_line_is_no_process() {
        for stat in ["", "42", "42 (sh", "42 (sh) S 1 2", "x (sh) S 1 2 3"] {
            assert_eq!(Process::parse(stat.as_bytes()), None, "{stat:?}");
        }
    }

    #[test]
    fn a_mark_covers_itself_and_what_is_within_it_only() {
        assert!(is_within(b"7.1", b"7.1"));
        assert!(is_within(b"7.1/9.0", b"7.1"));
        assert!(!is_within(b"7.10", b"7.1"));
        assert!(!is_within(b"7.0/7.1", b"7.1"));
        assert!(!is_within(b"", b"7.1"));
    }

    #[test]
    fn a_group_is_orphaned_when_no_other_group_of_its_session_could_continue_it() {
        let shell = process(10, 1, 10, 10);
        let job = process(20, 10, 20, 10);
        let inside = process(21, 20, 20, 10);
        let group = job.pid;
        assert!(!is_orphaned(group, &[shell, job, inside]));
        assert!(is_orphaned(group, &[job, inside]), "the shell is gone");
        let elsewhere = process(10, 1, 10, 9);
        assert!(is_orphaned(group, &[elsewhere, job, inside]));
        assert!(is_orphaned(shell.pid, &[process(1, 0, 1, 1), shell]));
    }
}
