//! The rules: pure functions from what was seen and what is asked to what to write and answer.

mod acquire;
mod breaking;
mod cycle;
mod draft;
mod leave;
mod reap;
mod release;
mod steady;
pub mod tasks;
mod verify;

pub use acquire::{Ask, Blocker, Grant, Outcome, Owned, Reason, Takeover, acquire};
pub use breaking::{BreakAsk, break_hold};
pub use cycle::{Cycle, CycleStep};
pub use leave::{call_off, leave};
pub(crate) use reap::lapse_words;
pub use reap::{TakeoverReason, gone_holds, gone_reason, gone_waiters, reap};
pub use release::{Proof, ReleaseAsk, Released, release};
pub(crate) use steady::SteadyWitness;
pub use verify::{VerifyAnswer, verify};
