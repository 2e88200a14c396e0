//! Limits the number of connections, and chooses which one to close for a new one.
//!
//! A connection is anonymous until a request over it carries a valid token or is authenticated in
//! another way. Anonymous connections get a part of all slots, and those of one address half of
//! that part, on this machine too. When there is no slot for a new connection, the one that has
//! been idle longest is closed. So a client that opens many silent connections only shuts out
//! itself, and there is always a slot for a health check or for a caller that is about to send its
//! token.

use super::peer::Peer;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// The origin of a connection; connections of one origin share a part of the slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    /// This machine, by any of its loopback addresses.
    Loopback,
    /// A Unix socket.
    Socket,
    V4(Ipv4Addr),
    /// The first half of an IPv6 address: a machine can use all addresses of the second half.
    V6([u16; 4]),
}

impl Source {
    /// The source of this peer.
    pub(crate) fn of(peer: &Peer) -> Source {
        match peer.address() {
            None => Source::Socket,
            Some(address) if address.is_loopback() => Source::Loopback,
            Some(IpAddr::V4(address)) => Source::V4(address),
            Some(IpAddr::V6(address)) => {
                let [a, b, c, d, ..] = address.segments();
                Source::V6([a, b, c, d])
            }
        }
    }
}

/// The slots for connections.
#[derive(Clone)]
pub(crate) struct ConnectionLimit {
    shared: Arc<Shared>,
}

struct Shared {
    /// All slots.
    most: usize,
    /// The most slots for anonymous connections.
    strangers_max: usize,
    /// The most slots for anonymous connections from one source.
    each_max: usize,
    /// The most slots for authenticated callers, so that there is room for new connections.
    known_max: usize,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Default)]
struct State {
    /// A counter that orders connections by when they became idle or busy.
    last: u64,
    connections: HashMap<u64, Connection>,
    /// The number of anonymous connections from each source.
    strangers: HashMap<Source, usize>,
}

struct Connection {
    source: Source,
    is_known: bool,
    /// The number of requests in progress.
    requests: usize,
    /// The counter when it became idle or busy.
    since: u64,
    close: Arc<Notify>,
}

impl State {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn strangers(&self) -> usize {
        self.strangers.values().sum()
    }

    /// The source with the most anonymous connections.
    fn heaviest(&self) -> Option<Source> {
        self.strangers.iter().max_by_key(|(_, count)| **count).map(|(source, _)| *source)
    }

    /// Closes the matching connection that has been idle or busy longest.
    fn close_oldest(&mut self, fits: impl Fn(&Connection) -> bool) -> bool {
        let found = self.connections.iter().filter(|(_, it)| fits(it));
        let Some((number, _)) = found.min_by_key(|(_, it)| it.since) else { return false };
        let number = *number;
        if let Some(closed) = self.remove(number) {
            closed.close.notify_one();
        }
        true
    }

    /// Closes an anonymous connection from this source, preferably an idle one.
    fn close_stranger(&mut self, source: Source) -> bool {
        let is_one = |it: &Connection| !it.is_known && it.source == source;
        self.close_oldest(|it| is_one(it) && it.requests == 0) || self.close_oldest(is_one)
    }

    fn remove(&mut self, number: u64) -> Option<Connection> {
        let removed = self.connections.remove(&number)?;
        if !removed.is_known {
            self.forget_stranger(removed.source);
        }
        Some(removed)
    }

    fn forget_stranger(&mut self, source: Source) {
        if let Some(count) = self.strangers.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.strangers.remove(&source);
            }
        }
    }
}

impl ConnectionLimit {
    /// A limit of this many slots: three quarters for anonymous connections, half for those from
    /// one source, and an eighth that authenticated callers cannot use.
    pub(crate) fn new(most: usize) -> ConnectionLimit {
        let most = most.max(1);
        let kept = if most > 1 { most.div_ceil(8) } else { 0 };
        let shared = Shared {
            most,
            strangers_max: (most * 3).div_ceil(4),
            each_max: most.div_ceil(2),
            known_max: most - kept,
            state: Mutex::default(),
            freed: Notify::new(),
        };
        ConnectionLimit { shared: Arc::new(shared) }
    }

