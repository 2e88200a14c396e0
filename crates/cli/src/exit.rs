//! The exit codes, which are declared in the library: all front ends mean the same by them.

pub(crate) use tenure::exit::Exit;
