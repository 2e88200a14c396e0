//! The end of a `with` block, which Ctrl-C cannot keep from giving back.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;

/// A base for what is held by a `with` block. Python runs signal handlers when a function in Python
/// begins, before its first statement: an `__exit__` in Python would then give back nothing.
///
/// Has `_count()`, which says how much is held, and `_exit(error, count)`, which gives back the last of so
/// much, unless that was done; `error` is what ended the block.
#[pyclass(subclass, frozen, module = "tenure._native")]
pub(crate) struct ExitsAlways;

#[pymethods]
impl ExitsAlways {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, pyo3::types::PyTuple>,
        _named: Option<&Bound<'_, pyo3::types::PyDict>>,
    ) -> ExitsAlways {
        ExitsAlways
    }

    fn __exit__(
        slf: &Bound<'_, Self>,
        _kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        _trace: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let mut interrupt = None;
        let count = once_more(slf.py(), &mut interrupt, || slf.call_method0("_count"))?;
        once_more(slf.py(), &mut interrupt, || slf.call_method1("_exit", (error, &count)))?;
        interrupt.map_or(Ok(()), Err)
    }
}

/// Calls Python, and once more if a signal handler raised meanwhile. What it raised is kept.
fn once_more<'py>(
    py: Python<'py>,
    interrupt: &mut Option<PyErr>,
    call: impl Fn() -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    match call() {
        Err(error) if !error.is_instance_of::<PyException>(py) => {
            *interrupt = Some(error);
            call()
        }
        called => called,
    }
}
