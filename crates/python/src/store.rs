//! A client of a store.

use crate::background::{Pending, start, start_with_warnings};
use crate::errors::Failure;
use crate::files::resource_of;
use crate::holding::{Answer, Kept, hold_json};
use crate::self_waits::Warnings;
use crate::waiting::{duration, wait, wait_with_warnings};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tenure::blocking::Client;
use tenure::core::act::Broken;
use tenure::core::{
    GrantId, HoldSnapshot, Kind, Liveness, Mode, Resource, Snapshot, Token, VerifyAnswer, Witness,
};
use tenure::locate;
use tenure::place::{self, Reach, Surroundings};
use tenure::url::StoreUrl;
use tenure::{Request, Wait};

/// A client, for all that is made by it. In a forked process it is a client of the same store under
/// a label of its own, since the made-up label names the process.
#[derive(Clone)]
pub(crate) struct Handle {
    opened: Arc<Opened>,
}

struct Opened {
    client: Client,
    process: u32,
    /// That of a forked process.
    forked: Mutex<Option<(u32, Client)>>,
}

impl Handle {
    fn new(client: Client) -> Handle {
        let process = std::process::id();
        Handle { opened: Arc::new(Opened { client, process, forked: Mutex::new(None) }) }
    }

    /// The client of this process.
    pub(crate) fn client(&self) -> Client {
        let (opened, process) = (&self.opened, std::process::id());
        if opened.process == process || opened.client.asynchronous().holder().chosen {
            return opened.client.clone();
        }
        // Only locked with the GIL and for a moment, so that no fork finds it locked.
        let mut forked = opened.forked.lock().unwrap_or_else(PoisonError::into_inner);
        match &*forked {
            Some((owner, client)) if *owner == process => client.clone(),
            _ => {
                let client = opened.client.with_made_up_label();
                // That of another process is left alone: its threads are not here.
                std::mem::forget(forked.replace((process, client.clone())));
                client
            }
        }
    }
}

/// A store that was opened.
#[pyclass(frozen, module = "tenure._native")]
pub(crate) struct Store {
    handle: Handle,
}

/// What to hold, and how.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Wanted {
    names: Vec<String>,
    /// Whether the names are globs of files.
    are_paths: bool,
    /// A file to hold instead, by its path without links.
    file: Option<PathBuf>,
    /// 0 for alone, -1 for shared, else one of so many slots.
    slots: i64,
    operation: Option<String>,
    /// The lease in seconds.
    ttl: Option<f64>,
}

