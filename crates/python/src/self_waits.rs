//! Warnings of waits that may never end: for what the waiting thread, or another one of this process, holds.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenure::Waiting;
use tenure::core::{Blocker, GrantId, HoldSnapshot, Holder, Kind, Mode, format_duration};
use tenure::world::{SystemWorld, World};
use tokio::sync::Notify;

/// How long a wait for another thread or task of this process goes on before it looks as if it would
/// never end: threads that share a lock usually wait for less.
const LOOKS_ENDLESS: Duration = Duration::from_secs(5);

/// Warnings that come up inside of a wait. The wait gives them to Python between its steps: inside of
/// one, a thread that forks may have the GIL.
#[derive(Clone, Default)]
pub(crate) struct Warnings {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    texts: Mutex<Vec<String>>,
    arrived: Notify,
}

impl Warnings {
    fn add(&self, text: String) {
        self.shared.texts.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        self.shared.arrived.notify_one();
    }

    /// Returns when one was added.
    pub(crate) async fn arrived(&self) {
        self.shared.arrived.notified().await;
    }

    /// Those that were added since they were taken last.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.texts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Gives them to Python in the thread that waits; an error if Python makes them errors.
    pub(crate) fn give(&self, py: Python<'_>) -> PyResult<()> {
        static WARN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        for text in self.take() {
            let warn = WARN.get_or_try_init(py, || {
                Ok::<_, PyErr>(py.import("tenure._warnings")?.getattr("warn")?.unbind())
            })?;
            warn.call1(py, (text,))?;
        }
        Ok(())
    }

    /// What a request calls when it looked and goes on waiting. It warns once: at once of a wait with a
    /// limit for what the caller keeps, and later of one for what this process holds.
    pub(crate) fn watch(
        &self,
        keeps: Vec<GrantId>,
        mode: Mode,
    ) -> impl FnMut(&Waiting) + Send + use<> {
        let (warnings, mut warned) = (self.clone(), false);
        let keeps: Vec<GrantId> = keeps.into_iter().map(GrantId::redacted).collect();
        move |waiting| {
            if warned {
                return;
            }
            let is_kept = |seen: &HoldSnapshot| keeps.contains(&seen.hold.grant.redacted());
            let text = if let Some(seen) = in_the_way(waiting, mode, is_kept) {
                let resource = &seen.hold.want.resource;
                let hint = if resource.kind() == Kind::Lock { "; see reentrant=True" } else { "" };
                format!("this thread waits for {resource}, which it holds itself{hint}")
            } else if waiting.waited >= LOOKS_ENDLESS
                && let Some(seen) = held_by_this_process(waiting, mode)
            {
                let (resource, waited) = (&seen.hold.want.resource, shown(waiting.waited));
                format!(
                    "a wait of {waited} so far for {resource}, which this process holds itself: it \
                     ends only when another thread or task gives that back"
                )
            } else {
                return;
            };
            warned = true;
            warnings.add(text);
        }
    }
}

fn shown(waited: Duration) -> String {
    format_duration(Duration::from_secs(waited.as_secs()))
}

fn held_by_this_process(waiting: &Waiting, mode: Mode) -> Option<&HoldSnapshot> {
    let this = SystemWorld::new().this_process();
    let is_own = |holder: &Holder| {
        holder
            .evidence
            .as_ref()
            .is_some_and(|evidence| evidence.process == this.process && evidence.boot == this.boot)
    };
    in_the_way(waiting, mode, |seen| is_own(&seen.hold.holder))
}

/// A hold of this kind that the wait cannot do without. A slot becomes free with any of its holders.
fn in_the_way(
    waiting: &Waiting,
    mode: Mode,
    is_meant: impl Fn(&HoldSnapshot) -> bool,
) -> Option<&HoldSnapshot> {
    let holds = waiting.blockers.iter().filter_map(|blocker| match blocker {
        Blocker::Hold(seen) => Some(seen),
        Blocker::Waiter(_) => None,
    });
    let mut holds = holds.peekable();
    if matches!(mode, Mode::Slot { .. }) {
        let first = *holds.peek()?;
        return holds.all(is_meant).then_some(first);
    }
    holds.find(|seen| is_meant(seen))
}
