//! What is held.

use crate::background::{Pending, start};
use crate::errors::Failure;
use crate::store::Handle;
use crate::tasks::Work;
use crate::waiting::{duration, wait};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure::blocking::Client;
use tenure::core::{Blocker, GrantId, HoldSnapshot};
use tenure::world::{Clock, SystemClock};
use tenure::{Attempt, Busy, ReleaseOutcome};

/// How often a thread that waits for the end of a hold looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// A hold that is renewed in the background until it is released or dropped.
#[pyclass(frozen, module = "tenure._native")]
pub(crate) struct Guard {
    handle: Handle,
    /// Taken when it is released.
    guard: Arc<Mutex<Option<Arc<tenure::Guard>>>>,
    #[pyo3(get)]
    token: u64,
    #[pyo3(get)]
    slots: Vec<u32>,
    #[pyo3(get)]
    resources: Vec<String>,
    #[pyo3(get)]
    waited: f64,
    /// Of each hold that ended for this one: the resource, its holder, and why it ended.
    #[pyo3(get)]
    took_over: Vec<(String, String, String)>,
}

/// A guard, or who is in the way as JSON.
#[derive(IntoPyObject)]
pub(crate) enum Answer {
    Held(Guard),
    Busy(String),
}

impl Answer {
    pub(crate) fn new(handle: Handle, attempt: Attempt) -> Answer {
        match attempt {
            Attempt::Held(guard) => Answer::Held(Guard::new(handle, guard)),
            Attempt::Busy(busy) => Answer::Busy(busy_json(&busy).to_string()),
        }
    }
}

impl Guard {
    pub(crate) fn new(handle: Handle, guard: tenure::Guard) -> Guard {
        let lease = guard.lease();
        Guard {
            token: lease.token.0,
            slots: lease.slots.clone(),
            resources: lease.resources.iter().map(ToString::to_string).collect(),
            waited: lease.waited.as_secs_f64(),
            took_over: lease
                .takeovers
                .iter()
                .map(|over| {
                    let from = &over.from.hold;
                    (from.want.resource.to_string(), from.holder.label.clone(), over.words())
                })
                .collect(),
            handle,
            guard: Arc::new(Mutex::new(Some(Arc::new(guard)))),
        }
    }

    fn guard(&self) -> MutexGuard<'_, Option<Arc<tenure::Guard>>> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The guard, until it is released.
    pub(crate) fn shared(&self) -> Option<Arc<tenure::Guard>> {
        self.guard().clone()
    }

    /// The client of this process.
    pub(crate) fn client(&self) -> Client {
        self.handle.client()
    }

    /// Renews it, and says whether it is still held by the store's word.
    fn confirming(&self) -> impl Future<Output = Result<bool, Failure>> + Send + use<> {
        let guard = self.shared();
        async move {
            match guard {
                Some(guard) => guard.confirm().await.map_err(Failure::from),
                None => Ok(false),
            }
        }
    }

    /// Returns when the lease is lost or released, or after a limit; says whether it is.
    fn ended(&self, limit: Option<f64>) -> impl Future<Output = bool> + Send + 'static {
        let guard = self.guard.clone();
        let is_held = move || {
            let guard = guard.lock().unwrap_or_else(PoisonError::into_inner);
            guard.as_ref().is_some_and(|guard| guard.is_held())
        };
        let clock = SystemClock;
        let end = limit.map_or(Duration::MAX, |limit| clock.now().saturating_add(duration(limit)));
        async move {
            // In short steps, so that a release by another thread is noticed.
            while is_held() {
                let left = end.saturating_sub(clock.now());
                if left.is_zero() {
                    return false;
                }
                tokio::time::sleep(left.min(LOOK_INTERVAL)).await;
            }
            true
        }
    }

    /// Takes the guard to release it, as soon as no other thread confirms it.
    fn take(&self, py: Python<'_>) -> PyResult<Option<tenure::Guard>> {
        let Some(mut shared) = self.guard().take() else { return Ok(None) };
        loop {
            match Arc::try_unwrap(shared) {
                Ok(guard) => return Ok(Some(guard)),
                Err(still_shared) => shared = still_shared,
            }
            py.detach(|| std::thread::sleep(Duration::from_millis(1)));
            // The store may not answer that thread. It is given back in the background then.
            py.check_signals()?;
        }
    }
}

