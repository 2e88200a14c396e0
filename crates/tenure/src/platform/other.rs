//! Systems that are not Unix: leases alone decide, and waiting falls back on looking again.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tenure_core::Evidence;

pub(crate) fn monotonic() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

#[cfg(debug_assertions)]
pub(crate) fn die() -> ! {
    std::process::abort()
}

/// Says no: a file is made under another name first.
pub(crate) fn create_whole(_: &std::path::Path, _: &[u8]) -> std::io::Result<bool> {
    Ok(false)
}

/// Swaps two files; the second name is free for a moment.
pub(crate) fn exchange(one: &std::path::Path, other: &std::path::Path) -> std::io::Result<()> {
    let away = one.with_extension("swapped");
    std::fs::rename(other, &away)?;
    std::fs::hard_link(one, other)?;
    std::fs::remove_file(one)?;
    std::fs::rename(&away, one)
}

pub(crate) fn boot_id() -> String {
    String::new()
}

pub(crate) fn machine_id() -> String {
    String::new()
}

pub(crate) fn pid_namespace() -> u64 {
    0
}

pub(crate) fn start_of(_: u32) -> Option<Option<u64>> {
    Some(None)
}

pub(crate) fn group_exists(_: u32) -> bool {
    true
}

pub(crate) fn stopped_holder(_: &[PathBuf]) -> Option<u32> {
    None
}

pub(crate) async fn ended(_: Evidence) {
    std::future::pending::<()>().await;
}
