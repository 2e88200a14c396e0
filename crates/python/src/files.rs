//! Files that many processes change.

use crate::background::{Pending, start};
use crate::errors::Failure;
use crate::holding::Guard;
use crate::waiting::{duration, wait};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tenure::blocking::Client;
use tenure::core::Resource;
use tenure::file::{Appender, FileError, Original, Replace, remove_leftovers};
use tenure::locate;
use tenure::place::{self, Reach, Surroundings};
use tenure::world::{Clock, SystemClock};
use tokio::sync::oneshot;

/// The resource of a file, as the command names it: its path, or the single lock of the folder.
pub(crate) fn resource_of(client: &Client, path: &Path) -> Result<Resource, Failure> {
    if let Some(only) = client.asynchronous().dialect().only_resource() {
        return Ok(only);
    }
    let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
    let place = place::find(&Surroundings::of_process(folder))?;
    Ok(place.resource_of(path, Reach::AllWorktrees)?)
}

/// The path of a file without links. A file that cannot be replaced is refused.
#[pyfunction]
pub(crate) fn replaceable_file(py: Python<'_>, path: PathBuf) -> PyResult<OsString> {
    let original = py.detach(|| Original::open(&path)).map_err(Failure::from)?;
    Ok(original.path().as_os_str().to_owned())
}

/// Whether the store that was chosen for the files in a folder has a single lock for all changes. Opens no
/// store.
#[pyfunction]
pub(crate) fn has_single_lock(py: Python<'_>, folder: PathBuf) -> PyResult<bool> {
    let lock = py.detach(|| locate::single_lock_in(&folder));
    let lock = lock.map_err(|error| Failure::of_discovery(error, Some(&folder)))?;
    Ok(lock.is_some())
}

/// A file that its caller holds, as it was when it was read.
#[pyclass(frozen, module = "tenure._native")]
pub(crate) struct FileUpdate {
    /// Taken when the file is replaced.
    original: Mutex<Option<Original>>,
    /// The old content; `None` if there is no such file.
    content: Option<Vec<u8>>,
}

impl FileUpdate {
    /// Writes the new content, and waits until it may take the place of the old one.
    fn sealing(
        &self,
        guard: &Guard,
        content: Vec<u8>,
        backup: Option<OsString>,
    ) -> Result<impl Future<Output = Result<SealedUpdate, Failure>> + Send + use<>, Failure> {
        let original = self.original.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ended = || Failure::new("InvalidRequest", "the update of the file has ended");
        let (original, guard) = (original.ok_or_else(ended)?, guard.shared().ok_or_else(ended)?);
        Ok(seal(original, guard, content, backup))
    }
}

#[pymethods]
impl FileUpdate {
    /// Reads a file, which the caller holds from before.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<FileUpdate> {
        let opened = py.detach(|| {
            remove_leftovers(&path);
            let original = Original::open(&path)?;
            let content = read(&original)?;
            Ok::<_, Failure>((original, content))
        });
        let (original, content) = opened?;
        Ok(FileUpdate { original: Mutex::new(Some(original)), content })
    }

    /// The old content; `None` if there is no such file.
    #[getter]
    fn content<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.content.as_deref().map(|content| PyBytes::new(py, content))
    }

    /// Writes the new content beside the file, locks the file, and makes sure that it is still held.
    #[pyo3(signature = (guard, content, backup=None))]
    fn seal(
        &self,
        py: Python<'_>,
        guard: &Bound<'_, Guard>,
        content: Vec<u8>,
        backup: Option<OsString>,
    ) -> PyResult<SealedUpdate> {
        let sealing = self.sealing(guard.get(), content, backup)?;
        Ok(wait(py, &guard.get().client(), sealing)??)
    }

    /// The same for asyncio; see `Pending`.
    fn start_seal(
        &self,
        py: Python<'_>,
        guard: &Bound<'_, Guard>,
        content: Vec<u8>,
        backup: Option<OsString>,
        done: Py<PyAny>,
    ) -> PyResult<Pending> {
        start(py, self.sealing(guard.get(), content, backup)?, done)
    }
}

