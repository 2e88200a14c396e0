//! Messages that wait for a receiver.

use super::message::Message;
use crate::metrics::Metrics;
use parking_lot::Mutex;
use std::collections::VecDeque;
use tokio::sync::Notify;

/// The most messages that wait for one receiver: some hundred kilobytes. Of more, the oldest are dropped.
const MESSAGES_MAX: usize = 1000;

/// Messages in order.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    came: Notify,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Message>,
    /// How many were dropped since the receiver was last told.
    missed: u64,
}

impl Queue {
    /// Adds a message; it never waits.
    pub(super) fn push(&self, message: Message, metrics: &Metrics) {
        let mut waiting = self.waiting.lock();
        if waiting.messages.len() >= MESSAGES_MAX {
            waiting.messages.pop_front();
            waiting.missed += 1;
            metrics.webhook("dropped");
        }
        waiting.messages.push_back(message);
        drop(waiting);
        self.came.notify_one();
    }

    /// The next message; one that says how many were dropped comes first.
    pub(super) async fn next(&self) -> Message {
        loop {
            {
                let mut waiting = self.waiting.lock();
                if waiting.missed > 0 {
                    return Message::missed(std::mem::take(&mut waiting.missed));
                }
                if let Some(message) = waiting.messages.pop_front() {
                    return message;
                }
            }
            self.came.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure::core::Revision;

    #[tokio::test]
    async fn a_full_queue_drops_the_oldest_and_says_so() {
        let (queue, metrics) = (Queue::default(), Metrics::new());
        for n in 0..MESSAGES_MAX as u64 + 3 {
            queue.push(Message::started(Revision(n)), &metrics);
        }
        assert!(queue.next().await.body.contains(r#""server.missed""#));
        let first = queue.next().await.body;
        assert!(first.contains(r#""after_revision":3"#), "{first}");
        for _ in 1..MESSAGES_MAX {
            queue.next().await;
        }
        assert!(queue.waiting.lock().messages.is_empty());
    }
}
