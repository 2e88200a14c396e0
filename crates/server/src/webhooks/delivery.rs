//! Sends messages to one receiver, one after the other, until each is accepted or given up.

use super::WebhookUrl;
use super::message::Message;
use super::queue::Queue;
use super::signature::WebhookSecret;
use crate::log::LOG;
use crate::metrics::Metrics;
use crate::outgoing::{self, OutgoingClient};
use axum::body::Bytes;
use axum::http::{Request, StatusCode, header};
use http_body_util::Full;
use std::sync::Arc;
use std::time::Duration;
use tenure::world::{Clock, SystemClock};
use tokio::time::{sleep, timeout};

/// How long a receiver may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pauses between tries: the first, and the longest.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// How often a message is sent before it is given up: for about eight minutes.
const TRIES_MAX: u32 = 15;

/// One receiver.
pub(super) struct Receiver {
    url: WebhookUrl,
    secret: Arc<WebhookSecret>,
    metrics: Arc<Metrics>,
    client: OutgoingClient,
}

/// What came of one try.
enum Tried {
    Accepted,
    /// It may be accepted later.
    Later(String),
    /// The receiver does not want it.
    Refused(StatusCode),
}

impl Receiver {
    pub(super) fn new(
        url: WebhookUrl,
        secret: Arc<WebhookSecret>,
        metrics: Arc<Metrics>,
    ) -> Result<Receiver, rustls::Error> {
        let client = outgoing::client()?;
        Ok(Receiver { url, secret, metrics, client })
    }

    /// Delivers what is in the queue, for ever.
    pub(super) async fn deliver(self, queue: Arc<Queue>) {
        loop {
            let message = queue.next().await;
            self.deliver_one(&message).await;
        }
    }

    async fn deliver_one(&self, message: &Message) {
        let mut pause = PAUSE;
        let mut last = String::new();
        for _ in 0..TRIES_MAX {
            match self.try_once(message).await {
                Tried::Accepted => return self.metrics.webhook("delivered"),
                Tried::Refused(status) => {
                    last = format!("it answered {status}");
                    break;
                }
                Tried::Later(why) => last = why,
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
        self.metrics.webhook("failed");
        tracing::warn!(target: LOG, receiver = %self.url, id = %message.id, why = %last, "Gave up a webhook message");
    }

    async fn try_once(&self, message: &Message) -> Tried {
        let seconds = SystemClock.wall().0.div_euclid(1000);
        let request = Request::post(self.url.0.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, concat!("tenure/", env!("CARGO_PKG_VERSION")))
            .header("webhook-id", &message.id)
            .header("webhook-timestamp", seconds)
            .header("webhook-signature", self.secret.sign(&message.id, seconds, &message.body))
            .body(Full::new(Bytes::from(message.body.clone())));
        let Ok(request) = request else { return Tried::Refused(StatusCode::BAD_REQUEST) };
        // Redirects are not followed: the operator said where to.
        match timeout(PATIENCE, self.client.request(request)).await {
            Err(_) => Tried::Later(format!("it did not answer within {PATIENCE:?}")),
            Ok(Err(error)) => Tried::Later(
                if error.is_connect() { "cannot connect" } else { "the connection broke" }
                    .to_owned(),
            ),
            Ok(Ok(response)) => match response.status() {
                status if status.is_success() => Tried::Accepted,
                status if status.is_server_error() => Tried::Later(format!("it answered {status}")),
                status @ (StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS) => {
                    Tried::Later(format!("it answered {status}"))
                }
                status => Tried::Refused(status),
            },
        }
    }
}
