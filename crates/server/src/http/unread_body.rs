//! Notes whether a request's body was read to its end.
//!
//! After a response to a request whose body was not read, the connection cannot be used again: the rest of
//! the body would be taken for the next request. The response then says that the connection closes.

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderValue, Version, header};
use axum::response::Response;
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// Whether the body of a request was read to its end.
pub(super) struct BodyWatch {
    is_read: Arc<AtomicBool>,
    is_http_1: bool,
}

impl BodyWatch {
    /// Watches the body of a request.
    pub(super) fn of(request: Request) -> (Request, BodyWatch) {
        let is_http_1 = request.version() < Version::HTTP_2;
        let is_read = Arc::new(AtomicBool::new(request.body().is_end_stream()));
        let watch = BodyWatch { is_read: is_read.clone(), is_http_1 };
        (request.map(|body| Body::new(WatchedBody { body, is_read })), watch)
    }

    /// Lets the response say that the connection closes, if the body was not read.
    pub(super) fn complete(self, response: &mut Response) {
        if self.is_http_1 && !self.is_read.load(Ordering::Relaxed) {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

struct WatchedBody {
    body: Body,
    is_read: Arc<AtomicBool>,
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.is_read.store(true, Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
