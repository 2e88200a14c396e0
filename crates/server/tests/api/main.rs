//! The JSON API: what each route answers to good and bad requests, to whom, and how often.

mod document;
mod kit;
