//! What each error is in Python: a class of `tenure.errors`, with its message, hint and details.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use serde_json::{Value, json};
use tenure::Error;
use tenure::core::rules::tasks::{AddError, EditError};
use tenure::file::FileError;
use tenure::locate::DiscoverError;
use tenure::place::{PathError, PlaceError};
use tenure::store::StoreError;

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
            StoreError::Unavailable { .. } | StoreError::Contended { .. } => "StoreUnavailable",
            _ => "StoreError",
        };
        let hint = error.hint();
        Failure::new(class, error.to_string()).hint(hint)
    }
}

impl From<DiscoverError> for Failure {
    fn from(error: DiscoverError) -> Failure {
        match error {
            DiscoverError::Open(error) => error.into(),
            error => Failure::new("StoreUnavailable", error.to_string()),
        }
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
