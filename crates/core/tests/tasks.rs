//! The rules of tasks: claims and what becomes of them.

#[path = "tasks/world.rs"]
mod world;

#[path = "tasks/finishing.rs"]
mod finishing;
#[path = "tasks/one_fate.rs"]
mod one_fate;
#[path = "tasks/order.rs"]
mod order;
#[path = "tasks/random.rs"]
mod random;
#[path = "tasks/recovering.rs"]
mod recovering;
#[path = "tasks/sections.rs"]
mod sections;
