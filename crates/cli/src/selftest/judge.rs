//! Whether the turns excluded each other, from the times that their holders noted. Pure.

/// One process's turn. Times are nanoseconds on the clock that all processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// Who.
    pub(super) process: u32,
    /// Under which token, where there are tokens.
    pub(super) token: Option<u64>,
    /// When it certainly held.
    pub(super) entered: u64,
    /// Until when it certainly held.
    pub(super) left: u64,
    /// Whether it was killed before it could let go.
    pub(super) killed: bool,
}

/// Two that should have excluded each other.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Violation {
    /// Both held at once.
    #[error(
        "two processes held the same lock at once: process {later} entered {microseconds} µs \
         before process {earlier} left"
    )]
    Overlap {
        /// Who was first.
        earlier: u32,
        /// Who came too early.
        later: u32,
        /// By how much.
        microseconds: u64,
    },
    /// The later one had the smaller token, or the same.
    #[error("tokens did not rise: {later} came after {earlier}")]
    Token {
        /// The first one's.
        earlier: u64,
        /// The second one's.
        later: u64,
    },
}

/// What was seen where nothing was wrong.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Judgement {
    /// How many turns there were.
    pub(super) turns: u64,
    /// How many of them came after a holder that was killed.
    pub(super) takeovers: u64,
}

/// Judges all turns of a lock, in any order.
pub(super) fn judge(turns: &[Turn]) -> Result<Judgement, Violation> {
    let mut turns = turns.to_vec();
    turns.sort_by_key(|turn| turn.entered);
    let mut judgement = Judgement { turns: turns.len() as u64, takeovers: 0 };
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
        assert_eq!(judge(&turns), Ok(Judgement { turns: 3, takeovers: 1 }));
        // Whom nobody followed was not taken over from.
        assert_eq!(judge(&turns[1..]), Ok(Judgement { turns: 2, takeovers: 0 }));
        assert_eq!(judge(&[]), Ok(Judgement::default()));
    }

    #[test]
    fn an_overlap_is_seen() {
        let turns = [turn(1, 4, 10_000, 20_000), turn(2, 5, 19_000, 30_000)];
        let expected = Violation::Overlap { earlier: 1, later: 2, microseconds: 1 };
        assert_eq!(judge(&turns), Err(expected));
    }

    #[test]
    fn a_token_that_falls_or_repeats_is_seen() {
        for later in [3, 4] {
            let turns = [turn(1, 4, 10, 20), turn(2, later, 20, 30)];
            assert_eq!(judge(&turns), Err(Violation::Token { earlier: 4, later }));
        }
    }
}
