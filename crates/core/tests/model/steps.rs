//! Random steps. Each is small and makes sense in any situation, or is skipped.

use super::line::{Claim, RESOURCES};
use proptest::prelude::*;
use proptest::sample::Index;
use std::fmt;
use tenure_core::Mode;

/// How many processes there are at a time.
pub const ACTORS: usize = 5;

#[derive(Clone)]
pub enum Step {
    /// A process that does not wait asks for something.
    Ask {
        actor: usize,
        claims: Vec<Claim>,
        queues: bool,
        is_tied: bool,
        keeps: bool,
        ttl_ms: u64,
    },
    /// A request is made again as it was: a renewal, a sign of life, a late comer.
    AskAgain(Index),
    /// One who could go asks again.
    Retry(Index),
    /// All of a grant is given back, even if it was lost long ago.
    Release(Index),
    /// An operator breaks one hold.
    Break(Index),
    /// A waiter gives up.
    Leave(Index),
    /// A process dies, and another takes its part.
    Kill {
        actor: usize,
    },
    Pass {
        ms: u64,
    },
    Reap,
}

/// One line per step, so that a failure can be read.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Ask { actor, claims, queues, is_tied, keeps, ttl_ms } => write!(
                f,
                "Ask(actor {actor}, {}, queues {queues}, tied {is_tied}, keeps {keeps}, {ttl_ms} ms)",
                claims.iter().map(|claim| format!("{claim:?}")).collect::<Vec<_>>().join(" + "),
            ),
            Step::AskAgain(pick) => write!(f, "AskAgain({})", pick.index(usize::MAX)),
            Step::Retry(pick) => write!(f, "Retry({})", pick.index(usize::MAX)),
            Step::Release(pick) => write!(f, "Release({})", pick.index(usize::MAX)),
            Step::Break(pick) => write!(f, "Break({})", pick.index(usize::MAX)),
            Step::Leave(pick) => write!(f, "Leave({})", pick.index(usize::MAX)),
            Step::Kill { actor } => write!(f, "Kill(actor {actor})"),
            Step::Pass { ms } => write!(f, "Pass({ms} ms)"),
            Step::Reap => write!(f, "Reap"),
        }
    }
}

fn mode(slots: std::ops::RangeInclusive<u32>) -> impl Strategy<Value = Mode> {
    prop_oneof![
        3 => Just(Mode::Exclusive),
        3 => Just(Mode::Shared),
        2 => slots.prop_map(|of| Mode::Slot { of }),
    ]
}

fn claims(slots: std::ops::RangeInclusive<u32>) -> impl Strategy<Value = Vec<Claim>> {
    let one = (0..RESOURCES.len(), mode(slots));
    prop::collection::vec(one, 1..=3).prop_map(|some| {
        let mut claims: Vec<Claim> = Vec::new();
        for (resource, mode) in some {
            if claims.iter().all(|claim| claim.resource != resource) {
                claims.push(Claim { resource, mode });
            }
        }
        claims
    })
}

pub fn any_step() -> impl Strategy<Value = Step> {
    let ttl_ms = prop_oneof![Just(20_u64), Just(60), Just(1_000)];
    let ask = (0..ACTORS, claims(1..=3), prop::bool::weighted(0.8), any::<bool>(), ttl_ms);
    let ask = (ask, any::<bool>()).prop_map(|((actor, claims, queues, is_tied, ttl_ms), keeps)| {
        Step::Ask { actor, claims, queues, is_tied, keeps, ttl_ms }
    });
    prop_oneof![
        10 => ask,
        4 => any::<Index>().prop_map(Step::AskAgain),
        4 => any::<Index>().prop_map(Step::Retry),
        4 => any::<Index>().prop_map(Step::Release),
        1 => any::<Index>().prop_map(Step::Break),
        1 => any::<Index>().prop_map(Step::Leave),
        1 => (0..ACTORS).prop_map(|actor| Step::Kill { actor }),
        2 => (1..40_u64).prop_map(|ms| Step::Pass { ms }),
        1 => Just(Step::Reap),
    ]
}

/// Steps in a world without death and lapse.
pub fn peaceful_step() -> impl Strategy<Value = Step> {
    any_step().prop_filter_map("peaceful", |step| match step {
        Step::Kill { .. } | Step::Pass { .. } => None,
        step => Some(step),
    })
}

/// Peaceful steps of those who say what they keep while they wait, and who use no resource with
/// several slots: of those, any may come free, so that waiting for one is never refused.
pub fn step_of_the_careful() -> impl Strategy<Value = Step> {
    peaceful_step().prop_map(|step| match step {
        Step::Ask { actor, mut claims, queues, is_tied, ttl_ms, .. } => {
            for claim in &mut claims {
                if matches!(claim.mode, Mode::Slot { .. }) {
                    claim.mode = Mode::Slot { of: 1 };
                }
            }
            Step::Ask { actor, claims, queues, is_tied, keeps: true, ttl_ms }
        }
        step => step,
    })
}
