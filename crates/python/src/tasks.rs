//! Tasks: adding, claiming, finishing.

use crate::background::{Pending, start};
use crate::errors::Failure;
use crate::store::{Handle, Store, patience, resource};
use crate::waiting::{duration, wait};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure::core::rules::tasks::{Added, FinishAsk, ManualChange, NewTask};
use tenure::core::{GrantId, Proof, Status, Task, TaskId, WallTime};
use tenure::store::{StoreError, TaskFilter};
use tenure::{ClaimRequest, Finish, Finished, Next, NoClaim, Wait};

/// A task as it was when it was looked at. It is written as JSON only for programs that read it: most
/// workers do not look at what a finish answers.
#[pyclass(frozen, module = "tenure._native")]
pub(crate) struct TaskRecord {
    task: Task,
}

#[pymethods]
impl TaskRecord {
    /// All fields as JSON, without grants.
    fn json(&self) -> String {
        task_json(self.task.clone()).to_string()
    }

    /// The payload as JSON, if there is one.
    #[getter]
    fn payload(&self) -> Option<&str> {
        self.task.payload.as_deref()
    }
}

/// A task that is being worked on. Its claim is renewed in the background; dropped, it is handed back.
#[pyclass(frozen, module = "tenure._native")]
pub(crate) struct Work {
    handle: Handle,
    /// Taken when it is finished.
    work: Mutex<Option<tenure::Work>>,
    /// The runner that keeps the section of the task, if one does.
    runner: Option<Arc<tenure::Runner>>,
    /// What was claimed together with it, if several were.
    batch: Option<Batch>,
    #[pyo3(get)]
    token: u64,
    task: Task,
}

/// What was claimed and not handed out yet.
type Batch = Arc<Mutex<VecDeque<tenure::Work>>>;

impl Work {
    fn new(handle: &Handle, work: tenure::Work) -> Work {
        Work {
            handle: handle.clone(),
            token: work.lease().token.0,
            task: work.task().clone(),
            work: Mutex::new(Some(work)),
            runner: None,
            batch: None,
        }
    }

    fn work(&self) -> MutexGuard<'_, Option<tenure::Work>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the work ends, from JSON. Refuses what no store keeps, while the claim is still held.
    fn checked(&self, finish: &str) -> Result<Finish, Failure> {
        let finish = serde_json::from_str(finish)
            .map_err(|error| Failure::new("InvalidRequest", error.to_string()))?;
        let Some(grant) = self.work().as_ref().map(|work| work.lease().grant) else {
            return Err(finished_already());
        };
        let (task, proof) = (self.task.id.clone(), Proof::Grant(grant));
        let ask = FinishAsk { task, proof, token: None, runner: None, finish };
        ask.check().map_err(StoreError::from)?;
        Ok(ask.finish)
    }

    /// Ends the work like this: the future says it to the store.
    fn finishing(
        &self,
        finish: &str,
    ) -> Result<impl Future<Output = Result<TaskRecord, Failure>> + Send + use<>, Failure> {
        let finish = self.checked(finish)?;
        let work = self.work().take().ok_or_else(finished_already)?;
        Ok(finish_work(work, self.runner.clone(), finish))
    }
}

impl Work {
    /// The grants of the claim, and of what was claimed with it and not handed out yet.
    pub(crate) fn grants(&self) -> Vec<GrantId> {
        let work = self.work();
        let ahead = self.batch.as_ref().map(|batch| ready(batch));
        let ahead = ahead.iter().flat_map(|ahead| ahead.iter());
        let grants = |work: &tenure::Work| [Some(work.lease().grant), work.section_grant()];
        work.iter().chain(ahead).flat_map(grants).flatten().collect()
    }
}

fn finished_already() -> Failure {
    Failure::new("TaskError", "the task was finished already")
}

/// How a finish ended: the task as it is now.
fn finished_task(finished: Finished) -> Result<TaskRecord, Failure> {
    match finished {
        Finished::Done { task, .. } => Ok(TaskRecord { task }),
        Finished::NotFound => Err(Failure::new("Lost", "the task was removed")),
        Finished::NotYours(task) => {
            let message = format!("the claim of task {} ({:?}) was lost", task.id, task.title);
            Err(lost(message, &task))
        }
        Finished::ClaimLost { task, part } => {
            let message = format!("the claim of task {} ({:?}) lost {part}", task.id, task.title);
            Err(lost(message, &task))
        }
    }
}

