//! One open store: its connection, and what this process knows of it.

use super::EtcdOptions;
use super::address::Address;
use super::base::{Base, Found, encode};
use super::connection::{Ask, Connection, Write};
use super::error::Failure;
use super::keys::{Family, Keys};
use super::leases::{LeasePool, ReplyLease};
use super::ready::Windows;
use super::records::StoredPlace;
use super::remembered::RememberedLooks;
use super::watches::Watches;
use crate::store::StoreError;
use crate::store::format::etcd::{FORMAT, LogRecord, StoreRecord};
use crate::store::wake_registry::WakeRegistry;
use crate::world::Clock;
use etcd_client::{Compare, CompareOp, TxnOp};
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure_core::{GrantId, WallTime};

/// How often it is looked again for a store that others make at the same moment.
const OPEN_TRIES: u32 = 10;

/// See the module.
pub(super) struct Handle {
    pub(super) connection: Arc<Connection>,
    pub(super) keys: Keys,
    /// Names this handle in the places of its waiters.
    pub(super) mailbox: String,
    /// The waiters of this handle.
    pub(super) wakes: Arc<WakeRegistry>,
    pub(super) watches: Watches,
    pub(super) leases: Arc<LeasePool>,
    pub(super) reply_lease: ReplyLease,
    pub(super) remembered: RememberedLooks,
    pub(super) poll_interval: Duration,
    /// Changes of this handle that were too late once are made one after the other: they would only be
    /// in each other's way.
    pub(super) late: tokio::sync::Mutex<()>,
    clock: Arc<dyn Clock>,
    identity: Mutex<Identity>,
    /// Whether this handle made the store.
    is_new: AtomicBool,
    /// The sections that had tasks when it was last looked.
    sections: Mutex<BTreeSet<String>>,
    /// How far ready tasks of each section are read.
    pub(super) windows: Mutex<Windows>,
}

/// Which store this handle has open.
#[derive(Default)]
struct Identity {
    id: Option<String>,
    is_gone: bool,
    version: Option<String>,
}

impl Handle {
    pub(super) fn new(address: Address, options: EtcdOptions) -> Handle {
        let keys = Keys::new(&address.prefix);
        let mailbox = uuid::Uuid::new_v4().simple().to_string();
        let wakes: Arc<WakeRegistry> = Arc::default();
        let connection = Arc::new(Connection::new(address));
        Handle {
            leases: Arc::new(LeasePool::new(connection.clone())),
            connection,
            watches: Watches::new(&keys, &mailbox, wakes.clone()),
            keys,
            mailbox,
            wakes,
            reply_lease: ReplyLease::default(),
            remembered: RememberedLooks::default(),
            poll_interval: options.poll_interval,
            late: tokio::sync::Mutex::default(),
            clock: options.clock,
            identity: Mutex::default(),
            is_new: AtomicBool::new(false),
            sections: Mutex::default(),
            windows: Mutex::default(),
        }
    }

    /// The store's URL, without its password.
    pub(super) fn url(&self) -> &str {
        &self.connection.address().url
    }

    /// The time of day here: the servers do not tell theirs.
    pub(super) fn now(&self) -> WallTime {
        self.clock.wall()
    }

    /// The version of the servers, once it is known.
    pub(super) fn version(&self) -> Option<String> {
        self.identity.lock().version.clone()
    }

    pub(super) fn saw_version(&self, version: &str) {
        self.identity.lock().version = Some(version.to_owned());
    }

    /// The sections to pick from, as far as they are known: tasks without one first.
    pub(super) fn sections_seen(&self) -> Vec<Option<String>> {
        let sections = self.sections.lock();
        std::iter::once(None).chain(sections.iter().cloned().map(Some)).collect()
    }

    pub(super) fn saw_sections(&self, used: &BTreeSet<String>) {
        let mut sections = self.sections.lock();
        if *sections != *used {
            sections.clone_from(used);
        }
    }

