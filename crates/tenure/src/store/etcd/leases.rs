//! Leases of etcd: whole seconds, at least two.

use super::connection::Connection;
use super::error::Failure;
use super::limits::{LEASE_TIMEOUT, READ_TIMEOUT};
use etcd_client::LeaseTimeToLiveOptions;
use futures_util::future::join_all;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::GrantId;
use tokio::time::Instant;

/// How long a lease for stored replies lasts, and for how long it is given to new ones: each reply is
/// then kept for ten minutes at least.
const REPLIES: (i64, Duration) = (1260, Duration::from_secs(600));

/// How many leases are kept to be used again: as many as a handle gives back at about the same time.
const SPARES_MAX: usize = 8;

/// How many leases with keys a handle remembers to have got. Those beyond are not used again.
const ATTACHED_MAX: usize = 10_000;

/// How many leases are asked for at the same time.
const AT_ONCE: usize = 64;

/// A lease of so many seconds lasts at least as long as the duration.
pub(super) fn seconds_up(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_nanos().div_ceil(1_000_000_000)).unwrap_or(i64::MAX).max(1)
}

impl Connection {
    /// A new lease of so many seconds. It may be repeated: a lease that is not used ends by itself.
    pub(super) async fn grant_lease(&self, seconds: i64) -> Result<i64, Failure> {
        let call = |client: etcd_client::Client| {
            let mut leases = client.lease_client();
            async move { leases.grant(seconds, None).await }
        };
        Ok(self.repeat(call).await?.id())
    }

    /// Starts a lease anew; fails with [`Failure::NoLease`] if it ended.
    pub(super) async fn keep_lease(&self, id: i64) -> Result<(), Failure> {
        self.keep_lease_within(READ_TIMEOUT, id).await
    }

    /// The same with another time for each try.
    pub(super) async fn keep_lease_within(&self, limit: Duration, id: i64) -> Result<(), Failure> {
        let call = move |client: etcd_client::Client| {
            let mut leases = client.lease_client();
            async move { leases.keep_alive(id).await.map(drop) }
        };
        self.repeat_within(limit, call).await
    }

    /// Starts leases anew; fails if one of them ended.
    pub(super) async fn keep_leases(&self, ids: &[i64]) -> Result<(), Failure> {
        let keeping = ids.iter().map(|id| self.keep_lease(*id));
        join_all(keeping).await.into_iter().collect()
    }

    /// Ends a lease with all keys that are attached to it.
    pub(super) async fn revoke_lease(&self, id: i64) -> Result<(), Failure> {
        let call = move |client: etcd_client::Client| {
            let mut leases = client.lease_client();
            async move { leases.revoke(id).await.map(drop) }
        };
        self.call(LEASE_TIMEOUT, call).await
    }

    /// Whether nothing is attached to a lease that lives.
    async fn is_unused(&self, id: i64) -> Result<bool, Failure> {
        let call = move |client: etcd_client::Client| {
            let mut leases = client.lease_client();
            let options = LeaseTimeToLiveOptions::new().with_keys();
            async move { leases.time_to_live(id, Some(options)).await }
        };
        let answer = self.call(LEASE_TIMEOUT, call).await?;
        Ok(answer.ttl() >= 0 && answer.keys().is_empty())
    }
}

/// Leases of holds and places that ended, to be used again: to start one anew costs no write, while to end
/// one and to make another costs two.
///
/// A lease is used again only by the handle that got it, and only when changes of this handle deleted all
/// keys that it attached. So no two handles use one, and a handle that deletes keys of another one's lease
/// can end it.
pub(super) struct LeasePool {
    connection: Arc<Connection>,
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    spare: Vec<Spare>,
    /// The leases that this handle got and attached keys to.
    attached: HashMap<i64, Attached>,
}

/// A lease without keys.
struct Spare {
    id: i64,
    seconds: i64,
    /// When it was last started, or earlier.
    since: Instant,
}

/// A lease with keys.
struct Attached {
    seconds: i64,
    since: Instant,
    keys: HashSet<String>,
}

/// A lease that a change is about to use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) id: i64,
    seconds: i64,
    since: Instant,
    /// Whether it must be started anew.
    is_spare: bool,
}

impl Spare {
    /// Whether it lives on long enough to be used and started anew at the same time.
    fn is_fresh(&self) -> bool {
        self.since.elapsed() * 2 < Duration::from_secs(self.seconds.unsigned_abs())
    }
}

impl LeasePool {
    pub(super) fn new(connection: Arc<Connection>) -> LeasePool {
        LeasePool { connection, state: Mutex::default() }
    }

