//! Calls to the servers: each with a time-out, and reads tried again on another server.

use super::address::Address;
use super::error::Failure;
use super::keys::Keys;
use super::limits::{
    COMPARED_AGAIN, COMPARED_WITHIN, LARGE, LARGE_WRITE_TIMEOUT, PATIENCE, PAUSE_MAX, READ_TIMEOUT,
    WRITE_TIMEOUT,
};
use crate::store::StoreError;
use etcd_client::{
    Client, Compare, Error, GetOptions, KeyValue, ResponseHeader, SortOrder, SortTarget, Txn,
    TxnOp, TxnOpResponse, TxnResponse,
};
use futures_util::future::join_all;
use parking_lot::Mutex;
use std::future::Future;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// The largest answer that is accepted: all holds and places of a large store.
const ANSWER_MAX_BYTES: usize = 512 << 20;

/// How many operations a transaction has at most. More are put into nested transactions: the servers take
/// 128 operations or comparisons, counted along the way down to the innermost transaction.
const FLAT_MAX: usize = 60;

/// How many operations each of two inner levels has, where two levels are not enough.
const DEEP: usize = 34;

/// Connections to the servers of a store, made when they are first used. One server is asked as long as it
/// answers; then the next one is.
pub(super) struct Connection {
    address: Address,
    /// A client for each server. A client for all of them would go on asking one that hangs. It is made anew
    /// after a call that got no answer: its connection may have died silently.
    clients: Vec<Mutex<Option<Client>>>,
    /// Which of them is asked.
    current: watch::Sender<usize>,
    /// The cluster of the server that answered first.
    cluster: OnceLock<u64>,
    /// Whether a server of another cluster was found. It stays so, whichever server answers later.
    is_mixed: AtomicBool,
    /// The servers that were not asked for their cluster yet, and when that was tried last.
    uncompared: tokio::sync::Mutex<Uncompared>,
}

struct Uncompared {
    servers: Vec<usize>,
    tried_at: Option<Instant>,
}

/// One read of some keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ask {
    keys: Range<String>,
    /// Only the first key, whatever the range says.
    one: bool,
    limit: i64,
    descending: bool,
    keys_only: bool,
    count_only: bool,
}

impl Ask {
    /// One key.
    pub(super) fn one(key: String) -> Ask {
        Ask { one: true, ..Ask::all(key.clone()..key) }
    }

    /// All keys in a range.
    pub(super) fn all(keys: Range<String>) -> Ask {
        let (one, descending, keys_only, count_only) = (false, false, false, false);
        Ask { keys, one, limit: 0, descending, keys_only, count_only }
    }

    /// Only the first so many.
    pub(super) fn first(self, limit: usize) -> Ask {
        Ask { limit: i64::try_from(limit).unwrap_or(i64::MAX), ..self }
    }

    /// Only the last so many, last first.
    pub(super) fn last(self, limit: usize) -> Ask {
        Ask { descending: true, ..self.first(limit) }
    }

    /// Without the values.
    pub(super) fn keys_only(self) -> Ask {
        Ask { keys_only: true, ..self }
    }

    /// Only how many there are.
    pub(super) fn count(self) -> Ask {
        Ask { count_only: true, ..self }
    }

    fn operation(&self, revision: Option<i64>) -> TxnOp {
        let mut options = GetOptions::new().with_limit(self.limit);
        if !self.one {
            options = options.with_range(self.keys.end.clone());
        }
        if self.descending {
            options = options.with_sort(SortTarget::Key, SortOrder::Descend);
        }
        if self.keys_only {
            options = options.with_keys_only();
        }
        if self.count_only {
            options = options.with_count_only();
        }
        if let Some(revision) = revision {
            options = options.with_revision(revision);
        }
        TxnOp::get(self.keys.start.clone(), Some(options))
    }
}

/// What a read found.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) entries: Vec<KeyValue>,
    /// How many there are in all, with those beyond the limit.
    pub(super) count: i64,
}

impl Page {
    pub(super) fn first(&self) -> Option<&KeyValue> {
        self.entries.first()
    }
}

