//! A process of a simulated machine, as the client in it sees the machine.

use crate::machines::{ChangeWaiter, MachineClock, Machines, Run};
use crate::mutant::Mutant;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tenure::core::{Evidence, Group, Liveness, Process, Witness};
use tenure::world::{BackgroundTask, Clock, Task, TaskHandle, World};

/// The world of one process.
#[derive(Clone)]
pub struct SimWorld {
    /// All machines.
    pub machines: Arc<Machines>,
    /// On which machine it runs.
    pub machine: usize,
    /// The number of the process.
    pub pid: u32,
}

impl SimWorld {
    /// The world of this process.
    pub fn new(machines: &Arc<Machines>, pid: u32) -> SimWorld {
        SimWorld { machines: machines.clone(), machine: machines.machine_of(pid), pid }
    }

    /// Runs a task while its process runs.
    pub fn in_process(&self, task: Task) -> Task {
        let who = format!("process {}", self.pid);
        let task: Task = Box::pin(self.machines.clone().catch_panic(who, task));
        let change = ChangeWaiter::new(&self.machines);
        Box::pin(InProcess { world: self.clone(), task: Some(task), change })
    }

    fn evidence(&self, process: Option<Process>) -> Evidence {
        Evidence {
            host: format!("host-{}", self.machine),
            machine: self.machines.machine_id(self.machine),
            boot: self.machines.boot_of(self.machine),
            pid_namespace: 1,
            process,
            group: None,
        }
    }

    fn spawn_here(&self, task: Task) -> Option<tokio::task::JoinHandle<()>> {
        // What a dead process leaves behind is dropped after the simulation, and starts nothing.
        (self.machines.run_of(self.pid) != Run::Ended).then(|| tokio::spawn(self.in_process(task)))
    }
}

struct InProcess {
    world: SimWorld,
    task: Option<Task>,
    change: ChangeWaiter,
}

impl Future for InProcess {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.world.machines.run_of(self.world.pid) {
            Run::Running => match &mut self.task {
                Some(task) => task.as_mut().poll(context),
                None => Poll::Ready(()),
            },
            Run::Stopped => {
                self.change.wait(context);
                Poll::Pending
            }
            Run::Ended => Poll::Ready(()),
        }
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        if self.world.machines.run_of(self.world.pid) == Run::Ended
            && let Some(task) = self.task.take()
        {
            self.world.machines.bury(task);
        }
    }
}

async fn sleep(world: SimWorld, time: Duration) {
    let clock = world.clock();
    let until = clock.now().saturating_add(time);
    loop {
        let left = until.saturating_sub(clock.now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(world.machines.true_length(world.machine, left)).await;
    }
}

impl World for SimWorld {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(MachineClock { machines: self.machines.clone(), machine: self.machine })
    }

    fn sleep(&self, time: Duration) -> Task {
        Box::pin(sleep(self.clone(), time))
    }

    fn spawn(&self, task: Task) -> TaskHandle {
        let task = self.spawn_here(task);
        TaskHandle::new(move || task.iter().for_each(|task| task.abort()))
    }

    fn spawn_background(&self, task: Task) -> BackgroundTask {
        match self.machines.mutant() {
            Some(Mutant::KeeperOutlivesProcess) => drop(tokio::spawn(task)),
            _ => drop(self.spawn_here(task)),
        }
        BackgroundTask::unobserved()
    }

    fn random(&self) -> u128 {
        self.machines.random(self.pid)
    }

    fn process_id(&self) -> u32 {
        self.pid
    }

    fn this_machine(&self) -> Evidence {
        self.evidence(None)
    }

    fn this_process(&self) -> Evidence {
        self.evidence(Some(process(self.pid)))
    }

    fn process(&self, pid: u32) -> Option<Evidence> {
        let lives = self.machines.run_of(pid) != Run::Ended;
        lives.then(|| self.evidence(Some(process(pid))))
    }

    fn processes_around(&self) -> Vec<Evidence> {
        vec![]
    }

    fn process_group(&self, leader: u32) -> Group {
        Group { leader, start: Some(process(leader).start) }
    }

    fn witness(&self, _ended_boots: Vec<String>) -> Arc<dyn Witness + Send + Sync> {
        Arc::new(self.clone())
    }

    fn process_ended(&self, evidence: Evidence) -> Task {
        let machines = self.machines.clone();
        let mut change = ChangeWaiter::new(&machines);
        Box::pin(poll_fn(move |context| match evidence.process {
            Some(process) if machines.run_of(process.pid) != Run::Ended => {
                change.wait(context);
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }))
    }
}

impl Witness for SimWorld {
    /// Only a process of this machine and this boot can be judged, as on real machines.
    fn liveness(&self, evidence: &Evidence) -> Liveness {
        let mutant = self.machines.mutant();
        let here = evidence.boot == self.machines.boot_of(self.machine);
        match evidence.process.filter(|_| here) {
            None if mutant == Some(Mutant::UnknownIsDead) => Liveness::Dead,
            None if mutant == Some(Mutant::CloneIsReboot)
                && evidence.machine == self.machines.machine_id(self.machine) =>
            {
                Liveness::Dead
            }
            None => Liveness::Unknown,
            Some(process) => match self.machines.run_of(process.pid) {
                Run::Ended => Liveness::Dead,
                Run::Stopped if mutant == Some(Mutant::StoppedIsDead) => Liveness::Dead,
                Run::Running | Run::Stopped => Liveness::Alive,
            },
        }
    }
}

/// No number is used twice on a simulated machine, so that it may serve as the start too.
fn process(pid: u32) -> Process {
    Process { pid, start: u64::from(pid) }
}
