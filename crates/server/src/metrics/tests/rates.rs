//! Durations by section, in metrics and in the rates for charts.

use super::{Place, lease, place};
use crate::metrics::rates::{Times, Window, sum};
use std::time::Duration;
use tenure::core::rules::tasks::{Finish, NewTask};
use tenure::core::{Proof, WallTime};
use tenure::world::Clock;

impl Place {
    fn now(&self) -> WallTime {
        self.clock.wall()
    }

    /// Adds a task, lets it wait and be worked on for so long, and finishes it.
    async fn work(&self, id: &str, section: &str, wait_s: u64, work_s: u64, finish: Finish) {
        let section = Some(section.to_owned());
        let task = NewTask { section, ..NewTask::new(id.parse().unwrap(), id) };
        self.other.tasks().add(vec![task]).await.unwrap();
        self.clock.advance(Duration::from_secs(wait_s));
        let claimed = self.claim().await;
        self.clock.advance(Duration::from_secs(work_s));
        let proof = Proof::Grant(claimed.grant);
        self.other.tasks().finish(&claimed.task.id, proof, None, None, finish).await.unwrap();
    }

    async fn work_of_three(&self) {
        self.work("a", "api", 10, 5, Finish::Complete { result: None }).await;
        self.work("b", "api", 30, 7, Finish::Complete { result: None }).await;
        let fail = Finish::Fail { reason: "no".to_owned(), retry: false };
        self.work("c", "web", 2, 1, fail).await;
    }
}

fn times(count: u64, sum_s: u64, max_s: u64) -> Times {
    Times { count, sum_ms: sum_s * 1000, max_ms: max_s * 1000 }
}

fn check(place: &Place, window: Window) {
    let read = |section| place.metrics.rates().read(window, section, place.now());
    let all = sum(&read(None).buckets);
    assert_eq!((all.completed, all.failed, all.claimed), (2, 1, 3));
    assert_eq!(all.queue, times(3, 42, 30));
    assert_eq!(all.progress, times(3, 13, 7));
    let api = sum(&read(Some("api")).buckets);
    assert_eq!((api.completed, api.failed, api.claimed), (2, 0, 2));
    assert_eq!((api.queue, api.progress), (times(2, 40, 30), times(2, 12, 7)));
    let sections = read(None).sections;
    let names: Vec<&str> = sections.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["api", "web"]);
    assert_eq!(sections[0].1, api);
    assert_eq!(sum(&read(Some("none")).buckets).claimed, 0);
}

#[tokio::test]
async fn tasks_are_measured_by_section() {
    let place = place().await;
    place.watch().await;
    place.work_of_three().await;
    let series = place.when("tenure_claims_total", 3.0).await;
    let of = |name: &str| series[&format!("tenure_{name}{{section=\"api\"}}")];
    assert_eq!((of("task_queue_seconds_count"), of("task_queue_seconds_sum")), (2.0, 40.0));
    assert_eq!((of("task_progress_seconds_count"), of("task_progress_seconds_sum")), (2.0, 12.0));
    assert_eq!(of("section_completions_total"), 2.0);
    assert_eq!(series["tenure_section_failures_total{section=\"web\"}"], 1.0);
    check(&place, Window::Hour);
    check(&place, Window::Day);
}

#[tokio::test]
async fn rates_know_what_happened_before_the_server_started_and_counters_do_not() {
    let place = place().await;
    place.work_of_three().await;
    place.watch().await;
    assert_eq!(place.scrape().await["tenure_claims_total"], 0.0);
    check(&place, Window::Hour);
    check(&place, Window::Day);
}

#[tokio::test]
async fn buckets_are_where_things_happened_and_leave_the_window() {
    let place = place().await;
    place.watch().await;
    place.work("a", "api", 1, 1, Finish::Complete { result: None }).await;
    place.when("tenure_completions_total", 1.0).await;
    place.clock.advance(Duration::from_secs(600));
    place.work("b", "api", 1, 1, Finish::Complete { result: None }).await;
    place.when("tenure_completions_total", 2.0).await;
    let now = place.now();
    let hour = place.metrics.rates().read(Window::Hour, Some("api"), now).buckets;
    assert_eq!(hour.len(), 60);
    assert!(hour.windows(2).all(|two| two[1].0.0 - two[0].0.0 == 60_000));
    let busy: Vec<usize> = (0..60).filter(|at| hour[*at].1.completed > 0).collect();
    assert!(matches!(busy[..], [49 | 48, 59]), "{busy:?}");
    // An hour later it is only in the day, and a day later nowhere.
    for (seconds, in_hour, in_day) in [(3600, 0, 2), (24 * 3600, 0, 0)] {
        let later = WallTime(now.0 + seconds * 1000);
        let count =
            |window| sum(&place.metrics.rates().read(window, Some("api"), later).buckets).completed;
        assert_eq!((count(Window::Hour), count(Window::Day)), (in_hour, in_day));
    }
}

#[tokio::test]
async fn sections_are_measured_when_they_are_held_and_waited_for() {
    let place = place().await;
    place.watch().await;
    let held = lease(&place.server, "section:api").await;
    let client = place.other.with_label("second").unwrap();
    let waits = tokio::spawn(async move {
        client.acquire("section:api").await.unwrap().release().await.unwrap();
    });
    place.when("tenure_waits_total", 1.0).await;
    place.clock.advance(Duration::from_secs(4));
    place.server.release(Proof::Grant(held.grant), None).await.unwrap();
    waits.await.unwrap();
    let series = place.when("tenure_releases_total{kind=\"section\"}", 2.0).await;
    assert_eq!(series["tenure_section_hold_seconds_sum{section=\"api\"}"], 4.0);
    assert_eq!(series["tenure_section_wait_seconds_sum{section=\"api\"}"], 4.0);
    let read = place.metrics.rates().read(Window::Hour, Some("api"), place.now());
    let api = sum(&read.buckets);
    assert_eq!((api.hold, api.wait), (times(2, 4, 4), times(1, 4, 4)));
}

#[tokio::test]
async fn many_sections_cost_no_more_than_a_few() {
    let place = place().await;
    place.watch().await;
    for n in 0..super::super::SECTIONS_MAX + 10 {
        let (id, section) = (format!("t{n}"), format!("s{n:02}"));
        place.work(&id, &section, 1, 1, Finish::Complete { result: None }).await;
    }
    let count = (super::super::SECTIONS_MAX + 10) as f64;
    let series = place.when("tenure_completions_total", count).await;
    assert_eq!(series["tenure_section_completions_total{section=\"*\"}"], 10.0);
    let read = place.metrics.rates().read(Window::Hour, None, place.now());
    assert_eq!(read.sections.len(), super::super::SECTIONS_MAX);
    assert_eq!(sum(&read.buckets).completed as f64, count);
}
