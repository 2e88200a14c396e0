//! Simulates many machines over one store, with faults, and checks what their programs were promised.
//!
//! One seed decides everything: [`plan`] says which machines, programs and faults there are, and
//! [`simulation`] runs them in one thread on virtual time. The programs use the real client, keeper,
//! workers and rules over the memory store; [`network`] and [`world`] are where things go wrong.
//! [`checks`] judges only what the programs observe. [`mutant`] names deliberate faults, each of which a
//! checker must notice.

pub mod checks;
pub mod dice;
pub mod engine;
pub mod history;
pub mod machines;
pub mod mutant;
pub mod network;
pub mod parallel;
pub mod plan;
pub mod programs;
pub mod report;
pub mod shrink;
pub mod simulation;
pub mod timeline;
pub mod world;
