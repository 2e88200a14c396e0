//! The tests of the rules, in one program: tables for each rule, and random histories against
//! simple models.
//!
//! `support` is the store of these tests, `rules` has the rules of holding and queueing, `tasks`
//! the rules of tasks, `acts` what acts add to the rules, and `model` the random histories of locks
//! and tasks.

mod acts;
mod model;
mod rules;
mod support;
mod tasks;
