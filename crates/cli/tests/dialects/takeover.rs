//! To come.
pub fn take_one() {}