    /// A slot for a new connection. It waits only while all slots are taken by authenticated
    /// callers with requests in progress.
    pub(crate) async fn slot(&self, source: Source) -> ConnectionSlot {
        loop {
            let freed = self.shared.freed.notified();
            if let Some(slot) = self.try_slot(source) {
                return slot;
            }
            freed.await;
        }
    }

    /// As [`ConnectionLimit::slot`], without waiting.
    pub(crate) fn try_slot(&self, source: Source) -> Option<ConnectionSlot> {
        let shared = &self.shared;
        let mut state = shared.lock();
        if state.strangers.get(&source).is_some_and(|count| *count >= shared.each_max) {
            state.close_stranger(source);
        } else if state.strangers() >= shared.strangers_max
            && let Some(heaviest) = state.heaviest()
        {
            state.close_stranger(heaviest);
        }
        if state.connections.len() >= shared.most {
            let is_idle = |it: &Connection| it.requests == 0;
            let made_room = state.close_oldest(|it| !it.is_known && is_idle(it))
                || state.close_oldest(is_idle)
                || state.close_oldest(|it| !it.is_known);
            if !made_room {
                return None;
            }
        }
        let (number, close) = (state.next(), Arc::new(Notify::new()));
        let connection = Connection {
            source,
            is_known: false,
            requests: 0,
            since: number,
            close: close.clone(),
        };
        state.connections.insert(number, connection);
        *state.strangers.entry(source).or_default() += 1;
        drop(state);
        let has_sent_request = AtomicBool::new(false);
        Some(ConnectionSlot { number, close, has_sent_request, shared: shared.clone() })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// The slot of a connection, until it is dropped or closed for another.
pub(crate) struct ConnectionSlot {
    number: u64,
    close: Arc<Notify>,
    has_sent_request: AtomicBool,
    shared: Arc<Shared>,
}

impl ConnectionSlot {
    /// Resolves when the slot is needed for another connection.
    pub(crate) async fn closed(&self) {
        self.close.notified().await;
    }

    /// Whether a request came over this connection.
    pub(crate) fn has_sent_request(&self) -> bool {
        self.has_sent_request.load(Ordering::Relaxed)
    }

    /// Marks the caller as authenticated for the rest of the connection. Returns false if too many
    /// authenticated callers have requests in progress.
    pub(crate) fn mark_authenticated(&self) -> bool {
        let mut state = self.shared.lock();
        let Some(own) = state.connections.get(&self.number) else { return false };
        if own.is_known {
            return true;
        }
        let source = own.source;
        let known = state.connections.len() - state.strangers();
        if known >= self.shared.known_max
            && !state.close_oldest(|it| it.is_known && it.requests == 0)
        {
            return false;
        }
        if let Some(own) = state.connections.get_mut(&self.number) {
            own.is_known = true;
        }
        state.forget_stranger(source);
        true
    }

    /// Marks a request as in progress until the result is dropped.
    pub(crate) fn answer(self: &Arc<ConnectionSlot>) -> RequestInProgress {
        self.has_sent_request.store(true, Ordering::Relaxed);
        self.count(|requests| requests + 1);
        RequestInProgress { slot: self.clone() }
    }

    fn count(&self, change: impl Fn(usize) -> usize) {
        let mut state = self.shared.lock();
        let since = state.next();
        if let Some(own) = state.connections.get_mut(&self.number) {
            own.requests = change(own.requests);
            own.since = since;
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.shared.lock().remove(self.number);
        self.shared.freed.notify_one();
    }
}

/// A request in progress.
pub(crate) struct RequestInProgress {
    slot: Arc<ConnectionSlot>,
}

impl Drop for RequestInProgress {
    fn drop(&mut self) {
        self.slot.count(|requests| requests.saturating_sub(1));
        // An idle connection can be closed for another.
        self.slot.shared.freed.notify_one();
    }
}
