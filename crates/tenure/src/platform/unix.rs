//! The implementation for Unix: complete on Linux; on other systems what POSIX offers.

use super::{ProcessInfo, fork};
use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use tenure_core::{Evidence, Group, Process};

pub(crate) mod access;
mod listening;
pub(crate) mod mailbox;

pub(crate) use listening::{has_socket, listening_sockets, own_listening_sockets};

/// Time since some fixed point of this boot, on a clock that all processes share, that cannot be
/// set, and that stops while the machine is suspended.
pub(crate) fn monotonic() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now = i128::from(now.tv_sec) * NANOSECONDS + i128::from(now.tv_nsec);
    let nanoseconds = u64::try_from(now - clock_offsets().monotonic).unwrap_or(0);
    Duration::from_nanos(nanoseconds)
}

/// As [`monotonic`], on a clock that continues while the machine is suspended; only differences are
/// meaningful.
pub(crate) fn monotonic_with_suspend() -> Duration {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let clock = rustix::time::ClockId::Boottime;
    // On other systems this clock counts suspend, or none does.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let clock = rustix::time::ClockId::Monotonic;
    let now = rustix::time::clock_gettime(clock);
    Duration::new(now.tv_sec.try_into().unwrap_or(0), now.tv_nsec.try_into().unwrap_or(0))
}

const NANOSECONDS: i128 = 1_000_000_000;

/// How far this process's clocks are from the machine's, in nanoseconds: a container may have its
/// own (a time namespace).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ClockOffsets {
    monotonic: i128,
    /// The offset of the clock that counts suspend, which `/proc` uses for the start of processes.
    boottime: i128,
}

fn clock_offsets() -> ClockOffsets {
    static OFFSETS: OnceLock<ClockOffsets> = OnceLock::new();
    *OFFSETS.get_or_init(|| parse_offsets(&read_trimmed("/proc/self/timens_offsets")))
}

/// Parses the offsets. A clock that is not named has offset zero.
fn parse_offsets(text: &str) -> ClockOffsets {
    let offset = |clock: &str| {
        let mut words = text.lines().find_map(|line| line.strip_prefix(clock))?.split_whitespace();
        let mut number = || words.next()?.parse::<i128>().ok();
        Some(number()? * NANOSECONDS + number()?)
    };
    ClockOffsets {
        monotonic: offset("monotonic ").unwrap_or(0),
        boottime: offset("boottime ").unwrap_or(0),
    }
}

/// The unit of process start times on Linux, on all architectures that matter.
const NANOSECONDS_PER_TICK: i128 = NANOSECONDS / 100;

/// The start time of a process on the machine's clock. `/proc` shows it on the clock of the reader.
fn machine_ticks(shown: u64, offsets: ClockOffsets) -> u64 {
    let ticks = i128::from(shown) - offsets.boottime.div_euclid(NANOSECONDS_PER_TICK);
    u64::try_from(ticks).unwrap_or(0)
}

fn read_trimmed(path: &str) -> String {
    fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// Kills this process at once, as `kill -9` would.
#[cfg(debug_assertions)]
pub(crate) fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort()
}

/// Creates a complete file under a free name, without a temporary name. `None` if the name is taken
/// or the system cannot do it: then it is created under a temporary name first.
pub(crate) fn create_whole(
    path: &std::path::Path,
    content: &[u8],
) -> std::io::Result<Option<fs::File>> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
        use std::io::Write;
        use std::os::fd::AsRawFd;
        let Some(folder) = path.parent() else { return Ok(None) };
        let is_for_group = access::is_for_group(path);
        let mode = Mode::from_raw_mode(if is_for_group { 0o660 } else { 0o600 });
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let Ok(nameless) = open(folder, flags, mode) else {
            return Ok(None);
        };
        let mut file = fs::File::from(nameless);
        file.write_all(content)?;
        let nameless = format!("/proc/self/fd/{}", file.as_raw_fd());
        let linked = linkat(CWD, nameless, CWD, path, AtFlags::SYMLINK_FOLLOW);
        Ok(linked.is_ok().then_some(file))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (path, content);
        Ok(None)
    }
}

