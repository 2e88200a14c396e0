//! The same client for programs without an async runtime.
//!
//! Each call blocks its thread. Not to be used from inside an async runtime.
//!
//! A client can be used on after `fork`: see [`crate::Client`].

use crate::client::{
    self, Attempt as AsyncAttempt, Busy, ClaimRequest, IntoResource, Lease, Next, ReleaseOutcome,
    Request, Wait, Work,
};
use crate::error::Error;
use crate::platform::fork::between_forks;
use crate::store::{StoreError, TaskFilter};
use crate::world::{PerProcess, own_thread};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::rules::tasks::{Added, Finish, Finished, NewTask};
use tenure_core::{GrantId, Task, TaskId, Token};
use tokio::runtime::Runtime;

/// What threads that still write are given to end. One may wait for its turn behind a process that
/// is stopped, which must not keep this one from ending.
const LAST_THREADS: Duration = Duration::from_secs(1);

/// The runtime on which calls block; a process forked from this one makes its own.
#[derive(Default)]
struct RuntimeHandle {
    here: PerProcess<BoundedRuntime>,
}

impl RuntimeHandle {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let runtime = self.here.get_or_init(|| {
            let runtime = BoundedRuntime::start();
            runtime.expect("a process that could start one runtime can start another")
        });
        let runtime = runtime.0.as_ref().expect("it is taken only on drop");
        own_thread::block(|| runtime.block_on(between_forks(future)))
    }
}

/// A runtime that does not wait for its threads for ever when it is dropped.
struct BoundedRuntime(Option<Runtime>);

impl BoundedRuntime {
    fn start() -> io::Result<BoundedRuntime> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(BoundedRuntime(Some(runtime)))
    }
}

impl Drop for BoundedRuntime {
    fn drop(&mut self) {
        let Some(runtime) = self.0.take() else { return };
        match tokio::runtime::Handle::try_current() {
            // The last handle of a client may go inside another runtime, which must not be blocked.
            Ok(_) => runtime.shutdown_background(),
            Err(_) => runtime.shutdown_timeout(LAST_THREADS),
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
        let runtime = start_runtime(url)?;
        let client = runtime.block_on(builder.open(url))?;
        Ok(Client { client, runtime })
    }

    /// Opens the store that the command would use here; see
    /// [`Client::discover`](crate::Client::discover).
    #[cfg(feature = "discover")]
    pub fn discover() -> Result<Client, crate::locate::DiscoverError> {
        let runtime = start_runtime("the current folder").map_err(Error::from)?;
        let client = runtime.block_on(client::Client::discover())?;
        Ok(Client { client, runtime })
    }

    /// Opens the store that the command would use in this folder, or in the current one, with these
    /// settings.
    #[cfg(feature = "discover")]
    pub fn discover_with(
        builder: client::ClientBuilder,
        folder: Option<&std::path::Path>,
    ) -> Result<Client, crate::locate::DiscoverError> {
        let runtime = start_runtime("this folder").map_err(Error::from)?;
        let client = match folder {
            Some(folder) => runtime.block_on(builder.discover_in(folder.to_owned())),
            None => runtime.block_on(builder.discover()),
        };
        Ok(Client { client: client?, runtime })
    }

    /// A client of the same store under a new made-up label; see
    /// [`Client::with_made_up_label`](crate::Client::with_made_up_label).
    pub fn with_made_up_label(&self) -> Client {
        Client { client: self.client.with_made_up_label(), runtime: self.runtime.clone() }
    }

    /// The verbs of tasks.
    pub fn tasks(&self) -> Tasks {
        Tasks { tasks: self.client.tasks(), runtime: self.runtime.clone() }
    }

    /// A worker that takes tasks as the request says.
    pub fn runner(&self, request: ClaimRequest) -> Runner {
        let runner = client::Runner::new(&self.client, request);
        Runner { runner, runtime: self.runtime.clone() }
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

fn start_runtime(store: &str) -> Result<Arc<RuntimeHandle>, StoreError> {
    let runtime = BoundedRuntime::start().map_err(|error| StoreError::Unavailable {
        store: store.to_owned(),
        reason: format!("no runtime can be started: {error}"),
        hint: None,
    })?;
    let handle = RuntimeHandle::default();
    handle.here.get_or_init(|| runtime);
    Ok(Arc::new(handle))
}

/// The verbs of tasks, as calls that block; see [`crate::Tasks`] for what each does.
#[derive(Clone)]
pub struct Tasks {
    tasks: client::Tasks,
    runtime: Arc<RuntimeHandle>,
}

impl Tasks {
    /// Adds tasks, all or none.
    pub fn add(&self, tasks: Vec<NewTask>) -> Result<Vec<Added>, Error> {
        self.runtime.block_on(self.tasks.add(tasks))
    }

    /// Tasks, oldest first.
    pub fn list(&self, filter: &TaskFilter) -> Result<Vec<Task>, Error> {
        self.runtime.block_on(self.tasks.list(filter))
    }

    /// The task with this id.
    pub fn get(&self, id: &TaskId) -> Result<Option<Task>, Error> {
        self.runtime.block_on(self.tasks.get(id))
    }

    /// The task that a person means: by id, by a unique beginning of it, or by its exact title.
    pub fn find(&self, text: &str) -> Result<Task, Error> {
        self.runtime.block_on(self.tasks.find(text))
    }
}

/// A worker that takes one task after another; see [`crate::Runner`]. Claims are renewed in the
/// background while the caller works.
pub struct Runner {
    runner: client::Runner,
    runtime: Arc<RuntimeHandle>,
}

impl Runner {
    /// Takes the next task, waiting for one if told to.
    pub fn next(&self, wait: Wait) -> Result<Next, Error> {
        self.runtime.block_on(self.runner.next(wait))
    }

    /// Says how the work ended. If the store fails, the task is handed back.
    pub fn finish(&self, work: Work, finish: Finish) -> Result<Finished, Error> {
        self.runtime.block_on(self.runner.finish(work, finish))
    }

    /// Works on one task after another until none is handed out, and says how many there were.
    pub fn work(&self, wait: Wait, mut work: impl FnMut(&Work) -> Finish) -> Result<u64, Error> {
        let mut done = 0;
        while let Next::Work(task) = self.next(wait)? {
            let finish = work(&task);
            self.finish(task, finish)?;
            done += 1;
        }
        self.leave()?;
        Ok(done)
    }

    /// Gives up the section that the worker keeps.
    pub fn leave(&self) -> Result<(), Error> {
        self.runtime.block_on(self.runner.leave())
    }
}

impl Attempt {
    /// The guard, or what was in the way as an error.
    pub fn into_result(self) -> Result<Guard, Busy> {
        match self {
            Attempt::Held(guard) => Ok(guard),
            Attempt::Busy(busy) => Err(busy),
        }
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
