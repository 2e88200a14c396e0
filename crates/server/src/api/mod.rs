//! The JSON API under `/v1`.
//!
//! 1. `values`, `input`: what may be asked; [`schema`]: what is answered.
//! 2. `locks`, `tasks`, `sections`, `events`, `rates`, [`workers`], [`live`]: the routes.
//! 3. `idempotency`: a request that is sent twice is done once.
//! 4. [`store`]: the protocol of tenure's own clients; `redact`: what they are not shown.
//! 5. `openapi`: the document, made of all that.

mod events;
mod idempotency;
mod input;
pub mod live;
mod locks;
mod openapi;
mod rates;
mod redact;
pub mod schema;
mod sections;
pub mod store;
mod tasks;
mod values;
pub mod workers;

use crate::app::App;
use crate::caller::Caller;
use crate::http::limits::Limits;
use crate::problem::Problem;
use crate::routes::{Access, Routes, unknown_caller};
use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::holder::LABEL_MAX_BYTES;
use tenure::core::{GrantId, Proof, Resource};
use tenure::place::PathError;
use tenure::store::MemoryStore;
use tenure::{Client, Error, Wait};
use tenure_frontend::naming::{self, CallerFiles};
use tenure_frontend::rescue::Rescuer;
use tokio::time::timeout;
use utoipa_axum::routes;
use values::{Grant, Label, ResourceName, WaitMs};

/// The longest that an answer waits for something to happen: proxies give up soon after.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

/// The lease of a request that names none: a caller that is gone is replaced within a minute, and one
/// that lives renews.
const LEASE_DEFAULT: Duration = Duration::from_secs(60);

/// How long a turn that just came has to become an answer when the server stops: a grant that its caller
/// does not learn of would keep others waiting until it lapses.
const LAST_MOMENT: Duration = Duration::from_millis(250);

/// All routes of the API.
pub fn routes(app: App) -> Routes {
    routes_waiting(app, WAIT_MAX)
}

/// The same, with answers that wait at most so long, whatever is asked.
pub fn routes_waiting(app: App, wait_max: Duration) -> Routes {
    let mut routes = documented(app, wait_max);
    let document = openapi::complete(routes.take_document());
    let describe = get(move || openapi::answer(document));
    routes
        .route("/v1/openapi.json", Access::Known, Limits::Quick, describe)
        .layer(from_fn_with_state(idempotency::Repeats::default(), idempotency::once))
        .route("/v1/{*path}", Access::Known, Limits::Quick, any(no_route))
        .wrong_method(no_method)
}

/// The description of the API, OpenAPI 3.1.
pub fn openapi() -> utoipa::openapi::OpenApi {
    let client = Client::builder().with_store(Arc::new(MemoryStore::new()));
    let client = client.expect("a client without a label of its own can always be made");
    openapi::complete(documented(App::new(client), WAIT_MAX).take_document())
}

fn documented(app: App, wait_max: Duration) -> Routes {
    Routes::with_document(openapi::frame())
        .merge(locks::routes())
        .merge(tasks::routes())
        .merge(sections::routes())
        .merge(events::routes())
        .merge(rates::routes())
        .documented(Access::READ, Limits::Quick, routes!(workers))
        .with_state(Api { app: app.clone(), wait_max })
        .merge(live::routes(app))
}

/// Everybody who holds something.
#[utoipa::path(
    get, path = "/v1/workers", operation_id = "list_workers", tag = "workers",
    responses((status = 200, description = "Workers", body = schema::Workers)),
)]
async fn workers(api: Api) -> Result<Json<schema::Workers>, Problem> {
    Ok(Json(schema::Workers { workers: workers::workers(api.client()).await? }))
}

async fn no_route() -> Problem {
    let message = "no such path; see /v1/openapi.json";
    Problem::new(StatusCode::NOT_FOUND, "NO_SUCH_ROUTE", message)
}

async fn no_method() -> Problem {
    let message = "this path does not support this method; see /v1/openapi.json";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message)
}

/// What the handlers share.
#[derive(Clone)]
struct Api {
    app: App,
    wait_max: Duration,
}

/// A handler gets the API as its caller may use it: events of the changes name the caller's token.
impl FromRequestParts<Api> for Api {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Api, Problem> {
        let caller = parts.extensions.get::<Caller>().ok_or_else(unknown_caller)?;
        Ok(Api { app: api.app.acting_for(caller), wait_max: api.wait_max })
    }
}

impl Api {
    /// A client that looks.
    fn client(&self) -> &Client {
        &self.app.client
    }