/// Whether no other process has this file open. If that is unknown: no.
pub(crate) fn is_ours_alone(file: &fs::File) -> bool {
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        lease::is_granted(file)
    }
    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    {
        let _ = file;
        false
    }
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod lease {
    use std::os::fd::AsRawFd;

    /// Sets the signal for a lease; the number is that of these two architectures.
    const F_SETSIG: libc::c_int = 10;

    /// The kernel grants a write lease only on a file that no other process has open.
    #[expect(unsafe_code, reason = "rustix has no leases")]
    pub(super) fn is_granted(file: &std::fs::File) -> bool {
        let number = file.as_raw_fd();
        // SAFETY: these commands take numbers alone, and the descriptor is open.
        unsafe {
            // A process that opens it at this moment waits, and this process gets a signal that is
            // ignored by default: the usual signal would end the process.
            libc::fcntl(number, F_SETSIG, libc::SIGURG) == 0
                && libc::fcntl(number, libc::F_SETLEASE, libc::F_WRLCK) == 0
                && libc::fcntl(number, libc::F_SETLEASE, libc::F_UNLCK) == 0
        }
    }
}

/// Whether this open file still has a name.
pub(crate) fn has_name(file: &fs::File) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.metadata().is_ok_and(|meta| meta.nlink() > 0)
}

/// Renames a file to a free name.
pub(crate) fn rename_new(from: &std::path::Path, to: &std::path::Path) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
    }
    #[cfg(not(target_os = "linux"))]
    {
        fs::hard_link(from, to)?;
        fs::remove_file(from)
    }
}

/// Swaps two files in one step. If the system cannot do that, the second name is missing for a
/// moment.
pub(crate) fn exchange(one: &std::path::Path, other: &std::path::Path) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
            // Some file systems cannot.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {}
            swapped => return Ok(swapped?),
        }
    }
    let away = one.with_extension("swapped");
    fs::rename(other, &away)?;
    match fs::hard_link(one, other) {
        Ok(()) => fs::rename(&away, one),
        // Another process took the name: there is nothing to swap with.
        Err(error) => {
            let _ = fs::remove_file(&away);
            Err(error)
        }
    }
}

/// The id of this boot of the kernel; empty if there is none.
pub(crate) fn boot_id() -> String {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| read_trimmed("/proc/sys/kernel/random/boot_id")).clone()
}

/// An id of this machine that survives reboots; empty if there is none.
pub(crate) fn machine_id() -> String {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| read_trimmed("/etc/machine-id")).clone()
}

/// The pid namespace of this process; 0 if the system has only one.
pub(crate) fn pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    static NAMESPACE: OnceLock<u64> = OnceLock::new();
    *NAMESPACE.get_or_init(|| fs::metadata("/proc/self/ns/pid").map_or(0, |meta| meta.ino()))
}

/// Whether `/proc` shows the processes of this process's pid namespace, not of another container.
fn proc_is_ours() -> bool {
    static OURS: OnceLock<bool> = OnceLock::new();
    let own = || fs::read_link("/proc/self").ok()?.to_str()?.parse().ok();
    *OURS.get_or_init(|| own() == Some(std::process::id()))
}

/// What `/proc` says of a process, in one line. It is shorter than the buffer and comes with the first
/// read; to read until the end would take six, in the middle of changes that others wait for.
fn read_stat(pid: u32) -> Option<String> {
    use std::io::Read;
    let mut buffer = [0; 2048];
    let length = fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut buffer).ok()?;
    String::from_utf8(buffer[..length].to_vec()).ok()
}

/// The start time of the process with this pid. `None`: there is no such process, or only a zombie.
/// `Some(None)`: there is one, but its start time cannot be read.
pub(crate) fn start_of(pid: u32) -> Option<Option<u64>> {
    match pid == fork::process_id() {
        true => OWN_START.of(pid),
        false => read_start(pid),
    }
}

/// The start time of this process, which most looks ask for and which never changes.
static OWN_START: OwnStart = OwnStart { pid: AtomicU32::new(0), start: AtomicU64::new(0) };

struct OwnStart {
    /// Of which process the start time is known; that of its parent in a forked process.
    pid: AtomicU32,
    start: AtomicU64,
}

impl OwnStart {
    fn of(&self, own: u32) -> Option<Option<u64>> {
        if self.pid.load(Ordering::Acquire) == own {
            return Some(Some(self.start.load(Ordering::Relaxed)));
        }
        let read = read_start(own);
        if let Some(Some(start)) = read {
            self.start.store(start, Ordering::Relaxed);
            self.pid.store(own, Ordering::Release);
        }
        read
    }
}

