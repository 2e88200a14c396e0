//! The rules of tasks: claims and what becomes of them.

mod finishing;
mod one_fate;
mod order;
mod random;
mod recovering;
mod sections;
