//! A worker's place in the registry of workers: what it takes, what it does, and that it is there.
//!
//! The registry is for showing. A store that is in trouble is left alone until the next report; a record
//! that is not refreshed ends by itself.

use super::Client;
use super::keeper::BackgroundCleanup;
use super::tasks::ClaimRequest;
use crate::world::TaskHandle;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::act::{DropWorker, PutWorker};
use tenure_core::registry::{WORKER_REFRESH, WORKER_TTL};
use tenure_core::{TaskId, WorkerReport};
use tokio::sync::Notify;

/// How soon a change of state is reported after the report before it: a worker of many short tasks
/// reports no more often.
const REPORT_PAUSE: Duration = Duration::from_secs(1);

/// A worker in the registry. It is removed when it ends, and when it is dropped.
pub(super) struct Registration {
    client: Client,
    id: String,
    begun: Duration,
    report: Arc<Mutex<WorkerReport>>,
    changed: Arc<Notify>,
    /// Sends reports while the worker runs.
    reporter: Mutex<Option<TaskHandle>>,
    /// Whether the worker has left: a report that is still on its way must not bring it back.
    ended: Arc<tokio::sync::Mutex<bool>>,
}

impl Registration {
    /// A worker that is not registered yet.
    pub(super) fn new(client: &Client, request: &ClaimRequest) -> Registration {
        let label = &client.holder().label;
        let report = WorkerReport {
            label: request
                .worker
                .as_ref()
                .map_or_else(|| label.clone(), |worker| format!("{label}/{worker}")),
            evidence: Some(client.inner.world.this_process()),
            section: request.section.clone(),
            labels: request.labels.clone(),
            ..WorkerReport::default()
        };
        Registration {
            client: client.clone(),
            id: format!("{:032x}", client.inner.world.random()),
            begun: client.inner.clock.now(),
            report: Arc::new(Mutex::new(report)),
            changed: Arc::new(Notify::new()),
            reporter: Mutex::new(None),
            ended: Arc::default(),
        }
    }

    /// Begins to report, unless it did before. Call it on a runtime.
    pub(super) fn begin(&self) {
        let mut reporter = self.reporter.lock();
        if reporter.is_some() {
            return;
        }
        let (client, id, begun) = (self.client.clone(), self.id.clone(), self.begun);
        let (report, changed) = (self.report.clone(), self.changed.clone());
        let ended = self.ended.clone();
        let world = self.client.inner.world.clone();
        let report_on = async move {
            loop {
                let running_for = client.inner.clock.now().saturating_sub(begun);
                let worker = WorkerReport { running_for, ..report.lock().clone() };
                let act = PutWorker { id: id.clone(), worker, ttl: WORKER_TTL };
                // By the keeper: this task may stand still between two calls of a blocking client,
                // and must not do so in the middle of a change.
                let report = Box::new((ended.clone(), act));
                client.inner.keeper.send(BackgroundCleanup::PutWorker(report));
                world.sleep(REPORT_PAUSE).await;
                let _ = world.timeout(WORKER_REFRESH - REPORT_PAUSE, changed.notified()).await;
            }
        };
        *reporter = Some(self.client.inner.world.spawn(Box::pin(report_on)));
    }

    fn change(&self, change: impl FnOnce(&mut WorkerReport)) {
        change(&mut self.report.lock());
        self.changed.notify_one();
    }

    /// The worker took this task.
    pub(super) fn took(&self, task: &TaskId) {
        self.change(|report| report.tasks.push(task.clone()));
    }

    /// The worker no longer has this task; `done` says whether it did it, if it came to an end.
    pub(super) fn ended(&self, task: &TaskId, done: Option<bool>) {
        self.change(|report| {
            report.tasks.retain(|one| one != task);
            match done {
                Some(true) => report.done += 1,
                Some(false) => report.failed += 1,
                None => {}
            }
        });
    }

    /// Leaves the registry. A store that does not answer forgets the worker by itself.
    pub(super) async fn end(&self) {
        if self.stop() {
            *self.ended.lock().await = true;
            let act = DropWorker { id: self.id.clone() };
            let _ = self.client.inner.backend.perform(&act).await;
        }
    }

    /// Stops reporting; says whether it had begun.
    fn stop(&self) -> bool {
        self.reporter.lock().take().is_some()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if self.stop() {
            let act = DropWorker { id: std::mem::take(&mut self.id) };
            self.client.inner.keeper.send(BackgroundCleanup::DropWorker(act));
        }
    }
}