    /// Takes over the unfinished work of workers of this machine.
    fn rescuer(&self) -> &Rescuer {
        &self.app.rescuer
    }

    /// A client that holds under the label that the caller chose, or the only one that its token may
    /// use, or else under one that is made up for this request and proves nothing.
    fn holder(&self, caller: &Caller, label: Option<&Label>) -> Result<Client, Problem> {
        let only = caller.labels.only();
        match label.map(|label| label.0.as_str()).or(only) {
            Some(label) => Ok(self.app.client.with_label(label)?),
            None => {
                let name = caller.name.as_deref().unwrap_or("http");
                let random = GrantId::random().to_bits() >> 96;
                Ok(self.app.client.with_display_label(&format!("{name}-{random:08x}"))?)
            }
        }
    }

    /// A client whose deeds the audit log ascribes to this caller.
    fn actor(&self, caller: &Caller, label: Option<&Label>) -> Result<Client, Problem> {
        let mut actor = caller.actor(label.map(|label| label.0.as_str()));
        while actor.len() > LABEL_MAX_BYTES {
            actor.remove(0);
        }
        Ok(self.app.client.with_label(&actor)?)
    }

    fn named(&self, name: &ResourceName) -> Result<Resource, PathError> {
        let place = self.app.place.as_deref();
        naming::requested(place, CallerFiles::Elsewhere, self.client().dialect(), &name.0)
    }

    /// The resources that a caller asks for.
    async fn wanted(&self, names: &[ResourceName]) -> Result<Vec<Resource>, Problem> {
        let named = names.iter().map(|name| self.named(name).map_err(unclear));
        Ok(self.client().resolve(named.collect::<Result<_, _>>()?).await?)
    }

    /// The resources that a caller looks at or gives up: also a lock that was taken under a name that
    /// looks like a path.
    async fn resources(&self, names: &[ResourceName]) -> Result<Vec<Resource>, Problem> {
        let mut named = Vec::new();
        for name in names {
            let meant = naming::accept_in_use(self.client(), self.named(name)).await?;
            named.push(meant.map_err(unclear)?);
        }
        Ok(self.client().resolve(named).await?)
    }

    /// As [`Api::resources`], for one.
    async fn resource(&self, name: &ResourceName) -> Result<Resource, Problem> {
        Ok(self.resources(std::slice::from_ref(name)).await?.remove(0))
    }

    /// The resource whose history is asked for: a deleted task still has its events.
    async fn logged(&self, name: &ResourceName) -> Result<Resource, Problem> {
        let named = naming::accept_in_use(self.client(), self.named(name)).await?;
        let named = named.map_err(unclear)?;
        match self.client().resolve_one(named.clone()).await {
            Err(Error::NoSuchTask { .. }) => Ok(named),
            resolved => Ok(resolved?),
        }
    }

    /// How long an answer waits.
    fn patience(&self, asked: Option<WaitMs>) -> Duration {
        Duration::from_millis(asked.map_or(0, |asked| asked.0)).min(self.wait_max)
    }

    fn wait(&self, asked: Option<WaitMs>) -> Wait {
        match self.patience(asked) {
            Duration::ZERO => Wait::No,
            patience => Wait::UpTo(patience),
        }
    }

    /// Waits for this, unless the server is about to stop. What does not wait is not cut short.
    async fn unless_stopping<T>(
        &self,
        wait: Wait,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Problem> {
        if wait == Wait::No {
            return Ok(work.await?);
        }
        let mut work = pin!(work);
        tokio::select! {
            done = &mut work => return Ok(done?),
            () = self.app.stopped() => {}
        }
        match timeout(LAST_MOMENT, work).await {
            Ok(done) => Ok(done?),
            Err(_) => {
                let message = "the server is shutting down; retry when it is back";
                Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "SHUTTING_DOWN", message))
            }
        }
    }
}

fn unclear(error: PathError) -> Problem {
    input::usage(error.to_string())
}

/// What shows that something is the caller's: its grant, or else the label that it chose.
fn proof(grant: Option<&Grant>, label: Option<&Label>) -> Result<Proof, Problem> {
    match (grant, label) {
        (Some(grant), _) => Ok(Proof::Grant(grant.0)),
        (None, Some(label)) => Ok(Proof::Label(label.0.clone())),
        (None, None) => Err(input::usage("No proof of ownership: pass `grant` or `as`")
            .hint("The response to the acquire or claim has the grant; `as` takes the label that you chose.")),
    }
}
