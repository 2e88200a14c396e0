//! One request, sent until it is answered.

use super::connections::{SendError, Unusable};
use super::link::{Link, Links, Looked};
use super::observer::Observer;
use crate::deadline::{KnownClocks, ServerTime};
use crate::store::RequestId;
use crate::store::StoreError;
use crate::url::{Address, RemoteOptions};
use crate::wire;
use crate::world::World;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, StatusCode, Uri};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The header that names the span of a caller, as W3C Trace Context defines it.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// How long a request may take beyond what the server was asked to wait.
const ANSWER: Duration = Duration::from_secs(30);

/// The same for a change, which gives its deadline. When no answer came, it is sent again at least until
/// then, because the server is probably being restarted, and its answer tells what came of the change.
const CHANGE: Duration = Duration::from_secs(15);

/// How often a server may ask a client to look at its clock: several servers may share one address.
const CLOCKS_MAX: u32 = 16;

/// How long a server that was never reached is tried: a wrong address should be noticed soon.
const FIRST_CONTACT: Duration = Duration::from_millis(1500);

/// How long a server that was reached before is tried: long enough for it to be restarted, or for
/// its machine to be.
const RECONNECT: Duration = Duration::from_secs(120);

/// Pauses between tries: the first, and the longest.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The same for a server of this user on this machine: to try again costs little there, and its next
/// start is to be noticed soon.
const PAUSE_MAX_LOCAL: Duration = Duration::from_millis(100);

/// How often a server may refuse to know the client while servers of this user come and go at its
/// address.
const REFUSALS_MAX: u32 = 10;

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

/// What a request is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind<'a> {
    /// A change of this name, which is made once however often it is sent.
    Act(&'a RequestId),
    /// Leases that start anew: again does no harm, but late does.
    Renewal,
    /// Nothing is changed.
    Look,
}

/// Sends requests to one server.
pub(super) struct Caller {
    clocks: KnownClocks,
    links: Links,
    base: String,
    name: String,
    headers: HeaderMap,
    observer: Observer,
    was_reached: AtomicBool,
    world: Arc<dyn World>,
}

/// What came of one try.
enum Tried {
    Answered(Bytes),
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
    /// It had no deadline by the server's clock, which the client knows now; nothing was done.
    ClockUnknown {
        refused: StoreError,
    },
    /// The server does not know who asks; nothing was done.
    NotKnown {
        refused: StoreError,
    },
}

impl Caller {
    pub(super) fn new(
        address: &Address,
        options: &RemoteOptions,
        world: Arc<dyn World>,
    ) -> Result<Caller, StoreError> {
        let (base, name) = match address {
            Address::Url(url) => (url.trim_end_matches('/').to_owned(), url.clone()),
            Address::Socket(path) => {
                ("http://localhost".to_owned(), format!("unix:{}", path.display()))
            }
        };
        let unusable = |(reason, hint): Unusable| StoreError::Unavailable {
            store: name.clone(),
            reason,
            hint: Some(hint.to_owned()),
        };
        let _: Uri = base
            .parse()
            .map_err(|error| unusable((format!("{error}"), "Check the address of the server.")))?;
        let links = Links::new(address, options).map_err(unusable)?;
        let was_reached = AtomicBool::new(false);
        let (headers, observer) = (headers(options), options.observer.clone());
        let clocks = KnownClocks::default();
        Ok(Caller { clocks, links, base, name, headers, observer, was_reached, world })
    }

