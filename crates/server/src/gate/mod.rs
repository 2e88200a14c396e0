//! What every request passes first, and how connections come in.
