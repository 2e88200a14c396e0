//! What was found, in words.

use super::churn::Wrong;
use super::crew::Outcome;
use super::judge::{Judgement, judge};
use super::trial::Trial;
use crate::output::{BAD, GOOD, WARN, styled};
use crate::show;
use serde_json::{Value, json};
use std::time::Duration;

/// What a check on one machine cannot show.
pub(crate) const LIMITS: &str = "This shows exclusion between processes of this machine; it cannot \
                                 show exclusion between machines that share the folder.";

/// Fewer turns or rounds of all processes show nothing.
const ROUNDS_MIN: u64 = 10;

/// All that was found.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) checks: Vec<Check>,
}

/// What a trial found.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) trial: Trial,
    /// Turns, or rounds without turns.
    pub(crate) rounds: u64,
    /// Turns that were taken over from a killed holder.
    pub(crate) takeovers: u64,
    /// Processes that were killed.
    pub(crate) kills: u64,
    pub(crate) took: Duration,
    /// Why the file system cannot do it, where tenure can do without.
    pub(crate) missing: Option<String>,
    /// What was wrong, in one sentence.
    pub(crate) wrong: Option<Wrong>,
}

impl Report {
    pub(super) fn add(&mut self, trial: Trial, outcome: Outcome) {
        self.checks.push(Check::of(trial, outcome));
    }

    /// The first thing that was wrong.
    pub(crate) fn wrong(&self) -> Option<String> {
        self.checks.iter().find_map(|check| {
            check.wrong.as_ref().map(|wrong| format!("{}: {wrong}", check.trial.word()))
        })
    }

    /// Turns and rounds of all trials.
    pub(crate) fn rounds(&self) -> u64 {
        self.checks.iter().map(|check| check.rounds).sum()
    }

    /// Processes that were killed in all trials.
    pub(crate) fn kills(&self) -> u64 {
        self.checks.iter().map(|check| check.kills).sum()
    }

    /// For scripts.
    pub(crate) fn json(&self) -> Value {
        let check = |check: &Check| {
            json!({
                "check": check.trial.word(),
                "ok": check.wrong.is_none(),
                "rounds": check.rounds,
                "kills": check.kills,
                "takeovers": check.takeovers,
                "seconds": show::seconds(check.took),
                "missing": check.missing,
                "message": check.message(),
            })
        };
        json!({
            "exclusive": self.wrong().is_none(),
            "rounds": self.rounds(),
            "kills": self.kills(),
            "checks": self.checks.iter().map(check).collect::<Vec<_>>(),
            "limits": LIMITS,
        })
    }

    /// For people.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.checks.iter().map(Check::line).collect()
    }
}

impl Check {
    fn of(trial: Trial, outcome: Outcome) -> Check {
        let judged = judge(&outcome.turns);
        let unjudged = Judgement { turns: outcome.turns.len() as u64, takeovers: 0 };
        let (judgement, violation) = match judged {
            Ok(judgement) => (judgement, None),
            Err(violation) => (unjudged, Some(violation.to_string())),
        };
        let (missing, needed) = match outcome.missing {
            Some(why) if trial.may_be_missing() => (Some(why), None),
            why => (None, why),
        };
        let mut check = Check {
            trial,
            rounds: judgement.turns + outcome.rounds,
            takeovers: judgement.takeovers,
            kills: outcome.kills,
            took: outcome.took,
            missing,
            wrong: None,
        };
        check.wrong = violation.or(outcome.wrong).or(needed).or_else(|| check.too_little());
        check
    }

    /// What was tried too seldom was not shown.
    fn too_little(&self) -> Option<Wrong> {
        if self.missing.is_some() {
            return None;
        }
        if self.rounds < ROUNDS_MIN {
            let rounds = self.rounds;
            return Some(format!("{rounds} rounds are too few to show anything"));
        }
        let never = self.trial.survives_kills() && self.takeovers == 0;
        never.then(|| "no process took over from one that was killed".to_owned())
    }

    fn message(&self) -> String {
        if let Some(wrong) = &self.wrong {
            return wrong.clone();
        }
        if let Some(why) = &self.missing {
            return format!("not possible on this file system: {why}");
        }
        let (rounds, takeovers) = (self.rounds, self.takeovers);
        match self.trial {
            Trial::Store => {
                format!("{rounds} turns, one at a time, tokens rising, {takeovers} after a kill")
            }
            Trial::KernelLock => format!("{rounds} turns, one at a time, {takeovers} after a kill"),
            Trial::HardLink => format!("{rounds} lock files, one at a time, always whole"),
            Trial::Rename => format!("{rounds} turns, one at a time"),
            Trial::Replace => format!("{rounds} times, always there and whole"),
            Trial::Exchange => format!("{rounds} swaps, none lost"),
        }
    }

    fn line(&self) -> String {
        let mark = match (&self.wrong, &self.missing) {
            (Some(_), _) => styled(BAD, "FAIL"),
            (None, Some(_)) => styled(WARN, "none"),
            (None, None) => styled(GOOD, "ok  "),
        };
        format!("{mark}  {:<12} {}", self.trial.word(), self.message())
    }
}
