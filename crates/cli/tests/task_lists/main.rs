//! Task lists of other programs, worked on in place by those programs and by tenure at once.
//!
//! The other programs are in `foreign/`, written from the documented formats.
#![cfg(unix)]

mod coordination;
mod place;
mod queue;
