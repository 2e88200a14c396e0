//! The report of a selftest, as text and JSON.

use super::exclusion_check::{TurnCounts, check_turns};
use super::file_replacement::Wrong;
use super::processes::Outcome;
use super::trial::Trial;
use crate::output::{BAD, GOOD, WARN, styled};
use crate::show;
use serde_json::{Value, json};
use std::time::Duration;

/// What a test on one machine cannot show.
pub(crate) const LIMITS: &str = "This shows exclusion between processes of one machine; it cannot \
                                 show exclusion between machines that share the folder.";

/// Fewer turns or rounds than this prove nothing.
const ROUNDS_MIN: u64 = 10;

/// The results of all trials.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) checks: Vec<Check>,
}

/// The result of one trial.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) trial: Trial,
    /// Turns, or rounds in a trial without turns.
    pub(crate) rounds: u64,
    /// Turns that followed a killed holder.
    pub(crate) takeovers: u64,
    /// Killed processes.
    pub(crate) kills: u64,
    pub(crate) took: Duration,
    /// A missing feature of the file system that tenure does not need.
    pub(crate) flaw: Option<String>,
    /// A failure in one sentence.
    pub(crate) wrong: Option<Wrong>,
}

impl Report {
    /// The first failure.
    pub(crate) fn wrong(&self) -> Option<String> {
        self.checks.iter().find_map(|check| {
            check.wrong.as_ref().map(|wrong| format!("{}: {wrong}", check.trial.word()))
        })
    }

    /// Turns and rounds of all trials.
    pub(crate) fn rounds(&self) -> u64 {
        self.checks.iter().map(|check| check.rounds).sum()
    }

    /// Killed processes of all trials.
    pub(crate) fn kills(&self) -> u64 {
        self.checks.iter().map(|check| check.kills).sum()
    }

    /// The report as JSON.
    pub(crate) fn json(&self) -> Value {
        let check = |check: &Check| {
            json!({
                "check": check.trial.word(),
                "ok": check.wrong.is_none(),
                "rounds": check.rounds,
                "kills": check.kills,
                "takeovers": check.takeovers,
                "seconds": show::seconds(check.took),
                "flaw": check.flaw,
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

    /// The report as text.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.checks.iter().map(Check::line).collect()
    }
}

impl Check {
    /// The result of a trial; if `strict`, a flaw is a failure.
    pub(super) fn of(trial: Trial, outcome: Outcome, strict: bool) -> Check {
        let unjudged = TurnCounts { turns: outcome.turns.len() as u64, takeovers: 0 };
        let (judgement, violation) = match check_turns(&outcome.turns) {
            Ok(judgement) => (judgement, None),
            Err(violation) => (unjudged, Some(violation.to_string())),
        };
        let flaw = flaw(&outcome);
        let is_wrong = strict || !trial.may_be_flawed();
        let mut check = Check {
            trial,
            rounds: judgement.turns + outcome.rounds,
            takeovers: judgement.takeovers,
            kills: outcome.kills,
            took: outcome.took,
            flaw: flaw.clone().filter(|_| !is_wrong),
            wrong: violation.or(outcome.wrong).or(flaw.filter(|_| is_wrong)),
        };
        if check.wrong.is_none() && outcome.missing.is_none() {
            check.wrong = check.too_little();
        }
        check
    }

    /// A failure if there were too few rounds to prove anything.
    fn too_little(&self) -> Option<Wrong> {
        if self.rounds < ROUNDS_MIN {
            let rounds = self.rounds;
            return Some(format!("{rounds} rounds are too few to prove anything"));
        }
        let never = self.trial.survives_kills() && self.takeovers == 0;
        never.then(|| "no process took over from a killed one".to_owned())
    }

    fn message(&self) -> String {
        if let Some(wrong) = &self.wrong {
            return wrong.clone();
        }
        if let Some(flaw) = &self.flaw {
            return flaw.clone();
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
        let mark = match (&self.wrong, &self.flaw) {
            (Some(_), _) => styled(BAD, "FAIL"),
            (None, Some(_)) => styled(WARN, "note"),
            (None, None) => styled(GOOD, "ok  "),
        };
        format!("{mark}  {:<12} {}", self.trial.word(), self.message())
    }
}

/// What the file system does not support.
fn flaw(outcome: &Outcome) -> Option<String> {
    if let Some(why) = &outcome.missing {
        return Some(format!("not possible on this file system: {why}"));
    }
    let (gaps, rounds) = (outcome.gaps, outcome.rounds);
    let gap = || {
        format!("the file was missing for a moment {gaps} times of {rounds}; never half written")
    };
    (gaps > 0).then(gap)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::exclusion_check::Turn;

    fn turns(count: u64) -> Vec<Turn> {
        let turn = |number| Turn {
            process: 1,
            token: Some(number),
            entered: number * 10,
            left: number * 10 + 5,
            killed: number == 1,
        };
        (1..=count).map(turn).collect()
    }

    #[test]
    fn what_was_tried_too_seldom_was_not_shown() {
        let seen = |turns| Outcome { turns, ..Outcome::default() };
        assert_eq!(Check::of(Trial::Store, seen(turns(20)), false).wrong, None);
        assert!(Check::of(Trial::Store, seen(turns(3)), false).wrong.is_some());
        // No process was killed.
        let unharmed = turns(20).split_off(1);
        assert!(Check::of(Trial::Store, seen(unharmed.clone()), false).wrong.is_some());
        assert_eq!(Check::of(Trial::Rename, seen(unharmed), false).wrong, None);
    }

    #[test]
    fn a_gap_is_wrong_only_where_others_look_at_lock_files() {
        let seen = || Outcome { rounds: 100, gaps: 2, ..Outcome::default() };
        let check = Check::of(Trial::Replace, seen(), false);
        assert!(check.wrong.is_none() && check.flaw.is_some(), "{check:?}");
        let check = Check::of(Trial::Replace, seen(), true);
        assert!(check.wrong.is_some(), "{check:?}");
    }

    #[test]
    fn what_is_needed_must_be_there() {
        let missing = || Outcome { missing: Some("no".to_owned()), ..Outcome::default() };
        assert!(Check::of(Trial::KernelLock, missing(), false).wrong.is_some());
        assert!(Check::of(Trial::Exchange, missing(), false).wrong.is_none());
        assert!(Check::of(Trial::Exchange, missing(), true).wrong.is_some());
    }
}
