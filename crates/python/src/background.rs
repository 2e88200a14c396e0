//! Waits for asyncio: on one thread, however many tasks wait.

use crate::errors::Failure;
use crate::self_waits::Warnings;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tenure::world::between_forks;
use tokio::runtime::{Builder, Handle};
use tokio::task::AbortHandle;

/// Whether Python is ending. Then the background thread must not call it any more: Python ends threads
/// that wait for the GIL wherever they are, and in the middle of a native function that is a crash.
static ENDING: AtomicBool = AtomicBool::new(false);

/// The process whose background thread calls Python now, or 0. A forked process has no such thread until
/// it starts its own.
static CALLING: AtomicU32 = AtomicU32::new(0);

/// How long the end of Python waits for a call to return.
const CALL_MAX: Duration = Duration::from_secs(10);

/// Something that is under way in the background.
#[pyclass(frozen, module = "tenure._native")]
pub(crate) struct Pending {
    task: AbortHandle,
}

#[pymethods]
impl Pending {
    /// Gives it up: nothing stays held or queued, and the callback is not called any more, unless it
    /// was called already.
    fn cancel(&self) {
        self.task.abort();
    }
}

/// Starts it. `done` is called in the background thread with the result and `None`, or with `None` and
/// the exception.
pub(crate) fn start<T>(
    py: Python<'_>,
    future: impl Future<Output = Result<T, Failure>> + Send + 'static,
    done: Py<PyAny>,
) -> PyResult<Pending>
where
    T: for<'py> IntoPyObject<'py> + Send + 'static,
{
    start_with_warnings(py, future, Warnings::default(), done)
}

/// The same for a future that warns: `done.warn` is called with each text.
pub(crate) fn start_with_warnings<T>(
    py: Python<'_>,
    future: impl Future<Output = Result<T, Failure>> + Send + 'static,
    warnings: Warnings,
    done: Py<PyAny>,
) -> PyResult<Pending>
where
    T: for<'py> IntoPyObject<'py> + Send + 'static,
{
    if ENDING.load(Ordering::SeqCst) {
        return Err(PyRuntimeError::new_err("Python is ending: use the functions without asyncio"));
    }
    let runtime = runtime(py)?;
    let task = runtime.spawn(async move {
        let mut future = pin!(between_forks(future));
        // Python is called outside of it: a thread that forks may have the GIL.
        let result = loop {
            tokio::select! {
                biased;
                result = future.as_mut() => break result,
                () = warnings.arrived() => call(|py| warn(py, &warnings, &done)),
            }
        };
        call(|py| {
            let called = match result {
                Ok(value) => done.call1(py, (value, py.None())),
                Err(failure) => done.call1(py, (py.None(), PyErr::from(failure))),
            };
            if let Err(error) = called {
                error.write_unraisable(py, None);
            }
        });
    });
    Ok(Pending { task: task.abort_handle() })
}

fn warn(py: Python<'_>, warnings: &Warnings, done: &Py<PyAny>) {
    for text in warnings.take() {
        if let Err(error) = done.call_method1(py, "warn", (text,)) {
            error.write_unraisable(py, None);
        }
    }
}

/// Calls Python from the background thread, unless Python is ending: then no task is left to tell.
fn call(act: impl FnOnce(Python<'_>)) {
    CALLING.store(std::process::id(), Ordering::SeqCst);
    if !ENDING.load(Ordering::SeqCst) {
        let _ = Python::try_attach(act);
    }
    CALLING.store(0, Ordering::SeqCst);
}

/// Lets no further call begin, and waits for the one that is under way. Called before Python ends.
#[pyfunction]
fn end(py: Python<'_>) {
    ENDING.store(true, Ordering::SeqCst);
    py.detach(|| {
        let (begun, process) = (Instant::now(), std::process::id());
        while CALLING.load(Ordering::SeqCst) == process && begun.elapsed() < CALL_MAX {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}

/// Sees to it that the background thread is out of Python when Python ends.
pub(crate) fn end_with_python(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let end = wrap_pyfunction!(end, module)?;
    module.py().import("atexit")?.call_method1("register", (end,))?;
    Ok(())
}

/// The runtime of this process; a forked process starts its own.
fn runtime(_py: Python<'_>) -> PyResult<Handle> {
    // Only locked with the GIL and for a moment, so that no fork finds it locked.
    static RUNTIME: Mutex<Option<(u32, Handle)>> = Mutex::new(None);
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((_, handle)) = runtime.as_ref().filter(|(owner, _)| *owner == process) {
        return Ok(handle.clone());
    }
    let failed = |error: std::io::Error| {
        PyRuntimeError::new_err(format!("no thread can be started: {error}"))
    };
    let (sender, started) = mpsc::channel();
    let run = move || match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let _ = sender.send(Ok(runtime.handle().clone()));
            runtime.block_on(std::future::pending::<()>());
        }
        Err(error) => drop(sender.send(Err(error))),
    };
    std::thread::Builder::new().name("tenure-asyncio".to_owned()).spawn(run).map_err(failed)?;
    let handle = started.recv().map_err(|_| failed(std::io::Error::other("it ended")))?;
    let handle = handle.map_err(failed)?;
    // The handle of another process is left alone: its threads are not here.
    std::mem::forget(runtime.replace((process, handle.clone())));
    Ok(handle)
}