    /// A lease of so many seconds: a new one, or one that the caller must start anew.
    async fn get(&self, seconds: i64) -> Result<Taken, Failure> {
        if let Some(Spare { id, seconds, since }) = self.take_spare(seconds) {
            return Ok(Taken { id, seconds, since, is_spare: true });
        }
        let since = Instant::now();
        let id = self.connection.grant_lease(seconds).await?;
        Ok(Taken { id, seconds, since, is_spare: false })
    }

    fn take_spare(&self, seconds: i64) -> Option<Spare> {
        let mut state = self.state.lock();
        state.spare.retain(Spare::is_fresh);
        let index = state.spare.iter().position(|spare| spare.seconds == seconds)?;
        Some(state.spare.swap_remove(index))
    }

    /// A change attached these keys to leases that it took.
    pub(super) fn attach(&self, taken: &[Taken], keys: &[(String, i64)]) {
        let mut state = self.state.lock();
        if state.attached.len() > ATTACHED_MAX {
            state.attached.clear();
        }
        for Taken { id, seconds, since, .. } in taken {
            let keys = keys.iter().filter(|(_, lease)| lease == id);
            let keys: HashSet<String> = keys.map(|(key, _)| key.clone()).collect();
            if !keys.is_empty() {
                let attached = Attached { seconds: *seconds, since: *since, keys };
                state.attached.insert(*id, attached);
            }
        }
    }

    /// A change deleted these keys, or attached them to another lease. Keeps the leases that are unused
    /// now; ends others in the background.
    pub(super) fn detach(self: &Arc<Self>, keys: &[(String, i64)]) {
        let mut ended = HashSet::new();
        let mut state = self.state.lock();
        for (key, lease) in keys {
            let Some(attached) = state.attached.get_mut(lease) else {
                // Its handle does not use it again, because it did not delete this key itself.
                ended.insert(*lease);
                continue;
            };
            if !attached.keys.remove(key) || !attached.keys.is_empty() {
                continue;
            }
            let Attached { seconds, since, .. } =
                state.attached.remove(lease).expect("it was just there");
            let spare = Spare { id: *lease, seconds, since };
            state.spare.retain(Spare::is_fresh);
            if state.spare.len() < SPARES_MAX && spare.is_fresh() {
                state.spare.push(spare);
            } else {
                ended.insert(*lease);
            }
        }
        drop(state);
        self.end_unused(ended.into_iter().collect());
    }

    /// Ends leases that nothing will be attached to any more, in the background, unless they have keys.
    pub(super) fn end_unused(&self, leases: Vec<i64>) {
        if leases.is_empty() {
            return;
        }
        let connection = self.connection.clone();
        tokio::spawn(async move {
            for id in leases {
                if let Ok(true) = connection.is_unused(id).await {
                    // Where that fails, it ends by itself later.
                    let _ = connection.revoke_lease(id).await;
                }
            }
        });
    }
}

/// What a lease is for: the holds of a grant have others than its place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LeaseUse {
    pub(super) grant: GrantId,
    pub(super) seconds: i64,
    pub(super) place: bool,
}

/// The leases that one transaction got, through all of its tries.
#[derive(Default)]
pub(super) struct LeaseBook {
    leases: HashMap<LeaseUse, Taken>,
}

impl LeaseBook {
    /// The lease for this use: one of an earlier try, if it is fresh enough, or a new one.
    pub(super) async fn get(&mut self, pool: &LeasePool, wanted: LeaseUse) -> Result<i64, Failure> {
        self.get_all(pool, HashSet::from([wanted])).await?;
        Ok(self.leases.get(&wanted).map_or(0, |taken| taken.id))
    }

    /// Gets many leases at once: a batch of claims has one for each.
    pub(super) async fn get_all(
        &mut self,
        pool: &LeasePool,
        wanted: HashSet<LeaseUse>,
    ) -> Result<(), Failure> {
        let is_fresh = |taken: &Taken| {
            taken.since.elapsed() * 2 < Duration::from_secs(taken.seconds.unsigned_abs())
        };
        let missing = wanted.into_iter();
        let missing = missing.filter(|wanted| !self.leases.get(wanted).is_some_and(is_fresh));
        let missing: Vec<LeaseUse> = missing.collect();
        for missing in missing.chunks(AT_ONCE) {
            let getting = missing.iter().map(|wanted| pool.get(wanted.seconds));
            for (wanted, taken) in missing.iter().zip(join_all(getting).await) {
                self.leases.insert(*wanted, taken?);
            }
        }
        Ok(())
    }

