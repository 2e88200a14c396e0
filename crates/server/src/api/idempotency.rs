//! A request that is sent twice with one `Idempotency-Key` is done once, and both get one answer.
//!
//! Answers are kept in memory for ten minutes, as many as fit. A request that carries a key goes on
//! when its connection breaks, and a caller that sends it again gets its answer.

use super::input::{unread, usage};
use crate::caller::Caller;
use crate::problem::Problem;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How long an answer is kept: longer than any client tries again.
const KEPT_FOR: Duration = Duration::from_secs(600);

/// How many answers are kept at most.
const KEPT_MAX: usize = 10_000;

/// How much the bodies of all kept answers take at most.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The longest key.
const KEY_MAX: usize = 255;

/// The key that a request carries.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let mut keys = headers.get_all("idempotency-key").iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let text = key.to_str().ok().filter(|text| {
        (1..=KEY_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    });
    match (text, keys.next()) {
        (Some(text), None) => Ok(Some(text)),
        _ => Err(usage(format!(
            "an Idempotency-Key is one text of 1 to {KEY_MAX} visible ASCII characters"
        ))),
    }
}

/// An answer that can be given again.
#[derive(Clone)]
struct Answer {
    status: StatusCode,
    kind: Option<HeaderValue>,
    body: Bytes,
}

/// What is known of a request with a key.
struct Entry {
    /// Tells it from another request with the same key.
    fingerprint: [u8; 32],
    /// Its answer, once it is there.
    answer: watch::Receiver<Option<Answer>>,
    since: Instant,
    bytes: usize,
}

/// Whose key.
type Name = (Option<String>, String);

#[derive(Default)]
struct Kept {
    entries: HashMap<Name, Entry>,
    /// Oldest first.
    order: VecDeque<Name>,
    bytes: usize,
}

/// The requests of the last minutes that carried a key. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Repeats {
    kept: Arc<Mutex<Kept>>,
}

/// What to do with a request.
enum Turn {
    /// It is the first.
    First(watch::Sender<Option<Answer>>),
    /// It was sent before.
    Again(watch::Receiver<Option<Answer>>),
    /// The key was used for another.
    Other,
    /// There is no room to remember it.
    Full,
}

impl Repeats {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock()
    }

    fn turn(&self, name: &Name, fingerprint: [u8; 32], now: Instant) -> Turn {
        let mut kept = self.lock();
        kept.forget_old(now);
        if let Some(entry) = kept.entries.get(name) {
            return match entry.fingerprint == fingerprint {
                true => Turn::Again(entry.answer.clone()),
                false => Turn::Other,
            };
        }
        if !kept.make_room() {
            return Turn::Full;
        }
        let (sender, answer) = watch::channel(None);
        let entry = Entry { fingerprint, answer, since: now, bytes: 0 };
        kept.entries.insert(name.clone(), entry);
        kept.order.push_back(name.clone());
        Turn::First(sender)
    }

    fn keep(&self, name: &Name, bytes: usize) {
        let mut kept = self.lock();
        if let Some(entry) = kept.entries.get_mut(name) {
            entry.bytes = bytes;
            kept.bytes += bytes;
        }
    }

    fn forget(&self, name: &Name) {
        self.lock().remove(name);
    }
}

impl Kept {
    fn remove(&mut self, name: &Name) {
        if let Some(entry) = self.entries.remove(name) {
            self.bytes -= entry.bytes;
            self.order.retain(|other| other != name);
        }
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some(name) = self.order.front().cloned() {
            let is_old = |entry: &Entry| {
                now.duration_since(entry.since) >= KEPT_FOR && entry.answer.borrow().is_some()
            };
            if !self.entries.get(&name).is_none_or(is_old) {
                return;
            }
            self.remove(&name);
        }
    }

    /// Forgets the oldest answers until there is room for one more.
    fn make_room(&mut self) -> bool {
        while self.entries.len() >= KEPT_MAX || self.bytes >= KEPT_BYTES_MAX {
            let has_answer =
                |name: &&Name| self.entries.get(*name).is_some_and(|e| e.answer.borrow().is_some());
            let Some(oldest) = self.order.iter().find(has_answer).cloned() else { return false };
            self.remove(&oldest);
        }
        true
    }
}

/// Lets a request through, unless the same one was let through before.
pub(super) async fn once(
    State(repeats): State<Repeats>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let key = match changes {
        true => key(request.headers())?.map(str::to_owned),
        false => None,
    };
    let Some(key) = key else { return Ok(next.run(request).await) };
    let caller = request.extensions().get::<Caller>().and_then(|caller| caller.name.clone());
    let (request, fingerprint) = fingerprint(request).await?;
    let name = (caller, key);
    let mut request = Some(request);
    loop {
        match repeats.turn(&name, fingerprint, Instant::now()) {
            Turn::Other => return Err(reused()),
            Turn::Full => return Err(full()),
            Turn::First(sender) => {
                let Some(request) = request.take() else { return Err(full()) };
                return Ok(run(repeats, name, sender, request, next).await);
            }
            Turn::Again(mut answer) => {
                // Without an answer the first one failed, and this one is the first now.
                let answered = answer.wait_for(Option::is_some).await;
                if let Ok(answer) = answered.map(|answer| answer.clone()) {
                    return Ok(answer.map_or_else(|| full().into_response(), Answer::replay));
                }
            }
        }
    }
}

