//! The part of the Python package that is written in Rust: it opens stores, waits without the GIL and
//! turns errors into exceptions. Names and conveniences are in the Python files beside it.
//!
//! - `store`: a client of a store. `holding`: what it holds. `tasks`: claims and finishes.
//! - `files`: files that many processes change.
//! - `self_waits`: warnings of waits that may never end.
//! - `waiting`: blocks without the GIL, and notices Ctrl-C. `background`: waits for asyncio. `exiting`:
//!   the end of a `with` block.
//! - `errors`: what each error is in Python.
//!
//! Structured values cross the border as JSON texts.

mod background;
mod errors;
mod exiting;
mod files;
mod holding;
mod self_waits;
mod store;
mod tasks;
mod waiting;

/// The native half of the package `tenure`.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::background::Pending;
    #[pymodule_export]
    use crate::exiting::ExitsAlways;
    #[pymodule_export]
    use crate::files::{FileUpdate, SealedUpdate, append_lines, has_single_lock, replaceable_file};
    #[pymodule_export]
    use crate::holding::Guard;
    #[pymodule_export]
    use crate::store::Store;
    #[pymodule_export]
    use crate::tasks::{Runner, TaskRecord, Tasks, Work};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Python programs fork while other threads run: `multiprocessing`, web servers.
        tenure::world::prepare_for_forks();
        crate::background::end_with_python(module)?;
        module.add("version", env!("CARGO_PKG_VERSION"))
    }
}
