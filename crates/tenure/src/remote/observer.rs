//! Observing the requests that a client sends to a server, so that a program can trace them.

use crate::store::StoreError;
use std::fmt;
use std::sync::Arc;

/// Observes requests. It is called for each request to a server, and must not block.
pub trait RequestObserver: Send + Sync {
    /// A request to this path begins. The request has ended when the result is dropped.
    fn begin(&self, path: &str) -> Box<dyn ObservedRequest>;
}

/// A request that is observed until it is dropped.
pub trait ObservedRequest: Send + Sync {
    /// What is sent to the server as `traceparent`, as W3C Trace Context defines it.
    fn traceparent(&self) -> Option<String>;

    /// The request failed.
    fn failed(&self, error: &StoreError);
}

/// The observer of a client; none unless it is given one.
#[derive(Clone, Default)]
pub struct Observer(Option<Arc<dyn RequestObserver>>);

impl Observer {
    /// This observer.
    pub fn new(observer: Arc<dyn RequestObserver>) -> Observer {
        Observer(Some(observer))
    }

    pub(super) fn begin(&self, path: &str) -> Option<Box<dyn ObservedRequest>> {
        self.0.as_ref().map(|observer| observer.begin(path))
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Observer(..)" } else { "Observer(none)" })
    }
}
