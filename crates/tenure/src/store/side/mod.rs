//! What lies beside a store that processes of one machine share: the queue of those who want to
//! write, and how they wake each other.

mod post;
mod turnstile;

pub(crate) use post::Post;
pub(crate) use turnstile::{Turnstile, is_forbidden, unless_stopped};
