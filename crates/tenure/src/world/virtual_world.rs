//! A machine for tests: its time passes as fast as there is nothing to do, its randomness comes from
//! a seed, and its processes are stopped and killed by the test.

use super::{BackgroundTask, Clock, Task, TaskHandle, World};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tenure_core::{Evidence, Group, Liveness, Process, WallTime, Witness};
use tokio::time::Instant;

const BOOT: &str = "virtual-boot";

/// A process of a virtual machine, as a client in it sees the machine.
///
/// Time is that of the tokio runtime on which all of it runs: build that with
/// `new_current_thread().enable_time().start_paused(true)`. Everything then happens in an order that
/// depends on the seed and on the program alone.
#[derive(Clone)]
pub struct VirtualWorld {
    machine: Arc<Machine>,
    pid: u32,
}

struct Machine {
    begun: Instant,
    state: Mutex<State>,
}

struct State {
    random: u64,
    processes: BTreeMap<u32, Run>,
    /// Tasks that wait for a process to go on or to end.
    wakers: Vec<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Running,
    Stopped,
    Ended,
}

impl VirtualWorld {
    /// The first process of a new machine. To be called on the runtime whose time it uses.
    pub fn new(seed: u64) -> VirtualWorld {
        let processes = BTreeMap::from([(1, Run::Running)]);
        let state = Mutex::new(State { random: seed, processes, wakers: vec![] });
        VirtualWorld { machine: Arc::new(Machine { begun: Instant::now(), state }), pid: 1 }
    }

    /// Another process of the same machine.
    pub fn start_process(&self) -> VirtualWorld {
        let mut state = self.machine.state();
        let pid = state.processes.len() as u32 + 1;
        state.processes.insert(pid, Run::Running);
        VirtualWorld { machine: self.machine.clone(), pid }
    }

    /// Stops this process, as SIGSTOP does: its tasks and sleeps stand still.
    pub fn stop(&self) {
        self.machine.put(self.pid, Run::Stopped);
    }

    /// Lets this process go on.
    pub fn resume(&self) {
        self.machine.put(self.pid, Run::Running);
    }

    /// Ends this process, as SIGKILL does: its tasks do nothing more.
    pub fn kill(&self) {
        self.machine.put(self.pid, Run::Ended);
    }

    fn evidence(&self, process: Option<Process>) -> Evidence {
        Evidence {
            host: "virtual-host".to_owned(),
            machine: "virtual-machine".to_owned(),
            boot: BOOT.to_owned(),
            pid_namespace: 1,
            process,
            group: None,
        }
    }

    /// Runs a task while its process runs.
    async fn in_process(self, mut task: Task) {
        poll_fn(|context| match self.machine.run_of(self.pid) {
            Run::Running => task.as_mut().poll(context),
            Run::Stopped => self.machine.wait_for_change(context),
            Run::Ended => Poll::Ready(()),
        })
        .await;
    }
}

impl Machine {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn run_of(&self, pid: u32) -> Run {
        self.state().processes.get(&pid).copied().unwrap_or(Run::Ended)
    }

    fn put(&self, pid: u32, run: Run) {
        let mut state = self.state();
        if state.processes.get(&pid) != Some(&Run::Ended) {
            state.processes.insert(pid, run);
        }
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn wait_for_change(&self, context: &Context<'_>) -> Poll<()> {
        self.state().wakers.push(context.waker().clone());
        Poll::Pending
    }

    fn since_begun(&self) -> Duration {
        Instant::now().duration_since(self.begun)
    }
}

impl World for VirtualWorld {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(VirtualClock(self.machine.clone()))
    }

    fn sleep(&self, time: Duration) -> Task {
        Box::pin(self.clone().in_process(Box::pin(tokio::time::sleep(time))))
    }

    fn spawn(&self, task: Task) -> TaskHandle {
        let task = tokio::spawn(self.clone().in_process(task));
        TaskHandle::new(move || task.abort())
    }

    fn spawn_background(&self, task: Task) -> BackgroundTask {
        tokio::spawn(self.clone().in_process(task));
        BackgroundTask::unobserved()
    }

    fn random(&self) -> u128 {
        let mut state = self.machine.state();
        (u128::from(split_mix(&mut state.random)) << 64) | u128::from(split_mix(&mut state.random))
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
        let lives = self.machine.run_of(pid) != Run::Ended;
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
        let machine = self.machine.clone();
        Box::pin(poll_fn(move |context| match evidence.process {
            Some(process) if machine.run_of(process.pid) != Run::Ended => {
                machine.wait_for_change(context)
            }
            _ => Poll::Ready(()),
        }))
    }
}

impl Witness for VirtualWorld {
    fn liveness(&self, evidence: &Evidence) -> Liveness {
        match evidence.process {
            _ if evidence.boot != BOOT => Liveness::Unknown,
            None => Liveness::Unknown,
            Some(process) => match self.machine.run_of(process.pid) {
                Run::Ended => Liveness::Dead,
                Run::Running | Run::Stopped => Liveness::Alive,
            },
        }
    }
}

/// No number is used twice on a virtual machine, so that it may serve as the start too.
fn process(pid: u32) -> Process {
    Process { pid, start: u64::from(pid) }
}

/// The next number of the SplitMix64 generator.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The clock of a virtual machine, which has run for an hour when the test begins.
struct VirtualClock(Arc<Machine>);

impl Clock for VirtualClock {
    fn now(&self) -> Duration {
        Duration::from_secs(3600) + self.0.since_begun()
    }

    fn now_with_suspend(&self) -> Duration {
        self.now()
    }

    fn wall(&self) -> WallTime {
        WallTime(1_700_000_000_000 + self.0.since_begun().as_millis() as i64)
    }

    fn boot(&self) -> String {
        BOOT.to_owned()
    }
}