#[pymethods]
impl Guard {
    /// Whether the lease may be trusted now.
    fn is_held(&self) -> bool {
        self.guard().as_ref().is_some_and(|guard| guard.is_held())
    }

    /// Whether it was released here.
    fn is_released(&self) -> bool {
        self.guard().is_none()
    }

    /// For how many seconds the lease may be trusted without a further renewal.
    fn trusted_for(&self) -> f64 {
        self.guard().as_ref().map_or(0.0, |guard| guard.trusted_for().as_secs_f64())
    }

    /// Renews now, and says whether it is still held by the store's word.
    fn confirm(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(wait(py, &self.client(), self.confirming())??)
    }

    /// The same for other threads than the caller's; see `Pending`.
    fn start_confirm(&self, py: Python<'_>, done: Py<PyAny>) -> PyResult<Pending> {
        start(py, self.confirming(), done)
    }

    /// Waits until the lease is lost or released, up to a limit; says whether it is.
    #[pyo3(signature = (limit=None))]
    fn wait_lost(&self, py: Python<'_>, limit: Option<f64>) -> PyResult<bool> {
        wait(py, &self.handle.client(), self.ended(limit))
    }

    /// The same for other threads than the caller's; see `Pending`.
    fn start_wait_lost(
        &self,
        py: Python<'_>,
        limit: Option<f64>,
        done: Py<PyAny>,
    ) -> PyResult<Pending> {
        let ended = self.ended(limit);
        start(py, async move { Ok(ended.await) }, done)
    }

    /// Gives it back; says whether it was held until now. `None` if it was given back before. If a
    /// signal handler raises, it is given back in the background.
    fn release(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        let Some(guard) = self.take(py)? else { return Ok(None) };
        let released = wait(py, &self.client(), guard.release())?;
        let released = released.map_err(Failure::from)?;
        Ok(Some(released == ReleaseOutcome::Released))
    }

    /// The same for asyncio; see `Pending`.
    fn start_release(&self, py: Python<'_>, done: Py<PyAny>) -> PyResult<Option<Pending>> {
        let Some(guard) = self.take(py)? else { return Ok(None) };
        let release = async move {
            let released = guard.release().await.map_err(Failure::from)?;
            Ok(released == ReleaseOutcome::Released)
        };
        start(py, release, done).map(Some)
    }
}

/// What a caller keeps while it waits.
#[derive(FromPyObject)]
pub(crate) enum Kept {
    /// A hold.
    Guard(Py<Guard>),
    /// A claim.
    Work(Py<Work>),
}

impl Kept {
    /// The grants of what was not given back.
    pub(crate) fn grants(&self) -> Vec<GrantId> {
        match self {
            Kept::Guard(guard) => guard.get().shared().iter().map(|guard| guard.grant()).collect(),
            Kept::Work(work) => work.get().grants(),
        }
    }
}

/// Who is in the way, for messages and exceptions.
pub(crate) fn busy_json(busy: &Busy) -> Value {
    let holders = busy.blockers.iter().filter_map(|blocker| match blocker {
        Blocker::Hold(seen) => Some(hold_json(seen)),
        Blocker::Waiter(_) => None,
    });
    let holders: Vec<Value> = holders.collect();
    json!({ "message": busy.to_string(), "waited": busy.waited.as_secs_f64(), "holders": holders })
}

/// A hold as others than its owner may see it: never with its grant.
pub(crate) fn hold_json(seen: &HoldSnapshot) -> Value {
    let hold = &seen.hold;
    let evidence = hold.holder.evidence.as_ref();
    json!({
        "resource": hold.want.resource.to_string(),
        "mode": hold.want.mode.to_string(),
        "holder": hold.holder.label,
        "pid": evidence.and_then(|evidence| evidence.process).map(|process| process.pid),
        "host": evidence.map(|evidence| evidence.host.as_str()),
        "operation": hold.operation,
        "token": hold.token.0,
        "slot": hold.slot,
        "held_for": seen.held_for.as_secs_f64(),
        "expires_in": seen.limit().map(|_| seen.left.as_secs_f64()),
        "acquired_at": seen.acquired_at.0 as f64 / 1000.0,
        "expires_at": seen.limit().map(|at| at.0 as f64 / 1000.0),
    })
}