fn lost(message: String, task: &Task) -> Failure {
    let holder = task.claim.as_ref().map(|claim| claim.by.as_str());
    let hint = "Nothing was changed. Stop working on it; claim it again if it is still to be done.";
    let details = json!({ "resource": task.id.resource().to_string(), "holder": holder });
    Failure::new("Lost", message).hint(Some(hint.to_owned())).details(details)
}

/// A task without grants, with its payload and result as values.
fn task_json(task: Task) -> Value {
    let mut value = serde_json::to_value(task.redacted()).unwrap_or_default();
    remove_grants(&mut value);
    // Only now: what a program keeps in these is its own.
    for field in ["payload", "result"] {
        if let Some(Value::String(text)) = value.get(field)
            && let Ok(parsed) = serde_json::from_str::<Value>(text)
        {
            value[field] = parsed;
        }
    }
    if let Value::Object(fields) = &mut value {
        // How a finish is recognised when it is repeated; of no use to a program.
        fields.remove("finished_claim");
    }
    value
}

/// Removes grants, also in their public form: a program that prints a task prints none.
fn remove_grants(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("grant");
            fields.values_mut().for_each(remove_grants);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_grants),
        _ => {}
    }
}

#[pymethods]
impl Work {
    /// Whether the claim, with all of its parts, may be trusted now.
    fn is_held(&self) -> bool {
        self.work().as_ref().is_some_and(tenure::Work::is_held)
    }

    /// Whether it was finished here.
    fn is_finished(&self) -> bool {
        self.work().is_none()
    }

    /// The task as it was claimed.
    #[getter]
    fn task(&self) -> TaskRecord {
        TaskRecord { task: self.task.clone() }
    }

    /// Fails if the work cannot end like this, such as with a result that is too long.
    fn check_finish(&self, finish: &str) -> PyResult<()> {
        self.checked(finish)?;
        Ok(())
    }

    /// Says how the work ended; `finish` is JSON. Returns the task as it is now.
    fn finish(&self, py: Python<'_>, finish: &str) -> PyResult<TaskRecord> {
        let finishing = self.finishing(finish)?;
        Ok(wait(py, &self.handle.client(), finishing)??)
    }

    /// The same for asyncio; see `Pending`.
    fn start_finish(&self, py: Python<'_>, finish: &str, done: Py<PyAny>) -> PyResult<Pending> {
        start(py, self.finishing(finish)?, done)
    }
}

async fn finish_work(
    work: tenure::Work,
    runner: Option<Arc<tenure::Runner>>,
    finish: Finish,
) -> Result<TaskRecord, Failure> {
    let finished = match runner {
        Some(runner) => runner.finish(work, finish).await,
        None => work.finish(finish).await,
    };
    finished_task(finished.map_err(Failure::from)?)
}

/// A worker that claims one task after another, or several at once.
#[pyclass(frozen, module = "tenure._native")]
pub(crate) struct Runner {
    handle: Handle,
    runner: Arc<tenure::Runner>,
    request: ClaimRequest,
    /// Whether it waits no longer than anything is left to do in its section.
    ends_with_section: bool,
    /// Claimed together with one that was handed out already.
    claimed: Batch,
}

