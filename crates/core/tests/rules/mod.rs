//! One test per behaviour of the rules, each run in every way in which a store may show itself.

mod cycles;
mod ending;
mod holding;
mod looking;
mod overview;
mod owning;
mod queueing;
mod taking_over;
mod waking;
mod workers;
