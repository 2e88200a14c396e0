//! Rates of the last hour and the last day, for small charts.
//!
//! Counts and durations are kept in buckets of fixed width, for the whole store and for each
//! section. A bucket is reused when its time comes again, so memory is bounded: some 20 KB for each
//! of at most [`SECTIONS_MAX`] sections.

use super::spans::{End, Measured, Span};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure::core::{Event, EventKind, Kind, WallTime};

/// The most sections with rates of their own.
const SECTIONS_MAX: usize = 50;

/// The time that rates are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    Hour,
    Day,
}

impl Window {
    /// The width of a bucket: a chart has about a hundred of them.
    pub(crate) fn bucket_ms(self) -> i64 {
        match self {
            Window::Hour => 60_000,
            Window::Day => 15 * 60_000,
        }
    }

    /// How many buckets there are.
    pub(crate) fn buckets(self) -> usize {
        match self {
            Window::Hour => 60,
            Window::Day => 96,
        }
    }
}

/// How often something took time, and how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) count: u64,
    pub(crate) sum_ms: u64,
    pub(crate) max_ms: u64,
}

impl Times {
    fn add(&mut self, ms: u64) {
        self.merge(&Times { count: 1, sum_ms: ms, max_ms: ms });
    }

    fn merge(&mut self, other: &Times) {
        self.count += other.count;
        self.sum_ms = self.sum_ms.saturating_add(other.sum_ms);
        self.max_ms = self.max_ms.max(other.max_ms);
    }
}

/// What happened in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    /// Tasks that their workers completed.
    pub(crate) completed: u64,
    /// Tasks that their workers failed.
    pub(crate) failed: u64,
    /// Tasks that were claimed.
    pub(crate) claimed: u64,
    /// How long claimed tasks had been in the queue.
    pub(crate) queue: Times,
    /// How long tasks were in progress, at the end of each claim.
    pub(crate) progress: Times,
    /// How long locks, paths and sections were held.
    pub(crate) hold: Times,
    /// How long requests waited for a resource.
    pub(crate) wait: Times,
}

impl Bucket {
    fn add(&mut self, span: &Span) {
        let ms = u64::try_from(span.time.as_millis()).unwrap_or(u64::MAX);
        match span.measured {
            Measured::Queued => self.queue.add(ms),
            Measured::Waited { .. } => self.wait.add(ms),
            Measured::Held(Kind::Task, end) => {
                self.progress.add(ms);
                self.completed += u64::from(end == End::Completed);
                self.failed += u64::from(end == End::Failed);
            }
            Measured::Held(_, _) => self.hold.add(ms),
        }
    }

    pub(crate) fn merge(&mut self, other: &Bucket) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.claimed += other.claimed;
        self.queue.merge(&other.queue);
        self.progress.merge(&other.progress);
        self.hold.merge(&other.hold);
        self.wait.merge(&other.wait);
    }
}

/// Buckets of one width; the number of a bucket is its time divided by the width.
#[derive(Clone, Debug)]
struct Ring {
    window: Window,
    slots: Vec<(i64, Bucket)>,
}

impl Ring {
    fn new(window: Window) -> Ring {
        Ring { window, slots: vec![(i64::MIN, Bucket::default()); window.buckets()] }
    }

    /// The bucket of this time; none if a later one has taken its place.
    fn at(&mut self, at: WallTime) -> Option<&mut Bucket> {
        let number = at.0.div_euclid(self.window.bucket_ms());
        let place = number.rem_euclid(self.slots.len() as i64) as usize;
        let (kept, bucket) = self.slots.get_mut(place)?;
        if *kept > number {
            return None;
        }
        if *kept < number {
            (*kept, *bucket) = (number, Bucket::default());
        }
        Some(bucket)
    }

    /// All buckets up to now, oldest first, each with the time at which it begins.
    fn up_to(&self, now: WallTime) -> Vec<(WallTime, Bucket)> {
        let (width, count) = (self.window.bucket_ms(), self.slots.len() as i64);
        let newest = now.0.div_euclid(width);
        let bucket = |number: i64| {
            let (kept, bucket) = self.slots[number.rem_euclid(count) as usize];
            let bucket = if kept == number { bucket } else { Bucket::default() };
            (WallTime(number * width), bucket)
        };
        (newest - count + 1..=newest).map(bucket).collect()
    }

    /// The number of the newest bucket that was used.
    fn newest(&self) -> i64 {
        self.slots.iter().map(|(kept, _)| *kept).max().unwrap_or(i64::MIN)
    }
}

/// The buckets of the store, or of one section.
#[derive(Clone, Debug)]
struct Series {
    hour: Ring,
    day: Ring,
}

impl Series {
    fn new() -> Series {
        Series { hour: Ring::new(Window::Hour), day: Ring::new(Window::Day) }
    }

