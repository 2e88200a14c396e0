//! The same client for programs without an async runtime.
//!
//! Each call blocks its thread. Not to be used from inside an async runtime.

use crate::client::{
    self, Attempt as AsyncAttempt, Busy, IntoResource, Lease, ReleaseOutcome, Request, Wait,
};
use crate::error::Error;
use crate::store::StoreError;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{GrantId, Token};
use tokio::runtime::Runtime;

/// What threads that still write are given to end. One may wait for its turn behind a process that
/// is stopped, which must not keep this one from ending.
const LAST_THREADS: Duration = Duration::from_secs(1);

/// A runtime that does not wait for its threads for ever when it is dropped.
struct RuntimeHandle {
    runtime: Option<Runtime>,
}

impl RuntimeHandle {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.as_ref().expect("it is taken only on drop").block_on(future)
    }
}

impl Drop for RuntimeHandle {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(LAST_THREADS);
        }
    }
}

/// A client whose calls block.
#[derive(Clone)]
pub struct Client {
    client: client::Client,
    runtime: Arc<RuntimeHandle>,
}

/// A hold that lasts as long as the value; see [`crate::Guard`]. Dropping it releases before it
/// returns.
#[must_use = "dropping a guard releases what it holds"]
pub struct Guard {
    guard: Option<client::Guard>,
    runtime: Arc<RuntimeHandle>,
}

/// What came of a request.
#[must_use = "dropping a guard releases what it holds"]
pub enum Attempt {
    /// It is held as long as the guard lives.
    Held(Guard),
    /// It was not free, or did not become free in time.
    Busy(Busy),
}

impl Client {
    /// Opens the store that the URL names.
    pub fn open(url: &str) -> Result<Client, Error> {
        Client::open_with(client::Client::builder(), url)
    }

    /// Opens the store that the URL names, with these settings.
    pub fn open_with(builder: client::ClientBuilder, url: &str) -> Result<Client, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| StoreError::Unavailable {
            store: url.to_owned(),
            reason: format!("no runtime can be started: {error}"),
            hint: None,
        })?;
        let runtime = Arc::new(RuntimeHandle { runtime: Some(runtime) });
        let client = runtime.block_on(builder.open(url))?;
        Ok(Client { client, runtime })
    }

    /// The async client, for verbs that this one does not have; see [`Client::run`].
    pub fn asynchronous(&self) -> &client::Client {
        &self.client
    }

    /// Blocks until this future is done.
    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Holds the resource alone, waiting for as long as it takes.
    pub fn acquire(&self, resource: impl IntoResource) -> Result<Guard, Error> {
        let guard = self.run(self.client.acquire(resource))?;
        Ok(Guard { guard: Some(guard), runtime: self.runtime.clone() })
    }

    /// Holds the resource alone if it is free now.
    pub fn try_acquire(&self, resource: impl IntoResource) -> Result<Attempt, Error> {
        self.hold(self.client.request(resource).wait(Wait::No))
    }

    /// Holds the resource alone, waiting up to a limit.
    pub fn acquire_within(
        &self,
        resource: impl IntoResource,
        limit: Duration,
    ) -> Result<Attempt, Error> {
        self.hold(self.client.request(resource).wait(Wait::UpTo(limit)))
    }

    /// Begins a request, to be given to [`Client::hold`].
    pub fn request(&self, resource: impl IntoResource) -> Request {
        self.client.request(resource)
    }

    /// Takes what the request asks for.
    pub fn hold(&self, request: Request) -> Result<Attempt, Error> {
        Ok(match self.run(request.hold())? {
            AsyncAttempt::Busy(busy) => Attempt::Busy(busy),
            AsyncAttempt::Held(guard) => {
                Attempt::Held(Guard { guard: Some(guard), runtime: self.runtime.clone() })
            }
        })
    }
}

impl Guard {
    fn inner(&self) -> &client::Guard {
        self.guard.as_ref().expect("the guard is taken only when it is released or dropped")
    }

    /// What was obtained.
    pub fn lease(&self) -> &Lease {
        self.inner().lease()
    }

    /// The fencing token.
    pub fn token(&self) -> Token {
        self.inner().token()
    }

    /// The grant, which proves ownership.
    pub fn grant(&self) -> GrantId {
        self.inner().grant()
    }

    /// Whether the lease may be trusted now.
    pub fn is_held(&self) -> bool {
        self.inner().is_held()
    }

    /// Blocks until the lease is lost.
    pub fn lost(&self) {
        self.runtime.block_on(self.inner().lost());
    }

    /// Gives it back now, and says whether it was held until now.
    pub fn release(mut self) -> Result<ReleaseOutcome, Error> {
        let guard = self.guard.take().expect("the guard is taken only here and on drop");
        self.runtime.block_on(guard.release())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(guard) = self.guard.take() {
            // Released now if possible; if the store fails, the lease runs out by itself.
            let _ = self.runtime.block_on(guard.release());
        }
    }
}
