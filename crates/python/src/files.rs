//! Files that many processes change.

use crate::errors::Failure;
use crate::holding::{self, busy_json};
use crate::store::{Store, patience};
use crate::waiting::{duration, wait};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tenure::blocking::Client;
use tenure::core::Resource;
use tenure::file::{Appender, FileError, Original, Replace, remove_leftovers};
use tenure::place::{self, Reach, Surroundings};
use tenure::world::{Clock, SystemClock};
use tenure::{Attempt, Guard};

/// A file that is held while its new content is made.
#[pyclass(frozen, module = "tenure._native")]
pub(crate) struct FileUpdate {
    client: Client,
    /// Taken when the file is replaced or left as it is.
    open: Mutex<Option<(Original, Guard)>>,
    #[pyo3(get)]
    token: u64,
    /// The old content; `None` if there is no such file.
    content: Option<Vec<u8>>,
}

impl FileUpdate {
    fn take(&self) -> Result<(Original, Guard), Failure> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        open.ok_or_else(|| Failure::new("InvalidRequest", "the update of the file has ended"))
    }
}

/// The resource of a file, as the command names it: its path, or the single lock of the folder.
fn resource_of(client: &Client, path: &Path) -> Result<Resource, Failure> {
    if let Some(only) = client.asynchronous().dialect().only_resource() {
        return Ok(only);
    }
    let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
    let place = place::find(&Surroundings::of_process(folder))?;
    Ok(place.resource_of(path, Reach::AllWorktrees)?)
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

/// What came of asking for a file: the update, or who is in the way as JSON.
#[derive(IntoPyObject)]
#[expect(
    clippy::large_enum_variant,
    reason = "an update is the usual answer, and is not kept in bulk"
)]
pub(crate) enum Begun {
    Open(FileUpdate),
    Busy(String),
}

/// Holds a file and reads it, waiting for it.
#[pyfunction]
pub(crate) fn begin_update(
    py: Python<'_>,
    store: &Store,
    path: PathBuf,
    limit: Option<f64>,
    ttl: Option<f64>,
    operation: Option<String>,
    keeps: Vec<Py<holding::Guard>>,
) -> PyResult<Begun> {
    // A file that cannot be replaced is refused before waiting for it.
    let path = Original::open(&path).map_err(Failure::from)?.path().to_owned();
    let client = store.handle().client();
    let mut request = client.request(resource_of(&client, &path)?).wait(patience(limit));
    for grant in keeps.iter().filter_map(|guard| guard.get().grant()) {
        request = request.while_holding(grant);
    }
    if let Some(ttl) = ttl {
        request = request.ttl(duration(ttl));
    }
    if let Some(operation) = operation {
        request = request.operation(operation);
    }
    let guard = match wait(py, &client, request.hold())?.map_err(Failure::from)? {
        Attempt::Held(guard) => guard,
        Attempt::Busy(busy) => return Ok(Begun::Busy(busy_json(&busy).to_string())),
    };
    let opened = py.detach(|| {
        remove_leftovers(&path);
        let original = Original::open(&path)?;
        let content = read(&original)?;
        Ok::<_, Failure>((original, content))
    });
    let (original, content) = opened?;
    let token = guard.token().0;
    let open = Mutex::new(Some((original, guard)));
    Ok(Begun::Open(FileUpdate { client, open, token, content }))
}

#[pymethods]
impl FileUpdate {
    /// The old content; `None` if there is no such file.
    #[getter]
    fn content<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.content.as_deref().map(|content| PyBytes::new(py, content))
    }

    /// Replaces the file in one step, if it is still held, and releases it.
    #[pyo3(signature = (content, backup=None))]
    fn commit(&self, py: Python<'_>, content: Vec<u8>, backup: Option<OsString>) -> PyResult<()> {
        let (original, guard) = self.take()?;
        let replaced = py.detach(|| {
            let mut draft = original.draft()?;
            draft.write(&content)?;
            let how = Replace { overwrite: false, backup: backup.as_deref() };
            let sealed = draft.seal(how)?;
            if !self.client.run(guard.confirm()).map_err(Failure::from)? {
                let path = original.path().display();
                let message =
                    format!("the lease was lost before {path} was replaced; it is unchanged");
                let details = json!({ "resource": path.to_string() });
                return Err(Failure::new("Lost", message).details(details));
            }
            sealed.replace()?;
            // The file is replaced; a lease that ends now does not undo that.
            let _ = self.client.run(guard.release());
            Ok::<(), Failure>(())
        });
        Ok(replaced?)
    }

    /// Leaves the file as it is, and releases it.
    fn abort(&self, py: Python<'_>) {
        if let Ok((_, guard)) = self.take() {
            let _ = py.detach(|| self.client.run(guard.release()));
        }
    }
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
