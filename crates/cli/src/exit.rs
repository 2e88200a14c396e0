//! The exit codes, which are declared once: all front ends mean the same by them.

pub(crate) use tenure_frontend::exit::Exit;