/// What several reads found, all at one revision.
pub(super) struct Pages {
    pub(super) revision: i64,
    pages: std::vec::IntoIter<Page>,
}

impl Pages {
    /// The answers to no reads.
    pub(super) fn none(revision: i64) -> Pages {
        Pages { revision, pages: vec![].into_iter() }
    }

    /// Whether there are answers that were not taken.
    pub(super) fn has_more(&self) -> bool {
        self.pages.len() > 0
    }

    /// The answer to the next of the reads, in their order.
    pub(super) fn next(&mut self) -> Page {
        self.pages.next().unwrap_or_default()
    }
}

/// What is to be written, and on which conditions.
#[derive(Clone, Default)]
pub(super) struct Write {
    pub(super) compares: Vec<Compare>,
    pub(super) operations: Vec<TxnOp>,
    /// What is read at the same time, after it was written.
    pub(super) reads: Vec<Ask>,
}

impl Write {
    /// Also reads this, if it is not too much.
    pub(super) fn and_read(&mut self, asks: Vec<Ask>) {
        if self.operations.len() + asks.len() <= FLAT_MAX {
            self.reads = asks;
        }
    }
}

impl Connection {
    pub(super) fn new(address: Address) -> Connection {
        let clients: Vec<Mutex<Option<Client>>> =
            address.endpoints.iter().map(|_| Mutex::default()).collect();
        let servers = if clients.len() > 1 { (0..clients.len()).collect() } else { vec![] };
        // Each handle begins somewhere else, so that the servers share the work.
        let first = super::random_below(clients.len() as u64) as usize;
        let current = watch::Sender::new(first);
        Connection {
            address,
            clients,
            current,
            cluster: OnceLock::new(),
            is_mixed: AtomicBool::new(false),
            uncompared: tokio::sync::Mutex::new(Uncompared { servers, tried_at: None }),
        }
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Which server is asked, to notice when it is another one.
    pub(super) fn current(&self) -> watch::Receiver<usize> {
        self.current.subscribe()
    }

    /// Asks the next server from now on, if no other call decided so already.
    fn turn_away_from(&self, server: usize) {
        let next = (server + 1) % self.clients.len();
        self.current.send_if_modified(|current| {
            let is_meant = *current == server && next != server;
            if is_meant {
                *current = next;
            }
            is_meant
        });
    }

    async fn client(&self, server: usize) -> Result<Client, Failure> {
        if let Some(client) = &*self.clients[server].lock() {
            return Ok(client.clone());
        }
        let options = self.address.options().map_err(Failure::Refused)?;
        let connecting = Client::connect([&self.address.endpoints[server]], Some(options));
        let client = match timeout(READ_TIMEOUT, connecting).await {
            Ok(client) => client.map_err(|error| Failure::of(error, &self.address.url))?,
            Err(_) => return Err(no_answer(READ_TIMEOUT)),
        };
        *self.clients[server].lock() = Some(client.clone());
        Ok(client)
    }

    /// Before a change: asks all servers at once for their cluster. Those that do not answer are asked again
    /// with later changes, now and then; until then they can only be servers that nobody gets an answer from,
    /// or whose answers are late.
    async fn compare_clusters(&self) -> Result<(), Failure> {
        let mut uncompared = self.uncompared.lock().await;
        let is_early = uncompared.tried_at.is_some_and(|tried| tried.elapsed() < COMPARED_AGAIN);
        if uncompared.servers.is_empty() || is_early {
            return Ok(());
        }
        // A key that whoever may use the store may read.
        let key = Keys::new(&self.address.prefix).store("meta");
        let one = async |server: usize| {
            let client = self.client(server).await.ok()?;
            let options = GetOptions::new().with_serializable().with_keys_only();
            let asked = client.kv_client().get(key.as_str(), Some(options)).await;
            asked.ok()?.header().cloned()
        };
        let asking = uncompared.servers.iter().map(|server| timeout(COMPARED_WITHIN, one(*server)));
        let answers = join_all(asking).await;
        let mut silent = Vec::new();
        for (server, answer) in uncompared.servers.iter().zip(answers) {
            match answer.ok().flatten() {
                Some(header) => self.check_cluster(Some(&header))?,
                None => silent.push(*server),
            }
        }
        *uncompared = Uncompared { servers: silent, tried_at: Some(Instant::now()) };
        Ok(())
    }

    /// Makes one call, once. If the server does not answer, the next call goes to another one.
    pub(super) async fn call<T, F>(
        &self,
        limit: Duration,
        call: impl FnOnce(Client) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let server = *self.current.borrow();
        let asking = async {
            let client = self.client(server).await?;
            let answer = call(client).await;
            answer.map_err(|error| Failure::of(error, &self.address.url))
        };
        let answer = timeout(limit, asking).await.unwrap_or_else(|_| Err(no_answer(limit)));
        if let Err(Failure::NoAnswer(reason)) = answer {
            self.turn_away_from(server);
            *self.clients[server].lock() = None;
            let host = self.address.host(server);
            return Err(Failure::NoAnswer(format!("{host} does not answer ({reason})")));
        }
        answer
    }

    /// Fails if a server is of another cluster than the one that answered first: what is held there excludes
    /// nobody here.
    pub(super) fn check_cluster(&self, answer: Option<&ResponseHeader>) -> Result<(), Failure> {
        let Some(header) = answer else { return Ok(()) };
        let is_same = *self.cluster.get_or_init(|| header.cluster_id()) == header.cluster_id();
        if !is_same {
            self.is_mixed.store(true, Ordering::Relaxed);
        }
        if !self.is_mixed.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(Failure::Refused(StoreError::Unsupported {
            what: format!("the servers of {} are of different clusters", self.address.url),
            instead: "Name servers of one cluster; `etcdctl member list` shows them.".to_owned(),
        }))
    }

    /// Makes a call that changes nothing when it is repeated, until it is answered or patience ends.
    pub(super) async fn repeat<T, F>(&self, call: impl Fn(Client) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.repeat_within(READ_TIMEOUT, call).await
    }

    /// The same with another time for each try.
    pub(super) async fn repeat_within<T, F>(
        &self,
        limit: Duration,
        call: impl Fn(Client) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut retry = self.retry();
        loop {
            match self.call(limit, &call).await {
                Err(Failure::NoAnswer(reason)) => retry.pause(reason).await?,
                answer => return answer,
            }
        }
    }

    /// Counts the patience of a series of tries from now on.
    pub(super) fn retry(&self) -> Retry {
        Retry { end: Instant::now() + PATIENCE, pause: Duration::from_millis(10) }
    }

    /// Reads all of these at one revision: the newest, or the one that is given.
    pub(super) async fn read(&self, asks: &[Ask], revision: Option<i64>) -> Result<Pages, Failure> {
        self.read_within(READ_TIMEOUT, asks, revision).await
    }

    /// The same with another time for each try.
    pub(super) async fn read_within(
        &self,
        limit: Duration,
        asks: &[Ask],
        revision: Option<i64>,
    ) -> Result<Pages, Failure> {
        let operations: Vec<TxnOp> = asks.iter().map(|ask| ask.operation(revision)).collect();
        let txn = Txn::new().and_then(nested(operations));
        let answer = self
            .repeat_within(limit, |client| {
                let txn = txn.clone();
                let mut keys = client.kv_client().max_decoding_message_size(ANSWER_MAX_BYTES);
                async move { keys.txn(txn).await }
            })
            .await?;
        self.check_cluster(answer.header())?;
        let mut pages = Vec::with_capacity(asks.len());
        let newest = answer.header().map_or(0, |header| header.revision());
        collect(&answer, &mut pages);
        Ok(Pages { revision: revision.unwrap_or(newest), pages: pages.into_iter() })
    }

    /// Writes, once; returns the revision with what was read, or none where a comparison failed. If no
    /// answer comes, it may have been written or not.
    pub(super) async fn write(&self, write: Write) -> Result<Option<Pages>, Failure> {
        self.compare_clusters().await?;
        let is_large = write.operations.len() >= LARGE;
        let limit = if is_large { LARGE_WRITE_TIMEOUT } else { WRITE_TIMEOUT };
        let txn = write.transaction();
        let answer = self
            .call(limit, |client| {
                let mut keys = client.kv_client();
                async move { keys.txn(txn).await }
            })
            .await?;
        self.check_cluster(answer.header())?;
        let revision = answer.header().map_or(0, |header| header.revision());
        let mut pages = Vec::new();
        collect(&answer, &mut pages);
        Ok(answer.succeeded().then(|| Pages { revision, pages: pages.into_iter() }))
    }

    /// The error of an operation that wrote nothing.
    pub(super) fn unwritten(&self, failure: Failure) -> StoreError {
        failure.unwritten(&self.address.url)
    }
}

fn no_answer(limit: Duration) -> Failure {
    Failure::NoAnswer(format!("waited {} seconds", limit.as_secs_f64()))
}

/// The patience of a series of tries.
pub(super) struct Retry {
    end: Instant,
    pause: Duration,
}

impl Retry {
    /// Waits before the next try; fails when patience ended.
    pub(super) async fn pause(&mut self, reason: String) -> Result<(), Failure> {
        if Instant::now() + self.pause >= self.end {
            return Err(Failure::NoAnswer(reason));
        }
        let _ = timeout_at(self.end, sleep(self.pause)).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Ok(())
    }
}

/// Operations in groups that a server takes, in groups of groups where there are many.
fn nested(operations: Vec<TxnOp>) -> Vec<TxnOp> {
    let grouped = |operations: Vec<TxnOp>, size: usize| -> Vec<TxnOp> {
        let groups = operations.chunks(size);
        groups.map(|group| TxnOp::txn(Txn::new().and_then(group))).collect()
    };
    match operations.len() {
        few if few <= FLAT_MAX => operations,
        many if many <= FLAT_MAX * FLAT_MAX => grouped(operations, FLAT_MAX),
        _ => grouped(grouped(operations, DEEP), DEEP),
    }
}

/// The answers to reads, in their order.
fn collect(answer: &TxnResponse, pages: &mut Vec<Page>) {
    for response in answer.op_responses() {
        match response {
            TxnOpResponse::Get(mut page) => {
                let count = page.count();
                pages.push(Page { entries: page.take_kvs(), count });
            }
            TxnOpResponse::Txn(inner) => collect(&inner, pages),
            TxnOpResponse::Put(_) | TxnOpResponse::Delete(_) => {}
        }
    }
}

impl Write {
    /// All comparisons hold, or nothing is written.
    fn transaction(self) -> Txn {
        let reads = self.reads.iter().map(|ask| ask.operation(None));
        let operations = self.operations.into_iter().chain(reads).collect();
        Txn::new().when(self.compares).and_then(nested(operations))
    }
}

/// Whether each of some nested transactions, with conditions of their own, was made.
pub(super) fn each_made(answer: &TxnResponse) -> Vec<bool> {
    let one = |response: &TxnOpResponse| match response {
        TxnOpResponse::Txn(inner) => inner.succeeded(),
        _ => false,
    };
    answer.op_responses().iter().map(one).collect()
}

impl Connection {
    /// Makes several changes, each on its own conditions, if the common one holds; says which were made.
    pub(super) async fn write_each(
        &self,
        limit: Duration,
        common: Vec<Compare>,
        changes: Vec<Write>,
    ) -> Result<Vec<bool>, Failure> {
        let inner: Vec<TxnOp> =
            changes.into_iter().map(|change| TxnOp::txn(change.transaction())).collect();
        let txn = Txn::new().when(common).and_then(inner);
        let answer = self
            .call(limit, |client| {
                let mut keys = client.kv_client();
                async move { keys.txn(txn).await }
            })
            .await?;
        Ok(if answer.succeeded() { each_made(&answer) } else { vec![] })
    }
}

/// How many changes [`Connection::write_each`] takes at once.
pub(super) const EACH_MAX: usize = FLAT_MAX;
