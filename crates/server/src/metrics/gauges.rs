//! The gauges that are read from the store at each scrape.

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tenure::Client;
use tenure::core::rules::tasks::JudgedClaims;
use tenure::core::{Kind, Overview, Resource, Snapshot, Status};
use tenure::store::Tally;

/// The most sections whose tasks are shown, those with most open tasks first.
pub const SECTIONS_MAX: usize = 50;

/// How long a scrape waits for the store.
const PATIENCE: Duration = Duration::from_secs(5);

type Seconds = Gauge<f64, AtomicU64>;

/// The gauges as of now.
pub(super) async fn registry(client: Option<&Client>, uptime: Duration) -> Registry {
    let mut registry = Registry::with_prefix(super::PREFIX);
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    registry.register("build", "The version of tenure", Info::new(version));
    in_seconds(&mut registry, "uptime", "How long this server has run", uptime);
    let found = match client {
        Some(client) => tokio::time::timeout(PATIENCE, look(client)).await.ok().flatten(),
        None => None,
    };
    let up = i64::from(found.is_some());
    number(&mut registry, "store_up", "Whether the store answered this scrape", up);
    if let (Some(client), Some((seen, tallies, in_progress, leftovers))) = (client, found) {
        let revision = seen.revision.0 as i64;
        number(&mut registry, "store_revision", "The newest revision of the store", revision);
        let overview = Overview::of(&seen, client.witness());
        holds(&mut registry, &overview);
        queues(&mut registry, &overview);
        tasks(&mut registry, &tallies);
        let lost = JudgedClaims::of(&in_progress, client.witness()).lost().len() as i64;
        let help = "Tasks in progress whose claim no longer counts; the next claim takes over";
        number(&mut registry, "claims_lost", help, lost);
        let help = "Temporary files that crashed processes left behind in the store";
        number(&mut registry, "orphaned_files", help, leftovers as i64);
    }
    registry
}

async fn look(client: &Client) -> Option<(Snapshot, Vec<Tally>, Snapshot, usize)> {
    let seen = client.look_at_workers().await.ok()?;
    let tallies = client.tasks().tallies().await.ok()?;
    let in_progress = client.tasks().in_progress().await.ok()?;
    let leftovers = client.leftovers().await.ok()?;
    Some((seen, tallies, in_progress, leftovers))
}

fn number(registry: &mut Registry, name: &str, help: &str, value: i64) {
    let gauge: Gauge = Gauge::default();
    gauge.set(value);
    registry.register(name, help, gauge);
}

fn in_seconds(registry: &mut Registry, name: &str, help: &str, value: Duration) {
    let gauge = Seconds::default();
    gauge.set(value.as_secs_f64());
    registry.register_with_unit(name, help, Unit::Seconds, gauge);
}

fn holds(registry: &mut Registry, overview: &Overview<'_>) {
    let by_kind = Family::<[(&str, &str); 1], Gauge>::default();
    for kind in Kind::ALL {
        let count = overview.held().filter(|seen| seen.hold.want.resource.kind() == kind).count();
        by_kind.get_or_create(&[("kind", kind.word())]).set(count as i64);
    }
    registry.register("holds", "What is held, by kind of resource", by_kind);
    let counts = overview.counts();
    let help =
        "Holds that are no longer valid: lapsed, or the holder died; the next request takes over";
    number(registry, "holds_gone", help, (counts.lapsed + counts.dead) as i64);
    number(registry, "workers", "Labels under which something is held", counts.workers as i64);
    let overdue = overview.held().filter(|seen| seen.left * 2 < seen.hold.ttl);
    let help = "Leases not renewed although half of their time has passed, and not lapsed";
    number(registry, "leases_overdue", help, overdue.count() as i64);
}

fn queues(registry: &mut Registry, overview: &Overview<'_>) {
    let mut depths: HashMap<&Resource, i64> = HashMap::new();
    for want in overview.waiters.iter().flat_map(|seen| &seen.waiter.wants) {
        *depths.entry(&want.resource).or_default() += 1;
    }
    let longest = overview.waiters.iter().map(|seen| seen.waited_for).max().unwrap_or_default();
    number(registry, "waiters", "Requests that wait", overview.counts().waiting as i64);
    number(registry, "queues", "Resources with waiters", depths.len() as i64);
    let places: i64 = depths.values().sum();
    let help = "Places in all queues; a waiter for several resources has one in each";
    number(registry, "queue_places", help, places);
    let deepest = depths.into_values().max().unwrap_or(0);
    number(registry, "queue_depth_max", "Places in the longest queue", deepest);
    in_seconds(registry, "longest_wait", "How long the oldest waiter has waited", longest);
}

fn tasks(registry: &mut Registry, tallies: &[Tally]) {
    let all = Family::<[(&str, &str); 1], Gauge>::default();
    for status in Status::ALL {
        let count: u64 =
            tallies.iter().filter(|tally| tally.status == status).map(|tally| tally.count).sum();
        all.get_or_create(&[("status", status.word())]).set(count as i64);
    }
    registry.register("tasks", "Tasks by status", all);
    let sections = Family::<[(&str, String); 2], Gauge>::default();
    for name in busiest_sections(tallies) {
        for tally in tallies.iter().filter(|tally| tally.section.as_deref() == Some(name)) {
            let labels = [("section", name.to_owned()), ("status", tally.status.word().to_owned())];
            sections.get_or_create(&labels).set(tally.count as i64);
        }
    }
    let help =
        format!("Tasks by section and status, of the {SECTIONS_MAX} sections with most open tasks");
    registry.register("section_tasks", help, sections);
}

/// The sections with most open tasks, then by name so that the choice is stable.
fn busiest_sections(tallies: &[Tally]) -> Vec<&str> {
    let mut open: BTreeMap<&str, u64> = BTreeMap::new();
    for tally in tallies {
        if let Some(section) = &tally.section {
            let count = if tally.status.is_final() { 0 } else { tally.count };
            *open.entry(section).or_default() += count;
        }
    }
    let mut sections: Vec<(&str, u64)> = open.into_iter().collect();
    sections.sort_by_key(|(_, open)| std::cmp::Reverse(*open));
    sections.into_iter().take(SECTIONS_MAX).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_sections_with_most_to_do_are_shown() {
        let tally = |section: &str, status, count| Tally {
            section: Some(section.to_owned()),
            status,
            count,
        };
        let mut tallies: Vec<Tally> =
            (0..60).map(|n| tally(&format!("quiet {n:02}"), Status::Completed, 9)).collect();
        tallies.push(tally("zebra", Status::Pending, 2));
        tallies.push(tally("busy", Status::InProgress, 7));
        let shown = busiest_sections(&tallies);
        assert_eq!(shown.len(), SECTIONS_MAX);
        assert_eq!(shown[..3], ["busy", "zebra", "quiet 00"]);
    }
}
