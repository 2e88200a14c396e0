//! Systems that are not Unix: leases alone decide, and waiting falls back on looking again.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tenure_core::Evidence;

pub(crate) fn monotonic() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// Here the one clock counts suspend as well.
pub(crate) fn monotonic_with_suspend() -> Duration {
    monotonic()
}

#[cfg(debug_assertions)]
pub(crate) fn die() -> ! {
    std::process::abort()
}

/// A file is made under another name first.
pub(crate) fn create_whole(
    _: &std::path::Path,
    _: &[u8],
) -> std::io::Result<Option<std::fs::File>> {
    Ok(None)
}

pub(crate) fn is_ours_alone(_: &std::fs::File) -> bool {
    false
}

pub(crate) fn has_name(_: &std::fs::File) -> bool {
    false
}

pub(crate) fn rename_new(from: &std::path::Path, to: &std::path::Path) -> std::io::Result<()> {
    std::fs::hard_link(from, to)?;
    std::fs::remove_file(from)
}

/// Swaps two files; the second name is free for a moment.
pub(crate) fn exchange(one: &std::path::Path, other: &std::path::Path) -> std::io::Result<()> {
    let away = one.with_extension("swapped");
    std::fs::rename(other, &away)?;
    std::fs::hard_link(one, other)?;
    std::fs::remove_file(one)?;
    std::fs::rename(&away, one)
}

/// The system does not tell.
pub(crate) fn listening_sockets(_: std::net::SocketAddr) -> Option<Vec<u64>> {
    None
}

pub(crate) fn own_listening_sockets(_: std::net::SocketAddr) -> Option<Vec<u64>> {
    None
}

pub(crate) fn has_socket(_: u32, _: u64) -> bool {
    false
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