    /// The server's address.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sends a request, and sends it again while it may help.
    pub(super) async fn call<R: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        kind: Kind<'_>,
        patience: Patience,
    ) -> Result<R, StoreError> {
        let unsent = |error: &dyn std::fmt::Display| StoreError::Unsupported {
            what: format!("this cannot be sent: {error}"),
            instead: "Use the store directly.".to_owned(),
        };
        let body = serde_json::to_vec(body).map_err(|error| unsent(&error))?;
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() =
            format!("{}{path}", self.base).parse().map_err(|error| unsent(&error))?;
        *request.headers_mut() = self.headers.clone();
        if let Kind::Act(once) = kind {
            let name = HeaderValue::try_from(wire::request_id_to_text(once));
            request.headers_mut().insert(wire::REQUEST, name.map_err(|error| unsent(&error))?);
        }
        let observed = self.observer.begin(path);
        let parent = observed.as_ref().and_then(|observed| observed.traceparent());
        if let Some(parent) = parent.and_then(|parent| HeaderValue::try_from(parent).ok()) {
            request.headers_mut().insert(TRACEPARENT, parent);
        }
        let sent = self.send_until_answered(request, kind, patience).await;
        if let (Some(observed), Err(error)) = (&observed, &sent) {
            observed.failed(error);
        }
        drop(observed);
        let bytes = sent?;
        serde_json::from_slice(&bytes).map_err(|error| StoreError::Unsupported {
            what: format!("the server at {} answers something else: {error}", self.name),
            instead: "Use the same version of tenure on both sides.".to_owned(),
        })
    }

    async fn send_until_answered(
        &self,
        mut request: Request<Full<Bytes>>,
        kind: Kind<'_>,
        patience: Patience,
    ) -> Result<Bytes, StoreError> {
        let clock = self.world.clock();
        let begun = clock.now();
        let waited = || clock.now().saturating_sub(begun);
        let is_act = matches!(kind, Kind::Act(_));
        let is_change = !matches!(kind, Kind::Look);
        let mut limit = match (patience, kind) {
            (Patience::Once(limit), _) => limit,
            (Patience::Long(wait) | Patience::Wait(wait), Kind::Look) => wait + ANSWER,
            (Patience::Long(wait) | Patience::Wait(wait), _) => wait + CHANGE,
        };
        // Until when a try without an answer may still be carried out, and when all tries end.
        let (mut open_until, mut end) = (Duration::ZERO, None);
        let mut pause = PAUSE;
        let mut perhaps_done = false;
        let (mut refusals, mut clocks_asked) = (0, 0);
        loop {
            let link = self.links.current();
            if is_change && self.deadlines(limit).is_empty() {
                self.world.timeout(limit, self.learn_clock(&link, request.headers())).await;
            }
            let sent_at = waited();
            limit = limit.min(end.map_or(limit, |end: Duration| end.saturating_sub(sent_at)));
            if is_change {
                self.set_deadline(&mut request, limit);
            }
            let tried = self.world.timeout(limit, self.try_once(&link, request.clone())).await;
            let tried = tried.unwrap_or_else(|| {
                let reason = format!("it did not answer within {limit:?}");
                Tried::Lost { reason }
            });
            let (reason, asked) = match tried {
                Tried::Answered(bytes) => return Ok(bytes),
                Tried::Refused(error) => return Err(error),
                Tried::NotKnown { refused } => {
                    refusals += 1;
                    match self.links.look_again(&link) {
                        // Its token was renewed, or it was not found before.
                        Looked::Changed if refusals <= REFUSALS_MAX => continue,
                        // It answered just before it ended: the next one may be found.
                        Looked::Gone if refusals <= REFUSALS_MAX => {
                            ("it has just ended".to_owned(), None)
                        }
                        Looked::Changed | Looked::Gone | Looked::Same => return Err(refused),
                    }
                }
                Tried::ClockUnknown { refused } => {
                    clocks_asked += 1;
                    if clocks_asked > CLOCKS_MAX {
                        return Err(refused);
                    }
                    continue;
                }
                Tried::NotReached { reason, pause } => (reason, pause),
                Tried::Lost { reason } => {
                    perhaps_done = true;
                    open_until = sent_at + limit;
                    if is_act {
                        let again = HeaderName::from_static(wire::AGAIN);
                        request.headers_mut().insert(again, HeaderValue::from_static("true"));
                    }
                    (reason, None)
                }
            };
            self.links.use_newer(&link);
            let goes_on = match patience {
                Patience::Long(_) if self.was_reached.load(Ordering::Relaxed) => RECONNECT,
                // It was seen at its address, and ended since.
                Patience::Long(_) if link.is_to_known_server() => RECONNECT,
                Patience::Long(_) => FIRST_CONTACT,
                Patience::Wait(_) | Patience::Once(_) => Duration::ZERO,
            };
            let now = waited();
            if now + pause >= end.unwrap_or(goes_on) {
                // The caller must not be told that nothing is known while it may still be done: its
                // next request could come before this one.
                if !is_act || !perhaps_done || now >= open_until {
                    return Err(self.gave_up(reason, perhaps_done && is_act));
                }
                end = Some(open_until);
            }
            let pause_now = asked.unwrap_or_else(|| jittered(pause, self.world.random()));
            self.world.sleep(pause_now).await;
            if end.is_some_and(|end| waited() >= end) {
                return Err(self.gave_up(reason, true));
            }
            let longest = if link.is_to_known_server() { PAUSE_MAX_LOCAL } else { PAUSE_MAX };
            pause = (pause * 2).min(longest);
        }
    }

    /// The deadline of a request that is sent now and given up after this time, by each known clock.
    fn deadlines(&self, limit: Duration) -> Vec<ServerTime> {
        self.clocks.deadlines(self.world.clock().now_with_suspend(), limit)
    }

    /// Sets the deadline of a request that is sent now and given up after this time.
    fn set_deadline(&self, request: &mut Request<Full<Bytes>>, limit: Duration) {
        let deadlines = self.deadlines(limit);
        if let Ok(text) = HeaderValue::try_from(wire::deadlines_to_text(&deadlines)) {
            request.headers_mut().insert(HeaderName::from_static(wire::DEADLINE), text);
        }
    }

    /// Asks what the server's clock shows. If no answer comes, the request itself finds out why.
    async fn learn_clock(&self, link: &Link, headers: &HeaderMap) {
        let Ok(uri) = format!("{}{}", self.base, wire::TIME).parse() else { return };
        let mut request = Request::new(Full::new(Bytes::from_static(b"{}")));
        (*request.method_mut(), *request.uri_mut()) = (Method::POST, uri);
        *request.headers_mut() = headers.clone();
        self.try_once(link, request).await;
    }

    async fn try_once(&self, link: &Link, request: Request<Full<Bytes>>) -> Tried {
        let response = match link.send(request).await {
            Ok(response) => response,
            // To try again changes nothing about how the two sides encrypt.
            Err(SendError::NoRuntime(error)) => {
                let reason = format!("no thread can be started: {error}");
                return Tried::NotReached { reason, pause: None };
            }
            Err(SendError::Request(error)) if innermost(&error).is::<rustls::Error>() => {
                return Tried::Refused(self.gave_up(reason_of(&error), false));
            }
            Err(SendError::Request(error)) if error.is_connect() => {
                return Tried::NotReached { reason: reason_of(&error), pause: None };
            }
            Err(SendError::Request(error)) => return lost(&error),
        };
        self.was_reached.store(true, Ordering::Relaxed);
        let (parts, body) = response.into_parts();
        let clock = parts.headers.get(wire::CLOCK).and_then(|value| value.to_str().ok());
        if let Some(time) = clock.and_then(|text| text.parse().ok()) {
            self.clocks.learn(time, self.world.clock().now_with_suspend());
        }
        let asked = parts.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let asked = asked.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        match (parts.status, body) {
            (_, Err(error)) => lost(&error),
            (StatusCode::OK, Ok(bytes)) => Tried::Answered(bytes),
            (status, Ok(bytes)) => self.refused(status, &bytes, asked),
        }
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
            // Nothing was done yet; proxies answer so too.
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::REQUEST_TIMEOUT => Tried::NotReached { reason, pause: asked },
            StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => Tried::Lost { reason },
            StatusCode::PRECONDITION_REQUIRED => {
                Tried::ClockUnknown { refused: self.not_let_in(reason, None) }
            }
            StatusCode::UNAUTHORIZED => Tried::NotKnown { refused: self.not_let_in(reason, None) },
            StatusCode::FORBIDDEN | StatusCode::MISDIRECTED_REQUEST => {
                Tried::Refused(self.not_let_in(reason, problem["hint"].as_str()))
            }
            _ => Tried::Refused(StoreError::Unsupported {
                what: format!("the server at {} refused: {reason}", self.name),
                instead: "Use the same version of tenure on both sides.".to_owned(),
            }),
        }
    }

    fn not_let_in(&self, reason: String, hint: Option<&str>) -> StoreError {
        let (store, hint) = (self.name.clone(), hint.map(str::to_owned));
        StoreError::Refused { store, reason, hint }
    }

    fn gave_up(&self, reason: String, perhaps_done: bool) -> StoreError {
        let store = self.name.clone();
        if perhaps_done {
            return StoreError::Unknown { store, reason };
        }
        let hint = match self.was_reached.load(Ordering::Relaxed) {
            true => "The server answered before; is it being restarted?",
            false => "Is a tenure server running there?",
        };
        StoreError::Unavailable { store, reason, hint: Some(hint.to_owned()) }
    }
}

