//! Whether the server lives, and whether its store answers.

use crate::app::App;
use crate::problem::Problem;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::core::Revision;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// How long an answer is good for: anybody may ask, and must not keep the store busy.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// A store that takes longer is of no use.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone)]
struct Health {
    app: App,
    last: Arc<Mutex<Option<(Instant, bool)>>>,
}

/// `/healthz` and `/readyz`.
pub(crate) fn router(app: App) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .with_state(Health { app, last: Arc::default() })
}

async fn ready(State(health): State<Health>) -> Result<&'static str, Problem> {
    let mut last = health.last.lock().await;
    let ready = match *last {
        Some((at, ready)) if at.elapsed() < GOOD_FOR => ready,
        _ => {
            let look = health.app.client.events(Revision(u64::MAX >> 1), 1);
            let ready = matches!(timeout(PATIENCE, look).await, Ok(Ok(_)));
            *last = Some((Instant::now(), ready));
            ready
        }
    };
    if ready {
        return Ok("ok\n");
    }
    let message = "the store does not answer";
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "NOT_READY", message))
}