fn reused() -> Problem {
    let message = "this Idempotency-Key was used for another request";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "IDEMPOTENCY_KEY_REUSED", message)
        .hint("Use a new key for each new request.")
}

fn full() -> Problem {
    let message = "too many requests with keys are in progress";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "BUSY", message).hint("Retry in a moment.")
}

/// Reads the request whole, and makes a number of it that no other has.
async fn fingerprint(request: Request) -> Result<(Request, [u8; 32]), Problem> {
    let (parts, body) = request.into_parts();
    // The handler is given the same parts: only the body is read here, within the same limits.
    let request = Request::from_parts(parts.clone(), body);
    let body = Bytes::from_request(request, &()).await.map_err(unread)?;
    let mut hash = Sha256::new();
    for part in [parts.method.as_str(), &parts.uri.to_string()] {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    hash.update(&body);
    let fingerprint = hash.finalize().into();
    Ok((Request::from_parts(parts, Body::from(body)), fingerprint))
}

/// Handles the request in a task of its own, which goes on if the caller has gone.
async fn run(
    repeats: Repeats,
    name: Name,
    sender: watch::Sender<Option<Answer>>,
    request: Request,
    next: Next,
) -> Response {
    let done = tokio::spawn(async move {
        let mut forget = Forget { repeats: &repeats, name: &name, armed: true };
        let response = next.run(request).await;
        let (parts, body) = response.into_parts();
        let Ok(body) = body.collect().await else { return full().into_response() };
        let body = body.to_bytes();
        if !parts.status.is_server_error() {
            forget.armed = false;
            repeats.keep(&name, body.len());
            let kind = parts.headers.get(header::CONTENT_TYPE).cloned();
            sender.send_replace(Some(Answer { status: parts.status, kind, body: body.clone() }));
        }
        Response::from_parts(parts, Body::from(body))
    });
    done.await.unwrap_or_else(|_| {
        let message = "the server failed; whether the request took effect is unknown";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", message).into_response()
    })
}

/// Forgets a request that came to no answer worth keeping, however it ended.
struct Forget<'a> {
    repeats: &'a Repeats,
    name: &'a Name,
    armed: bool,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.repeats.forget(self.name);
        }
    }
}

impl Answer {
    fn replay(self) -> Response {
        let mut response = (self.status, self.body).into_response();
        let headers = response.headers_mut();
        headers.remove(header::CONTENT_TYPE);
        headers.extend(self.kind.map(|kind| (header::CONTENT_TYPE, kind)));
        headers.insert("idempotency-replayed", HeaderValue::from_static("true"));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(key: usize) -> Name {
        (None, key.to_string())
    }

    fn answer(sender: &watch::Sender<Option<Answer>>) {
        let body = Bytes::from_static(b"x");
        sender.send_replace(Some(Answer { status: StatusCode::OK, kind: None, body }));
    }

    #[tokio::test]
    async fn what_is_kept_is_bounded_and_the_oldest_answers_go_first() {
        let repeats = Repeats::default();
        let now = Instant::now();
        let Turn::First(running) = repeats.turn(&name(0), [0; 32], now) else { panic!() };
        for key in 1..=KEPT_MAX {
            let Turn::First(sender) = repeats.turn(&name(key), [0; 32], now) else { panic!() };
            answer(&sender);
            repeats.keep(&name(key), 1);
        }
        assert_eq!(repeats.lock().entries.len(), KEPT_MAX);
        assert_eq!(repeats.lock().bytes, KEPT_MAX - 1);
        assert!(matches!(repeats.turn(&name(0), [0; 32], now), Turn::Again(_)), "it still runs");
        assert!(matches!(repeats.turn(&name(KEPT_MAX), [0; 32], now), Turn::Again(_)));
        assert!(matches!(repeats.turn(&name(1), [0; 32], now), Turn::First(_)), "the oldest went");
        drop(running);
    }

    #[tokio::test]
    async fn an_answer_is_kept_for_a_while() {
        let repeats = Repeats::default();
        let now = Instant::now();
        let Turn::First(sender) = repeats.turn(&name(1), [0; 32], now) else { panic!() };
        answer(&sender);
        let soon = now + KEPT_FOR - Duration::from_millis(1);
        assert!(matches!(repeats.turn(&name(1), [0; 32], soon), Turn::Again(_)));
        assert!(matches!(repeats.turn(&name(1), [1; 32], soon), Turn::Other));
        assert!(matches!(repeats.turn(&name(1), [1; 32], now + KEPT_FOR), Turn::First(_)));
    }

    #[tokio::test]
    async fn bytes_are_bounded_too() {
        let repeats = Repeats::default();
        for key in 0..3 {
            let Turn::First(sender) = repeats.turn(&name(key), [0; 32], Instant::now()) else {
                panic!()
            };
            answer(&sender);
            repeats.keep(&name(key), KEPT_BYTES_MAX / 2);
        }
        assert!(matches!(repeats.turn(&name(3), [0; 32], Instant::now()), Turn::First(_)));
        assert!(repeats.lock().bytes < KEPT_BYTES_MAX);
        assert!(matches!(repeats.turn(&name(2), [0; 32], Instant::now()), Turn::Again(_)));
    }
}
