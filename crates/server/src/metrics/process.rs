//! What the operating system says of this process, under the names that Prometheus uses for it.
//!
//! The figures come from `/proc`; where there is none, or a file cannot be read, they are omitted.

use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::fs;

/// The figures of this process now.
pub(super) fn registry() -> Registry {
    let mut registry = Registry::with_prefix("process");
    let Some(stat) = Stat::read() else { return registry };
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let seconds = Unit::Seconds;
    let cpu = ConstCounter::new(stat.cpu_ticks as f64 / ticks);
    registry.register_with_unit("cpu", "CPU time of this process", seconds, cpu);
    let threads = ConstGauge::new(stat.threads);
    registry.register("threads", "Threads of this process", threads);
    let mut bytes = |name: &str, help: &str, value: u64| {
        registry.register_with_unit(name, help, Unit::Bytes, ConstGauge::new(value as i64));
    };
    bytes("virtual_memory", "Virtual memory of this process", stat.virtual_bytes);
    let page = rustix::param::page_size() as u64;
    bytes("resident_memory", "Resident memory of this process", stat.resident_pages * page);
    if let Some(booted) = boot_time() {
        let started = ConstGauge::new(booted as f64 + stat.start_ticks as f64 / ticks);
        let help = "When this process started, in seconds since 1970";
        registry.register_with_unit("start_time", help, Unit::Seconds, started);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them is the folder that is read.
        let open = ConstGauge::new(open.count().saturating_sub(1) as i64);
        registry.register("open_fds", "Open file descriptors of this process", open);
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if let Some(limit) = limit.current {
        let limit = ConstGauge::new(i64::try_from(limit).unwrap_or(i64::MAX));
        registry.register("max_fds", "The most file descriptors that this process may open", limit);
    }
    registry
}

/// What is used of `/proc/self/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    cpu_ticks: u64,
    threads: i64,
    start_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    fn read() -> Option<Stat> {
        Stat::parse(&fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// The name of the program is in parentheses and may itself have some, and spaces.
    fn parse(text: &str) -> Option<Stat> {
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // proc(5) counts from 1, and the first field here is its third.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Stat {
            cpu_ticks: field(14)? + field(15)?,
            threads: i64::try_from(field(20)?).ok()?,
            start_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

/// When the machine started, in seconds since 1970.
fn boot_time() -> Option<u64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_name_does_not_shift_the_fields() {
        let text = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 100 23 0 0 20 0 7 0 5555 4096 17 18 19";
        let expected = Stat {
            cpu_ticks: 123,
            threads: 7,
            start_ticks: 5555,
            virtual_bytes: 4096,
            resident_pages: 17,
        };
        assert_eq!(Stat::parse(text), Some(expected));
        assert_eq!(Stat::parse("42 (short) S 1"), None);
    }
}