/// How long a worker that waits until nothing is left sleeps before it looks again.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Runner {
    /// Takes the next task; nothing if none came in time.
    async fn take_next(
        handle: Handle,
        runner: Arc<tenure::Runner>,
        request: ClaimRequest,
        claimed: Batch,
        ends_with_section: bool,
        wait: Wait,
    ) -> Result<Option<Work>, Failure> {
        if request.count <= 1 {
            return Ok(match runner.next(wait).await.map_err(Failure::from)? {
                Next::Work(work) => Some(Work { runner: Some(runner), ..Work::new(&handle, work) }),
                Next::None(none) => no_claim(none)?,
            });
        }
        let of_batch = |work| Work { batch: Some(claimed.clone()), ..Work::new(&handle, work) };
        if let Some(work) = ready(&claimed).pop_front() {
            return Ok(Some(of_batch(work)));
        }
        let client = handle.client();
        let mut claim = client.asynchronous().tasks().request(request).wait(wait);
        if !ends_with_section {
            claim = claim.wait_for_new_tasks();
        }
        let taken = claim.take_work().await;
        match taken.map_err(Failure::from)? {
            Ok(works) => {
                let mut ready = ready(&claimed);
                ready.extend(works);
                Ok(ready.pop_front().map(of_batch))
            }
            Err(none) => no_claim(none),
        }
    }

    fn taking_next(
        &self,
        wait: Wait,
    ) -> impl Future<Output = Result<Option<Work>, Failure>> + Send + use<> {
        let (handle, runner) = (self.handle.clone(), self.runner.clone());
        let (request, claimed) = (self.request.clone(), self.claimed.clone());
        Runner::take_next(handle, runner, request, claimed, self.ends_with_section, wait)
    }

    /// Gives back the section that the worker keeps, and tasks that were claimed and not handed out.
    fn leaving(&self) -> impl Future<Output = Result<(), Failure>> + Send + use<> {
        let (runner, claimed) = (self.runner.clone(), std::mem::take(&mut *ready(&self.claimed)));
        async move {
            for work in claimed {
                work.finish(Finish::Release).await.map_err(Failure::from)?;
            }
            runner.leave().await.map_err(Failure::from)
        }
    }

    /// Whether a task that this worker could take may still come: one is in progress, or waits for
    /// its time. If so, waits for a change.
    fn more(&self, pause: Duration) -> impl Future<Output = Result<bool, Failure>> + use<> {
        let (handle, runner) = (self.handle.clone(), self.runner.clone());
        let request = self.request.clone();
        async move {
            let client = handle.client();
            let client = client.asynchronous();
            // Read before the look, so that no change after it is missed.
            let now = client.changed(Default::default(), Duration::ZERO).await;
            let now = now.map_err(Failure::from)?;
            // A worker that waits for others must not keep a section from them.
            runner.leave().await.map_err(Failure::from)?;
            let left = client.tasks().left(&request).await.map_err(Failure::from)?;
            let may_come = left.in_progress > 0 || left.ready > 0 || left.later > 0;
            if may_come {
                let news = client.tasks().wait_for_news(now, pause.min(LOOK_EVERY)).await;
                news.map_err(Failure::from)?;
            }
            Ok(may_come)
        }
    }
}

/// What was claimed and not handed out yet.
fn ready(batch: &Mutex<VecDeque<tenure::Work>>) -> MutexGuard<'_, VecDeque<tenure::Work>> {
    batch.lock().unwrap_or_else(PoisonError::into_inner)
}

/// No task is an answer, unless the named one does not exist.
fn no_claim(none: NoClaim) -> Result<Option<Work>, Failure> {
    match none {
        NoClaim::NotFound => Err(Failure::new("NoSuchTask", "there is no such task")),
        _ => Ok(None),
    }
}

#[pymethods]
impl Runner {
    /// Takes the next task, waiting for one.
    fn next(&self, py: Python<'_>, limit: Option<f64>) -> PyResult<Option<Work>> {
        Ok(wait(py, &self.handle.client(), self.taking_next(patience(limit)))??)
    }

    /// The same for asyncio; see `Pending`.
    fn start_next(&self, py: Python<'_>, limit: Option<f64>, done: Py<PyAny>) -> PyResult<Pending> {
        start(py, self.taking_next(patience(limit)), done)
    }

    /// Whether a task that this worker could take may still come; if so, waits a moment for a change.
    fn wait_for_more(&self, py: Python<'_>, limit: f64) -> PyResult<bool> {
        Ok(wait(py, &self.handle.client(), self.more(duration(limit)))??)
    }

    /// The same for asyncio; see `Pending`.
    fn start_wait_for_more(
        &self,
        py: Python<'_>,
        limit: f64,
        done: Py<PyAny>,
    ) -> PyResult<Pending> {
        start(py, self.more(duration(limit)), done)
    }

    /// Gives back the section that the worker keeps, and tasks that were claimed and not handed out.
    fn leave(&self, py: Python<'_>) -> PyResult<()> {
        Ok(wait(py, &self.handle.client(), self.leaving())??)
    }

    /// The same for asyncio; see `Pending`.
    fn start_leave(&self, py: Python<'_>, done: Py<PyAny>) -> PyResult<Pending> {
        start(py, self.leaving(), done)
    }
}

/// The tasks of a store.
#[pyclass(frozen, module = "tenure._native")]
pub(crate) struct Tasks {
    handle: Handle,
}

impl Tasks {
    fn noting(
        &self,
        id: TaskId,
        text: String,
    ) -> impl Future<Output = Result<(), Failure>> + Send + use<> {
        let client = self.handle.client();
        async move {
            let noted = client.asynchronous().tasks().add_note(&id, &text).await;
            noted.map(drop).map_err(Failure::from)
        }
    }

