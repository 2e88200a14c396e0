//! The server under test, which can be stopped and started again on the same port.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use std::sync::{Arc, Mutex};
use tenure::Client;
use tenure_server::app::App;
use tenure_server::caller::{Caller, Role};
use tenure_server::problem::Problem;
use tenure_server::{api, dashboard};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// A page that is served. Cheap to clone.
#[derive(Clone)]
pub struct Page {
    client: Client,
    port: u16,
    gate: Arc<Mutex<Gate>>,
    running: Arc<Mutex<Vec<AbortHandle>>>,
}

/// Whom the server takes callers for; stands in for the real gate.
pub struct Gate {
    pub role: Role,
    pub token: Option<String>,
}

impl Page {
    pub async fn start(client: Client) -> Page {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let gate = Arc::new(Mutex::new(Gate { role: Role::Admin, token: None }));
        let page = Page { client, port, gate, running: Arc::default() };
        page.serve(listener);
        page
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn set_gate(&self, change: impl FnOnce(&mut Gate)) {
        change(&mut self.gate.lock().unwrap());
    }

    /// Ends the server and every connection to it.
    pub fn stop(&self) {
        self.running.lock().unwrap().drain(..).for_each(|task| task.abort());
    }

    pub async fn start_again(&self) {
        let listener = loop {
            match TcpListener::bind(("127.0.0.1", self.port)).await {
                Ok(listener) => break listener,
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            }
        };
        self.serve(listener);
    }

    /// One task per connection, so that stopping cuts them all, as a killed process would.
    fn serve(&self, listener: TcpListener) {
        let app = App::new(self.client.clone());
        app.metrics.watch(self.client.clone());
        let router = dashboard::routes()
            .into_router()
            .merge(api::routes(app).into_router())
            .layer(middleware::from_fn_with_state(self.gate.clone(), pass));
        let running = self.running.clone();
        let accept = async move {
            loop {
                let Ok((socket, _)) = listener.accept().await else { continue };
                let service = hyper_util::service::TowerToHyperService::new(router.clone());
                let io = hyper_util::rt::TokioIo::new(socket);
                let connection =
                    hyper::server::conn::http1::Builder::new().serve_connection(io, service);
                let task = tokio::spawn(async move { drop(connection.await) });
                running.lock().unwrap().push(task.abort_handle());
            }
        };
        self.running.lock().unwrap().push(tokio::spawn(accept).abort_handle());
    }
}

async fn pass(
    State(gate): State<Arc<Mutex<Gate>>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let (role, token) = {
        let gate = gate.lock().unwrap();
        (gate.role, gate.token.clone())
    };
    let shown = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    let expected = token.map(|token| format!("Bearer {token}"));
    let is_data = request.uri().path().starts_with("/v1/");
    if is_data && expected.is_some() && shown != expected.as_deref() {
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", "a token is needed"));
    }
    request.extensions_mut().insert(Caller::new(None, role));
    Ok(next.run(request).await)
}
