//! Chance that can be repeated.

use std::time::{SystemTime, UNIX_EPOCH};

/// The variable that repeats a run.
const SEED: &str = "FAULTS_SEED";

/// A source of random numbers (SplitMix64), which tells its seed.
pub struct Dice {
    state: u64,
}

impl Dice {
    /// New dice each time, unless `FAULTS_SEED` repeats an earlier run.
    pub fn new() -> Dice {
        let given = std::env::var(SEED).ok().and_then(|text| text.parse().ok());
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let state = given.unwrap_or_else(|| now().as_nanos() as u64);
        println!("{SEED}={state}");
        Dice { state }
    }

    /// Dice that fall the same way each time.
    #[allow(dead_code, reason = "not all tests want that")]
    pub fn seeded(state: u64) -> Dice {
        Dice { state }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}