fn read_start(pid: u32) -> Option<Option<u64>> {
    match proc_is_ours().then(|| read_stat(pid)).flatten() {
        Some(stat) => match parse_stat(&stat) {
            Some(Stat { defunct: true, .. }) => None,
            Some(stat) => Some(Some(machine_ticks(stat.start, clock_offsets()))),
            None => Some(None),
        },
        None => process_exists(pid).then_some(None),
    }
}

/// How much of the arguments of a process is read: its program and script stand at the beginning.
const ARGUMENTS_MAX_BYTES: u64 = 4096;

/// What the process with this pid is; `None` where the system does not say.
pub(crate) fn process_info(pid: u32) -> Option<ProcessInfo> {
    use std::io::Read;
    if !proc_is_ours() {
        return None;
    }
    let text = read_stat(pid)?;
    let stat = parse_stat(&text)?;
    let name = text.get(text.find('(')? + 1..text.rfind(')')?)?.to_owned();
    let mut arguments = Vec::new();
    let file = fs::File::open(format!("/proc/{pid}/cmdline")).ok()?;
    file.take(ARGUMENTS_MAX_BYTES).read_to_end(&mut arguments).ok()?;
    let arguments = arguments.split(|byte| *byte == 0).filter(|argument| !argument.is_empty());
    Some(ProcessInfo {
        pid,
        parent: stat.parent,
        start: machine_ticks(stat.start, clock_offsets()),
        name,
        arguments: arguments.map(|one| String::from_utf8_lossy(one).into_owned()).collect(),
    })
}

struct Stat {
    defunct: bool,
    parent: u32,
    group: u32,
    start: u64,
}

fn parse_stat(stat: &str) -> Option<Stat> {
    // The second field is the command's name in parentheses and may contain any character: the
    // other fields begin after the last parenthesis.
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    let state = *fields.first()?;
    let parent = fields.get(1)?.parse().ok()?;
    let group = fields.get(2)?.parse().ok()?;
    let threads: u64 = fields.get(17)?.parse().ok()?;
    let start = fields.get(19)?.parse().ok()?;
    // A leader that ended before its threads also shows as a zombie, but the process continues.
    let defunct = matches!(state, "Z" | "X" | "x") && threads <= 1;
    Some(Stat { defunct, parent, group, start })
}

fn process_exists(pid: u32) -> bool {
    let Some(pid) = to_pid(pid) else { return false };
    !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH))
}

/// Whether the group of this leader has a living process. The kernel also counts zombies, which may
/// stay forever.
pub(crate) fn group_exists(leader: u32) -> bool {
    if !group_is_known(leader) {
        return false;
    }
    if !proc_is_ours() {
        return true;
    }
    let mut some_are_dead = false;
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(stat) = fs::read_to_string(process.path().join("stat")) else { continue };
        match parse_stat(&stat) {
            Some(stat) if stat.group != leader => {}
            Some(Stat { defunct: false, .. }) => return true,
            Some(_) => some_are_dead = true,
            None => {}
        }
    }
    // If none is visible, it ended just now, or the system hides other users' processes.
    !some_are_dead && group_is_known(leader)
}

/// The living members of this leader's group and their names, as far as they can be seen.
pub(crate) fn group_members(leader: u32) -> Vec<(u32, String)> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok());
    let member = |pid: u32| {
        let text = read_stat(pid)?;
        parse_stat(&text).filter(|stat| stat.group == leader && !stat.defunct)?;
        Some((pid, text.get(text.find('(')? + 1..text.rfind(')')?)?.to_owned()))
    };
    if proc_is_ours() { pids.filter_map(member).collect() } else { vec![] }
}

/// Whether the kernel knows this group, with living or dead members.
fn group_is_known(leader: u32) -> bool {
    let Some(pid) = to_pid(leader) else { return false };
    !matches!(rustix::process::test_kill_process_group(pid), Err(rustix::io::Errno::SRCH))
}

/// A process of this machine, in numbers that other processes of the machine can judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunningProcess {
    pub(crate) pid: u32,
    /// See [`Process::start`]; 0 if it cannot be read.
    pub(crate) start: u64,
    pub(crate) pid_namespace: u64,
}

