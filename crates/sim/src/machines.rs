//! The simulated machines: their clocks, and which processes run on them.

use crate::dice::Dice;
use crate::mutant::Mutant;
use futures_util::FutureExt;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;
use tenure::core::WallTime;
use tenure::world::{Clock, Task};
use tokio::time::Instant;

/// Every machine has run for an hour when a simulation begins.
const UPTIME: Duration = Duration::from_secs(3600);

/// All machines of a simulation. Machine 0 is that of the store.
pub struct Machines {
    begun: Instant,
    mutant: Option<Mutant>,
    /// Whether all machines have the machine id of one image.
    are_clones: bool,
    state: Mutex<State>,
}

struct State {
    dice: Dice,
    machines: Vec<Machine>,
    processes: BTreeMap<u32, Process>,
    /// The tasks that wait until a process or a machine changes, each under a number of its own.
    wakers: BTreeMap<u64, Waker>,
    waits: u64,
    /// What killed processes were doing. It is dropped after the simulation: a process that is
    /// killed runs no destructors.
    graveyard: Vec<Task>,
    panics: Vec<String>,
}

struct Machine {
    /// How much faster than the others its clock runs, in millionths.
    drift_ppm: i64,
    slept: Duration,
    suspended_at: Option<Duration>,
    wall_step_ms: i64,
    boot: u32,
}

struct Process {
    machine: usize,
    run: Run,
    /// How many random numbers it made, where these are to repeat.
    randoms: u64,
}

/// What a process does now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Run {
    /// It runs.
    Running,
    /// It stands still: it is stopped, or its machine is suspended.
    Stopped,
    /// It was killed or has ended.
    Ended,
}

