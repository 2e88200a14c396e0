//! Acts that only put and drop small records.

use super::Act;
use crate::decision::Decision;
use crate::snapshot::{Scope, Snapshot};
use crate::task::TaskId;
use crate::{GrantId, Role, Witness, WorkerReport, output, registry};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Keeps what the command of a task has printed so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PutOutput {
    /// Which task.
    pub task: TaskId,
    /// Which attempt: the number of its try.
    pub attempt: u32,
    /// The grant of the claim.
    pub grant: GrantId,
    /// The last lines.
    pub text: String,
}

impl Act for PutOutput {
    const VERB: &'static str = "put_output";
    const ROLE: Role = Role::Work;
    /// Whether it was kept; not if the worker no longer has the task.
    type Answer = bool;

    fn scope(&self) -> Scope {
        Scope::At { resources: vec![self.task.resource()], ticket: None }
    }

    fn labels(&self) -> Vec<&str> {
        vec![]
    }

    fn decide(&self, seen: &Snapshot, _: &dyn Witness) -> (Decision, bool) {
        output::put_output(seen, &self.task, self.attempt, self.grant, &self.text)
    }
}

/// Registers a worker, or says what it does now.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PutWorker {
    /// Tells the worker from others with the same label.
    pub id: String,
    /// What it says.
    pub worker: WorkerReport,
    /// How long it is listed unless it says more.
    #[serde(rename = "ttl_ms", with = "crate::millis")]
    pub ttl: Duration,
}

impl Act for PutWorker {
    const VERB: &'static str = "put_worker";
    const ROLE: Role = Role::Work;
    type Answer = ();

    fn scope(&self) -> Scope {
        Scope::At { resources: vec![], ticket: None }
    }

    fn labels(&self) -> Vec<&str> {
        vec![&self.worker.label]
    }

    fn decide(&self, seen: &Snapshot, _: &dyn Witness) -> (Decision, ()) {
        (registry::put_worker(seen, &self.id, &self.worker, self.ttl), ())
    }
}

/// Removes a worker that ended from the registry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DropWorker {
    /// Which.
    pub id: String,
}

impl Act for DropWorker {
    const VERB: &'static str = "drop_worker";
    const ROLE: Role = Role::Work;
    type Answer = ();

    fn scope(&self) -> Scope {
        Scope::At { resources: vec![], ticket: None }
    }

    fn labels(&self) -> Vec<&str> {
        vec![]
    }

    fn decide(&self, _: &Snapshot, _: &dyn Witness) -> (Decision, ()) {
        (registry::drop_worker(&self.id), ())
    }
}
