//! Webhooks: tells other programs, such as a chat, of events as they happen.
//!
//! A loop follows the store's events (`follow`), puts those that are asked for into a queue of bounded
//! length for each receiver (`queue`), and another sends them one after the other, signed (`signature`)
//! and repeated until they are accepted or given up (`delivery`). The store never waits for a receiver.
//!
//! An event is delivered at least once while the server runs. What happens while no server runs is not
//! delivered: the first message after a start says from where on it tells.

mod delivery;
mod message;
mod queue;
mod signature;

pub use message::{EventSelection, UnknownEvent};
pub use signature::{SecretError, WebhookSecret};

use crate::app::App;
use crate::log::LOG;
use delivery::Receiver;
use hyper::Uri;
use message::Message;
use queue::Queue;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::Revision;
use tokio::task::JoinSet;

/// How many events are read at once.
const PAGE: u32 = 500;

/// The longest wait for a change.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause after a store error.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// Where events are sent, and which.
pub struct Webhooks {
    /// The receivers.
    pub urls: Vec<WebhookUrl>,
    /// The events that are sent.
    pub events: EventSelection,
    /// What messages are signed with.
    pub secret: WebhookSecret,
}

/// The address of a receiver. It may contain a secret, so it is not shown whole.
#[derive(Clone)]
pub struct WebhookUrl(Uri);

/// Why an address cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WebhookUrlError {
    /// It is no address.
    #[error("it is not a URL")]
    NotAUrl,
    /// Only HTTP is spoken.
    #[error("it must begin with https:// or http://")]
    Scheme,
    /// Credentials belong elsewhere.
    #[error("it must not contain a user name or password")]
    Credentials,
}

impl WebhookUrl {
    /// Reads an address.
    pub fn parse(text: &str) -> Result<WebhookUrl, WebhookUrlError> {
        let uri: Uri = text.parse().map_err(|_| WebhookUrlError::NotAUrl)?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(WebhookUrlError::Scheme);
        }
        match uri.authority() {
            None => Err(WebhookUrlError::NotAUrl),
            Some(authority) if authority.as_str().contains('@') => {
                Err(WebhookUrlError::Credentials)
            }
            Some(_) => Ok(WebhookUrl(uri)),
        }
    }
}

/// Scheme, host and port only.
impl fmt::Display for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.0.authority().map_or("", |authority| authority.as_str());
        write!(f, "{}://{authority}", self.0.scheme_str().unwrap_or_default())
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookUrl({self})")
    }
}

/// Delivers until the result is dropped.
pub(crate) fn start(app: &App, webhooks: Webhooks) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let secret = Arc::new(webhooks.secret);
    let mut queues = Vec::new();
    for url in webhooks.urls {
        let queue = Arc::new(Queue::default());
        queues.push(queue.clone());
        match Receiver::new(url, secret.clone(), app.metrics.clone()) {
            Ok(receiver) => drop(tasks.spawn(receiver.deliver(queue))),
            Err(error) => tracing::warn!(target: LOG, %error, "Cannot send webhooks"),
        }
    }
    tasks.spawn(follow(app.clone(), webhooks.events, queues));
    tasks
}

/// Puts the events that are asked for into all queues.
async fn follow(app: App, selection: EventSelection, queues: Vec<Arc<Queue>>) {
    let client = app.client.clone();
    let mut revision = loop {
        match client.changed(Revision::default(), Duration::ZERO).await {
            Ok(revision) => break revision,
            Err(_) => tokio::time::sleep(AFTER_ERROR).await,
        }
    };
    let push = |message: Message| {
        queues.iter().for_each(|queue| queue.push(message.clone(), &app.metrics))
    };
    push(Message::started(revision));
    loop {
        let next = async {
            let changed = client.changed(revision, PATIENCE).await?;
            let events = client.events(revision, PAGE).await?;
            let lacks = changed > revision && client.may_lack_events_after(revision).await?;
            Ok::<_, tenure::Error>((changed, events, lacks))
        };
        match next.await {
            Ok((changed, events, lacks)) => {
                if lacks {
                    push(Message::gap(revision));
                }
                let told = events.iter().filter(|event| selection.has(event));
                told.for_each(|event| push(Message::of(event)));
                revision = events.last().map_or(changed, |event| event.revision);
            }
            // The metrics of store calls count the error.
            Err(_) => tokio::time::sleep(AFTER_ERROR).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_http_and_is_shown_without_its_path() {
        let url = WebhookUrl::parse("https://hooks.example:8443/services/SECRET?x=SECRET").unwrap();
        assert_eq!(format!("{url} {url:?}").matches("SECRET").count(), 0);
        assert_eq!(url.to_string(), "https://hooks.example:8443");
        for (text, error) in [
            ("", WebhookUrlError::NotAUrl),
            ("hooks.example", WebhookUrlError::Scheme),
            ("ftp://hooks.example/", WebhookUrlError::Scheme),
            ("/path", WebhookUrlError::Scheme),
            ("https://user:pass@hooks.example/", WebhookUrlError::Credentials),
        ] {
            assert_eq!(WebhookUrl::parse(text).err(), Some(error), "{text}");
        }
    }
}
