//! The two standing watches of a handle: one for its mailbox, opened before its first waiter takes a place,
//! and one for changes, opened when a caller first waits for one.
//!
//! They are opened at the present: a watch that is opened at a past revision is served with a delay. So
//! after a connection broke, or the servers compacted what was missed, everything may have happened, and
//! all that wait here look again.

use super::base::head_revision;
use super::connection::Connection;
use super::error::Failure;
use super::handle::Handle;
use super::keys::{Keys, last_part};
use crate::store::wake_registry::WakeRegistry;
use crate::watched::Watched;
use etcd_client::{Client, KeyValue, WatchOptions, WatchStream};
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::Revision;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

/// How long it may take to open a watch.
const OPEN_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a caller waits for a watch to be open: servers may have an election just now.
const OPEN_PATIENCE: Duration = Duration::from_secs(8);

/// The pauses between two tries to open a watch.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// See the module.
pub(super) struct Watches {
    mailbox: Standing,
    head: Standing,
    wakes: Arc<WakeRegistry>,
    newest: Arc<Watched<Newest>>,
}

/// What is known of the newest change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Newest {
    pub(super) revision: Revision,
    /// Rises when changes may have been missed.
    pub(super) gaps: u64,
}

/// A watch that is opened again whenever it ends, until its handle is dropped.
struct Standing {
    keys: Range<String>,
    is_open: watch::Sender<bool>,
    task: Mutex<Option<AbortHandle>>,
}

impl Drop for Standing {
    fn drop(&mut self) {
        if let Some(task) = self.task.get_mut().take() {
            task.abort();
        }
    }
}

impl Watches {
    pub(super) fn new(keys: &Keys, mailbox: &str, wakes: Arc<WakeRegistry>) -> Watches {
        let head = keys.store("head");
        Watches {
            mailbox: Standing::new(keys.wakes_of(mailbox)),
            head: Standing::new(head.clone()..format!("{head}\0")),
            wakes,
            newest: Arc::default(),
        }
    }

    /// Returns when the mailbox of this handle is watched.
    pub(super) async fn open_mailbox(&self, handle: &Handle) -> Result<(), Failure> {
        let (woken, missed) = (self.wakes.clone(), self.wakes.clone());
        let wake = move |entry: &KeyValue| {
            if let Some(grant) = last_part(entry.key()).and_then(|text| text.parse().ok()) {
                woken.wake(grant);
            }
        };
        self.mailbox.open(&handle.connection, wake, move || missed.wake_all()).await
    }

    /// Returns when changes are watched.
    pub(super) async fn open_head(&self, handle: &Handle) -> Result<(), Failure> {
        let (seen, missed) = (self.newest.clone(), self.newest.clone());
        let see = move |entry: &KeyValue| {
            let revision = head_revision(entry);
            seen.update(|newest| Newest { revision: newest.revision.max(revision), ..newest });
        };
        let miss = move || missed.update(|newest| Newest { gaps: newest.gaps + 1, ..newest });
        self.head.open(&handle.connection, see, miss).await
    }

    pub(super) fn newest(&self) -> Newest {
        self.newest.get()
    }

    /// Returns when there is something beyond this revision, or something may have been missed.
    pub(super) async fn beyond(&self, since: Revision, known: Newest) {
        self.newest.wait_for(|newest| newest.revision > since || newest.gaps != known.gaps).await;
    }
}

impl Standing {
    fn new(keys: Range<String>) -> Standing {
        Standing { keys, is_open: watch::Sender::new(false), task: Mutex::default() }
    }

    async fn open(
        &self,
        connection: &Arc<Connection>,
        on_put: impl Fn(&KeyValue) + Send + Sync + 'static,
        on_gap: impl Fn() + Send + Sync + 'static,
    ) -> Result<(), Failure> {
        let mut is_open = self.is_open.subscribe();
        {
            let mut task = self.task.lock();
            if task.is_none() {
                let (connection, keys) = (connection.clone(), self.keys.clone());
                let state = self.is_open.clone();
                let running = tokio::spawn(run(connection, keys, state, on_put, on_gap));
                *task = Some(running.abort_handle());
            }
        }
        match timeout(OPEN_PATIENCE, is_open.wait_for(|is_open| *is_open)).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(Failure::NoAnswer("no server accepts a watch".to_owned())),
        }
    }
}

/// Watches for ever.
async fn run(
    connection: Arc<Connection>,
    keys: Range<String>,
    is_open: watch::Sender<bool>,
    on_put: impl Fn(&KeyValue),
    on_gap: impl Fn(),
) {
    let mut pause = PAUSES.0;
    let mut was_open = false;
    loop {
        let mut server = connection.current();
        server.borrow_and_update();
        if let Ok(mut stream) = open(&connection, &keys).await {
            loop {
                let answer = tokio::select! {
                    answer = stream.message() => answer,
                    // A server that stopped answering others will not tell anything here either.
                    _ = server.changed() => break,
                };
                let Ok(Some(answer)) = answer else { break };
                if answer.canceled() {
                    break;
                }
                if answer.created() {
                    is_open.send_replace(true);
                    pause = PAUSES.0;
                    if was_open {
                        on_gap();
                    }
                    was_open = true;
                }
                answer.events().iter().filter_map(|event| event.kv()).for_each(&on_put);
            }
            is_open.send_replace(false);
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

async fn open(connection: &Connection, keys: &Range<String>) -> Result<WatchStream, Failure> {
    let filters = vec![etcd_client::WatchFilterType::NoDelete];
    let options = WatchOptions::new().with_range(keys.end.clone()).with_filters(filters);
    let key = keys.start.clone();
    let call = |client: Client| {
        let mut watches = client.watch_client();
        async move { watches.watch(key, Some(options)).await }
    };
    connection.call(OPEN_TIMEOUT, call).await
}