    /// Finds the store, or makes it, when the handle is first used.
    pub(super) async fn open(&self) -> Result<(), Failure> {
        {
            let identity = self.identity.lock();
            if identity.is_gone {
                drop(identity);
                return Err(self.gone());
            }
            if identity.id.is_some() {
                return Ok(());
            }
        }
        let mut retry = self.connection.retry();
        for _ in 0..OPEN_TRIES {
            let asks = [Ask::all(self.keys.stores())];
            let mut pages = self.connection.read(&asks, None).await?;
            match Base::of(&pages.next(), &self.keys, self.url())? {
                Found::Store(base) => {
                    let mut identity = self.identity.lock();
                    identity.id.get_or_insert(base.id);
                    return Ok(());
                }
                Found::Nothing => match self.make().await {
                    Ok(()) => {}
                    // Made or not: the next look tells.
                    Err(Failure::NoAnswer(reason)) => retry.pause(reason).await?,
                    Err(failure) => return Err(failure),
                },
            }
        }
        Err(Failure::NoAnswer("the store is being made and removed all the time".to_owned()))
    }

    /// Makes the store, if nothing is there.
    async fn make(&self) -> Result<(), Failure> {
        let id = uuid::Uuid::new_v4().to_string();
        let log = LogRecord { segment: 1, changes_before: 0, earlier: vec![] };
        let put = |name: &str, value: Vec<u8>| TxnOp::put(self.keys.store(name), value, None);
        let all = self.keys.all();
        let is_empty = Compare::create_revision(all.start, CompareOp::Equal, 0).with_range(all.end);
        let write = Write {
            compares: vec![is_empty],
            operations: vec![
                put("meta", encode(&StoreRecord { format: FORMAT, id })),
                put("log", encode(&log)),
                put("head", b"0".to_vec()),
                put("floor", b"0".to_vec()),
            ],
            ..Write::default()
        };
        if self.connection.write(write).await?.is_some() {
            self.is_new.store(true, Ordering::Relaxed);
            return Ok(());
        }
        // Something is there: a store that was made meanwhile, or keys of something else.
        let asks = [Ask::one(self.keys.store("meta"))];
        match self.connection.read(&asks, None).await?.next().first() {
            Some(_) => Ok(()),
            None => Err(Failure::Refused(StoreError::Corrupt {
                store: self.url().to_owned(),
                reason: "there are keys below its prefix, and its key store/meta is missing"
                    .to_owned(),
                hint: Some(
                    "Use another prefix, restore a backup, or delete all keys of the store."
                        .to_owned(),
                ),
            })),
        }
    }

    /// Whether this handle made the store.
    pub(super) fn is_new(&self) -> bool {
        self.is_new.load(Ordering::Relaxed)
    }

    /// Fails if this is another store than the one that was opened.
    pub(super) fn same_store(&self, base: Base) -> Result<Base, Failure> {
        let is_same = self.identity.lock().id.as_ref() == Some(&base.id);
        if is_same { Ok(base) } else { Err(self.gone()) }
    }

    /// The store that was opened is not there any more, and never will be again for this handle.
    pub(super) fn gone(&self) -> Failure {
        self.identity.lock().is_gone = true;
        Failure::Refused(StoreError::Gone {
            store: self.url().to_owned(),
            reason: "its keys were deleted or replaced".to_owned(),
        })
    }

    /// Reads what concerns the whole store.
    pub(super) async fn base(&self) -> Result<Base, Failure> {
        self.open().await?;
        let mut pages = self.connection.read(&[Ask::all(self.keys.stores())], None).await?;
        match Base::of(&pages.next(), &self.keys, self.url())? {
            Found::Store(base) => self.same_store(*base),
            Found::Nothing => Err(self.gone()),
        }
    }

    /// The mailboxes of all that wait.
    pub(super) async fn mailboxes(&self) -> Result<HashMap<GrantId, String>, Failure> {
        let asks = [Ask::all(self.keys.family(Family::Places))];
        let mut pages = self.connection.read(&asks, None).await?;
        let mut mailboxes = HashMap::new();
        for entry in &pages.next().entries {
            let place = StoredPlace::of(entry, self.url())?;
            mailboxes.insert(place.waiter.grant, place.mailbox);
        }
        Ok(mailboxes)
    }
}
