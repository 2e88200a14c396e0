//! One simulation: all machines in one thread, on virtual time.

use crate::checks::{FinalState, Observer, names};
use crate::dice::Dice;
use crate::engine::Engine;
use crate::history::{History, Violation};
use crate::machines::{MachineClock, Machines, Run};
use crate::mutant::Mutant;
use crate::network::{Link, Network};
use crate::plan::{BOUND, CALM, Fault, Kind, LAST_WORKER, Plan, Program, TURBULENT};
use crate::programs::Context;
use crate::world::SimWorld;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tenure::Client;
use tenure::core::{Event, Revision};
use tenure::store::{MemoryStore, Store, TaskFilter};

/// How often it is looked whether holders exclude each other, beside when one is told that it holds.
const AUDIT_EVERY: Duration = Duration::from_millis(250);

/// How often the follower reads: some events at a time, and never so late that the store has forgotten
/// some.
const FOLLOW_EVERY: Duration = Duration::from_millis(50);

/// What came of a simulation.
pub struct Outcome {
    /// What happened.
    pub history: History,
    /// Promises that were broken.
    pub violations: Vec<Violation>,
    /// How often a program was told that it holds something.
    pub acquisitions: u64,
    /// How many faults happened.
    pub faults: u64,
    /// How much time passed for the simulated machines.
    pub simulated: Duration,
    /// What the store recorded, where the lines are kept too.
    pub events: Vec<Event>,
}

/// Runs a plan to its end, with a deliberate fault if there is one. Lines and events are not kept.
pub fn simulate(plan: &Plan, mutant: Option<Mutant>) -> Outcome {
    block_on(run(plan, mutant, History::default(), false))
}

/// Runs a plan to its end, and keeps all lines and events.
pub fn simulate_with_lines(plan: &Plan, mutant: Option<Mutant>) -> Outcome {
    block_on(run(plan, mutant, History::with_lines(), false))
}

/// Runs a plan until a promise is broken, and keeps all lines and events.
pub fn simulate_until_violation(plan: &Plan, mutant: Option<Mutant>) -> Outcome {
    block_on(run(plan, mutant, History::with_lines(), true))
}

fn block_on(simulation: impl Future<Output = Outcome>) -> Outcome {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without I/O can be built").block_on(simulation)
}

struct Scene {
    plan: Plan,
    machines: Arc<Machines>,
    observer: Arc<Observer>,
    network: Arc<Network>,
    engine: Arc<Engine>,
    /// The process of each program, and how often it was started.
    processes: Mutex<BTreeMap<u64, (u32, u32)>>,
}