fn headers(options: &RemoteOptions) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let json = HeaderValue::from_static("application/json");
    headers.insert(CONTENT_TYPE, json);
    let version = HeaderValue::from_static(wire::PROTOCOL_VERSION);
    headers.insert(HeaderName::from_static(wire::PROTOCOL), version);
    if let Some(label) = &options.label
        && let Ok(value) = HeaderValue::from_bytes(label.as_bytes())
    {
        headers.insert(HeaderName::from_static(wire::LABEL), value);
    }
    headers
}

/// A request after which the connection failed.
fn lost(error: &(dyn std::error::Error + 'static)) -> Tried {
    Tried::Lost { reason: reason_of(error) }
}

/// The innermost error: the outer ones only say that a request failed.
fn innermost<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> &'a (dyn std::error::Error + 'static) {
    let mut innermost = error;
    while let Some(inside) = inside(innermost) {
        innermost = inside;
    }
    innermost
}

fn reason_of(error: &(dyn std::error::Error + 'static)) -> String {
    let innermost = innermost(error);
    match innermost.downcast_ref() {
        Some(rustls::Error::InvalidMessage(_)) => "it does not speak TLS; use http://".to_owned(),
        Some(rustls::Error::InvalidCertificate(why)) => certificate_refused(why),
        _ => innermost.to_string(),
    }
}

fn inside<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a (dyn std::error::Error + 'static)> {
    // Such an error speaks for the one that it has, and names only that one's source.
    match error.downcast_ref().and_then(std::io::Error::get_ref) {
        Some(inside) => Some(inside),
        None => error.source(),
    }
}

fn certificate_refused(why: &rustls::CertificateError) -> String {
    let words = match why {
        // Said by the library for one that may sign others, as `openssl req -x509` makes them.
        rustls::CertificateError::Other(other) if other.to_string().contains("CaUsedAsEnd") => {
            "it is a CA certificate; create one with basicConstraints=CA:FALSE".to_owned()
        }
        rustls::CertificateError::UnknownIssuer
        | rustls::CertificateError::BadSignature
        | rustls::CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "its issuer is unknown; name the CA file with TENURE_SERVER_CA_FILE".to_owned()
        }
        why => why.to_string(),
    };
    format!("its certificate is not accepted: {words}")
}

/// Half of the pause and up to as much again, so that many clients that lost the server do not all
/// come back at once.
fn jittered(pause: Duration, random: u128) -> Duration {
    pause / 2 + pause.mul_f64(f64::from(random as u32) / f64::from(u32::MAX))
}
