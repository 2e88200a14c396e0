//! Counts the events of the store, whichever process caused them.

use super::metric_types::{
    Counter1, Histograms, SectionCounter, SectionHistograms, SectionLabels, by_section, counter,
    labelled, seconds, seconds_by_section, work_buckets,
};
use super::spans::{End, Measured, Span};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tenure::core::{Event, EventKind, Kind, Revision};

/// The metrics of events. Clones share them.
#[derive(Clone)]
pub(super) struct EventCounts {
    acquisitions: Counter1,
    releases: Counter1,
    lapses: Counter1,
    takeovers: Counter1,
    waits: Counter,
    deadlocks: Counter,
    claims: Counter,
    completions: Counter,
    failures: Counter1,
    recoveries: Counter,
    set_aside: Counter,
    holding: Histograms<2>,
    waiting: Histograms<1>,
    task_queue: SectionHistograms,
    task_progress: SectionHistograms,
    section_holds: SectionHistograms,
    section_waits: SectionHistograms,
    section_completions: SectionCounter,
    section_failures: SectionCounter,
    sections: SectionLabels,
    followed: Gauge,
}

const KINDS: [&str; 4] = ["lock", "section", "task", "path"];

impl EventCounts {
    pub(super) fn new(registry: &mut Registry) -> EventCounts {
        let mut plain = |name, help| counter(registry, name, help);
        let waits = plain("waits", "Places taken in the queue of a resource");
        let deadlocks = plain("deadlocks", "Waits refused because they would be a deadlock");
        let claims = plain("claims", "Tasks claimed by workers");
        let completions = plain("completions", "Tasks completed by their workers");
        let recoveries =
            plain("recoveries", "Tasks recovered: the worker died or stopped renewing");
        let set_aside =
            plain("set_aside", "Tasks blocked: too many workers died or stopped renewing");
        let mut by_kind = |name, help| labelled(registry, name, help, "kind", &KINDS);
        let acquisitions = by_kind("acquisitions", "Grants made, by kind of resource");
        let releases = by_kind("releases", "Holds that their holder ended, by kind of resource");
        let lapses = by_kind("lapses", "Holds removed because their lease lapsed");
        let takeovers = labelled(
            registry,
            "takeovers",
            "Holds not ended by their holder: it died, the lease lapsed, an operator broke it",
            "reason",
            &["died", "lapsed", "broken"],
        );
        let failures = labelled(
            registry,
            "failures",
            "Tasks failed by their workers, by whether they are retried",
            "retry",
            &["true", "false"],
        );
        let holding = seconds(registry, "hold", "Duration of ended holds", work_buckets);
        let waiting = seconds(registry, "wait", "Duration of ended waits", work_buckets);
        let mut durations = |name, help| seconds_by_section(registry, name, help);
        let task_queue = durations(
            "task_queue",
            "How long tasks were in the queue before they were claimed, by their section",
        );
        let task_progress =
            durations("task_progress", "How long tasks were in progress, by their section");
        let section_holds = durations("section_hold", "Duration of ended holds of sections");
        let section_waits = durations("section_wait", "Duration of ended waits for sections");
        let mut by_section = |name, help| by_section(registry, name, help);
        let section_completions =
            by_section("section_completions", "Tasks completed by their workers, by section");
        let section_failures =
            by_section("section_failures", "Tasks failed by their workers, by section");
        let followed = Gauge::default();
        let help = "The revision up to which events were counted";
        registry.register("followed_revision", help, followed.clone());
        EventCounts {
            acquisitions,
            releases,
            lapses,
            takeovers,
            waits,
            deadlocks,
            claims,
            completions,
            failures,
            recoveries,
            set_aside,
            holding,
            waiting,
            task_queue,
            task_progress,
            section_holds,
            section_waits,
            section_completions,
            section_failures,
            sections: SectionLabels::default(),
            followed,
        }
    }

    /// Counts one event, and the durations that it ended.
    pub(super) fn count(&self, event: &Event, spans: &[Span]) {
        spans.iter().for_each(|span| self.measure(span));
        let Some(resource) = &event.event.resource else { return };
        let kind = resource.kind();
        match &event.event.kind {
            EventKind::Acquired { .. } => {
                self.acquisitions.get_or_create(&[("kind", kind.word())]).inc();
                if kind == Kind::Task {
                    self.claims.inc();
                }
            }
            EventKind::Lapsed { .. } => {
                self.lapses.get_or_create(&[("kind", kind.word())]).inc();
                self.taken_over("lapsed");
            }
            EventKind::Died { .. } => self.taken_over("died"),
            EventKind::Broken { .. } => self.taken_over("broken"),
            EventKind::Waiting => drop(self.waits.inc()),
            EventKind::Deadlock => drop(self.deadlocks.inc()),
            EventKind::Completed => drop(self.completions.inc()),
            EventKind::Failed { retry, .. } => {
                let word = if *retry { "true" } else { "false" };
                self.failures.get_or_create(&[("retry", word)]).inc();
            }
            EventKind::Recovered => drop(self.recoveries.inc()),
            EventKind::SetAside => drop(self.set_aside.inc()),
            _ => {}
        }
    }

    fn taken_over(&self, reason: &'static str) {
        self.takeovers.get_or_create(&[("reason", reason)]).inc();
    }

    /// Adds a duration that ended.
    fn measure(&self, span: &Span) {
        let seconds = span.time.as_secs_f64();
        let section = || self.sections.label(span.section.as_deref());
        match span.measured {
            Measured::Waited { acquired } => {
                let labels = [("outcome", if acquired { "acquired" } else { "left" })];
                self.waiting.get_or_create(&labels).observe(seconds);
                if span.section.is_some() {
                    self.section_waits.get_or_create(&section()).observe(seconds);
                }
            }
            Measured::Queued => {
                self.task_queue.get_or_create(&section()).observe(seconds);
            }
            Measured::Held(kind, end) => {
                let labels = [("kind", kind.word()), ("end", end.word())];
                self.holding.get_or_create(&labels).observe(seconds);
                if end.word() == "released" {
                    self.releases.get_or_create(&[("kind", kind.word())]).inc();
                }
                match kind {
                    Kind::Task => {
                        self.task_progress.get_or_create(&section()).observe(seconds);
                    }
                    Kind::Section => {
                        self.section_holds.get_or_create(&section()).observe(seconds);
                    }
                    Kind::Lock | Kind::Path => {}
                }
                match end {
                    End::Completed => {
                        _ = self.section_completions.get_or_create(&section()).inc();
                    }
                    End::Failed => drop(self.section_failures.get_or_create(&section()).inc()),
                    _ => {}
                }
            }
        }
    }

    /// Notes up to which revision events were counted.
    pub(super) fn followed_to(&self, revision: Revision) {
        self.followed.set(revision.0 as i64);
    }
}