impl Store {
    /// The request of a caller that keeps these while it waits, and where its warnings come.
    fn request(
        &self,
        wanted: Wanted,
        wait: Wait,
        keeps: Option<Vec<Kept>>,
    ) -> Result<(Request, Warnings), Failure> {
        let client = self.handle.client();
        let mode = match wanted.slots {
            0 => Mode::Exclusive,
            -1 => Mode::Shared,
            of => Mode::Slot { of: of.try_into().unwrap_or(0) },
        };
        let mut resources = Vec::with_capacity(wanted.names.len());
        for name in &wanted.names {
            resources.push(resource(name, wanted.are_paths)?);
        }
        if let Some(file) = &wanted.file {
            resources.push(resource_of(&client, file)?);
        }
        let mut resources = resources.into_iter();
        let Some(first) = resources.next() else {
            return Err(tenure::Error::Request(tenure::RequestError::Nothing).into());
        };
        let mut request = client.request(first);
        for further in resources {
            request = request.also(further);
        }
        request = request.mode(mode).wait(wait);
        let warnings = Warnings::default();
        if let Some(keeps) = keeps {
            let keeps: Vec<GrantId> = keeps.iter().flat_map(Kept::grants).collect();
            // A wait with a limit ends: it is warned of instead of refused.
            if wait == Wait::Forever {
                request = keeps.iter().fold(request, |request, kept| request.while_holding(*kept));
            }
            request = request.on_wait(warnings.watch(keeps, mode));
        }
        if let Some(ttl) = wanted.ttl {
            request = request.ttl(duration(ttl));
        }
        if let Some(operation) = wanted.operation {
            request = request.operation(operation);
        }
        Ok((request, warnings))
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    fn breaking(
        &self,
        name: &str,
        token: u64,
        reason: String,
    ) -> Result<impl Future<Output = Result<bool, Failure>> + Send + use<>, Failure> {
        let (resource, client) = (resource(name, false)?, self.handle.client());
        Ok(async move {
            let broken = client.asynchronous().break_hold(resource, Token(token), &reason).await;
            Ok(matches!(broken.map_err(Failure::from)?, Broken::Ended(_)))
        })
    }

    fn verifying(
        &self,
        name: &str,
        token: u64,
    ) -> Result<impl Future<Output = Result<bool, Failure>> + Send + use<>, Failure> {
        let (resource, client) = (resource(name, false)?, self.handle.client());
        Ok(async move {
            let answer = client.asynchronous().verify(resource, Token(token)).await;
            Ok(answer.map_err(Failure::from)? == VerifyAnswer::Valid)
        })
    }

    /// Looks who holds and who waits: for these names, or for anything. Answers in JSON.
    fn looking(
        &self,
        names: Option<Vec<String>>,
        are_paths: bool,
    ) -> Result<impl Future<Output = Result<String, Failure>> + Send + use<>, Failure> {
        let mut resources = Vec::new();
        for name in names.iter().flatten() {
            resources.push(resource(name, are_paths)?);
        }
        let (client, everywhere) = (self.handle.client(), names.is_none());
        Ok(async move {
            let client = client.asynchronous();
            let looked = if everywhere {
                client.look_everywhere().await
            } else {
                client.look(&resources).await
            };
            Ok(seen_json(&looked.map_err(Failure::from)?, client.witness()))
        })
    }
}

/// Who holds and who waits, as JSON.
fn seen_json(seen: &Snapshot, witness: &dyn Witness) -> String {
    let judged = |seen: &HoldSnapshot| {
        let mut value = hold_json(seen);
        let reason = stale_reason(seen, witness);
        value["is_stale"] = reason.is_some().into();
        value["stale_reason"] = reason.into();
        value
    };
    let holds: Vec<Value> = seen.holds.iter().map(judged).collect();
    let waiting = seen.waiters.iter().map(|seen| {
        json!({
            "holder": seen.waiter.holder.label,
            "operation": seen.waiter.operation,
            "waited_for": seen.waited_for.as_secs_f64(),
            "is_dead": seen.waiter.holder.liveness(witness) == Liveness::Dead,
        })
    });
    let waiting: Vec<Value> = waiting.collect();
    json!({ "holds": holds, "waiting": waiting }).to_string()
}

/// How long to wait: `None` is for ever, 0 not at all.
pub(crate) fn patience(seconds: Option<f64>) -> Wait {
    match seconds {
        None => Wait::Forever,
        Some(seconds) if seconds <= 0.0 => Wait::No,
        Some(seconds) => Wait::UpTo(duration(seconds)),
    }
}

/// The resource that a program names. A path is relative to the current folder, as on a command line.
pub(crate) fn resource(name: &str, is_path: bool) -> Result<Resource, Failure> {
    let is_path = is_path || matches!(Kind::split(name), Some((Kind::Path, _)));
    if !is_path {
        return Resource::requested(name).map_err(|error| tenure::Error::from(error).into());
    }
    let prefix = format!("{}:", Kind::Path);
    let written = match name.starts_with(&prefix) {
        true => name.to_owned(),
        false => prefix + name,
    };
    let directory = std::env::current_dir().map_err(|error| {
        Failure::new("InvalidRequest", format!("the current folder cannot be used: {error}"))
    })?;
    match place::find(&Surroundings::of_process(directory.clone())) {
        Ok(place) => Ok(place.resource_from(&directory, &written, Reach::AllWorktrees)?),
        Err(_) => Resource::requested(&written).map_err(|error| tenure::Error::from(error).into()),
    }
}

/// The label that the environment chooses for the store with this URL, as for the command.
fn label_for(url: &str) -> Option<String> {
    let url = url.parse::<StoreUrl>().ok()?;
    let names = [Some("TENURE_AGENT"), url.dialect().defaults().label_variable];
    let mut labels =
        names.into_iter().flatten().filter_map(|name| std::env::var_os(name)?.into_string().ok());
    labels.find(|label| !label.is_empty())
}

/// Why this does not hold any more though nobody gave it back; nothing if it holds.
fn stale_reason(seen: &HoldSnapshot, witness: &dyn Witness) -> Option<String> {
    let holder = &seen.hold.holder;
    if !seen.gone(witness) {
        return None;
    }
    let process = holder.evidence.as_ref().and_then(|evidence| evidence.process);
    Some(match (holder.liveness(witness), process) {
        (Liveness::Dead, Some(process)) => {
            let host = holder.evidence.as_ref().map_or("", |evidence| &evidence.host);
            format!("process {} on {host} is dead", process.pid)
        }
        (Liveness::Dead, None) => "its holder is dead".to_owned(),
        _ => seen.stale.clone().unwrap_or_else(|| "its lease lapsed".to_owned()),
    })
}

#[pymethods]
impl Store {
    /// Opens the store that the URL names, or the one that the command would use in a folder.
    #[staticmethod]
    #[pyo3(signature = (url=None, label=None, folder=None))]
    fn open(
        py: Python<'_>,
        url: Option<String>,
        label: Option<String>,
        folder: Option<PathBuf>,
    ) -> PyResult<Store> {
        let opened = py.detach(|| {
            let mut builder = tenure::Client::builder();
            if let Some(label) = label.or_else(|| label_for(url.as_deref()?)) {
                builder = builder.label(label);
            }
            match (url, folder) {
                (Some(url), _) => {
                    let builder = builder.around(locate::grants_around());
                    Client::open_with(builder, &url).map_err(Failure::from)
                }
                (None, folder) => {
                    let folder = folder.as_deref();
                    Client::discover_with(builder, folder)
                        .map_err(|error| Failure::of_discovery(error, folder))
                }
            }
        });
        Ok(Store { handle: Handle::new(opened?) })
    }

