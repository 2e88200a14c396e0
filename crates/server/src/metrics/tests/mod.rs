//! Numbers of a real store that two clients share, only one of which is measured.

mod rates;
mod text;

use super::{Metrics, routes};
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tenure::core::Proof;
use tenure::core::rules::tasks::{Finish, NewTask};
use tenure::store::Renewed;
use tenure::world::{ManualClock, SystemWorld};
use tenure::{ClaimRequest, Claims, Client, Lease, LeaseAttempt, Wait};
use tower::ServiceExt;

/// A store, its measured client, and another client.
struct Place {
    _folder: TempDir,
    clock: Arc<ManualClock>,
    metrics: Arc<Metrics>,
    server: Client,
    other: Client,
}

async fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("t.db").display());
    let clock = Arc::new(ManualClock::new());
    let metrics = Metrics::new();
    let meter = metrics.clone();
    let builder =
        |label| Client::builder().label(label).world(SystemWorld::new().with_clock(clock.clone()));
    let server = builder("server").wrap(move |store| meter.meter(store)).open(&url).await.unwrap();
    let other = builder("other").open(&url).await.unwrap();
    // What happened before is not counted, and it gives the store a first revision.
    let before = lease(&other, "early").await;
    other.release(Proof::Grant(before.grant), None).await.unwrap();
    Place { _folder: folder, clock, metrics, server, other }
}

type Series = BTreeMap<String, f64>;

impl Place {
    async fn scrape(&self) -> Series {
        text::read(&self.metrics.text().await.unwrap())
    }

    /// Counts from now on.
    async fn watch(&self) {
        self.metrics.watch(self.server.clone());
        let newest = self.scrape().await["tenure_store_revision"];
        self.when("tenure_followed_revision", newest).await;
    }

