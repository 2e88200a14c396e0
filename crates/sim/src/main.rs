//! The simulator's command: `cargo run -p tenure-sim -- --seeds 100`.

#![allow(clippy::print_stdout, reason = "it is a command, and this is its output")]

use clap::Parser;
use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};
use tenure_sim::mutant::Mutant;
use tenure_sim::parallel::in_order;
use tenure_sim::plan::{Pace, Plan};
use tenure_sim::report::{SeedReport, Totals, catch};
use tenure_sim::shrink::shrink;
use tenure_sim::simulation::simulate_with_lines;
use tenure_sim::timeline::timeline;

/// Simulates machines, programs and faults over one store, and checks what the programs were promised.
#[derive(Parser)]
#[command(name = "tenure-sim")]
struct Arguments {
    /// How many seeds to simulate.
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first seed; the others follow it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Simulate seeds for so long, however many that are.
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
    /// Programs with very many short holds.
    #[arg(long)]
    busy: bool,
    /// How many seeds to simulate at once; as many as there are cores unless given. It changes nothing
    /// in what is printed.
    #[arg(long)]
    jobs: Option<usize>,
    /// Simulate deliberate faults instead; each must be caught within so many seeds.
    #[arg(long)]
    mutants: bool,
    /// Only every Nth mutant, beginning with the Kth: the parts K from 0 to N - 1 are all of them together.
    #[arg(long, value_name = "K/N", value_parser = part, default_value = "0/1")]
    part: Part,
    /// Only the mutant of this name, with its shrunk timeline.
    #[arg(long, value_name = "NAME")]
    mutant: Option<String>,
    /// Print the whole history of each seed, and then the events of the store.
    #[arg(long)]
    history: bool,
}

/// One of several parts of the mutants.
#[derive(Clone, Copy)]
struct Part {
    first: usize,
    of: usize,
}

/// Any number K is taken, so that a script can derive it from whatever changes.
fn part(text: &str) -> Result<Part, String> {
    let number = |text: &str| text.parse::<usize>().ok();
    match text.split_once('/').map(|(first, of)| (number(first), number(of))) {
        Some((Some(first), Some(of))) if of > 0 => Ok(Part { first: first % of, of }),
        _ => Err("write K/N, such as 0/5".to_owned()),
    }
}

impl Arguments {
    fn pace(&self) -> Pace {
        if self.busy { Pace::Busy } else { Pace::Steady }
    }

    fn jobs(&self) -> usize {
        self.jobs.unwrap_or_else(|| available_parallelism().map_or(1, usize::from))
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let is_good = match (&arguments.mutant, arguments.mutants) {
        (Some(name), _) => one_mutant(&arguments, name),
        (None, true) => all_mutants(&arguments),
        (None, false) => seeds(&arguments),
    };
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn seeds(arguments: &Arguments) -> bool {
    let begun = Instant::now();
    let mut totals = Totals::default();
    let goes_on = |count: u64| match arguments.duration {
        Some(limit) => begun.elapsed() < limit,
        None => count < arguments.seeds,
    };
    let pace = arguments.pace();
    let work = |count: u64| {
        let report = SeedReport::of(arguments.seed + count, pace);
        let shown = shown(&report, arguments);
        (report, shown)
    };
    in_order(arguments.jobs(), goes_on, work, |(report, shown)| {
        shown.iter().for_each(|line| println!("{line}"));
        totals.add(&report);
    });
    println!(
        "simulated {:.1} hours in {:.1?}",
        totals.simulated.as_secs_f64() / 3600.0,
        begun.elapsed()
    );
    println!("{}", totals.line());
    totals.violations == 0
}

/// What is printed about one seed: its whole history if that was asked for, and the shrunk timeline of
/// a violation.
fn shown(report: &SeedReport, arguments: &Arguments) -> Vec<String> {
    let mut shown = Vec::new();
    let plan = Plan::of_seed(report.seed, arguments.pace());
    if arguments.history {
        let outcome = simulate_with_lines(&plan, None);
        shown.extend(outcome.history.lines.iter().map(ToString::to_string));
        shown.extend(outcome.events.iter().map(|event| format!("{event:?}")));
    }
    if let Some(violation) = report.violations.first() {
        let (plan, outcome) = shrink(&plan, None, violation.checker);
        shown.push(timeline(&plan, &outcome, violation.checker));
    }
    shown
}

fn all_mutants(arguments: &Arguments) -> bool {
    let mut caught = 0;
    let begun = Instant::now();
    let Part { first, of } = arguments.part;
    let mutants: Vec<Mutant> = Mutant::ALL.iter().copied().skip(first).step_by(of).collect();
    let goes_on = |number: u64| number < mutants.len() as u64;
    let work = |number: u64| {
        let mutant = mutants[number as usize];
        (mutant, catch(mutant, arguments.pace(), arguments.seed, arguments.seeds))
    };
    in_order(arguments.jobs(), goes_on, work, |(mutant, found)| match found {
        Some(found) => {
            caught += 1;
            println!(
                "{:<24} caught by {} after {} seeds: {}",
                mutant.name(),
                found.checker,
                found.seeds,
                found.text
            );
        }
        None => {
            println!("{:<24} SURVIVED {} seeds: {}", mutant.name(), arguments.seeds, mutant.what())
        }
    });
    println!("tried in {:.1?}", begun.elapsed());
    println!("mutants={} caught={caught}", mutants.len());
    caught == mutants.len()
}

fn one_mutant(arguments: &Arguments, name: &str) -> bool {
    let Some(mutant) = Mutant::ALL.iter().find(|mutant| mutant.name() == name) else {
        println!("there is no mutant {name}");
        return false;
    };
    let Some(found) = catch(*mutant, arguments.pace(), arguments.seed, arguments.seeds) else {
        println!("{name} SURVIVED {} seeds", arguments.seeds);
        return false;
    };
    let plan = Plan::of_seed(arguments.seed + found.seeds - 1, arguments.pace());
    let (plan, outcome) = shrink(&plan, Some(*mutant), found.checker);
    println!("{}", timeline(&plan, &outcome, found.checker));
    true
}