    /// A lease that lasts from now on.
    pub(super) async fn get_started(
        &mut self,
        pool: &LeasePool,
        wanted: LeaseUse,
    ) -> Result<i64, Failure> {
        loop {
            let id = self.get(pool, wanted).await?;
            if !self.leases.get(&wanted).is_some_and(|taken| taken.is_spare) {
                return Ok(id);
            }
            let since = Instant::now();
            match pool.connection.keep_lease(id).await {
                Ok(()) => self.started(&[id], since),
                Err(Failure::NoLease) => drop(self.leases.remove(&wanted)),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Those that must be started anew, if they are used.
    pub(super) fn spares(&self, used: &[(String, i64)]) -> Vec<i64> {
        let used: HashSet<i64> = used.iter().map(|(_, lease)| *lease).collect();
        let spares = self.leases.values().filter(|taken| taken.is_spare);
        spares.map(|taken| taken.id).filter(|id| used.contains(id)).collect()
    }

    /// They were started anew at this time or later.
    pub(super) fn started(&mut self, spares: &[i64], since: Instant) {
        for taken in self.leases.values_mut().filter(|taken| spares.contains(&taken.id)) {
            (taken.is_spare, taken.since) = (false, since);
        }
    }

    /// A lease ended early: the next ones are new.
    pub(super) fn forget_all(&mut self) {
        self.leases.clear();
    }

    /// Takes out those that keys were attached to.
    pub(super) fn use_up(&mut self, attached: &[(String, i64)]) -> Vec<Taken> {
        let used: HashSet<i64> = attached.iter().map(|(_, lease)| *lease).collect();
        let used = self.leases.extract_if(|_, taken| used.contains(&taken.id));
        used.map(|(_, taken)| taken).collect()
    }

    /// Those that are left.
    pub(super) fn left(&self) -> Vec<i64> {
        self.leases.values().map(|taken| taken.id).collect()
    }
}

/// The lease that new stored replies are attached to.
#[derive(Default)]
pub(super) struct ReplyLease {
    current: tokio::sync::Mutex<Option<(i64, Instant)>>,
}

impl ReplyLease {
    pub(super) async fn get(&self, connection: &Connection) -> Result<i64, Failure> {
        let mut current = self.current.lock().await;
        if let Some((id, since)) = *current
            && since.elapsed() < REPLIES.1
        {
            return Ok(id);
        }
        let since = Instant::now();
        let id = connection.grant_lease(REPLIES.0).await?;
        *current = Some((id, since));
        Ok(id)
    }

    /// The lease is gone, for example with the data of the servers.
    pub(super) async fn forget(&self) {
        *self.current.lock().await = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::etcd::address::Address;
    use crate::url::StoreUrl;

    fn pool() -> Arc<LeasePool> {
        let Ok(StoreUrl::Etcd(url)) = "etcd://127.0.0.1:1/x".parse() else { panic!("a URL") };
        let address = Address::of(&url).unwrap();
        Arc::new(LeasePool::new(Arc::new(Connection::new(address))))
    }

    fn taken(id: i64) -> Taken {
        Taken { id, seconds: 30, since: Instant::now(), is_spare: false }
    }

    fn keys(lease: i64, names: &[&str]) -> Vec<(String, i64)> {
        names.iter().map(|name| ((*name).to_owned(), lease)).collect()
    }

    #[tokio::test]
    async fn a_lease_is_spare_once_this_handle_deleted_all_its_keys() {
        let pool = pool();
        pool.attach(&[taken(1)], &keys(1, &["a", "b"]));
        pool.detach(&keys(1, &["a"]));
        assert!(pool.take_spare(30).is_none(), "a key is left");
        pool.detach(&keys(1, &["b"]));
        assert!(pool.take_spare(20).is_none(), "it has another length");
        assert_eq!(pool.take_spare(30).map(|spare| spare.id), Some(1));
        assert!(pool.take_spare(30).is_none(), "it is used by one");
        pool.detach(&keys(1, &["a", "b"]));
        assert!(pool.take_spare(30).is_none(), "it is in use again, and not by these keys");
    }

    #[tokio::test]
    async fn a_lease_of_another_handle_is_never_spare() {
        let pool = pool();
        pool.detach(&keys(2, &["a"]));
        assert!(pool.take_spare(30).is_none());
        // Nor one of which another handle deleted a key.
        pool.attach(&[taken(3)], &keys(3, &["a", "b"]));
        pool.detach(&keys(3, &["b"]));
        assert!(pool.take_spare(30).is_none());
    }

    #[test]
    fn leases_are_whole_seconds_and_never_shorter() {
        let seconds = |ms| seconds_up(Duration::from_millis(ms));
        assert_eq!([seconds(2000), seconds(2001), seconds(0)], [2, 3, 1]);
    }
}
