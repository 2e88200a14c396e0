//! Path globs (being written).
