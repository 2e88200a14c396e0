//! Decides from recorded times whether turns excluded each other. Pure.

use serde::Deserialize;

/// One turn of a process. Times are nanoseconds on the clock that all processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Turn {
    /// The process.
    pub(super) process: u32,
    /// Its token, if there is one.
    pub(super) token: Option<u64>,
    /// The first time at which it certainly held.
    pub(super) entered: u64,
    /// The last time at which it certainly held.
    pub(super) left: u64,
    /// Whether it was killed before it could release.
    pub(super) killed: bool,
}

/// Two turns that should have excluded each other.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    /// Both held at once.
    #[error(
        "two processes held the same lock at once: process {later} entered {microseconds} µs \
         before process {earlier} left"
    )]
    Overlap {
        /// The process that held first.
        earlier: u32,
        /// The process that entered too early.
        later: u32,
        /// The overlap.
        microseconds: u64,
    },
    /// The later turn had a token that was not higher.
    #[error("tokens did not rise: {later} came after {earlier}")]
    Token {
        /// The token of the earlier turn.
        earlier: u64,
        /// The token of the later turn.
        later: u64,
    },
}

/// The counts of a valid sequence of turns.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TurnCounts {
    /// The number of turns.
    pub(crate) turns: u64,
    /// The number of turns after a holder that was killed.
    pub(crate) takeovers: u64,
}

/// Checks all turns of a lock, given in any order.
pub(crate) fn check_turns(turns: &[Turn]) -> Result<TurnCounts, Violation> {
    let mut turns = turns.to_vec();
    turns.sort_by_key(|turn| turn.entered);
    let mut judgement = TurnCounts { turns: turns.len() as u64, takeovers: 0 };
    for pair in turns.windows(2) {
        let [earlier, later] = pair else { continue };
        if later.entered < earlier.left {
            return Err(Violation::Overlap {
                earlier: earlier.process,
                later: later.process,
                microseconds: (earlier.left - later.entered).div_ceil(1000),
            });
        }
        if let (Some(earlier), Some(later)) = (earlier.token, later.token)
            && later <= earlier
        {
            return Err(Violation::Token { earlier, later });
        }
        judgement.takeovers += u64::from(earlier.killed);
    }
    Ok(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(process: u32, token: u64, entered: u64, left: u64) -> Turn {
        Turn { process, token: Some(token), entered, left, killed: false }
    }

    #[test]
    fn turns_one_after_the_other_are_fine_in_whatever_order_they_are_told() {
        let killed = Turn { killed: true, ..turn(2, 5, 20, 30) };
        let turns = [turn(3, 9, 30, 31), turn(1, 4, 10, 20), killed];
        assert_eq!(check_turns(&turns), Ok(TurnCounts { turns: 3, takeovers: 1 }));
        // Without a successor, nothing was taken over.
        assert_eq!(check_turns(&turns[1..]), Ok(TurnCounts { turns: 2, takeovers: 0 }));
        assert_eq!(check_turns(&[]), Ok(TurnCounts::default()));
    }

    #[test]
    fn an_overlap_is_seen() {
        let turns = [turn(1, 4, 10_000, 20_000), turn(2, 5, 19_000, 30_000)];
        let expected = Violation::Overlap { earlier: 1, later: 2, microseconds: 1 };
        assert_eq!(check_turns(&turns), Err(expected));
    }

    #[test]
    fn a_token_that_falls_or_repeats_is_seen() {
        for later in [3, 4] {
            let turns = [turn(1, 4, 10, 20), turn(2, later, 20, 30)];
            assert_eq!(check_turns(&turns), Err(Violation::Token { earlier: 4, later }));
        }
    }
}
