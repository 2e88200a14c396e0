//! The machine on which this process runs.

use super::{BackgroundTask, Clock, SystemClock, Task, TaskHandle, World};
use crate::platform::fork::between_forks;
use crate::platform::{self, LocalWitness};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tenure_core::{Evidence, Group, Witness};

/// The machine itself, with tokio's runtime of the caller for sleeping and spawning.
#[derive(Clone)]
pub struct SystemWorld {
    clock: Arc<dyn Clock>,
    witness: Option<Arc<dyn Witness + Send + Sync>>,
}

impl SystemWorld {
    /// The machine as it is.
    pub fn new() -> SystemWorld {
        SystemWorld { clock: Arc::new(SystemClock), witness: None }
    }

    /// The machine with another clock, which a test moves; sleeping takes real time all the same.
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> SystemWorld {
        SystemWorld { clock, ..self }
    }

    /// The machine with another judge of who lives.
    pub fn with_witness(self, witness: Arc<dyn Witness + Send + Sync>) -> SystemWorld {
        SystemWorld { witness: Some(witness), ..self }
    }
}

impl Default for SystemWorld {
    fn default() -> SystemWorld {
        SystemWorld::new()
    }
}

impl World for SystemWorld {
    fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    fn sleep(&self, time: Duration) -> Task {
        Box::pin(tokio::time::sleep(time))
    }

    fn spawn(&self, task: Task) -> TaskHandle {
        let task = tokio::spawn(task);
        TaskHandle::new(move || task.abort())
    }

    /// Runs the task on a thread of its own, so that long work on the caller's runtime cannot stop
    /// it. Without a thread the task never runs: what it would have renewed lapses, and its holder
    /// learns of it.
    fn spawn_background(&self, task: Task) -> BackgroundTask {
        let (sender, ended) = mpsc::channel();
        let run = move || {
            let _ended = sender;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            if let Ok(runtime) = runtime {
                runtime.block_on(between_forks(task));
            }
        };
        let _ = std::thread::Builder::new().name("tenure-keeper".to_owned()).spawn(run);
        BackgroundTask::new(ended)
    }

    fn random(&self) -> u128 {
        uuid::Uuid::new_v4().as_u128()
    }

    fn process_id(&self) -> u32 {
        platform::process_id()
    }

    fn this_machine(&self) -> Evidence {
        platform::this_boot()
    }

    fn this_process(&self) -> Evidence {
        platform::this_process()
    }

    fn process(&self, pid: u32) -> Option<Evidence> {
        platform::process_evidence(pid)
    }

    fn processes_around(&self) -> Vec<Evidence> {
        crate::agent::processes_around()
    }

    fn process_group(&self, leader: u32) -> Group {
        platform::process_group(leader)
    }

    fn witness(&self, ended_boots: Vec<String>) -> Arc<dyn Witness + Send + Sync> {
        let witness = self.witness.clone();
        witness.unwrap_or_else(|| Arc::new(LocalWitness::knowing(ended_boots)))
    }

    fn process_ended(&self, evidence: Evidence) -> Task {
        Box::pin(platform::ended(evidence))
    }
}
