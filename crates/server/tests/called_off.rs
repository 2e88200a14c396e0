//! A request that is dropped while its answer is on its way leaves nothing held and nothing queued:
//! neither when the server carried it out, nor when it arrives only after it was called off.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;
use axum::middleware::{self, Next};
use axum::{Extension, Router};
use http_body_util::BodyExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure::core::Status;
use tenure::core::rules::tasks::NewTask;
use tenure::{Attempt, Binding, ClaimRequest, Client, Free, Wait};
use tenure_server::api::store;
use tenure_server::app::App;
use tenure_server::caller::{Caller, Role};
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);

/// So long may anything take that has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// What happens to the first request with a verb, whose answer never arrives.
struct Gate {
    verb: &'static str,
    /// Whether it is delivered only when told to.
    is_late: bool,
    is_used: AtomicBool,
    arrived: Notify,
    deliver: Notify,
    delivered: Notify,
    called_off: Notify,
}

async fn pass(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if !path.ends_with(&format!("/{}", gate.verb)) || gate.is_used.swap(true, Ordering::SeqCst) {
        let response = next.run(request).await;
        if path.contains("/call_off") {
            gate.called_off.notify_one();
        }
        return response;
    }
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let request = Request::from_parts(parts, Body::from(body));
    tokio::spawn(async move {
        gate.arrived.notify_one();
        if gate.is_late {
            gate.deliver.notified().await;
        }
        next.run(request).await;
        gate.delivered.notify_one();
    });
    std::future::pending().await
}

/// A server behind a gate, a client of the server, and one of its store.
struct Scene {
    gate: Arc<Gate>,
    remote: Client,
    local: Client,
    _folder: tempfile::TempDir,
}

impl Scene {
    async fn new(verb: &'static str, is_late: bool) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("tenure.db").display());
        let local = Client::open(&url).await.unwrap();
        let gate = Arc::new(Gate {
            verb,
            is_late,
            is_used: AtomicBool::new(false),
            arrived: Notify::new(),
            deliver: Notify::new(),
            delivered: Notify::new(),
            called_off: Notify::new(),
        });
        let caller = Caller::new(Some("ci"), Role::Work);
        let router: Router = store::routes(App::new(local.clone()))
            .into_router()
            .layer(Extension(caller))
            .layer(middleware::from_fn_with_state(gate.clone(), pass));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let remote = Client::open(&url).await.unwrap();
        Scene { gate, remote, local, _folder: folder }
    }

    /// Drops a request when it has got to the gate, and lets all happen that can still happen.
    async fn drop_on_the_way<T: Send + 'static>(
        &self,
        request: impl Future<Output = T> + Send + 'static,
    ) {
        let request = tokio::spawn(request);
        match self.gate.is_late {
            true => self.gate.arrived.notified().await,
            false => self.gate.delivered.notified().await,
        }
        request.abort();
        self.gate.called_off.notified().await;
        if self.gate.is_late {
            self.gate.deliver.notify_one();
            self.gate.delivered.notified().await;
        }
    }
}

async fn in_both_orders(verb: &'static str, test: impl AsyncFn(Scene)) {
    for is_late in [false, true] {
        let scene = Scene::new(verb, is_late).await;
        tokio::time::timeout(PATIENCE, test(scene)).await.expect("it did not happen");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acquire_that_was_dropped_holds_nothing() {
    in_both_orders("acquire", async |scene| {
        let request = scene.remote.request("a").also("b").detached().ttl(LONG);
        scene.drop_on_the_way(request.lease()).await;
        let seen = scene.local.look_everywhere().await.unwrap();
        assert_eq!((seen.holds, seen.waiters), (vec![], vec![]));
        let free = scene.local.wait_until_free("a", Wait::No).await.unwrap();
        assert_eq!(free, Free::Free);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acquire_that_was_dropped_does_not_queue() {
    in_both_orders("acquire", async |scene| {
        let guard = scene.local.acquire("a").await.unwrap();
        scene.drop_on_the_way(scene.remote.request("a").ttl(LONG).hold()).await;
        assert_eq!(scene.local.look_everywhere().await.unwrap().waiters, vec![]);
        guard.release().await.unwrap();
        let next = scene.local.try_acquire("a").await.unwrap();
        assert!(matches!(next, Attempt::Held(_)), "{next:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_was_dropped_has_no_task_and_no_section() {
    in_both_orders("claim", async |scene| {
        let task = NewTask {
            section: Some("backend".to_owned()),
            files: vec!["src/**".to_owned()],
            ..NewTask::new("t".parse().unwrap(), "T")
        };
        scene.local.tasks().add(vec![task]).await.unwrap();
        let request = ClaimRequest {
            ttl: LONG,
            section_ttl: LONG,
            runner: Some(tenure::core::GrantId::random()),
            tie: Binding::Nothing,
            ..ClaimRequest::default()
        };
        let tasks = scene.remote.tasks();
        scene.drop_on_the_way(async move { tasks.claim(&request).await }).await;
        assert_eq!(scene.local.look_everywhere().await.unwrap().holds, vec![]);
        let task = scene.local.tasks().find("t").await.unwrap();
        assert_eq!((task.status, task.attempts, task.claim), (Status::Pending, 0, None));
    })
    .await;
}
