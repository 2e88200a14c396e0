//! Everything that is left to chance in a simulation, decided by one seed.

use rand_core::{Rng, SeedableRng};
use rand_xorshift::XorShiftRng;
use std::time::Duration;

/// A random number generator with the questions that a simulation asks.
///
/// Each process and each link has dice of its own, so that taking one fault or one process out of a
/// plan changes as little as possible of the rest: shrinking depends on that.
#[derive(Clone)]
pub struct Dice(XorShiftRng);

impl Dice {
    /// The dice of this seed and purpose.
    pub fn new(seed: u64, purpose: u64) -> Dice {
        let mixed =
            seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ purpose.wrapping_mul(0xd1b5_4a32_d192_ed03);
        let mut rng = XorShiftRng::seed_from_u64(mixed);
        // The first numbers of similar seeds are similar.
        for _ in 0..8 {
            rng.next_u64();
        }
        Dice(rng)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below this one.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end.max(1)
    }

    /// Yes in so many cases of a hundred.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// Yes in so many cases of a thousand.
    pub fn permille(&mut self, chance: u64) -> bool {
        self.below(1000) < chance
    }

    /// A time in whole milliseconds from this one up to that one.
    pub fn time(&mut self, from_ms: u64, to_ms: u64) -> Duration {
        Duration::from_millis(from_ms + self.below(to_ms.saturating_sub(from_ms) + 1))
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}
