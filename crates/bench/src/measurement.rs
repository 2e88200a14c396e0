//! The measurements, and which of them are taken.

use crate::report::Report;
use crate::{BenchError, BenchSetup, fairness, handoff, idle, oneshot, pair, serve, tasks};
use clap::ValueEnum;

/// The measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Measurement {
    /// Acquire and release, in one process and in eight
    Pair,
    /// A whole `tenure run` compared with `flock`
    Oneshot,
    /// How soon the next waiter obtains a released lock
    Handoff,
    /// The longest wait of eight processes that make durable changes
    Fairness,
    /// The processor time of a hundred idle waiters
    Idle,
    /// Claim and complete: rate, cost of a million tasks, compared with claimd
    Tasks,
    /// Claims over many connections to one server, compared with processes that open the store
    Serve,
    /// All measurements
    All,
}

impl Measurement {
    /// Each measurement that is not a group.
    const EACH: [Measurement; 7] = [
        Measurement::Pair,
        Measurement::Oneshot,
        Measurement::Handoff,
        Measurement::Fairness,
        Measurement::Idle,
        Measurement::Tasks,
        Measurement::Serve,
    ];

    /// The requested measurements without repetition; by default all about locks.
    pub(crate) fn chosen(asked: &[Measurement]) -> Vec<Measurement> {
        let chosen = |each: &Measurement| match asked {
            [] => !matches!(each, Measurement::Tasks | Measurement::Serve),
            asked => asked.contains(&Measurement::All) || asked.contains(each),
        };
        Self::EACH.into_iter().filter(chosen).collect()
    }

    /// The name of the measurement.
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

    /// Whether it runs the `tenure` command; `serve` starts no server if one was named.
    pub(crate) fn runs_commands(self, is_server: bool) -> bool {
        match self {
            Measurement::Pair | Measurement::Handoff | Measurement::Fairness => false,
            Measurement::Serve => !is_server,
            Measurement::Oneshot | Measurement::Idle | Measurement::Tasks | Measurement::All => {
                true
            }
        }
    }

    /// Runs the measurement.
    pub(crate) fn measure(self, setup: &BenchSetup, report: &mut Report) -> Result<(), BenchError> {
        match self {
            Measurement::Pair => pair::measure(setup, report),
            Measurement::Oneshot => oneshot::measure(setup, report),
            Measurement::Handoff => handoff::measure(setup, report),
            Measurement::Fairness => fairness::measure(setup, report),
            Measurement::Idle => idle::measure(setup, report),
            Measurement::Tasks => tasks::measure(setup, report),
            Measurement::Serve => serve::measure(setup, report),
            Measurement::All => {
                Self::EACH.into_iter().try_for_each(|each| each.measure(setup, report))
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