    fn adding(
        &self,
        tasks: &str,
    ) -> Result<impl Future<Output = Result<Vec<(String, bool)>, Failure>> + Send + use<>, Failure>
    {
        let (tasks, client) = (new_tasks(tasks)?, self.handle.client());
        Ok(async move {
            let added = client.asynchronous().tasks().add(tasks).await.map_err(Failure::from)?;
            let answer = |added| match added {
                Added::New(id) => (id.to_string(), true),
                Added::Existing(id) => (id.to_string(), false),
            };
            Ok(added.into_iter().map(answer).collect())
        })
    }

    fn listing(
        &self,
        status: Option<&str>,
        section: Option<String>,
        label: Option<String>,
    ) -> Result<impl Future<Output = Result<Vec<TaskRecord>, Failure>> + Send + use<>, Failure>
    {
        let status = status.map(str::parse::<Status>).transpose();
        let status = status.map_err(|error| Failure::new("InvalidRequest", error.to_string()))?;
        let filter = TaskFilter { status, section, label, ..TaskFilter::default() };
        let client = self.handle.client();
        Ok(async move {
            let listed =
                client.asynchronous().tasks().list(&filter).await.map_err(Failure::from)?;
            Ok(listed.into_iter().map(|task| TaskRecord { task }).collect())
        })
    }

    fn finding(
        &self,
        text: String,
    ) -> impl Future<Output = Result<TaskRecord, Failure>> + Send + use<> {
        let client = self.handle.client();
        async move {
            let found = client.asynchronous().tasks().find(&text).await;
            Ok(TaskRecord { task: found.map_err(Failure::from)? })
        }
    }

    fn counting(&self) -> impl Future<Output = Result<String, Failure>> + Send + use<> {
        let client = self.handle.client();
        async move {
            let tallies = client.asynchronous().tasks().tallies().await.map_err(Failure::from)?;
            let mut counts = serde_json::Map::new();
            for tally in tallies {
                let before = counts.get(tally.status.word()).and_then(Value::as_u64).unwrap_or(0);
                counts.insert(tally.status.word().to_owned(), (before + tally.count).into());
            }
            Ok(Value::Object(counts).to_string())
        }
    }

    fn changing(
        &self,
        id: &str,
        change: &str,
        reason: Option<String>,
    ) -> Result<impl Future<Output = Result<TaskRecord, Failure>> + Send + use<>, Failure> {
        let verb = match change {
            "cancel" => ManualChange::Cancel,
            "retry" => ManualChange::Retry,
            "skip" => ManualChange::Skip,
            "approve" => ManualChange::Approve,
            "reject" => ManualChange::Reject { feedback: reason.unwrap_or_default() },
            _ => return Err(Failure::new("InvalidRequest", format!("no change {change:?}"))),
        };
        let (id, client) = (task_id(id)?, self.handle.client());
        Ok(async move {
            let changed = client.asynchronous().tasks().edit(&id, verb).await;
            Ok(TaskRecord { task: changed.map_err(Failure::from)? })
        })
    }
}

#[pymethods]
impl Tasks {
    #[new]
    fn new(store: &Store) -> Tasks {
        Tasks { handle: store.handle().clone() }
    }

    /// Adds tasks, all or none: a list of tasks as JSON. Returns the ids, and whether each is new.
    fn add(&self, py: Python<'_>, tasks: &str) -> PyResult<Vec<(String, bool)>> {
        Ok(wait(py, &self.handle.client(), self.adding(tasks)?)??)
    }

    /// The same for other threads than the caller's; see `Pending`.
    fn start_add(&self, py: Python<'_>, tasks: &str, done: Py<PyAny>) -> PyResult<Pending> {
        start(py, self.adding(tasks)?, done)
    }

    /// A worker. `task` is the id of the only one wanted.
    #[pyo3(signature = (
        section=None, labels=vec![], count=1, ttl=None, task=None, worker=None, ends_with_section=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are named in Python")]
    fn runner(
        &self,
        section: Option<String>,
        labels: Vec<String>,
        count: usize,
        ttl: Option<f64>,
        task: Option<&str>,
        worker: Option<String>,
        ends_with_section: bool,
    ) -> PyResult<Runner> {
        let mut request =
            ClaimRequest { section, labels, count, worker, ..ClaimRequest::default() };
        if let Some(ttl) = ttl {
            (request.ttl, request.section_ttl) = (duration(ttl), duration(ttl));
        }
        if let Some(id) = task {
            request.task = Some(task_id(id)?);
        }
        let client = self.handle.client();
        let mut runner = tenure::Runner::new(client.asynchronous(), request.clone());
        if ends_with_section {
            runner = runner.end_with_section();
        }
        Ok(Runner {
            handle: self.handle.clone(),
            runner: Arc::new(runner),
            request,
            ends_with_section,
            claimed: Arc::default(),
        })
    }