fn read(original: &Original) -> Result<Option<Vec<u8>>, Failure> {
    let Some(mut file) = original.content()? else { return Ok(None) };
    let mut content = Vec::new();
    let path = original.path();
    file.read_to_end(&mut content).map_err(|error| {
        Failure::new("FileError", format!("{} cannot be read: {error}", path.display()))
    })?;
    Ok(Some(content))
}

/// New content that waits, in a thread of its own, to take the place of the old one. Dropped, it leaves
/// the file as it is.
#[pyclass(frozen, module = "tenure._native")]
pub(crate) struct SealedUpdate {
    writer: Mutex<Option<Writer>>,
}

/// The thread that writes: it may have to wait for a disk or for the kernel's lock on the file, which no
/// signal ends.
struct Writer {
    go_on: mpsc::Sender<()>,
    thread: JoinHandle<Result<(), FileError>>,
}

#[pymethods]
impl SealedUpdate {
    /// Replaces the file in one step.
    fn replace(&self, py: Python<'_>) -> PyResult<()> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Writer { go_on, thread }) = writer else { return Ok(()) };
        let replaced = py.detach(|| {
            // A thread that has ended says why.
            let _ = go_on.send(());
            thread.join()
        });
        match replaced {
            Ok(replaced) => Ok(replaced.map_err(Failure::from)?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

async fn seal(
    original: Original,
    guard: Arc<tenure::Guard>,
    content: Vec<u8>,
    backup: Option<OsString>,
) -> Result<SealedUpdate, Failure> {
    let path = original.path().to_owned();
    let (say_sealed, sealed) = oneshot::channel();
    let (go_on, told) = mpsc::channel();
    let write = move || {
        let mut draft = original.draft()?;
        draft.write(&content)?;
        let sealed = draft.seal(Replace { overwrite: false, backup: backup.as_deref() })?;
        let _ = say_sealed.send(());
        // Unless it was given up meanwhile.
        if told.recv().is_ok() { sealed.replace().map(drop) } else { Ok(()) }
    };
    let thread = std::thread::Builder::new().name("tenure-update".to_owned()).spawn(write);
    let thread = thread
        .map_err(|error| Failure::new("FileError", format!("no thread can be started: {error}")))?;
    if sealed.await.is_ok() && !guard.confirm().await.map_err(Failure::from)? {
        drop(go_on);
        // It removes the draft.
        let _ = thread.join();
        let path = path.display();
        let message = format!("the lease was lost before {path} was replaced; it is unchanged");
        let details = json!({ "resource": path.to_string() });
        return Err(Failure::new("Lost", message).details(details));
    }
    Ok(SealedUpdate { writer: Mutex::new(Some(Writer { go_on, thread })) })
}

/// How often the kernel's lock on a file is asked for while another program has it: it is held for
/// one write.
const ASK_EVERY: Duration = Duration::from_millis(2);

/// Appends whole lines to a file; each must end with a line break.
#[pyfunction]
pub(crate) fn append_lines(
    py: Python<'_>,
    path: PathBuf,
    lines: Vec<u8>,
    limit: Option<f64>,
    sync: bool,
) -> PyResult<()> {
    let clock = SystemClock;
    let end = limit.map(|limit| clock.now().saturating_add(duration(limit)));
    loop {
        // Not waiting in the kernel, where Ctrl-C would not end it.
        let appended = py
            .detach(|| Appender::open(&path, Some(Duration::ZERO), sync)?.append(&lines).map(drop));
        match appended {
            Err(FileError::Locked { .. }) if end.is_none_or(|end| clock.now() < end) => {
                py.detach(|| std::thread::sleep(ASK_EVERY));
                py.check_signals()?;
            }
            appended => return Ok(appended.map_err(Failure::from)?),
        }
    }
}
