//! What a seed decides before a simulation begins: machines, programs, and faults with their times.

use crate::dice::Dice;
use std::fmt;
use std::time::Duration;

/// Faults happen for so long.
pub const TURBULENT: Duration = Duration::from_secs(45);

/// After that programs go on for so long.
pub const CALM: Duration = Duration::from_secs(35);

/// After that every request must be served and every task must end within this time. It is longer
/// than the longest lease, place in a queue and pause before a next try together.
pub const BOUND: Duration = Duration::from_secs(90);

/// The number of the worker that is started when the faults are over.
pub const LAST_WORKER: u64 = 1000;

/// All that a simulation begins with.
#[derive(Clone)]
pub struct Plan {
    /// Which seed.
    pub seed: u64,
    /// The drift of each machine's clock, in millionths. The first is the store's.
    pub drifts_ppm: Vec<i64>,
    /// Whether all machines have the machine id of one image.
    pub are_clones: bool,
    /// The programs, each of which runs in a process of its own.
    pub programs: Vec<Program>,
    /// What goes wrong, and when.
    pub faults: Vec<(Duration, Fault)>,
    /// How often calls go wrong, in thousandths, while faults happen.
    pub trouble_permille: u64,
    /// The longest time that a request or an answer takes when nothing goes wrong.
    pub latency_max_ms: u64,
    /// How much programs do.
    pub pace: Pace,
}

/// How much the programs of a simulation do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Holds of seconds, with pauses between them.
    Steady,
    /// Very many short holds, and few longer than their leases.
    Busy,
}

/// One program and where it runs.
#[derive(Clone, Copy)]
pub struct Program {
    /// Its number, which decides its dice.
    pub number: u64,
    /// On which machine.
    pub machine: usize,
    /// What it does.
    pub kind: Kind,
}

/// What a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Locks of all kinds.
    Locks,
    /// Always the same lock, in a queue.
    Queue,
    /// Takes tasks by itself.
    Worker,
    /// Takes tasks with a swarm of two.
    Swarm,
    /// Adds tasks, and writes notes by requests that may be repeated.
    Producer,
    /// Breaks holds.
    Operator,
    /// Asks for one lock while it keeps another.
    Nested,
    /// Holds leases by its label, tied to no process, and renews them by hand.
    Agent,
}

/// Something that goes wrong.
#[derive(Clone, Copy)]
pub enum Fault {
    /// A program's process is killed, and started anew after this time.
    Kill(u64, Duration),
    /// A program's process is stopped for this time.
    Stop(u64, Duration),
    /// A machine is suspended for this time.
    Suspend(usize, Duration),
    /// A machine is started anew.
    Reboot(usize),
    /// The time of day of a machine is set.
    StepClock(usize, i64),
    /// A machine does not reach the store for this time.
    CutOff(usize, Duration),
    /// The store is down for this time.
    Down(Duration),
    /// The store can write nothing for this time.
    Full(Duration),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Kill(number, after) => {
                write!(f, "program {number} is killed, and starts anew after {after:?}")
            }
            Fault::Stop(number, time) => write!(f, "program {number} is stopped for {time:?}"),
            Fault::Suspend(machine, time) => {
                write!(f, "machine {machine} is suspended for {time:?}")
            }
            Fault::Reboot(machine) => write!(f, "machine {machine} is started anew"),
            Fault::StepClock(machine, ms) => {
                write!(f, "the clock of machine {machine} is set by {ms} ms")
            }
            Fault::CutOff(machine, time) => write!(f, "machine {machine} is cut off for {time:?}"),
            Fault::Down(time) => write!(f, "the store is down for {time:?}"),
            Fault::Full(time) => write!(f, "the store is full for {time:?}"),
        }
    }
}

/// How far clocks drift apart at most: a fifth of the margin by which trust ends early.
const DRIFT_MAX_PPM: u64 = 20_000;

impl Plan {
    /// Whether there are tasks to do.
    pub fn has_tasks(&self) -> bool {
        self.programs.iter().any(|program| program.kind == Kind::Producer)
    }

    /// The plan of this seed.
    pub fn of_seed(seed: u64, pace: Pace) -> Plan {
        let mut dice = Dice::new(seed, 0);
        let machines = 1 + dice.below(4) as usize;
        let mut drifts_ppm = vec![0];
        for _ in 0..machines {
            drifts_ppm.push(dice.below(2 * DRIFT_MAX_PPM) as i64 - DRIFT_MAX_PPM as i64);
        }
        let mut kinds = vec![Kind::Queue, Kind::Queue, Kind::Queue];
        // An idle worker looks for tasks at every change, so that simulations with workers have few
        // acquisitions for the time that they take.
        if pace == Pace::Steady || dice.percent(10) {
            kinds.extend([Kind::Producer, Kind::Worker]);
            for _ in 0..dice.below(3) {
                kinds.push(*dice.pick(&[Kind::Worker, Kind::Swarm]));
            }
        }
        let more = match pace {
            Pace::Steady => 2 + dice.below(3),
            Pace::Busy => 6 + dice.below(8),
        };
        for _ in 0..more {
            kinds.push(*dice.pick(&[Kind::Locks, Kind::Locks, Kind::Locks, Kind::Queue]));
        }
        if dice.percent(30) {
            kinds.push(Kind::Operator);
        }
        if dice.percent(30) {
            kinds.extend([Kind::Nested, Kind::Nested]);
        }
        if dice.percent(40) {
            kinds.extend([Kind::Agent, Kind::Agent]);
        }
        let programs: Vec<Program> = (0..)
            .zip(kinds)
            .map(|(number, kind)| Program {
                number,
                machine: 1 + dice.below(machines as u64) as usize,
                kind,
            })
            .collect();
        let faults =
            (0..dice.below(20)).map(|_| fault(&mut dice, machines as u64, programs.len() as u64));
        let mut faults: Vec<(Duration, Fault)> = faults.collect();
        faults.sort_by_key(|(at, _)| *at);
        let trouble_permille = match pace {
            Pace::Steady => *dice.pick(&[0, 20, 50, 100]),
            Pace::Busy => *dice.pick(&[0, 1, 3, 10]),
        };
        let latency_max_ms = match pace {
            Pace::Steady => 8,
            Pace::Busy => *dice.pick(&[1, 2, 8]),
        };
        let are_clones = dice.percent(30);
        Plan {
            seed,
            drifts_ppm,
            are_clones,
            programs,
            faults,
            trouble_permille,
            latency_max_ms,
            pace,
        }
    }
}

fn fault(dice: &mut Dice, machines: u64, programs: u64) -> (Duration, Fault) {
    let at = dice.time(500, TURBULENT.as_millis() as u64 - 500);
    let machine = 1 + dice.below(machines) as usize;
    let program = dice.below(programs);
    let fault = match dice.below(20) {
        0..=3 => Fault::Kill(program, dice.time(100, 5000)),
        4..=8 => Fault::Stop(program, dice.time(500, 20_000)),
        9..=11 => Fault::Suspend(machine, dice.time(500, 20_000)),
        12 => Fault::Reboot(machine),
        // The store's time of day decides when a failed task is tried again: it is set by seconds only.
        13 => Fault::StepClock(0, dice.below(40_000) as i64 - 20_000),
        14 => Fault::StepClock(machine, dice.below(7_200_000) as i64 - 3_600_000),
        15 | 16 => Fault::CutOff(machine, dice.time(500, 15_000)),
        17 | 18 => Fault::Down(dice.time(100, 8000)),
        _ => Fault::Full(dice.time(100, 8000)),
    };
    (at, fault)
}
