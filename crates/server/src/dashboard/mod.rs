//! The page that people look at.
