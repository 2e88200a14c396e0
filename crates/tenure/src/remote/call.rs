//! One request, sent until it is answered.

use crate::client::Once;
use crate::store::StoreError;
use crate::url::{Address, RemoteOptions};
use crate::wire;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once as StdOnce};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a request may take beyond what the server was asked to wait.
const ANSWER: Duration = Duration::from_secs(30);

/// How long a server that was never reached is tried: a wrong address should be noticed soon.
const FIRST_CONTACT: Duration = Duration::from_millis(1500);

/// How long a server that was reached before is tried: long enough for it to be restarted, or for
/// its machine to be.
const RECONNECT: Duration = Duration::from_secs(120);

/// Pauses between tries: the first, and the longest.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How patiently a request is sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Patience {
    /// Until it is answered, which may take so long by itself.
    Long(Duration),
    /// Once, which may take so long by itself: the caller knows what else to try.
    Wait(Duration),
    /// Once, and it must not take longer in all.
    Once(Duration),
}

/// Sends requests to one server.
pub(super) struct Caller {
    inner: Arc<Inner>,
    /// Connections live as long as the runtime that opened them; callers come from many.
    runtime: Option<Runtime>,
}

struct Inner {
    client: Client,
    base: String,
    name: String,
    headers: HeaderMap,
    was_reached: AtomicBool,
}