/// This process. Costs no system call.
pub(crate) fn running_process() -> RunningProcess {
    let pid = fork::process_id();
    let start = start_of(pid).flatten().unwrap_or(0);
    RunningProcess { pid, start, pid_namespace: pid_namespace() }
}

/// Whether the process is suspended, by a signal or a debugger. `false` if the system does not tell,
/// or if its number means another process here.
pub(crate) fn is_stopped(process: &RunningProcess) -> bool {
    if process.pid_namespace != pid_namespace() || !proc_is_ours() {
        return false;
    }
    let stat = read_stat(process.pid).unwrap_or_default();
    let state = stat.rfind(')').and_then(|end| stat[end + 1..].trim_start().chars().next());
    matches!(state, Some('T' | 't'))
        && read_start(process.pid).flatten().unwrap_or(0) == process.start
}

fn to_pid(pid: u32) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)
}

/// How often the end of a process or group is checked if the system cannot notify.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Resolves when everything that this evidence names has ended: the process, and the group if there
/// is one.
pub(crate) async fn ended(evidence: Evidence) {
    if let Some(process) = evidence.process {
        exited(process).await;
    }
    while evidence.group.is_some_and(group_lives) {
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Whether this group has a living process.
fn group_lives(group: Group) -> bool {
    !group.is_reused(start_of(group.leader)) && group_exists(group.leader)
}

/// Resolves when this process has ended.
async fn exited(process: Process) {
    #[cfg(target_os = "linux")]
    if wait_for_exit(process).await {
        return;
    }
    while is_there(process) {
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

fn is_there(process: Process) -> bool {
    start_of(process.pid).flatten().is_some_and(|start| process.started_at(start))
}

/// Waits with a process descriptor; returns false if there is none.
#[cfg(target_os = "linux")]
async fn wait_for_exit(process: Process) -> bool {
    use rustix::process::{PidfdFlags, pidfd_open};
    use tokio::io::{Interest, unix::AsyncFd};
    let Some(pid) = to_pid(process.pid) else { return true };
    let Ok(descriptor) = pidfd_open(pid, PidfdFlags::NONBLOCK) else { return false };
    // Only now is the pid pinned; it may have been reused before.
    if !is_there(process) {
        return true;
    }
    #[expect(unsafe_code, reason = "tokio leaves it to the caller that the descriptor stays open")]
    // SAFETY: the registration owns the descriptor, which is closed only when both are dropped.
    let registered = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    match registered {
        Ok(descriptor) => descriptor.readable().await.is_ok(),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_cannot_forge_the_fields() {
        let stat = "7 (a) R 1 2) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 1";
        let parsed = parse_stat(stat).unwrap();
        assert_eq!((parsed.start, parsed.defunct), (12345, false));
    }

    #[test]
    fn the_clock_of_a_container_is_read_as_that_of_its_machine() {
        let text = "monotonic      100000         5\nboottime            0         0";
        assert_eq!(parse_offsets(text).monotonic, 100_000 * NANOSECONDS + 5);
        assert_eq!(parse_offsets("monotonic -7 0").monotonic, -7 * NANOSECONDS);
        assert_eq!(parse_offsets("boottime -7 0").boottime, -7 * NANOSECONDS);
        assert_eq!(parse_offsets(""), ClockOffsets::default());
    }

    #[test]
    fn the_start_of_a_process_is_read_by_the_machines_clock() {
        let seen_with = |boottime: i128, shown: u64| {
            machine_ticks(shown, ClockOffsets { monotonic: 0, boottime })
        };
        assert_eq!(seen_with(0, 12345), 12345);
        assert_eq!(seen_with(1000 * NANOSECONDS, 112_345), 12345);
        assert_eq!(seen_with(-100 * NANOSECONDS, 2345), 12345);
        // An offset of a part of a tick leaves an error of one tick at most.
        assert!(seen_with(NANOSECONDS / 1000 * 7, 12345).abs_diff(12345) <= 1);
        assert!(seen_with(-NANOSECONDS / 1000 * 7, 12345).abs_diff(12345) <= 1);
    }

    #[test]
    fn a_leader_that_left_its_threads_behind_still_lives() {
        let stat = |state: &str, threads: u32| {
            format!("7 (x) {state} 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 {threads} 0 5 1 1")
        };
        assert!(parse_stat(&stat("Z", 1)).unwrap().defunct);
        assert!(!parse_stat(&stat("Z", 3)).unwrap().defunct);
    }
}