    /// The URL of the store.
    #[getter]
    fn url(&self) -> String {
        self.handle.client().asynchronous().info().url
    }

    /// The single lock of the folder, if programs that share it have no other.
    #[getter]
    fn only_resource(&self) -> Option<String> {
        let client = self.handle.client();
        client.asynchronous().dialect().only_resource().map(|only| only.to_string())
    }

    /// The name under which this program holds.
    #[getter]
    fn label(&self) -> String {
        self.handle.client().asynchronous().holder().label.clone()
    }

    /// Takes what is wanted, waiting for it; a guard, or who is in the way as JSON. The caller gives
    /// back nothing of what it keeps before it has an answer; without `keeps` it is not warned of
    /// waits for itself.
    fn hold(
        &self,
        py: Python<'_>,
        wanted: Wanted,
        limit: Option<f64>,
        keeps: Option<Vec<Kept>>,
    ) -> PyResult<Answer> {
        let (request, warnings) = self.request(wanted, patience(limit), keeps)?;
        let client = self.handle.client();
        let attempt = wait_with_warnings(py, &client, request.hold(), &warnings)?;
        Ok(Answer::new(self.handle.clone(), attempt.map_err(Failure::from)?))
    }

    /// The same for asyncio; see `Pending`.
    fn start_hold(
        &self,
        py: Python<'_>,
        wanted: Wanted,
        limit: Option<f64>,
        keeps: Option<Vec<Kept>>,
        done: Py<PyAny>,
    ) -> PyResult<Pending> {
        let (request, warnings) = self.request(wanted, patience(limit), keeps)?;
        let handle = self.handle.clone();
        let hold = async move {
            let attempt = request.hold().await.map_err(Failure::from)?;
            Ok(Answer::new(handle, attempt))
        };
        start_with_warnings(py, hold, warnings, done)
    }

    /// Who holds and who waits: for these names, or for anything. As JSON.
    #[pyo3(signature = (names=None, are_paths=false))]
    fn look(
        &self,
        py: Python<'_>,
        names: Option<Vec<String>>,
        are_paths: bool,
    ) -> PyResult<String> {
        let looking = self.looking(names, are_paths)?;
        Ok(wait(py, &self.handle.client(), looking)??)
    }

    /// The same for other threads than the caller's; see `Pending`.
    fn start_look(
        &self,
        py: Python<'_>,
        names: Option<Vec<String>>,
        are_paths: bool,
        done: Py<PyAny>,
    ) -> PyResult<Pending> {
        start(py, self.looking(names, are_paths)?, done)
    }

    /// Breaks the hold with this token; says whether there was one.
    fn break_hold(&self, py: Python<'_>, name: &str, token: u64, reason: String) -> PyResult<bool> {
        Ok(wait(py, &self.handle.client(), self.breaking(name, token, reason)?)??)
    }

    /// The same for other threads than the caller's; see `Pending`.
    fn start_break_hold(
        &self,
        py: Python<'_>,
        name: &str,
        token: u64,
        reason: String,
        done: Py<PyAny>,
    ) -> PyResult<Pending> {
        start(py, self.breaking(name, token, reason)?, done)
    }

    /// Whether this token holds this resource now.
    fn verify(&self, py: Python<'_>, name: &str, token: u64) -> PyResult<bool> {
        Ok(wait(py, &self.handle.client(), self.verifying(name, token)?)??)
    }

    /// The same for other threads than the caller's; see `Pending`.
    fn start_verify(
        &self,
        py: Python<'_>,
        name: &str,
        token: u64,
        done: Py<PyAny>,
    ) -> PyResult<Pending> {
        start(py, self.verifying(name, token)?, done)
    }
}
