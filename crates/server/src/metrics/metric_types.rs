//! Metric types and how they are registered.

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Labels, each with a name and one of a few known values.
pub(super) type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Counters with one label.
pub(super) type Counter1 = Family<Labels<1>, Counter>;

/// Counters with two labels.
pub(super) type Counter2 = Family<Labels<2>, Counter>;

/// Histograms with labels.
pub(super) type Histograms<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

/// The label of a section.
pub(super) type SectionLabel = [(&'static str, String); 1];

/// Counters by section.
pub(super) type SectionCounter = Family<SectionLabel, Counter>;

/// Histograms by section.
pub(super) type SectionHistograms = Family<SectionLabel, Histogram, fn() -> Histogram>;

/// The sections that have series of their own: callers choose names of sections, so their number is
/// bounded. Clones share them.
#[derive(Clone, Default)]
pub(super) struct SectionLabels {
    known: Arc<Mutex<BTreeSet<String>>>,
}

/// The label of all sections that have no series of their own.
pub(super) const OTHER_SECTIONS: &str = "*";

impl SectionLabels {
    /// The label of a section; empty for tasks without one.
    pub(super) fn label(&self, section: Option<&str>) -> SectionLabel {
        let Some(section) = section else { return [("section", String::new())] };
        let mut known = self.known.lock();
        if known.len() < super::SECTIONS_MAX {
            known.insert(section.to_owned());
        }
        let shown = if known.contains(section) { section } else { OTHER_SECTIONS };
        [("section", shown.to_owned())]
    }
}

pub(super) fn by_section(registry: &mut Registry, name: &str, help: &str) -> SectionCounter {
    let family = SectionCounter::default();
    registry.register(name, help, family.clone());
    family
}

pub(super) fn seconds_by_section(
    registry: &mut Registry,
    name: &str,
    help: &str,
) -> SectionHistograms {
    let family = SectionHistograms::new_with_constructor(work_buckets);
    registry.register_with_unit(name, help, Unit::Seconds, family.clone());
    family
}

pub(super) fn counter(registry: &mut Registry, name: &str, help: &str) -> Counter {
    let counter = Counter::default();
    registry.register(name, help, counter.clone());
    counter
}

/// A counter for each of these values, starting at zero: a rate over a counter that appears with
/// its first event would miss that event.
pub(super) fn labelled(
    registry: &mut Registry,
    name: &str,
    help: &str,
    label: &'static str,
    words: &[&'static str],
) -> Counter1 {
    let family = Counter1::default();
    for word in words {
        let _ = family.get_or_create(&[(label, word)]);
    }
    registry.register(name, help, family.clone());
    family
}

pub(super) fn seconds<const N: usize>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    make: fn() -> Histogram,
) -> Histograms<N> {
    let family = Histograms::new_with_constructor(make);
    registry.register_with_unit(name, help, Unit::Seconds, family.clone());
    family
}

/// Buckets for calls, from memory speed to a large part of a lease.
pub(super) fn call_buckets() -> Histogram {
    Histogram::new([
        0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
        10.0,
    ])
}

/// Buckets for work, from a moment to a day.
pub(super) fn work_buckets() -> Histogram {
    Histogram::new([0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0])
}