impl Machines {
    /// So many machines, each with the drift of its clock. To be called on the runtime whose time
    /// they share.
    pub fn new(
        seed: u64,
        drifts_ppm: &[i64],
        are_clones: bool,
        mutant: Option<Mutant>,
    ) -> Arc<Machines> {
        let machine = |drift_ppm: &i64| Machine {
            drift_ppm: *drift_ppm,
            slept: Duration::ZERO,
            suspended_at: None,
            wall_step_ms: 0,
            boot: 1,
        };
        let state = State {
            dice: Dice::new(seed, 1),
            machines: drifts_ppm.iter().map(machine).collect(),
            processes: BTreeMap::new(),
            wakers: BTreeMap::new(),
            waits: 0,
            graveyard: vec![],
            panics: vec![],
        };
        Arc::new(Machines { begun: Instant::now(), mutant, are_clones, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The deliberate fault of this simulation, if there is one.
    pub fn mutant(&self) -> Option<Mutant> {
        self.mutant
    }

    /// The time that only the simulation knows.
    pub fn true_time(&self) -> Duration {
        Instant::now().duration_since(self.begun)
    }

    /// The machine id, which clones of one image share.
    pub fn machine_id(&self, machine: usize) -> String {
        if self.are_clones {
            "machine-of-an-image".to_owned()
        } else {
            format!("machine-{machine}")
        }
    }

    /// 128 random bits for this process.
    pub fn random(&self, pid: u32) -> u128 {
        let mut state = self.state();
        if self.mutant == Some(Mutant::GrantsRepeat)
            && let Some(process) = state.processes.get_mut(&pid)
        {
            process.randoms += 1;
            return ((process.machine as u128 + 1) << 64) | u128::from(process.randoms);
        }
        (u128::from(state.dice.bits()) << 64) | u128::from(state.dice.bits())
    }

    /// Starts a process; no number is used twice.
    pub fn start(&self, machine: usize) -> u32 {
        let mut state = self.state();
        let pid = 100 + state.processes.len() as u32;
        state.processes.insert(pid, Process { machine, run: Run::Running, randoms: 0 });
        pid
    }

    /// On which machine this process runs.
    pub fn machine_of(&self, pid: u32) -> usize {
        self.state().processes[&pid].machine
    }

    /// What this process does now.
    pub fn run_of(&self, pid: u32) -> Run {
        let state = self.state();
        match state.processes.get(&pid) {
            None => Run::Ended,
            Some(process) if process.run == Run::Ended => Run::Ended,
            Some(process) if state.machines[process.machine].suspended_at.is_some() => Run::Stopped,
            Some(process) => process.run,
        }
    }

    /// Stops, continues or kills a process. One that has ended stays so.
    pub fn set_run(&self, pid: u32, run: Run) {
        let mut state = self.state();
        if let Some(process) = state.processes.get_mut(&pid).filter(|one| one.run != Run::Ended) {
            process.run = run;
        }
        wake_all(state);
    }

    /// Suspends a machine: nothing runs on it, and the clock that does not count suspend stands.
    pub fn suspend(&self, machine: usize) {
        let now = self.true_time();
        let mut state = self.state();
        let machine = &mut state.machines[machine];
        machine.suspended_at = machine.suspended_at.or(Some(now));
    }

    /// Resumes a machine.
    pub fn resume(&self, machine: usize) {
        let now = self.true_time();
        let mut state = self.state();
        let machine = &mut state.machines[machine];
        if let Some(since) = machine.suspended_at.take() {
            machine.slept += now - since;
        }
        wake_all(state);
    }

    /// Kills all processes of a machine and starts it anew under another boot id.
    pub fn reboot(&self, machine: usize) {
        let mut state = self.state();
        state.machines[machine].boot += 1;
        for process in state.processes.values_mut().filter(|one| one.machine == machine) {
            process.run = Run::Ended;
        }
        wake_all(state);
    }

    /// Sets the time of day of a machine.
    pub fn step_clock(&self, machine: usize, by_ms: i64) {
        self.state().machines[machine].wall_step_ms += by_ms;
    }

    /// The boot id of a machine.
    pub fn boot_of(&self, machine: usize) -> String {
        format!("boot-{machine}-{}", self.state().machines[machine].boot)
    }

    /// Keeps what a killed process was doing until the simulation is over.
    pub fn bury(&self, task: Task) {
        self.state().graveyard.push(task);
    }

    /// What was buried.
    pub fn dig_up(&self) -> Vec<Task> {
        std::mem::take(&mut self.state().graveyard)
    }

    /// Runs this, and takes note if it panics.
    pub async fn catch_panic(self: Arc<Machines>, who: String, task: impl Future<Output = ()>) {
        if let Err(panic) = AssertUnwindSafe(task).catch_unwind().await {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            self.state().panics.push(format!("{who}: {}", text.unwrap_or_default()));
        }
    }

    /// The panics so far.
    pub fn take_panics(&self) -> Vec<String> {
        std::mem::take(&mut self.state().panics)
    }

    /// How long this much time of a machine's clock takes.
    pub fn true_length(&self, machine: usize, time: Duration) -> Duration {
        let drift = self.state().machines[machine].drift_ppm;
        let nanos = time.as_nanos().min(u128::from(u64::MAX / 4)) * 1_000_000;
        Duration::from_nanos((nanos / (1_000_000 + drift) as u128) as u64 + 1)
    }

    fn local(&self, machine: usize, counts_suspend: bool) -> Duration {
        let now = self.true_time();
        let state = self.state();
        let machine = &state.machines[machine];
        let ran = match counts_suspend {
            true => now,
            false => machine.suspended_at.unwrap_or(now).saturating_sub(machine.slept),
        };
        let nanos = ran.as_nanos() * (1_000_000 + machine.drift_ppm) as u128 / 1_000_000;
        UPTIME + Duration::from_nanos(nanos as u64)
    }

    fn wall(&self, machine: usize) -> i64 {
        let ran = self.local(machine, true).as_millis() as i64;
        1_700_000_000_000 + ran + self.state().machines[machine].wall_step_ms
    }
}

fn wake_all(mut state: MutexGuard<'_, State>) {
    let wakers = std::mem::take(&mut state.wakers);
    drop(state);
    wakers.into_values().for_each(Waker::wake);
}

/// Waits until a process or a machine changes.
pub struct ChangeWaiter {
    machines: Arc<Machines>,
    number: Option<u64>,
}

impl ChangeWaiter {
    /// Waits for nothing yet.
    pub fn new(machines: &Arc<Machines>) -> ChangeWaiter {
        ChangeWaiter { machines: machines.clone(), number: None }
    }

    /// Wakes this task at the next change.
    pub fn wait(&mut self, context: &Context<'_>) {
        let mut state = self.machines.state();
        let number = *self.number.get_or_insert_with(|| {
            state.waits += 1;
            state.waits
        });
        state.wakers.insert(number, context.waker().clone());
    }
}

impl Drop for ChangeWaiter {
    fn drop(&mut self) {
        // A waker may own the last reference to its task, which must not be dropped under the lock.
        let waker = self.number.and_then(|number| self.machines.state().wakers.remove(&number));
        drop(waker);
    }
}

/// The clock of one machine.
pub struct MachineClock {
    /// All machines.
    pub machines: Arc<Machines>,
    /// Which one.
    pub machine: usize,
}

impl Clock for MachineClock {
    fn now(&self) -> Duration {
        let now = self.machines.local(self.machine, false);
        if self.machines.mutant == Some(Mutant::StoreClockIsSet) && self.machine == 0 {
            let step = self.machines.state().machines[0].wall_step_ms;
            return now + Duration::from_millis(step.unsigned_abs());
        }
        now
    }

    fn now_with_suspend(&self) -> Duration {
        let now = self.machines.local(self.machine, true);
        if self.machines.mutant == Some(Mutant::TrustByWallClock) && self.machine != 0 {
            let step_ms = self.machines.state().machines[self.machine].wall_step_ms;
            let step = Duration::from_millis(step_ms.unsigned_abs());
            return if step_ms < 0 { now.saturating_sub(step) } else { now + step };
        }
        now
    }

    fn wall(&self) -> WallTime {
        WallTime(self.machines.wall(self.machine))
    }

    fn boot(&self) -> String {
        self.machines.boot_of(self.machine)
    }
}
