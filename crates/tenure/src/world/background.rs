//! The runtime on which connections live.

use super::PerProcess;
use parking_lot::Mutex;
use std::io;
use std::sync::mpsc;
use tokio::runtime::{Builder, Handle};

/// The runtime on which all connections of this process live, on one thread. It is started when it
/// is first used, and lives as long as the process.
pub(crate) fn background_runtime() -> io::Result<Handle> {
    static RUNTIME: PerProcess<Mutex<Option<Handle>>> = PerProcess::new();
    let runtime = RUNTIME.get_or_init(Mutex::default);
    let mut runtime = runtime.lock();
    if let Some(handle) = &*runtime {
        return Ok(handle.clone());
    }
    let (sender, started) = mpsc::channel();
    let run = move || match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let _ = sender.send(Ok(runtime.handle().clone()));
            runtime.block_on(std::future::pending::<()>());
        }
        Err(error) => drop(sender.send(Err(error))),
    };
    std::thread::Builder::new().name("tenure-remote".to_owned()).spawn(run)?;
    let handle = started.recv().map_err(|_| io::Error::other("the thread ended"))??;
    Ok(runtime.insert(handle).clone())
}
