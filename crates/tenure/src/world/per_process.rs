//! Values that a child process must not inherit from its parent.

use crate::platform::process_id;
use std::sync::OnceLock;

/// A value of which each process has its own: after `fork`, the child makes another one. What the
/// parent had is left alone in the child, neither used nor dropped, since its threads, sockets and
/// locks are the parent's.
pub(crate) struct PerProcess<T> {
    first: OnceLock<Box<Node<T>>>,
}

struct Node<T> {
    process: u32,
    /// `None` only while the node is dropped.
    value: Option<T>,
    /// That of a child process, which alone makes it: no other thread exists then.
    next: OnceLock<Box<Node<T>>>,
}

impl<T> Default for PerProcess<T> {
    fn default() -> PerProcess<T> {
        PerProcess::new()
    }
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> PerProcess<T> {
        PerProcess { first: OnceLock::new() }
    }

    /// The value of this process, made now if there is none yet.
    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let process = process_id();
        let mut make = Some(make);
        let mut new = || {
            let value = make.take().map(|make| make());
            Box::new(Node { process, value, next: OnceLock::new() })
        };
        let mut node = self.first.get_or_init(&mut new);
        while node.process != process {
            node = node.next.get_or_init(&mut new);
        }
        node.value.as_ref().expect("a node has its value until it is dropped")
    }

    /// The value of this process, if it has one.
    pub(crate) fn get(&self) -> Option<&T> {
        let process = process_id();
        let mut node = self.first.get();
        while let Some(here) = node.filter(|node| node.process != process) {
            node = here.next.get();
        }
        node?.value.as_ref()
    }
}

impl<T> Drop for Node<T> {
    fn drop(&mut self) {
        if self.process != process_id() {
            std::mem::forget(self.value.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_in_a_process() {
        let value = PerProcess::new();
        assert_eq!(value.get(), None);
        assert_eq!((value.get_or_init(|| 1), value.get_or_init(|| 2)), (&1, &1));
        assert_eq!(value.get(), Some(&1));
    }
}
