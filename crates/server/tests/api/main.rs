//! The JSON API: what each route answers to good and bad requests, to whom, and how often.

mod bad_input;
mod document;
mod events;
mod kit;
mod labels;
mod listing;
mod locks;
mod queue;
mod repeats;
mod roles;
mod secrets;
mod sections;
mod tasks;
mod work;