    fn change(&mut self, at: WallTime, change: impl Fn(&mut Bucket)) {
        [&mut self.hour, &mut self.day].into_iter().filter_map(|ring| ring.at(at)).for_each(change);
    }

    fn ring(&self, window: Window) -> &Ring {
        match window {
            Window::Hour => &self.hour,
            Window::Day => &self.day,
        }
    }
}

#[derive(Clone, Debug)]
struct Kept {
    all: Series,
    sections: BTreeMap<Arc<str>, Series>,
    complete_since: Option<WallTime>,
}

impl Kept {
    fn new(complete_since: Option<WallTime>) -> Kept {
        Kept { all: Series::new(), sections: BTreeMap::new(), complete_since }
    }

    fn add(&mut self, event: &Event, spans: &[Span]) {
        for span in spans {
            self.all.change(event.at, |bucket| bucket.add(span));
            if let Some(series) = span.section.as_ref().and_then(|name| self.section(name)) {
                series.change(event.at, |bucket| bucket.add(span));
            }
        }
        let is_task = event.event.resource.as_ref().is_some_and(|it| it.kind() == Kind::Task);
        if is_task && matches!(event.event.kind, EventKind::Acquired { .. }) {
            let queued = spans.iter().find(|span| span.measured == Measured::Queued);
            self.all.change(event.at, |bucket| bucket.claimed += 1);
            let section = queued.and_then(|span| span.section.as_ref());
            if let Some(series) = section.and_then(|name| self.section(name)) {
                series.change(event.at, |bucket| bucket.claimed += 1);
            }
        }
    }

    /// The series of a section. If there are too many, the one that was quiet for longest gives way
    /// unless it had something to tell today.
    fn section(&mut self, name: &Arc<str>) -> Option<&mut Series> {
        if !self.sections.contains_key(name) && self.sections.len() >= SECTIONS_MAX {
            let newest = self.all.day.newest();
            let (quiet, last) = self
                .sections
                .iter()
                .map(|(name, it)| (name, it.day.newest()))
                .min_by_key(|(_, last)| *last)?;
            if newest.saturating_sub(last) < Window::Day.buckets() as i64 {
                return None;
            }
            let quiet = quiet.clone();
            self.sections.remove(&quiet);
        }
        Some(self.sections.entry(name.clone()).or_insert_with(Series::new))
    }
}

/// The rates of a store. Clones share them.
#[derive(Clone)]
pub(crate) struct Rates {
    kept: Arc<Mutex<Kept>>,
}

/// What is asked of rates.
pub(crate) struct RatesRead {
    /// From when on all events are counted; none if all stored ones are.
    pub(crate) complete_since: Option<WallTime>,
    /// The buckets of the store or of one section, oldest first.
    pub(crate) buckets: Vec<(WallTime, Bucket)>,
    /// The totals of each section over the window.
    pub(crate) sections: Vec<(String, Bucket)>,
}

impl Rates {
    pub(super) fn new() -> Rates {
        Rates { kept: Arc::new(Mutex::new(Kept::new(None))) }
    }

    /// Begins anew with stored events, which are complete from this time on.
    pub(super) fn begin(&self, complete_since: Option<WallTime>) -> RatesHistory {
        RatesHistory { rates: self.clone(), kept: Kept::new(complete_since) }
    }

    /// Adds an event, with what it ended.
    pub(super) fn add(&self, event: &Event, spans: &[Span]) {
        self.kept.lock().add(event, spans);
    }

    /// The rates up to now.
    pub(crate) fn read(&self, window: Window, section: Option<&str>, now: WallTime) -> RatesRead {
        let kept = self.kept.lock();
        let empty = Ring::new(window);
        let ring = match section {
            None => kept.all.ring(window),
            Some(name) => kept.sections.get(name).map_or(&empty, |series| series.ring(window)),
        };
        let total = |(name, series): (&Arc<str>, &Series)| {
            let buckets = series.ring(window).up_to(now);
            (name.to_string(), sum(&buckets))
        };
        RatesRead {
            complete_since: kept.complete_since,
            buckets: ring.up_to(now),
            sections: kept.sections.iter().map(total).collect(),
        }
    }
}

/// All buckets in one.
pub(crate) fn sum(buckets: &[(WallTime, Bucket)]) -> Bucket {
    let mut all = Bucket::default();
    buckets.iter().for_each(|(_, bucket)| all.merge(bucket));
    all
}

/// Rates that are filled from the stored history; they are shown when it was read to its end.
pub(super) struct RatesHistory {
    rates: Rates,
    kept: Kept,
}

impl RatesHistory {
    pub(super) fn add(&mut self, event: &Event, spans: &[Span]) {
        self.kept.add(event, spans);
    }

    pub(super) fn publish(self) {
        *self.rates.kept.lock() = self.kept;
    }
}