    /// Waits until the events have been counted so far.
    async fn when(&self, name: &str, value: f64) -> Series {
        for _ in 0..1000 {
            let series = self.scrape().await;
            if series.get(name) == Some(&value) {
                return series;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{name} never became {value}: {:#?}", self.scrape().await);
    }

    async fn add(&self, id: &str, section: Option<&str>) {
        let section = section.map(str::to_owned);
        let task = NewTask { section, ..NewTask::new(id.parse().unwrap(), id) };
        self.other.tasks().add(vec![task]).await.unwrap();
    }

    async fn claim(&self) -> tenure::core::rules::tasks::Claimed {
        let request = ClaimRequest { ttl: Duration::from_secs(30), ..ClaimRequest::default() };
        match self.other.tasks().claim(&request).await.unwrap() {
            Claims::Claimed { mut tasks, .. } => tasks.remove(0),
            Claims::None(none) => panic!("{none:?}"),
        }
    }
}

async fn lease(client: &Client, resource: &str) -> Lease {
    let request = client.request(resource).wait(Wait::No).ttl(Duration::from_secs(30));
    match request.detached().lease().await.unwrap() {
        LeaseAttempt::Held(lease) => lease,
        LeaseAttempt::Busy(busy) => panic!("{busy:?}"),
    }
}

#[tokio::test]
async fn holds_are_counted_and_measured_whoever_has_them() {
    let place = place().await;
    let before = lease(&place.other, "before").await;
    place.watch().await;
    // What was held before counts in the durations, not in the acquisitions.
    lease(&place.other, "deploy").await;
    place.when("tenure_acquisitions_total{kind=\"lock\"}", 1.0).await;
    place.clock.advance(Duration::from_secs(10));
    place.other.release(Proof::Grant(before.grant), None).await.unwrap();
    let series = place.when("tenure_releases_total{kind=\"lock\"}", 1.0).await;
    assert_eq!(series["tenure_hold_seconds_sum{end=\"released\",kind=\"lock\"}"], 10.0);
    assert_eq!(series["tenure_leases_overdue"], 0.0);

    place.clock.advance(Duration::from_secs(10));
    assert_eq!(place.scrape().await["tenure_leases_overdue"], 1.0);
    place.clock.advance(Duration::from_secs(20));
    let series = place.scrape().await;
    assert_eq!(series["tenure_holds_gone"], 1.0);
    assert_eq!(series["tenure_leases_overdue"], 0.0);
    let taken = lease(&place.server, "deploy").await;
    let series = place.when("tenure_lapses_total{kind=\"lock\"}", 1.0).await;
    assert_eq!(series["tenure_takeovers_total{reason=\"lapsed\"}"], 1.0);

    place.other.break_hold("deploy", taken.token, "in the way").await.unwrap();
    let series = place.when("tenure_takeovers_total{reason=\"broken\"}", 1.0).await;
    assert_eq!(series["tenure_hold_seconds_count{end=\"broken\",kind=\"lock\"}"], 1.0);
    assert_eq!(series["tenure_takeovers_total{reason=\"died\"}"], 0.0);
    assert_eq!(series["tenure_holds{kind=\"lock\"}"], 0.0);
    assert_eq!(series["tenure_store_up"], 1.0);
}

#[tokio::test]
async fn waits_are_counted_and_measured_with_the_depth_of_queues() {
    let place = place().await;
    place.watch().await;
    let held = lease(&place.server, "deploy").await;
    let waiter = |label: &str| {
        let client = place.other.with_label(label).unwrap();
        tokio::spawn(async move { client.acquire("deploy").await.unwrap().release().await })
    };
    let (first, second) = (waiter("first"), waiter("second"));
    let series = place.when("tenure_waits_total", 2.0).await;
    assert_eq!(series["tenure_waiters"], 2.0);
    assert_eq!(series["tenure_queues"], 1.0);
    assert_eq!(series["tenure_queue_depth_max"], 2.0);
    place.clock.advance(Duration::from_secs(4));
    assert_eq!(place.scrape().await["tenure_longest_wait_seconds"], 4.0);
    place.server.release(Proof::Grant(held.grant), None).await.unwrap();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    let series = place.when("tenure_wait_seconds_count{outcome=\"acquired\"}", 2.0).await;
    assert_eq!(series["tenure_wait_seconds_sum{outcome=\"acquired\"}"], 8.0);
    assert_eq!(series["tenure_waiters"], 0.0);
}

#[tokio::test]
async fn tasks_are_counted_by_what_became_of_them() {
    let place = place().await;
    place.watch().await;
    place.scrape().await;
    for id in ["a", "b", "c"] {
        place.add(id, None).await;
    }
    place.add("d", Some("we\\ird \"section\"")).await;
    place.when("tenure_tasks{status=\"pending\"}", 4.0).await;
    for finish in [
        Finish::Complete { result: None },
        Finish::Fail { reason: "no".to_owned(), retry: false },
        Finish::Fail { reason: "not now".to_owned(), retry: true },
    ] {
        let claimed = place.claim().await;
        let proof = Proof::Grant(claimed.grant);
        place.other.tasks().finish(&claimed.task.id, proof, None, None, finish).await.unwrap();
    }
    let claimed = place.claim().await;
    assert_eq!(claimed.task.id.as_str(), "d");
    let series = place.when("tenure_claims_total", 4.0).await;
    assert_eq!(series["tenure_completions_total"], 1.0);
    assert_eq!(series["tenure_failures_total{retry=\"false\"}"], 1.0);
    assert_eq!(series["tenure_failures_total{retry=\"true\"}"], 1.0);
    assert_eq!(series["tenure_tasks{status=\"in_progress\"}"], 1.0);
    let section = "we\\ird \"section\"".to_owned();
    let named = format!("tenure_section_tasks{{section={section:?},status=\"in_progress\"}}");
    assert_eq!(series[&named], 1.0);

    place.clock.advance(Duration::from_secs(60));
    place.other.tasks().recover().await.unwrap();
    let series = place.when("tenure_recoveries_total", 1.0).await;
    assert_eq!(series["tenure_lapses_total{kind=\"task\"}"], 1.0);
    assert_eq!(series["tenure_set_aside_total"], 0.0);
}

/// A program of the dialect wrote a lock beside and was killed before it renamed it.
#[tokio::test]
async fn files_that_crashed_processes_left_are_counted_until_they_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file:{}?dialect=swarm", folder.path().display());
    let client = Client::open(&url).await.unwrap();
    let metrics = Metrics::new();
    metrics.watch(client.clone());
    let orphaned = async || text::read(&metrics.text().await.unwrap())["tenure_orphaned_files"];
    assert_eq!(orphaned().await, 0.0);
    let left = std::fs::File::create(folder.path().join("left.lock.tmp")).unwrap();
    left.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(orphaned().await, 1.0);
    assert_eq!(client.clean_up(None).await.unwrap().leftovers, 1);
    assert_eq!(orphaned().await, 0.0);
}

#[tokio::test]
async fn renewals_and_calls_are_counted_for_the_measured_client_alone() {
    let place = place().await;
    place.watch().await;
    let mine = lease(&place.server, "mine").await;
    let proof = Proof::Grant(mine.grant);
    let renewed = place.server.renew(&proof, None, None).await.unwrap();
    assert!(matches!(renewed[..], [(_, Renewed::Renewed)]));
    place.other.renew(&proof, None, None).await.unwrap();
    let series = place.scrape().await;
    assert_eq!(series["tenure_renewals_total{outcome=\"renewed\"}"], 1.0);
    assert_eq!(series["tenure_store_call_seconds_count{call=\"renew\"}"], 1.0);
    assert!(series["tenure_store_call_seconds_count{call=\"transact\"}"] >= 1.0);
    assert_eq!(series["tenure_refused_tokens_total"], 0.0);

    place.clock.advance(Duration::from_secs(60));
    let renewed = place.server.renew(&proof, None, None).await.unwrap();
    assert!(matches!(renewed[..], [(_, Renewed::Lost)]));
    place.metrics.refused_token();
    let series = place.scrape().await;
    assert_eq!(series["tenure_renewals_total{outcome=\"lost\"}"], 1.0);
    assert_eq!(series["tenure_refused_tokens_total"], 2.0);
}

async fn scraped(metrics: Arc<Metrics>, accept: &str) -> (String, String) {
    let request = Request::get("/metrics").header("accept", accept).body(Body::empty()).unwrap();
    let response = routes(metrics).into_router().oneshot(request).await.unwrap();
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (kind, String::from_utf8(body.into()).unwrap())
}

#[tokio::test]
async fn a_scrape_is_answered_in_the_right_form_even_without_a_store() {
    let metrics = Metrics::new();
    let (connection, request) = (metrics.connected(), metrics.request());
    for (route, method) in [(Some("/v1/tasks/{id}"), "GET"), (None, "MADE_UP")] {
        let method = axum::http::Method::from_bytes(method.as_bytes()).unwrap();
        let took = Duration::from_millis(200);
        metrics.answered(route, &method, axum::http::StatusCode::NOT_FOUND, took);
    }
    let (kind, body) = scraped(metrics.clone(), "text/plain").await;
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    assert!(body.contains("# TYPE tenure_http_responses_total counter\n"), "{body}");
    drop((connection, request));
    let (kind, body) = scraped(metrics, "application/openmetrics-text").await;
    assert_eq!(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let series = text::read(&body);
    let count = |labels: &str| series[&format!("tenure_http_request_seconds_count{{{labels}}}")];
    assert_eq!(count("method=\"GET\",route=\"/v1/tasks/{id}\""), 1.0);
    assert_eq!(count("method=\"other\",route=\"none\""), 1.0);
    assert_eq!(series["tenure_http_connections"], 0.0);
    assert_eq!(series["tenure_http_connections_accepted_total"], 1.0);
    assert_eq!(series["tenure_http_requests_in_progress"], 0.0);
    assert!(series.contains_key("process_cpu_seconds_total"));
    for figure in ["resident_memory_bytes", "open_fds", "start_time_seconds"] {
        assert!(series[&format!("process_{figure}")] > 0.0, "{figure}");
    }
    assert_eq!(series["tenure_store_up"], 0.0);
    assert_eq!(series["tenure_http_responses_total{class=\"4xx\"}"], 2.0);
    let version = format!("tenure_build_info{{version={:?}}}", env!("CARGO_PKG_VERSION"));
    assert_eq!(series[&version], 1.0);
}
