//! What `tenure bench` measures: each beside something bare, in the same run, as a ratio.
//!
//! In reading order: `ground` is where it happens; `crew` are the processes that do the work and
//! `worker` is one of them; `floor` is what bare SQLite does, `links` what bare files do, and
//! `soft_lock` a library that uses them. Then the measurements: `pair`, `oneshot`, `handoff`,
//! `fairness`, `idle`, `tasks`, `serve`. `report` words what was found and `plot` draws it.

mod crew;
mod error;
mod fairness;
mod floor;
mod ground;
mod handoff;
mod idle;
mod links;
mod oneshot;
mod pair;
mod plot;
mod report;
mod sample;
mod serve;
mod soft_lock;
mod tasks;
mod worker;

pub(crate) use error::BenchError;
pub(crate) use ground::{Ground, own_program};
pub(crate) use plot::svg;
pub(crate) use report::{Report, table};
pub(crate) use worker::work;

use clap::ValueEnum;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Measurement {
    /// Acquire and release, in one process and in eight
    Pair,
    /// A whole `tenure run` beside `flock`
    Oneshot,
    /// How soon the next waiter has what was released
    Handoff,
    /// The longest wait of eight processes that make durable changes
    Fairness,
    /// What a hundred idle waiters cost
    Idle,
    /// Claim and complete: how many per second, how much a million tasks cost, beside claimd
    Tasks,
    /// Claims over many connections to one server, beside processes that open the store themselves
    Serve,
    /// All of them
    All,
}

impl Measurement {
    /// Each one that is not made of others.
    const EACH: [Measurement; 7] = [
        Measurement::Pair,
        Measurement::Oneshot,
        Measurement::Handoff,
        Measurement::Fairness,
        Measurement::Idle,
        Measurement::Tasks,
        Measurement::Serve,
    ];

    /// What was asked for, without repetition; if nothing was, all about locks.
    pub(crate) fn chosen(asked: &[Measurement]) -> Vec<Measurement> {
        let chosen = |each: &Measurement| match asked {
            [] => !matches!(each, Measurement::Tasks | Measurement::Serve),
            asked => asked.contains(&Measurement::All) || asked.contains(each),
        };
        Self::EACH.into_iter().filter(chosen).collect()
    }

    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Measurement::Pair => "pair",
            Measurement::Oneshot => "oneshot",
            Measurement::Handoff => "handoff",
            Measurement::Fairness => "fairness",
            Measurement::Idle => "idle",
            Measurement::Tasks => "tasks",
            Measurement::Serve => "serve",
            Measurement::All => "all",
        }
    }

    /// Measures it on this ground.
    pub(crate) fn measure(self, ground: &Ground, report: &mut Report) -> Result<(), BenchError> {
        match self {
            Measurement::Pair => pair::measure(ground, report),
            Measurement::Oneshot => oneshot::measure(ground, report),
            Measurement::Handoff => handoff::measure(ground, report),
            Measurement::Fairness => fairness::measure(ground, report),
            Measurement::Idle => idle::measure(ground, report),
            Measurement::Tasks => tasks::measure(ground, report),
            Measurement::Serve => serve::measure(ground, report),
            Measurement::All => {
                Self::EACH.into_iter().try_for_each(|each| each.measure(ground, report))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_measured_once_and_in_order() {
        assert_eq!(Measurement::chosen(&[]), Measurement::EACH[..5]);
        assert_eq!(Measurement::chosen(&[Measurement::All]), Measurement::EACH);
        let asked = [Measurement::Idle, Measurement::Pair, Measurement::Idle];
        assert_eq!(Measurement::chosen(&asked), [Measurement::Pair, Measurement::Idle]);
    }
}
