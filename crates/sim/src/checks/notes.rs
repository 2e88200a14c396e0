//! Requests that may be repeated are carried out once.

use super::observer::Observer;
use std::collections::BTreeMap;

/// The notes that were asked for, and whether the store said that it has them.
#[derive(Default)]
pub struct Notes {
    pub(super) sent: BTreeMap<String, bool>,
}

impl Observer {
    /// A note is about to be sent.
    pub fn notes(&self, text: &str) {
        self.state().notes.sent.insert(text.to_owned(), false);
    }

    /// The store said that it has the note.
    pub fn noted(&self, text: &str) {
        self.state().notes.sent.insert(text.to_owned(), true);
    }
}