    /// Tasks, oldest first.
    #[pyo3(signature = (status=None, section=None, label=None))]
    fn list(
        &self,
        py: Python<'_>,
        status: Option<&str>,
        section: Option<String>,
        label: Option<String>,
    ) -> PyResult<Vec<TaskRecord>> {
        Ok(wait(py, &self.handle.client(), self.listing(status, section, label)?)??)
    }

    /// The same for other threads than the caller's; see `Pending`.
    fn start_list(
        &self,
        py: Python<'_>,
        status: Option<&str>,
        section: Option<String>,
        label: Option<String>,
        done: Py<PyAny>,
    ) -> PyResult<Pending> {
        start(py, self.listing(status, section, label)?, done)
    }

    /// The task that is meant: by id, by a unique beginning of it, or by its title.
    fn find(&self, py: Python<'_>, text: String) -> PyResult<TaskRecord> {
        Ok(wait(py, &self.handle.client(), self.finding(text))??)
    }

    /// The same for other threads than the caller's; see `Pending`.
    fn start_find(&self, py: Python<'_>, text: String, done: Py<PyAny>) -> PyResult<Pending> {
        start(py, self.finding(text), done)
    }

    /// How many tasks there are of each status, as JSON.
    fn counts(&self, py: Python<'_>) -> PyResult<String> {
        Ok(wait(py, &self.handle.client(), self.counting())??)
    }

    /// The same for other threads than the caller's; see `Pending`.
    fn start_counts(&self, py: Python<'_>, done: Py<PyAny>) -> PyResult<Pending> {
        start(py, self.counting(), done)
    }

    /// Changes a task by hand: "cancel", "retry", "skip", "approve" or "reject". Returns it.
    #[pyo3(signature = (id, change, reason=None))]
    fn change(
        &self,
        py: Python<'_>,
        id: &str,
        change: &str,
        reason: Option<String>,
    ) -> PyResult<TaskRecord> {
        Ok(wait(py, &self.handle.client(), self.changing(id, change, reason)?)??)
    }

    /// The same for other threads than the caller's; see `Pending`.
    fn start_change(
        &self,
        py: Python<'_>,
        id: &str,
        change: &str,
        reason: Option<String>,
        done: Py<PyAny>,
    ) -> PyResult<Pending> {
        start(py, self.changing(id, change, reason)?, done)
    }

    /// Adds a note to a task for its next worker.
    fn note(&self, py: Python<'_>, id: &str, text: String) -> PyResult<()> {
        let noting = self.noting(task_id(id)?, text);
        Ok(wait(py, &self.handle.client(), noting)??)
    }

    /// The same for asyncio; see `Pending`.
    fn start_note(
        &self,
        py: Python<'_>,
        id: &str,
        text: String,
        done: Py<PyAny>,
    ) -> PyResult<Pending> {
        start(py, self.noting(task_id(id)?, text), done)
    }
}

fn task_id(text: &str) -> Result<TaskId, Failure> {
    text.parse().map_err(|error| tenure::Error::Resource(error).into())
}

/// Tasks from JSON objects with the fields of `Tasks.add`.
fn new_tasks(text: &str) -> Result<Vec<NewTask>, Failure> {
    let invalid = |error: serde_json::Error| Failure::new("InvalidRequest", error.to_string());
    let tasks: Vec<Value> = serde_json::from_str(text).map_err(invalid)?;
    let mut new = Vec::with_capacity(tasks.len());
    for fields in tasks {
        let mut task = new_task(fields).map_err(invalid)?;
        for glob in &mut task.files {
            *glob = resource(glob, true)?.name().to_owned();
        }
        new.push(task);
    }
    Ok(new)
}

/// A task with the usual values where its fields say nothing.
fn new_task(fields: Value) -> Result<NewTask, serde_json::Error> {
    let mut usual = NewTask::titled("");
    // A time of day from now is said in seconds.
    if let Some(at) = fields.get("not_before_seconds").and_then(Value::as_f64) {
        usual.not_before = Some(WallTime((at * 1000.0) as i64));
    }
    let mut whole = serde_json::to_value(usual)?;
    if let (Value::Object(whole), Value::Object(fields)) = (&mut whole, fields) {
        whole.extend(fields.into_iter().filter(|(name, _)| name != "not_before_seconds"));
    }
    serde_json::from_value(whole)
}
