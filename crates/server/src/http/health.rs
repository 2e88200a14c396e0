//! Health checks: whether the server runs, and whether its store answers.

use crate::app::App;
use crate::http::limits::Limits;
use crate::problem::Problem;
use crate::routes::{Access, Routes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tenure::Error;
use tenure::core::Revision;
use tenure::store::StoreError;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// How long a result is reused, because unauthenticated callers must not keep the store busy.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// A slower store counts as not answering.
const PATIENCE: Duration = Duration::from_secs(5);

/// A running process responds within this time, whatever its store does.
const ALIVE_PATIENCE: Duration = Duration::from_millis(500);

/// The result of the last check of the store.
#[derive(Clone, Copy)]
enum Found {
    Answer,
    Trouble,
    /// The store was removed or replaced; only a restart helps.
    Gone,
}

#[derive(Clone)]
struct Health {
    app: App,
    last: Arc<Mutex<Option<(Instant, Found)>>>,
}

/// `/healthz` and `/readyz`.
pub(crate) fn routes(app: App) -> Routes {
    Routes::new()
        .route("/healthz", Access::Anyone, Limits::Quick, get(alive))
        .route("/readyz", Access::Anyone, Limits::Quick, get(ready))
        .with_state(Health { app, last: Arc::default() })
}

impl Health {
    async fn look(&self) -> Found {
        let mut last = self.last.lock().await;
        if let Some((_, found)) = last.filter(|(at, _)| at.elapsed() < GOOD_FOR) {
            return found;
        }
        let look = self.app.client.events(Revision(u64::MAX >> 1), 1);
        let found = match timeout(PATIENCE, look).await {
            Ok(Ok(_)) => Found::Answer,
            Ok(Err(Error::Store(StoreError::Gone { .. }))) => Found::Gone,
            Ok(Err(_)) | Err(_) => Found::Trouble,
        };
        *last = Some((Instant::now(), found));
        found
    }
}

/// Fails only if a restart helps.
async fn alive(State(health): State<Health>) -> Result<&'static str, Problem> {
    match timeout(ALIVE_PATIENCE, health.look()).await {
        Ok(Found::Gone) => Err(gone()),
        _ => Ok("ok\n"),
    }
}

async fn ready(State(health): State<Health>) -> Result<&'static str, Problem> {
    if health.app.is_draining() {
        let message = "the server is shutting down";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "DRAINING", message));
    }
    match health.look().await {
        Found::Answer => Ok("ok\n"),
        Found::Trouble => {
            let message = "the store does not answer";
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "NOT_READY", message))
        }
        Found::Gone => Err(gone()),
    }
}

/// Unauthenticated callers see it, so it does not name the store's path.
fn gone() -> Problem {
    let message = "the store was removed or replaced while it was in use";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "STORE_GONE", message)
        .hint("Restart the server to use the present store.")
}
