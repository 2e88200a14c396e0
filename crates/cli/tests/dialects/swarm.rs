//! To come.
pub fn refresh() {}