async fn run(plan: &Plan, mutant: Option<Mutant>, history: History, ends_early: bool) -> Outcome {
    let keeps_lines = history.keeps_lines();
    let machines = Machines::new(plan.seed, &plan.drifts_ppm, plan.are_clones, mutant);
    let observer = Observer::new(machines.clone(), history);
    let clock = Arc::new(MachineClock { machines: machines.clone(), machine: 0 });
    let engine = Arc::new(Engine::new(MemoryStore::with_clock(clock), mutant));
    let network = Network::new(engine.clone(), observer.clone(), plan.latency_max_ms);
    let processes = Mutex::default();
    let scene =
        Arc::new(Scene { plan: plan.clone(), machines, observer, network, engine, processes });

    let watching = tokio::spawn(follow(scene.engine.clone(), scene.observer.clone()));
    let auditing = tokio::spawn(audit(scene.observer.clone()));
    for program in &plan.programs {
        start(&scene, *program);
    }
    scene.network.set_trouble(plan.trouble_permille);
    let mut ends = Vec::new();
    for (at, fault) in &plan.faults {
        tokio::time::sleep(at.saturating_sub(scene.observer.now())).await;
        if is_enough(&scene, ends_early) {
            break;
        }
        ends.extend(inject(&scene, *fault));
    }
    while scene.observer.now() < TURBULENT && !is_enough(&scene, ends_early) {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    scene.network.set_trouble(0);
    for end in ends {
        let _ = end.await;
    }
    scene.observer.say("simulation", "the faults are over");
    scene.observer.calm();
    // Tasks of workers that were killed for good are done by this one.
    if plan.has_tasks() {
        start(&scene, Program { number: LAST_WORKER, machine: 1, kind: Kind::Worker });
    }

    let until = TURBULENT + CALM + BOUND;
    while scene.observer.now() < until && !all_ended(&scene) && !is_enough(&scene, ends_early) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    if !is_enough(&scene, ends_early) {
        check_ended(&scene);
        let kept = all_events(&*scene.engine).await;
        let tasks = all_tasks(&*scene.engine).await;
        scene.observer.check_final_state(&FinalState { kept, tasks });
    }
    watching.abort();
    auditing.abort();
    let simulated = scene.observer.now();
    let events = if keeps_lines { all_events(&*scene.engine).await } else { vec![] };
    let (history, violations, acquisitions, faults) = scene.observer.finish();
    // Destructors of killed processes run now, after the checks.
    for (pid, _) in scene.processes.lock().values() {
        scene.machines.set_run(*pid, Run::Ended);
    }
    drop(scene.machines.dig_up());
    Outcome { history, violations, acquisitions, faults, simulated, events }
}

fn all_ended(scene: &Scene) -> bool {
    scene.processes.lock().values().all(|(pid, _)| scene.machines.run_of(*pid) == Run::Ended)
}

fn is_enough(scene: &Scene, ends_early: bool) -> bool {
    ends_early && scene.observer.has_violation()
}

/// Starts the process of a program.
fn start(scene: &Arc<Scene>, program: Program) {
    let pid = scene.machines.start(program.machine);
    let starts = {
        let mut processes = scene.processes.lock();
        let starts = processes.get(&program.number).map_or(1, |(_, starts)| starts + 1);
        processes.insert(program.number, (pid, starts));
        starts
    };
    let who =
        format!("{}{}.{starts}", format!("{:?}", program.kind).to_lowercase(), program.number);
    let purpose = 10 + program.number * 1000 + u64::from(starts) * 2;
    let seed = scene.plan.seed;
    let link = Link::new(&scene.network, pid, &who, Dice::new(seed, purpose));
    let world = SimWorld::new(&scene.machines, pid);
    scene
        .observer
        .say(&who, format_args!("starts on machine {} as process {pid}", program.machine));
    // An agent is the same one when its process is started anew.
    let label = match program.kind {
        Kind::Agent => format!("agent{}", program.number),
        _ => who.clone(),
    };
    let client = Client::builder().label(label).world(world.clone()).with_store(link);
    let client = client.expect("labels of programs are valid");
    let context = Context {
        client,
        world: world.clone(),
        observer: scene.observer.clone(),
        who,
        number: program.number,
        start: starts,
        pace: scene.plan.pace,
        dice: Arc::new(Mutex::new(Dice::new(seed, purpose + 1))),
    };
    let (machines, task) = (scene.machines.clone(), context.run(program.kind));
    let ended = async move {
        task.await;
        machines.set_run(pid, Run::Ended);
    };
    tokio::spawn(world.in_process(Box::pin(ended)));
}

/// Lets something go wrong; returns what puts it right again, if that takes a while.
fn inject(scene: &Arc<Scene>, fault: Fault) -> Option<tokio::task::JoinHandle<()>> {
    let machines = &scene.machines;
    let who = match fault {
        Fault::Kill(number, _) | Fault::Stop(number, _) => format!("program {number}"),
        Fault::Suspend(machine, _)
        | Fault::Reboot(machine)
        | Fault::CutOff(machine, _)
        | Fault::StepClock(machine, _) => {
            format!("machine {machine}")
        }
        Fault::Down(_) | Fault::Full(_) => "store".to_owned(),
    };
    scene.observer.fault(&who, format_args!("FAULT {fault}"));
    let shared = scene.clone();
    Some(match fault {
        Fault::Kill(number, after) => {
            kill(scene, number);
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                restart(&shared, number);
            })
        }
        Fault::Stop(number, time) => {
            let pid = scene.processes.lock().get(&number)?.0;
            machines.set_run(pid, Run::Stopped);
            scene.observer.disturb(pid);
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                shared.observer.disturb(pid);
                shared.machines.set_run(pid, Run::Running);
                shared.observer.say(&format!("program {number}"), "goes on");
            })
        }
        Fault::Suspend(machine, time) => {
            machines.suspend(machine);
            disturb_machine(scene, machine);
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                disturb_machine(&shared, machine);
                shared.machines.resume(machine);
                shared.observer.say(&format!("machine {machine}"), "goes on");
            })
        }
        Fault::Reboot(machine) => {
            let numbers: Vec<u64> = numbers_on(scene, machine);
            numbers.iter().for_each(|number| kill(scene, *number));
            machines.resume(machine);
            machines.reboot(machine);
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(3)).await;
                numbers.iter().for_each(|number| restart(&shared, *number));
            })
        }
        Fault::StepClock(machine, ms) => {
            machines.step_clock(machine, ms);
            return None;
        }
        Fault::CutOff(machine, time) => {
            scene.network.cut_off(machine, true);
            disturb_machine(scene, machine);
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                disturb_machine(&shared, machine);
                shared.network.cut_off(machine, false);
                shared.observer.say(&format!("machine {machine}"), "reaches the store again");
            })
        }
        Fault::Down(time) => {
            scene.network.set_down(true);
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                shared.engine.restarted();
                if shared.machines.mutant() == Some(Mutant::SplitBrain) {
                    let clock = MachineClock { machines: shared.machines.clone(), machine: 0 };
                    let other = MemoryStore::with_clock(Arc::new(clock));
                    shared.network.replace_store(Arc::new(Engine::new(other, None)));
                }
                shared.network.set_down(false);
                shared.observer.say("store", "is up again");
            })
        }
        Fault::Full(time) => {
            scene.network.set_full(true);
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                shared.network.set_full(false);
                shared.observer.say("store", "has space again");
            })
        }
    })
}

