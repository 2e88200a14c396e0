//! What each error is in Python: a class of `tenure.errors`, with its message, hint and details.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use serde_json::{Value, json};
use std::error::Error as _;
use std::io;
use std::path::Path;
use tenure::Error;
use tenure::core::rules::tasks::{AddError, EditError};
use tenure::file::FileError;
use tenure::locate::DiscoverError;
use tenure::place::{self, PathError, PlaceError, PlaceKind, Surroundings};
use tenure::store::StoreError;
use tenure::url::StoreUrl;

/// An error on its way to Python: the name of its class, and what that is made of.
pub(crate) struct Failure {
    class: &'static str,
    message: String,
    hint: Option<String>,
    details: Value,
}

impl Failure {
    pub(crate) fn new(class: &'static str, message: impl Into<String>) -> Failure {
        Failure { class, message: message.into(), hint: None, details: Value::Null }
    }

    pub(crate) fn hint(mut self, hint: Option<String>) -> Failure {
        self.hint = hint;
        self
    }

    pub(crate) fn details(mut self, details: Value) -> Failure {
        self.details = details;
        self
    }

    /// The exception. `tenure.errors.make` knows the classes.
    fn into_exception(self, py: Python<'_>) -> PyErr {
        static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let make = MAKE.get_or_try_init(py, || {
            Ok::<_, PyErr>(py.import("tenure.errors")?.getattr("make")?.unbind())
        });
        let made = make.and_then(|make| {
            make.bind(py).call1((self.class, &self.message, self.hint, self.details.to_string()))
        });
        match made {
            Ok(exception) => PyErr::from_value(exception),
            Err(_) => PyRuntimeError::new_err(self.message),
        }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        Python::attach(|py| failure.into_exception(py))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let message = error.to_string();
        let class = match &error {
            Error::Store(error) => return error.clone().into(),
            Error::Deadlock(_) => "Deadlock",
            Error::TooLate => "Lost",
            Error::NoSuchTask { .. } | Error::Ambiguous { .. } => "NoSuchTask",
            Error::Edit(EditError::NotFound { .. }) => "NoSuchTask",
            Error::Edit(_) => "TaskError",
            Error::Add(AddError::Exists { .. }) => "TaskError",
            _ => "InvalidRequest",
        };
        Failure::new(class, message)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        let class = match &error {
            StoreError::Unknown { .. } => "UnknownOutcome",
            StoreError::Gone { .. } => "StoreGone",
            StoreError::Text(_) => "InvalidRequest",
            StoreError::Unavailable { .. }
            | StoreError::Withheld { .. }
            | StoreError::Contended { .. } => "StoreUnavailable",
            _ => "StoreError",
        };
        let hint = error.hint();
        Failure::new(class, error.to_string()).hint(hint)
    }
}

impl Failure {
    /// Why the store of this folder was not opened.
    pub(crate) fn of_discovery(error: DiscoverError, folder: Option<&Path>) -> Failure {
        let lacks_home = lacks_home(&error, folder);
        let failure = match error {
            DiscoverError::Open(error) => error.into(),
            error => Failure::new("StoreUnavailable", error.to_string()),
        };
        if lacks_home { Failure { class: "NoHome", ..failure } } else { failure }
    }
}

/// Whether no store was chosen, none is around the folder, and there is no home that this process may
/// use.
fn lacks_home(error: &DiscoverError, folder: Option<&Path>) -> bool {
    if std::env::var_os("TENURE_STORE").is_some_and(|store| !store.is_empty()) {
        return false;
    }
    let Some(folder) = folder.map(Path::to_owned).or_else(|| std::env::current_dir().ok()) else {
        return false;
    };
    let surroundings = Surroundings::of_process(folder);
    let place = place::find(&surroundings);
    if place.as_ref().is_ok_and(|place| place.kind != PlaceKind::User) {
        return false;
    }
    match error {
        DiscoverError::Place(PlaceError::NoHome { .. }) => true,
        DiscoverError::Place(PlaceError::NotWritable { .. } | PlaceError::ReadOnly { .. }) => true,
        // Settings in another user's home.
        DiscoverError::Config(error) => error
            .source()
            .and_then(|source| source.downcast_ref::<io::Error>())
            .is_some_and(|source| source.kind() == io::ErrorKind::PermissionDenied),
        // Another store than that of the home was chosen by settings.
        DiscoverError::Open(Error::Store(StoreError::Unavailable { store, .. })) => place
            .is_ok_and(|place| *store == StoreUrl::Sqlite { path: place.database() }.to_string()),
        _ => false,
    }
}

impl From<PlaceError> for Failure {
    fn from(error: PlaceError) -> Failure {
        Failure::new("StoreUnavailable", error.to_string())
    }
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Failure {
        Failure::new("InvalidRequest", error.to_string())
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Failure {
        let (class, path) = match &error {
            FileError::Locked { path } => ("Busy", path),
            FileError::Changed { path } => ("FileChanged", path),
            FileError::NotAFile { path, .. }
            | FileError::NoFolder { path }
            | FileError::ReadOnly { path }
            | FileError::Linked { path, .. }
            | FileError::Full { path, .. }
            | FileError::LongLine { path }
            | FileError::Refused { path, .. } => ("FileError", path),
            _ => return Failure::new("FileError", error.to_string()),
        };
        let details = json!({ "resource": path.to_string_lossy() });
        Failure::new(class, error.to_string()).details(details)
    }
}