impl Caller {
    pub(super) fn new(address: &Address, options: &RemoteOptions) -> Result<Caller, StoreError> {
        let (base, name) = match address {
            Address::Url(url) => (url.trim_end_matches('/').to_owned(), url.clone()),
            Address::Socket(path) => {
                ("http://localhost".to_owned(), format!("unix:{}", path.display()))
            }
        };
        let unusable = |reason: String, hint: &str| StoreError::Unavailable {
            store: name.clone(),
            reason,
            hint: Some(hint.to_owned()),
        };
        provide_cryptography();
        let mut builder = Client::builder()
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            // Less than servers let them idle, so that none is used that is about to end.
            .pool_idle_timeout(Duration::from_secs(60))
            .tcp_keepalive(Duration::from_secs(15))
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        if let Address::Socket(path) = address {
            builder =
                over_socket(builder, path).map_err(|reason| unusable(reason, "Use http://"))?;
        }
        if let Some(file) = &options.ca_file {
            let certificates = std::fs::read(file).map_err(|error| error.to_string());
            let certificates = certificates.and_then(|pem| {
                reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| error.to_string())
            });
            let certificates = certificates.map_err(|reason| {
                let reason = format!("{} cannot be used: {reason}", file.display());
                unusable(reason, "Give a file with certificates in PEM form.")
            })?;
            builder = builder.tls_certs_only(certificates);
        }
        let client = builder
            .build()
            .map_err(|error| unusable(reason_of(&error), "Check the address of the server."))?;
        let headers = headers(options)
            .ok_or_else(|| unusable("the token has characters that none has".to_owned(), TOKEN))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("tenure-remote")
            .enable_all()
            .build()
            .map_err(|error| unusable(error.to_string(), "Is this machine out of threads?"))?;
        let was_reached = AtomicBool::new(false);
        let inner = Inner { client, base, name, headers, was_reached };
        Ok(Caller { inner: Arc::new(inner), runtime: Some(runtime) })
    }

    /// The server's address.
    pub(super) fn name(&self) -> &str {
        &self.inner.name
    }

    /// Sends a request, and sends it again while it may help.
    pub(super) async fn call<R: DeserializeOwned + Send + 'static>(
        &self,
        path: &str,
        body: &impl Serialize,
        once: Option<&Once>,
        patience: Patience,
    ) -> Result<R, StoreError> {
        let body = serde_json::to_vec(body).map_err(|error| StoreError::Unsupported {
            what: format!("this cannot be sent: {error}"),
            instead: "Use the store directly.".to_owned(),
        })?;
        let (inner, path, once) = (self.inner.clone(), path.to_owned(), once.cloned());
        let send = async move { inner.send_until_answered(&path, body, once, patience).await };
        let runtime = self.runtime.as_ref().expect("it is taken only when the caller is dropped");
        let task = AbortOnDrop(runtime.spawn(send));
        task.wait().await.unwrap_or_else(|error| {
            Err(StoreError::Unknown { store: self.inner.name.clone(), reason: error.to_string() })
        })
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A request that ends when nobody waits for it any more.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> AbortOnDrop<T> {
    async fn wait(mut self) -> Result<T, tokio::task::JoinError> {
        (&mut self.0).await
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What came of one try.
enum Tried {
    Answered(Vec<u8>),
    Refused(StoreError),
    /// Nothing was done.
    NotReached {
        reason: String,
        pause: Option<Duration>,
    },
    /// Perhaps it was done.
    Lost {
        reason: String,
    },
}

impl Inner {
    async fn send_until_answered<R: DeserializeOwned>(
        &self,
        path: &str,
        body: Vec<u8>,
        once: Option<Once>,
        patience: Patience,
    ) -> Result<R, StoreError> {
        let begun = Instant::now();
        let limit = match patience {
            Patience::Long(wait) | Patience::Wait(wait) => wait + ANSWER,
            Patience::Once(limit) => limit,
        };
        let mut pause = PAUSE;
        let mut perhaps_done = false;
        loop {
            let (reason, asked) = match self.try_once(path, &body, once.as_ref(), limit).await {
                Tried::Answered(bytes) => return self.read_answer(&bytes),
                Tried::Refused(error) => return Err(error),
                Tried::NotReached { reason, pause } => (reason, pause),
                Tried::Lost { reason } => {
                    perhaps_done = true;
                    (reason, None)
                }
            };
            let goes_on = match patience {
                Patience::Long(_) if self.was_reached.load(Ordering::Relaxed) => RECONNECT,
                Patience::Long(_) => FIRST_CONTACT,
                Patience::Wait(_) | Patience::Once(_) => Duration::ZERO,
            };
            if begun.elapsed() + pause >= goes_on {
                return Err(self.gave_up(reason, perhaps_done && once.is_some()));
            }
            tokio::time::sleep(asked.unwrap_or_else(|| jittered(pause))).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn try_once(
        &self,
        path: &str,
        body: &[u8],
        once: Option<&Once>,
        limit: Duration,
    ) -> Tried {
        let mut request = self
            .client
            .post(format!("{}{path}", self.base))
            .headers(self.headers.clone())
            .timeout(limit)
            .body(body.to_vec());
        if let Some(once) = once {
            request = request.header(wire::REQUEST, wire::once_to_text(once));
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) if error.is_connect() || error.is_builder() => {
                return Tried::NotReached { reason: reason_of(&error), pause: None };
            }
            Err(error) => return Tried::Lost { reason: reason_of(&error) },
        };
        self.was_reached.store(true, Ordering::Relaxed);
        let status = response.status();
        let asked = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let asked = asked.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        let bytes = match response.bytes().await {
            Ok(bytes) => bytes,
            Err(error) => return Tried::Lost { reason: reason_of(&error) },
        };
        match status {
            StatusCode::OK => Tried::Answered(bytes.into()),
            status => self.refused(status, &bytes, asked),
        }
    }

    fn read_answer<R: DeserializeOwned>(&self, bytes: &[u8]) -> Result<R, StoreError> {
        serde_json::from_slice(bytes).map_err(|error| StoreError::Unsupported {
            what: format!("the server at {} answers something else: {error}", self.name),
            instead: "Use the same version of tenure on both sides.".to_owned(),
        })
    }

    fn refused(&self, status: StatusCode, bytes: &[u8], asked: Option<Duration>) -> Tried {
        let problem: Value = serde_json::from_slice(bytes).unwrap_or_default();
        if let Some(error) = problem["details"].get(wire::STORE_ERROR)
            && let Ok(error) = serde_json::from_value(error.clone())
        {
            return Tried::Refused(error);
        }
        let detail = problem["detail"].as_str().map(str::to_owned);
        let reason = detail.unwrap_or_else(|| format!("it answered {status}"));
        match status {
            // Nothing was done yet; whoever is in between says so too.
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::REQUEST_TIMEOUT => Tried::NotReached { reason, pause: asked },
            StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => Tried::Lost { reason },
            StatusCode::UNAUTHORIZED => self.not_let_in(reason, Some(TOKEN)),
            StatusCode::FORBIDDEN | StatusCode::MISDIRECTED_REQUEST => {
                self.not_let_in(reason, problem["hint"].as_str())
            }
            _ => Tried::Refused(StoreError::Unsupported {
                what: format!("the server at {} refused: {reason}", self.name),
                instead: "Use the same version of tenure on both sides.".to_owned(),
            }),
        }
    }

    fn not_let_in(&self, reason: String, hint: Option<&str>) -> Tried {
        let (store, hint) = (self.name.clone(), hint.map(str::to_owned));
        Tried::Refused(StoreError::Refused { store, reason, hint })
    }

    fn gave_up(&self, reason: String, perhaps_done: bool) -> StoreError {
        let store = self.name.clone();
        if perhaps_done {
            return StoreError::Unknown { store, reason };
        }
        let hint = match self.was_reached.load(Ordering::Relaxed) {
            true => "The server answered before; is it being restarted?",
            false => "Is `tenure serve` running there?",
        };
        StoreError::Unavailable { store, reason, hint: Some(hint.to_owned()) }
    }
}

const TOKEN: &str =
    "Put a token into TENURE_SERVER_TOKEN; `tenure token create` makes one where the server is.";

fn headers(options: &RemoteOptions) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    let json = HeaderValue::from_static("application/json");
    headers.insert(reqwest::header::CONTENT_TYPE, json);
    if let Some(token) = &options.token {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    if let Some(label) = &options.label
        && let Ok(value) = HeaderValue::from_bytes(label.as_bytes())
    {
        headers.insert(HeaderName::from_static(wire::LABEL), value);
    }
    Some(headers)
}

#[cfg(unix)]
fn over_socket(
    builder: reqwest::ClientBuilder,
    path: &std::path::Path,
) -> Result<reqwest::ClientBuilder, String> {
    Ok(builder.unix_socket(path))
}

#[cfg(not(unix))]
fn over_socket(
    _: reqwest::ClientBuilder,
    _: &std::path::Path,
) -> Result<reqwest::ClientBuilder, String> {
    Err("this system has no such sockets".to_owned())
}

/// The same as all of this program uses, unless the program chose another before.
fn provide_cryptography() {
    static CHOSEN: StdOnce = StdOnce::new();
    CHOSEN.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// The innermost reason: the outer ones only say that a request failed.
fn reason_of(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Half of the pause and up to as much again, so that many who lost the server do not all come back
/// at once.
fn jittered(pause: Duration) -> Duration {
    let random = uuid::Uuid::new_v4().as_u128() as u32;
    pause / 2 + pause.mul_f64(f64::from(random) / f64::from(u32::MAX))
}