fn kill(scene: &Scene, number: u64) {
    if let Some((pid, _)) = scene.processes.lock().get(&number) {
        scene.machines.set_run(*pid, Run::Ended);
        scene.observer.gives_up_all(*pid);
    }
}

fn restart(scene: &Arc<Scene>, number: u64) {
    let program = scene.plan.programs.iter().find(|program| program.number == number);
    let running = scene.processes.lock().get(&number).map(|(pid, _)| scene.machines.run_of(*pid));
    if let Some(program) = program.filter(|_| running == Some(Run::Ended)) {
        start(scene, *program);
    }
}

fn numbers_on(scene: &Scene, machine: usize) -> Vec<u64> {
    let programs = scene.plan.programs.iter().filter(|program| program.machine == machine);
    programs.map(|program| program.number).collect()
}

fn disturb_machine(scene: &Scene, machine: usize) {
    for number in numbers_on(scene, machine) {
        if let Some((pid, _)) = scene.processes.lock().get(&number) {
            scene.observer.disturb(*pid);
        }
    }
}

async fn audit(observer: Arc<Observer>) {
    loop {
        tokio::time::sleep(AUDIT_EVERY).await;
        observer.audit();
    }
}

/// Every program ended by itself: none of its requests is still waiting.
fn check_ended(scene: &Scene) {
    for (number, (pid, _)) in scene.processes.lock().iter() {
        if scene.machines.run_of(*pid) != Run::Ended {
            let text =
                format!("program {number} still waits {BOUND:?} after all others were to end");
            scene.observer.violation(names::LIVENESS, text);
        }
    }
}

/// Reads events little by little, as a follower does.
async fn follow(store: Arc<Engine>, observer: Arc<Observer>) {
    use tenure::store::StoreExt;
    let mut last = Revision::default();
    loop {
        let _ = store.changed(last, Duration::from_secs(5)).await;
        let Ok(events) = store.events(last, 200).await else { return };
        last = events.last().map_or(last, |event| event.revision);
        events.iter().for_each(|event| observer.follows(event));
        tokio::time::sleep(FOLLOW_EVERY).await;
    }
}

async fn all_events(store: &dyn Store) -> Vec<Event> {
    use tenure::store::StoreExt;
    store.events(Revision::default(), u32::MAX).await.expect("the store is in order by now")
}

async fn all_tasks(store: &dyn Store) -> Vec<tenure::core::Task> {
    use tenure::store::StoreExt;
    store.read(&TaskFilter::default()).await.expect("the store is in order by now")
}
