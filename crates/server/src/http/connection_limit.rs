//! How many connections there may be, and which one goes when another comes.
//!
//! A connection is a stranger's until a request over it has shown a token that counts, or is known
//! in another way. Strangers get a part of all places, and those of one address half of that part
//! again, on this machine too; when there is no place for another, the one that has been idle for
//! longest is closed. So whoever opens connections and says nothing keeps out nobody but itself,
//! and there is always a place for a health check or for a caller that is about to show its token.

use super::peer::Peer;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// Where a connection comes from, as far as those of one place share a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    /// This machine, by whichever of its loopback addresses.
    Loopback,
    /// A socket in the file system.
    Socket,
    V4(Ipv4Addr),
    /// The first half of an address: a machine has all addresses of the second.
    V6([u16; 4]),
}

impl Source {
    /// That of this peer.
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

/// Places for connections.
#[derive(Clone)]
pub(crate) struct ConnectionLimit {
    shared: Arc<Shared>,
}

struct Shared {
    /// Places in all.
    most: usize,
    /// Of these, at most so many for strangers.
    strangers_max: usize,
    /// Of these, at most so many for strangers from one source.
    each_max: usize,
    /// At most so many for callers that are known, so that there is room for those who come.
    known_max: usize,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Default)]
struct State {
    /// The last number that was given: each connection, and each time that one becomes idle.
    last: u64,
    connections: HashMap<u64, Connection>,
    /// How many strangers there are from each source.
    strangers: HashMap<Source, usize>,
}

struct Connection {
    source: Source,
    is_known: bool,
    /// How many requests are being answered.
    requests: usize,
    /// Ordered by the time since when it is idle, or busy.
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

    /// The source with the most strangers.
    fn heaviest(&self) -> Option<Source> {
        self.strangers.iter().max_by_key(|(_, count)| **count).map(|(source, _)| *source)
    }

    /// Closes the one of these that has been idle, or busy, for longest.
    fn close_oldest(&mut self, fits: impl Fn(&Connection) -> bool) -> bool {
        let found = self.connections.iter().filter(|(_, it)| fits(it));
        let Some((number, _)) = found.min_by_key(|(_, it)| it.since) else { return false };
        let number = *number;
        if let Some(closed) = self.remove(number) {
            closed.close.notify_one();
        }
        true
    }

    /// Closes a stranger from this source: one that is idle, if there is one.
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
    /// So many places in all: three quarters for strangers, half for strangers from one source, and
    /// an eighth that callers who are known do not get.
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

    /// A place for a connection that came in. Waits only while all places are taken by callers that
    /// are known and being answered.
    pub(crate) async fn place(&self, source: Source) -> Place {
        loop {
            let freed = self.shared.freed.notified();
            if let Some(place) = self.try_place(source) {
                return place;
            }
            freed.await;
        }
    }

    /// The same, without waiting.
    pub(crate) fn try_place(&self, source: Source) -> Option<Place> {
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
        let has_asked = AtomicBool::new(false);
        Some(Place { number, close, has_asked, shared: shared.clone() })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// A place that a connection has until this is dropped, or until it is closed for another.
pub(crate) struct Place {
    number: u64,
    close: Arc<Notify>,
    has_asked: AtomicBool,
    shared: Arc<Shared>,
}

impl Place {
    /// Returns when the place is needed for another connection.
    pub(crate) async fn closed(&self) {
        self.close.notified().await;
    }

    /// Whether a request came over this connection.
    pub(crate) fn has_asked(&self) -> bool {
        self.has_asked.load(Ordering::Relaxed)
    }

    /// Notes that the caller is known, for as long as the connection lasts. Says no if too many are
    /// that are being answered.
    pub(crate) fn know(&self) -> bool {
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

    /// Notes that a request is being answered, until the result is dropped.
    pub(crate) fn answer(self: &Arc<Place>) -> Answering {
        self.has_asked.store(true, Ordering::Relaxed);
        self.count(|requests| requests + 1);
        Answering { place: self.clone() }
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

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.lock().remove(self.number);
        self.shared.freed.notify_one();
    }
}

/// A request that is being answered.
pub(crate) struct Answering {
    place: Arc<Place>,
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.place.count(|requests| requests.saturating_sub(1));
        // One that is idle now can be closed for another.
        self.place.shared.freed.notify_one();
    }
}
