//! One test per behaviour of the rules, each run in every way in which a store may show itself.

mod support;

#[path = "rules/cycles.rs"]
mod cycles;
#[path = "rules/ending.rs"]
mod ending;
#[path = "rules/holding.rs"]
mod holding;
#[path = "rules/looking.rs"]
mod looking;
#[path = "rules/overview.rs"]
mod overview;
#[path = "rules/owning.rs"]
mod owning;
#[path = "rules/queueing.rs"]
mod queueing;
#[path = "rules/taking_over.rs"]
mod taking_over;
#[path = "rules/waking.rs"]
mod waking;
